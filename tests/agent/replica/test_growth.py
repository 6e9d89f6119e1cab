"""A grown disk is taken into use by one member, and success is the new size."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.agent.replica.view import View
from quorate.agent.steps import Look
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage.drbd import DrbdStatus, ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase
from tests.agent.replica.builders import (
    DISKLESS,
    LV_SIZE,
    MIB,
    NOW,
    actual,
    commands,
    config,
    decided,
    errors,
    kernel,
    link,
    logical_volume,
    outcome,
    outcomes,
    peer,
    replica,
    usable_size,
    view,
    volume,
)

GROWN = Bytes(48 * MIB)
SIZE = Quantity.of_bytes(usable_size(GROWN))
ASSUME_CLEAN, PLAIN = ["drbdadm -- --assume-clean resize pvc-1"], ["drbdadm resize pvc-1"]


def grown(
    shown: DrbdStatus | None = None, *, zero: bool = True, given: dict[str, Any] | None = None, **changes: Any
) -> View:
    obj = replica(config=config(size=SIZE, **(given or {})), actual=actual(backing_size=Quantity.of_bytes(LV_SIZE)))
    disk = logical_volume(GROWN, known_zero=zero, actual_size=Quantity.of_bytes(GROWN))
    return changed(view(obj, shown or kernel(), volume=volume(GROWN), logical_volume=disk), **changes)


def test_new_space_that_is_known_to_be_zero_is_assumed_clean_also_while_attached() -> None:
    assert commands(decided(grown())) == ASSUME_CLEAN
    assert commands(decided(grown(kernel(links=(link(1, role="Primary"), link(2)))))) == ASSUME_CLEAN


def test_it_is_enough_that_what_the_disk_grows_by_is_zero() -> None:
    disk = logical_volume(GROWN, known_zero=False, grown_zero=True, actual_size=Quantity.of_bytes(GROWN))
    assert commands(decided(grown(logical_volume=disk))) == ASSUME_CLEAN


def test_other_space_is_copied_and_only_while_nobody_is_primary() -> None:
    assert commands(decided(grown(zero=False))) == PLAIN
    attached = decided(grown(kernel(links=(link(1, role="Primary"), link(2))), zero=False))
    assert attached.steps == ()
    shown = errors(attached).last_resize_error
    assert shown is not None
    assert shown.reason == "WaitingForDetach"


@pytest.mark.parametrize(
    ("node_id", "peers", "hidden", "expected"),
    [
        (0, (peer(1), peer(2)), False, ASSUME_CLEAN),
        (1, (peer(0), peer(2)), False, []),
        (1, (peer(0, ReplicaType.TIE_BREAKER), peer(2)), False, ASSUME_CLEAN),
        (1, (peer(0, hidden=True), peer(2)), False, ASSUME_CLEAN),
        (0, (peer(1), peer(2)), True, []),
    ],
)
def test_the_counted_diskful_member_with_the_lowest_id_resizes(
    node_id: int, peers: tuple[Any, ...], hidden: bool, expected: list[str]
) -> None:
    shown = kernel(node_id=node_id, links=tuple(link(each.node_id) for each in peers))
    asked = grown(shown, given={"node_id": node_id, "peers": peers, "hidden": hidden})
    assert commands(decided(asked)) == expected


@pytest.mark.parametrize(
    "shown",
    [
        kernel(links=(link(1), link(2, "Connecting", flow="Off", disk="DUnknown"))),
        kernel(links=(link(1), link(2, flow="SyncSource", disk="Inconsistent"))),
        kernel(links=(link(1), link(2, flow="VerifyS"))),
    ],
)
def test_all_members_must_be_connected_and_nothing_may_be_synchronised(shown: DrbdStatus) -> None:
    assert decided(grown(shown)).steps == ()


def test_a_disk_that_has_not_grown_yet_or_of_whose_growth_lvms_part_has_not_spoken_is_waited_for() -> None:
    assert decided(grown(volume=volume())).steps == ()
    for phase in (LogicalVolumePhase.RESIZING, LogicalVolumePhase.CREATED):
        unspoken = logical_volume(GROWN, phase=phase, known_zero=True, grown_zero=True)
        assert decided(grown(logical_volume=unspoken)).steps == ()


def test_the_volumes_are_looked_at_first_when_they_may_have_changed() -> None:
    decision = decided(grown(volumes_current=False))
    assert decision.steps == (Look("lvm"),)
    assert decision.work == "look/lvm"


def test_an_exit_code_of_zero_is_no_success() -> None:
    about = str(int(SIZE))
    tried = grown(outcomes=outcomes(outcome("resize", about, exit_code=0)))
    shown = errors(decided(tried)).last_resize_error
    assert shown is not None
    assert shown.reason == "SizeUnchanged"
    assert commands(decided(tried, NOW + timedelta(seconds=60))) == ASSUME_CLEAN


def test_a_peer_whose_disk_has_not_grown_is_no_error() -> None:
    about = str(int(SIZE))
    refused = outcome("resize", about, exit_code=10, output="Failure: (111) Low.dev. smaller than requested")
    assert errors(decided(grown(outcomes=outcomes(refused)))).last_resize_error is None


def test_the_new_size_ends_it_and_the_former_size_is_cleared() -> None:
    done = grown(kernel(size=usable_size(GROWN) // 1024))
    decision = decided(done)
    # What follows is about its activity log (test_activity_log).
    assert {step.purpose for step in decision.steps} <= {"renew-log", "restore-log", "note-place", "read-log"}
    assert decision.status.drbd.actual.backing_size is None


def test_the_former_size_stays_until_drbd_uses_more_than_it_had_room_for() -> None:
    assert decided(grown(volume=volume())).status.drbd.actual.backing_size == Quantity.of_bytes(LV_SIZE)


def test_what_uses_the_disk_anew_or_changes_it_has_it_for_itself() -> None:
    """Metadata moved to the end of a disk that is being zeroed would be lost."""
    never = actual(disk="", metadata_created="", initial_sync_completed=False)
    for using in (
        grown(),
        view(replica(status=None), None),
        view(shown=kernel("Diskless")),
        view(replica(actual=never, status=None), None, volume=volume(tags=())),
    ):
        assert decided(using).disk
        assert commands(decided(using))
    for leaving in (
        view(replica(config=config(primary=True))),
        view(unadjusted=True),
        view(shown=kernel(links=(link(1), link(2, "StandAlone")))),
        view(replica(config=config(**DISKLESS), actual=actual(disk="")), None),
    ):
        assert not decided(leaving).disk
        assert commands(decided(leaving))


def test_a_member_without_a_disk_does_not_resize() -> None:
    diskless = replica(config=config(size=SIZE, **DISKLESS), actual=actual(disk="", metadata_created=""))
    assert decided(view(diskless, kernel("Diskless"))).steps == ()
