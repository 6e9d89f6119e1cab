"""What is decided about a logical volume from what is seen, case by case."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from quorate.agent.hands import SLOTS
from quorate.agent.lvm.commands import wipe_ends
from quorate.agent.lvm.logical_volumes import judge
from quorate.agent.lvm.piece import HEAVY_AT_ONCE, Decision, Piece, heavy_work
from quorate.agent.lvm.seen import NEW, ZERO, SeenDevice, SeenGroup, SeenGroups, SeenVolume, SeenVolumes, owner_tag
from quorate.api import finalizers
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.drbd import DrbdActual, ReplicaDrbd
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus, UsedDevice
from quorate.api.struct import replace
from tests.agent.lvm.fake import EXTENT, MIB
from tests.agent.lvm.rig import drive, llv, lvg, replica

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "pvc-1-0-0123abcd"
OURS = frozenset({owner_tag("u1")})
CREATED = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.CREATED, actual_size=Quantity("12Mi"))
RESIZING = replace(CREATED, phase=LogicalVolumePhase.RESIZING)
GROUPS = SeenGroups((SeenGroup("vg0", "uuid-vg0", 64 * EXTENT, 60 * EXTENT, EXTENT),), (SeenDevice("/dev/sdb", "vg0"),))


def seen(size: int = 12, tags: frozenset[str] = OURS, flags: str = "-wi-a-----") -> SeenVolume:
    return SeenVolume("vg0", NAME, "lv-1", size * MIB, flags, tags, parts=("/dev/sdb",))


def judged(
    volume: SeenVolume | None,
    status: LVMLogicalVolumeStatus = CREATED,
    made: LVMLogicalVolume | None = None,
    **more: Any,
) -> Decision:
    made = replace(made or llv(uid="u1"), status=status)
    volumes = SeenVolumes(() if volume is None else (volume,))
    return judge(Piece(**{"llv": made, "lvg": lvg(), "volumes": volumes, "groups": GROUPS, **more}), NOW)


def commands_of(decision: Decision) -> list[str]:
    return [] if decision.work is None else [step.argv[0] for step in decision.work.steps]  # type: ignore[union-attr]


def deleting(*held: str) -> LVMLogicalVolume:
    found = llv(uid="u1")
    return replace(found, metadata=replace(found.metadata, deletion_timestamp=NOW, finalizers=held))


@pytest.mark.parametrize(
    ("volume", "status", "done"),
    [
        (None, LVMLogicalVolumeStatus(), ["lvcreate", "dd", "dd", "lvchange"]),
        (seen(tags=OURS | {NEW}), LVMLogicalVolumeStatus(), ["dd", "dd", "lvchange"]),
        (seen(tags=frozenset({NEW, owner_tag("u2")})), LVMLogicalVolumeStatus(), ["lvremove"]),
        (seen(tags=frozenset({NEW})), LVMLogicalVolumeStatus(), ["lvremove"]),
        (seen(tags=frozenset()), LVMLogicalVolumeStatus(), []),
        (seen(tags=frozenset({owner_tag("u2")})), LVMLogicalVolumeStatus(), []),
        # Killed after the tag was taken away and before that was reported: ours, and as it must be.
        (seen(), LVMLogicalVolumeStatus(), []),
        (seen(), CREATED, []),
        # Created: whatever its tags say now, it is not wiped.
        (seen(tags=OURS | {NEW}), CREATED, ["lvchange"]),
        (seen(flags="-wi-------"), CREATED, ["lvchange"]),
        (None, CREATED, []),
    ],
)
def test_what_is_done_to_what_is_seen(
    volume: SeenVolume | None, status: LVMLogicalVolumeStatus, done: list[str]
) -> None:
    assert commands_of(judged(volume, status)) == done


@pytest.mark.parametrize(
    ("volume", "status", "wanted", "done", "phase", "actual"),
    [
        (seen(12), CREATED, 10, [], "Created", "12Mi"),
        (seen(12), CREATED, 20, [], "Resizing", "12Mi"),
        (seen(12), RESIZING, 20, ["lvextend"], "Resizing", "12Mi"),
        (seen(20), RESIZING, 20, ["dd"], "Resizing", "12Mi"),
        (seen(20), CREATED, 20, [], "Created", "20Mi"),
        (seen(20, OURS | {ZERO}), CREATED, 20, ["lvchange"], "Created", "12Mi"),
        (seen(8), CREATED, 12, [], "Created", "8Mi"),
        (seen(12), RESIZING, 12, [], "Created", "12Mi"),
    ],
)
def test_how_a_volume_grows(
    volume: SeenVolume, status: LVMLogicalVolumeStatus, wanted: int, done: list[str], phase: str, actual: str
) -> None:
    decision = judged(volume, status, llv(mib=wanted, uid="u1"))
    assert commands_of(decision) == done
    assert (decision.status.phase, decision.status.actual_size) == (phase, Quantity(actual))


@pytest.mark.parametrize(
    ("volume", "status", "grown_zero"),
    [
        (seen(), LVMLogicalVolumeStatus(), True),
        (seen(), replace(CREATED, grown_zero=True), True),
        # Somebody else grew it: of what is on the new extents nothing is known any more.
        (seen(20), replace(CREATED, grown_zero=True), False),
        (seen(20), replace(CREATED, actual_size=Quantity("20Mi")), False),
    ],
)
def test_what_it_has_grown_by_is_zero_unless_somebody_else_grew_it(
    volume: SeenVolume, status: LVMLogicalVolumeStatus, grown_zero: bool
) -> None:
    assert judged(volume, status).status.grown_zero == grown_zero


@pytest.mark.parametrize(
    ("written", "device_size", "ahead", "phase"),
    [
        (None, None, 12 * MIB, "Resizing"),
        (Quantity("16Mi"), None, 12 * MIB, "Resizing"),
        (Quantity("8Mi"), None, None, "Resizing"),
        (Quantity("8Mi"), 7 * MIB, None, "Resizing"),
        # DRBD uses more than would fit on 8Mi: that size is stale, and its writer takes it back first.
        (Quantity("8Mi"), 11 * MIB, None, "Created"),
    ],
)
def test_which_size_is_written_ahead(
    written: Quantity | None, device_size: int | None, ahead: int | None, phase: str
) -> None:
    owner = replica()
    drbd = ReplicaDrbd(actual=DrbdActual(metadata_created=NAME, backing_size=written))
    owner = replace(owner, status=replace(owner.status, drbd=drbd))
    decision = judged(seen(), CREATED, llv(mib=20, uid="u1"), replica=owner, device_size=device_size)
    assert (decision.backing_size_ahead, decision.status.phase, decision.work) == (ahead, phase, None)


@pytest.mark.parametrize(
    ("held", "volume", "more", "done", "released"),
    [
        ((finalizers.AGENT, finalizers.CONTROLLER), seen(), {}, [], False),
        ((finalizers.AGENT, "somebody/else"), seen(), {}, [], False),
        ((finalizers.CONTROLLER,), seen(), {}, [], False),
        ((finalizers.AGENT,), seen(), {}, ["lvremove"], False),
        ((finalizers.AGENT,), seen(flags="-wi-ao----"), {}, [], False),
        ((finalizers.AGENT,), seen(), {"attached": True}, [], False),
        ((finalizers.AGENT,), None, {}, [], True),
        ((finalizers.AGENT,), seen(tags=frozenset({owner_tag("u2")})), {}, [], True),
        # Its LVMVolumeGroup is gone, the volume is not: the tag finds it.
        ((finalizers.AGENT,), seen(), {"lvg": None}, ["lvremove"], False),
        ((finalizers.AGENT,), None, {"lvg": None}, [], True),
        # Its whole group is not seen: gone with its drive, or only not seen yet.
        ((finalizers.AGENT,), None, {"groups": SeenGroups(), "drives": (drive(),)}, [], False),
        ((finalizers.AGENT,), None, {"groups": SeenGroups(), "drives": (drive(online=False),)}, [], True),
    ],
)
def test_when_a_volume_is_removed_and_its_object_let_go(
    held: tuple[str, ...], volume: SeenVolume | None, more: dict[str, Any], done: list[str], released: bool
) -> None:
    status = replace(CREATED, devices=(UsedDevice(path="/dev/sdb", drive_uuid="drive-b"),))
    decision = judged(volume, status, deleting(*held), **more)
    assert (commands_of(decision), decision.release) == (done, released)


def test_nothing_is_decided_before_somebody_has_looked() -> None:
    for made in (llv(uid="u1"), deleting(finalizers.AGENT)):
        decision = judged(None, CREATED, made, volumes=None)
        assert (decision.look_at_volumes, decision.work, decision.release) == (True, None, False)
        assert decision.status == CREATED


def test_zeroing_leaves_slots_for_other_commands_however_many_groups_a_node_has() -> None:
    works = {heavy_work(f"quorate-{slot}") for slot in range(64)}
    assert 1 < len(works) <= HEAVY_AT_ONCE < SLOTS


@pytest.mark.parametrize("size", [4 * 1024, MIB, 2 * MIB, 3 * MIB, 12 * MIB, 5 * EXTENT + 512])
def test_both_ends_are_wiped_to_the_last_byte_and_nothing_beyond(size: int) -> None:
    covered = []
    for step in wipe_ends("/dev/vg0/x", size):
        given = dict(word.split("=", 1) for word in step.argv[1:])
        start = int(given["seek"]) * int(given["bs"])
        covered.append((start, start + int(given["count"]) * int(given["bs"])))
    assert covered[0][0] == 0
    assert covered[-1][1] == size
    assert sum(end - start for start, end in covered) == min(size, 2 * MIB)
