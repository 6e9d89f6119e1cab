"""When the new size is said, what is to be made equal afterwards, and when it is taken back."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.api.quantity import Quantity
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import Step, StepStatus, Transition, TransitionGroup, TransitionType
from quorate.api.storage.drbd import DrbdActual
from quorate.api.storage.rv import Comparison, ComparisonReason
from quorate.api.struct import replace
from quorate.volumes.datamesh import config_of
from quorate.volumes.resize.growth import PATIENCE, given_up, grow, is_due, is_smaller, may_grow
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.attach.making import ONE, THREE, TIE, TWO, attached, cut, of, transition
from tests.volumes.replica.making import (
    GI,
    LAYOUTS,
    NEEDED,
    NOW,
    REVISION,
    D,
    logical_volume,
    name,
    spoilt,
    with_device,
    with_drbd,
    with_member,
    with_rv,
)

ROOM = 2151677952
LARGER = 2 * GI
RESIZE = TransitionType.RESIZE_VOLUME


def grown(replication: Replication = THREE, *, zero: bool = True, users: tuple[int, ...] = ()) -> VolumeView:
    """Asked to grow, and every disk has grown; what it grew from is written ahead."""
    layout = LAYOUTS[replication]
    disks = {
        number: (logical_volume(number, ROOM, grown_zero=zero),) for number, sort in enumerate(layout) if sort is D
    }
    view = with_rv(of(replication, *users, disks=disks), size="2Gi", growing_to=Quantity("2Gi"))
    written_ahead = DrbdActual(backing_size=Quantity.of_bytes(NEEDED), activity_log_at=Quantity.of_bytes(GI))
    for number in disks:
        view = spoilt(view, number, with_drbd(actual=written_ahead))
    return attached(view, *users)


def objection(view: VolumeView) -> str:
    wait = may_grow(view, transition(view, RESIZE))
    return wait.reason if wait is not None else ""


def begun(view: VolumeView) -> VolumeView:
    """The same, once the step has been written."""
    status = grow(view, transition(view, RESIZE))
    step = Step(name="Resize", status=StepStatus.ACTIVE, datamesh_revision=REVISION + 1, started_at=NOW)
    under_way = replace(transition(view, RESIZE), steps=(step,), datamesh_revision=REVISION + 1)
    return view.with_status(replace(status, datamesh_revision=REVISION + 1, datamesh_transitions=(under_way,)))


def taking(size: int) -> Any:
    def change(found: ReplicaView) -> ReplicaView:
        return with_device(size=size // 1024)(found)

    return change


def test_it_is_due_when_every_disk_is_large_enough() -> None:
    assert is_due(grown())
    assert not is_due(with_rv(of(THREE), size="2Gi"))
    assert not is_due(of(THREE))
    small = spoilt(grown(), 1, lambda found: changed(found, volumes=(logical_volume(1, NEEDED),)))
    assert not is_due(small)


@pytest.mark.parametrize("replication", [ONE, TWO, TIE, THREE])
def test_detached_and_healthy_it_grows(replication: Replication) -> None:
    assert objection(grown(replication)) == ""
    assert objection(grown(replication, zero=False)) == ""


@pytest.mark.parametrize(
    ("replication", "zero", "expected"),
    [
        (ONE, True, ""),
        (TIE, True, ""),
        (THREE, True, ""),
        # Both copies are needed for I/O, and one is behind for a moment while they are compared.
        (TWO, True, "WaitingForDetach"),
        # What is not known to be zero is copied, which stops I/O (M20).
        (ONE, False, ""),
        (TWO, False, "WaitingForDetach"),
        (TIE, False, "WaitingForDetach"),
        (THREE, False, "WaitingForDetach"),
    ],
)
def test_attached_it_grows_only_where_nobody_notices(replication: Replication, zero: bool, expected: str) -> None:
    """M20."""
    assert objection(grown(replication, zero=zero, users=(0,))) == expected


def test_it_grows_with_all_members_connected_and_nothing_being_copied() -> None:
    """M23."""
    assert objection(cut(grown(), 1, 2)) == "NotConnected"
    assert objection(spoilt(grown(), 2, with_device(disk_state="Inconsistent"))) == "WaitingForSync"
    assert objection(with_member(grown(), 2, excused=True)) == "NotConnected"
    assert objection(with_member(grown(), 2, hidden=True)) == "AnotherTransition"


def test_it_grows_alone() -> None:
    other = Transition(type=TransitionType.CHANGE_QUORUM, group=TransitionGroup.QUORUM, started_at=NOW, steps=())
    assert objection(with_rv(grown(), datamesh_transitions=(other,))) == "AnotherTransition"


def test_it_does_not_grow_before_copies_that_may_differ_are_compared() -> None:
    open_one = Comparison(revision=3, reason=ComparisonReason.TWO_PRIMARIES, since=NOW, reference=name(0))  # type: ignore[arg-type]
    assert objection(with_rv(grown(), comparisons=(open_one,))) == "WaitingForComparison"


def test_one_revision_says_the_size_to_everybody() -> None:
    view = begun(grown())
    for replica in view.replicas:
        config = config_of(view, replica)
        assert config is not None
        assert config.size is not None
        assert (int(config.size), config.copy_growth) == (LARGER, False)


def test_what_held_the_old_metadata_is_overwritten_where_nobody_uses_the_volume() -> None:
    (remains,) = begun(grown()).volume.status.comparisons
    assert (remains.start, remains.end, remains.overwrite) == (GI, NEEDED, True)
    assert remains.revision == REVISION + 1


def test_and_compared_where_somebody_does_never_overwritten() -> None:
    (remains,) = begun(grown(users=(0,))).volume.status.comparisons
    assert (remains.start, remains.end, remains.overwrite) == (GI, NEEDED, False)


def test_with_one_copy_in_use_there_is_nothing_to_compare() -> None:
    assert begun(grown(ONE, users=(0,))).volume.status.comparisons == ()
    assert len(begun(grown(ONE)).volume.status.comparisons) == 1


def test_what_has_to_be_copied_is_copied_by_everybody_and_needs_no_comparison() -> None:
    """assume_clean_verify: one disk that may hold old bytes is enough."""
    one_unknown = spoilt(grown(), 2, lambda found: changed(found, volumes=(logical_volume(2, ROOM),)))
    view = begun(one_unknown)
    assert view.datamesh.copy_growth
    assert view.volume.status.comparisons == ()
    configs = [config_of(view, replica) for replica in view.replicas]
    assert all(config is not None and config.copy_growth for config in configs)


def test_success_is_the_new_size_everywhere() -> None:
    view = begun(grown())
    under_way = view.volume.status.datamesh_transitions[0]
    wait = is_smaller(view, under_way)
    assert wait is not None
    assert wait.reason == "Resizing"
    for number in range(3):
        assert is_smaller(view, under_way) is not None
        view = spoilt(view, number, taking(LARGER))
    assert is_smaller(view, under_way) is None


def test_with_a_member_away_for_too_long_the_size_is_taken_back_and_nothing_is_forgotten() -> None:
    view = cut(begun(grown()), 1, 2)
    under_way = view.volume.status.datamesh_transitions[0]
    assert given_up(view, under_way, NOW) is None
    assert given_up(begun(grown()), under_way, NOW + 2 * PATIENCE) is None
    status = given_up(view, under_way, NOW + PATIENCE + timedelta(seconds=1))
    assert status is not None
    assert status.datamesh.size is not None
    assert int(status.datamesh.size) == GI
    assert (status.datamesh_transitions, status.datamesh_revision) == ((), REVISION + 2)
    assert status.comparisons == view.volume.status.comparisons
    # It is tried again, and what was to be made equal is noted once.
    again = begun(grown().with_status(replace(status, datamesh_revision=REVISION)))
    assert len(again.volume.status.comparisons) == 1


def test_a_size_that_drbd_has_taken_is_not_taken_back() -> None:
    view = cut(spoilt(begun(grown()), 0, taking(LARGER)), 1, 2)
    assert given_up(view, view.volume.status.datamesh_transitions[0], NOW + 2 * PATIENCE) is None


def test_what_has_grown_by_itself_is_compared_as_a_whole_and_never_overwritten() -> None:
    """A connection that completes the volume makes DRBD grow by itself, with links that are not at rest yet."""
    view = grown()
    for number in range(3):
        view = spoilt(view, number, taking(LARGER))
    (remains,) = begun(view).volume.status.comparisons
    assert (remains.start, remains.end, remains.overwrite) == (GI, LARGER, False)
    single = spoilt(grown(ONE), 0, taking(LARGER))
    assert begun(single).volume.status.comparisons == ()
