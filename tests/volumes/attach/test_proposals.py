"""Which attachments and detachments are proposed, and what their steps do to the datamesh."""

from __future__ import annotations

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.rv import Comparison, ComparisonReason
from quorate.volumes.attach import changes
from quorate.volumes.attach.proposals import proposals
from quorate.volumes.datamesh import config_of
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import ONE, THREE, TIE, TWO, attached, of, transition, with_two_allowed
from tests.volumes.replica.making import NOW, A, D, name, spoilt, with_device, with_member, with_rv

ATTACH, DETACH = TransitionType.ATTACH, TransitionType.DETACH
ENABLE, DISABLE = TransitionType.ENABLE_MULTIATTACH, TransitionType.DISABLE_MULTIATTACH


def proposed(view: VolumeView) -> list[tuple[TransitionType, str | None]]:
    return list(proposals(view))


def noted(view: VolumeView, **changed: object) -> VolumeView:
    fields = {"revision": 6, "reason": ComparisonReason.RESIZE, "since": NOW, "reference": name(0), **changed}
    return with_rv(view, comparisons=(Comparison(**fields),))  # type: ignore[arg-type]


@pytest.mark.parametrize("replication", [ONE, TWO, TIE, THREE])
def test_nobody_asks_and_nothing_is_proposed(replication: Replication) -> None:
    assert proposed(of(replication)) == []


def test_the_first_is_attached_and_stays() -> None:
    assert proposed(of(THREE, 0)) == [(ATTACH, name(0))]
    assert proposed(attached(of(THREE, 0), 0)) == []


def test_who_is_not_asked_for_is_detached_before_anybody_comes() -> None:
    assert proposed(attached(of(THREE, 1), 0)) == [(DETACH, name(0)), (ATTACH, name(1))]


def test_a_deleting_volume_only_lets_go() -> None:
    assert proposed(with_rv(attached(of(THREE, 1), 0), deleting=True)) == [(DETACH, name(0))]


def test_two_are_allowed_before_the_second_is_attached() -> None:
    one = attached(of(THREE, 0, 1), 0)
    assert proposed(one) == [(ENABLE, None), (ATTACH, name(1))]
    assert proposed(with_two_allowed(one)) == [(ATTACH, name(1))]
    assert proposed(attached(with_two_allowed(one), 1)) == []


def test_two_are_not_allowed_for_one_that_could_not_serve() -> None:
    one = spoilt(attached(of(THREE, 0, 1), 0), 1, with_device(quorum=False))
    assert proposed(one) == []


def test_in_a_layout_with_a_tie_breaker_the_second_waits() -> None:
    assert proposed(attached(of(TIE, 0, 1), 0)) == []


def test_two_are_forbidden_again_when_one_has_been_withdrawn() -> None:
    assert proposed(with_two_allowed(attached(of(THREE, 0), 0))) == [(DISABLE, None)]
    both = with_two_allowed(attached(of(THREE, 0), 0, 1))
    assert proposed(both) == [(DETACH, name(1))]


def test_a_member_that_has_to_change_first_is_left_to_whoever_changes_it() -> None:
    """M27."""
    assert proposed(of(TIE, 2)) == []
    assert proposed(with_member(of(TIE, 2, layout=(D, D, A)), 2, hidden=False)) == [(ATTACH, name(2))]


def test_while_copies_may_differ_two_are_forbidden() -> None:
    view = noted(with_two_allowed(attached(of(THREE, 0, 1), 0)))
    assert proposed(view)[-1] == (DISABLE, None)


def test_attaching_ends_all_overwriting() -> None:
    view = noted(of(THREE, 0), start=4096, end=8192, overwrite=True)
    status = changes.attach(view, transition(view, ATTACH, 0))
    assert [each.attached for each in status.datamesh.members] == [True, False, False]
    assert [each.overwrite for each in status.comparisons] == [False]


def test_of_two_attached_the_younger_yields_and_nobody_else() -> None:
    two = with_two_allowed(attached(of(THREE, 1, 0), 0, 1))
    configs = [config_of(two, replica) for replica in two.replicas]
    assert [config.yields for config in configs if config is not None] == [True, False, False]
    assert [config.primary for config in configs if config is not None] == [True, True, False]
    one = attached(of(THREE, 1), 1)
    assert not any(config.yields for replica in one.replicas if (config := config_of(one, replica)) is not None)


def test_detaching_and_the_two_sides_of_multiattach() -> None:
    two = with_two_allowed(attached(of(THREE, 0, 1), 0, 1))
    left = changes.detach(two, transition(two, DETACH, 0))
    assert [each.attached for each in left.datamesh.members] == [False, True, False]
    assert not changes.forbid_two(two, transition(two, DISABLE)).drbd.config.allow_two_primaries
    assert changes.allow_two(of(THREE), transition(two, ENABLE)).drbd.config.allow_two_primaries
