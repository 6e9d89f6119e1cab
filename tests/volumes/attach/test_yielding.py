"""The younger of two primaries has lost a link: who gives way, and to whom it may link meanwhile."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta

import pytest

from quorate.api.conditions.rv import DualPrimaryLinkLost
from quorate.api.meta import ConditionStatus
from quorate.api.storage.drbdrop import OperationType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.engine import Create
from quorate.volumes.attach.two_primaries import link_lost, not_now
from quorate.volumes.attach.verdicts import dual_primary_link_lost
from quorate.volumes.attach.yielding import PATIENCE, look_again, writes, yielded
from quorate.volumes.datamesh import config_of
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import ONE, THREE, attached, cut, of, with_role, with_two_allowed
from tests.volumes.replica.making import (
    NOW,
    REVISION,
    A,
    D,
    name,
    node,
    spoilt,
    with_device,
    with_member,
    with_rv,
    with_status,
)

#: The queue's order: member 0 is the older, member 1 the younger.
TWO = with_two_allowed(attached(of(THREE, 0, 1), 0, 1))
LATER = NOW + timedelta(seconds=PATIENCE + 1)


def after(view: VolumeView, status: ReplicatedVolumeStatus | None) -> VolumeView:
    assert status is not None
    return view.with_status(status)


GIVEN_WAY = after(cut(TWO, 0, 1), yielded(cut(TWO, 0, 1), NOW))


def confirmed(view: VolumeView, *numbers: int) -> VolumeView:
    for number in numbers:
        view = spoilt(view, number, with_status(datamesh_revision=view.volume.status.datamesh_revision))
    return view


def test_while_every_link_is_up_nobody_yields() -> None:
    assert link_lost(TWO) is None
    assert yielded(TWO, NOW) is None


@pytest.mark.parametrize("lost", [(0, 1), (1, 2), (0, 2)])
def test_whichever_link_of_the_two_goes_the_younger_gives_way(lost: tuple[int, int]) -> None:
    status = yielded(cut(TWO, *lost), NOW)
    assert status is not None
    assert status.datamesh_revision == REVISION + 1
    assert [member.attached for member in status.datamesh.members] == [True, False, False]
    assert [member.returns_to for member in status.datamesh.members] == [None, name(0), None]
    assert [(each.reference, each.revision, each.end) for each in status.comparisons] == [(name(0), REVISION + 1, None)]


@pytest.mark.parametrize("change", ["hidden", "excused"])
@pytest.mark.parametrize("primary", [0, 1])
def test_a_member_that_joins_leaves_or_is_excused_may_lose_its_links(primary: int, change: str) -> None:
    assert link_lost(with_member(cut(TWO, primary, 2), 2, **{change: True})) is None
    assert link_lost(with_member(cut(TWO, 0, 1), 2, **{change: True})) is not None


def test_with_one_copy_a_hidden_primary_is_missed_all_the_same() -> None:
    two = with_two_allowed(attached(of(ONE, 1, 0, layout=(D, A)), 0, 1))
    assert link_lost(two) is None
    assert link_lost(cut(two, 0, 1)) is not None


def test_it_links_to_the_older_alone_and_does_not_yield_any_more() -> None:
    """If it met the third first, both would write."""
    config = config_of(GIVEN_WAY, GIVEN_WAY.replicas[1])
    assert config is not None
    assert [peer.name for peer in config.peers] == [name(0)]
    assert (config.primary, config.yields) == (False, False)


def test_it_stays_so_while_it_is_primary_or_silent_or_out_of_touch() -> None:
    assert yielded(GIVEN_WAY, NOW) is None
    secondary = spoilt(GIVEN_WAY, 1, with_role("Secondary"))
    assert yielded(secondary, NOW) is None


def test_when_it_is_secondary_and_has_met_the_older_it_is_linked_to_all_again() -> None:
    met = spoilt(TWO, 1, with_role("Secondary")).with_status(GIVEN_WAY.volume.status)
    status = yielded(met, NOW)
    assert status is not None
    assert all(member.returns_to is None for member in status.datamesh.members)
    assert status.comparisons == GIVEN_WAY.volume.status.comparisons


def test_a_secondary_that_does_not_meet_the_quorate_older_gives_up_what_it_wrote() -> None:
    secondary = spoilt(GIVEN_WAY, 1, with_role("Secondary"))
    (made,) = [write.obj for write in writes(secondary) if isinstance(write, Create)]
    assert made.spec.type is OperationType.REJOIN  # type: ignore[attr-defined]
    assert made.spec.drbd_resource_name == name(1)  # type: ignore[attr-defined]
    assert list(writes(GIVEN_WAY)) == []
    assert list(writes(spoilt(secondary, 0, with_device(quorum=False)))) == []


def test_when_nobody_is_in_touch_with_the_older_the_others_drop_it_before_the_younger_joins_them() -> None:
    alone = cut(GIVEN_WAY, 0, 2)
    assert yielded(alone, NOW) is None
    assert look_again(alone, NOW) == PATIENCE
    dropped = yielded(alone, LATER)
    assert dropped is not None
    assert [member.excused for member in dropped.datamesh.members] == [True, False, False]
    assert [member.returns_to for member in dropped.datamesh.members] == [None, name(0), None]
    waiting = after(alone, dropped)
    assert yielded(waiting, LATER) is None
    freed = yielded(confirmed(waiting, 2), LATER)
    assert freed is not None
    assert [member.attached for member in freed.datamesh.members] == [False, False, False]
    assert all(member.returns_to is None for member in freed.datamesh.members)
    assert [each.reference for each in freed.comparisons] == [name(1)]


def test_while_the_third_is_in_touch_with_the_older_nobody_changes_sides() -> None:
    assert yielded(GIVEN_WAY, LATER) is None


def test_with_one_copy_nothing_can_differ_and_nobody_gives_up_anything() -> None:
    view = with_two_allowed(attached(of(ONE, 0, 1, layout=(D, A)), 0, 1))
    status = yielded(cut(view, 0, 1), NOW)
    assert status is not None
    assert [(member.attached, member.returns_to) for member in status.datamesh.members] == [(True, None), (False, None)]
    assert status.comparisons == ()


def test_the_condition_is_true_from_the_cut_until_the_copies_have_been_compared() -> None:
    assert dual_primary_link_lost(TWO).status is ConditionStatus.FALSE
    assert dual_primary_link_lost(cut(TWO, 0, 1)).reason == DualPrimaryLinkLost.LINK_LOST.code
    assert dual_primary_link_lost(GIVEN_WAY).reason == DualPrimaryLinkLost.LINK_LOST.code
    met = spoilt(TWO, 1, with_role("Secondary")).with_status(GIVEN_WAY.volume.status)
    assert dual_primary_link_lost(met).reason == DualPrimaryLinkLost.VERIFYING.code
    assert dual_primary_link_lost(with_rv(met, comparisons=())).status is ConditionStatus.FALSE


def test_while_the_youngers_agent_is_not_heard_nobody_says_that_the_two_are_kept_apart() -> None:
    def silent(view: VolumeView, number: int) -> VolumeView:
        return spoilt(view, number, lambda each: changed(each, node=node(number, fresh=False)))

    found = dual_primary_link_lost(silent(TWO, 1))
    assert (found.status, found.reason) == (ConditionStatus.UNKNOWN, DualPrimaryLinkLost.UNGUARDED.code)
    assert dual_primary_link_lost(silent(TWO, 0)).status is ConditionStatus.FALSE
    assert dual_primary_link_lost(silent(attached(of(THREE, 0), 0), 0)).status is ConditionStatus.FALSE
    waits = not_now(silent(of(THREE, 0), 1))
    assert waits is not None
    assert waits.reason == "NotConnected"
