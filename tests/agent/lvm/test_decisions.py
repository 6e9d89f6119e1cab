"""What is decided about a logical volume from what is seen, case by case."""

from __future__ import annotations

from dataclasses import replace as replace_seen
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from quorate.agent.hands import SLOTS, Hands
from quorate.agent.lvm.commands import wipe_ends
from quorate.agent.lvm.heavy import AT_ONCE, HeavyWork
from quorate.agent.lvm.logical_volumes import judge
from quorate.agent.lvm.piece import Decision, Piece, Work
from quorate.agent.lvm.seen import (
    METADATA_TAG,
    NEW,
    ZERO,
    SeenDevice,
    SeenGroup,
    SeenGroups,
    SeenVolume,
    SeenVolumes,
    end_tag,
    growing_tag,
    made_for_tag,
    owner_tag,
    spare_name,
    spare_tag,
)
from quorate.agent.machine import CommandHung, Completed
from quorate.agent.memory import Memory, Outcome
from quorate.agent.steps import Run
from quorate.api import finalizers
from quorate.api.meta import OwnerReference
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import DrbdActual, DrbdConfig, ReplicaDrbd
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus, UsedDevice
from quorate.api.struct import replace
from quorate.engine.clock import Clock
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import EXTENT, MIB, FakeMachine
from tests.agent.lvm.rig import drive, llv, lvg, replica

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "pvc-1-0-0123abcd"
OURS = frozenset({owner_tag("u1")})
CREATED = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.CREATED, actual_size=Quantity("12Mi"))
RESIZING = replace(CREATED, phase=LogicalVolumePhase.RESIZING)
AT_20 = replace(CREATED, actual_size=Quantity("20Mi"))
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


LOST = frozenset({owner_tag("u0"), made_for_tag("r1")})


@pytest.mark.parametrize(
    ("replica_uid", "tags", "done", "reason"),
    [
        ("r1", LOST | {METADATA_TAG}, "--deltag quorate.llv=u0 --addtag quorate.llv=u1", ""),
        # The drive of a replica that left is back, and another one has its number.
        ("r2", LOST | {METADATA_TAG}, "", "LVExists"),
        ("r1", frozenset({owner_tag("u0"), METADATA_TAG}), "", "LVExists"),
    ],
)
def test_a_volume_whose_object_was_lost_is_taken_over_by_the_next_one_of_the_same_replica(
    replica_uid: str, tags: frozenset[str], done: str, reason: str
) -> None:
    made = llv(uid="u1")
    owner = OwnerReference(api_version="v1", kind="ReplicatedVolumeReplica", name="pvc-1-0", uid=replica_uid)
    made = replace(made, metadata=replace(made.metadata, owner_references=(owner,)))
    decision = judged(seen(tags=tags), LVMLogicalVolumeStatus(), made)
    said = [" ".join(step.argv) for step in decision.work.steps] if decision.work is not None else []  # type: ignore[union-attr]
    assert [done in each for each in said] == ([True] if done else [])
    assert decision.status.reason == reason
    # What it will grow by is zero again, but nobody knows of what it has grown by.
    taken = judged(seen(tags=tags - {owner_tag("u0")} | OURS), LVMLogicalVolumeStatus(), made).status
    assert (taken.phase, taken.grown_zero) == ("Created", False)


@pytest.mark.parametrize(
    ("tags", "revision", "unaccounted"),
    [(OURS | {METADATA_TAG}, 0, True), (OURS | {METADATA_TAG}, 1, False), (OURS, 0, False)],
)
def test_a_disk_with_more_on_it_than_the_api_knows_of_is_told_of_and_never_removed(
    tags: frozenset[str], revision: int, unaccounted: bool
) -> None:
    """The store was restored from a copy of the time when the volume was being formed."""
    drbd = ReplicaDrbd(config=DrbdConfig(datamesh_revision=revision))
    known = replace(replica(), status=replace(replica().status, drbd=drbd))
    told = judged(seen(tags=tags), CREATED, replica=known).status
    assert (told.phase, told.reason) == ("Created", "LVExists" if unaccounted else "")
    going = judged(seen(tags=tags), CREATED, deleting(finalizers.AGENT), replica=known)
    assert commands_of(going) == ([] if unaccounted else ["lvremove"])
    assert not going.release


def spare(size: int = 8, extents: tuple[str, ...] = ("/dev/sdb:3-4",), flags: str = "-wi-a-----") -> SeenVolume:
    tags = frozenset({NEW, spare_tag("u1")})
    return SeenVolume("vg0", spare_name("u1"), "lv-2", size * MIB, flags, tags, extents=extents)


def zeroed(about: str, exit_code: int = 0) -> dict[str, Outcome]:
    last = NOW - timedelta(hours=1)
    return {"zero": Outcome("zero", about, "blkdiscard", last, exit_code, failures=0 if exit_code == 0 else 1)}


@pytest.mark.parametrize(
    ("volume", "beside", "status", "wanted", "done", "phase", "actual"),
    [
        (seen(12), None, CREATED, 10, [], "Created", "12Mi"),
        (seen(12), None, CREATED, 20, [], "Resizing", "12Mi"),
        (seen(12), None, RESIZING, 20, ["lvcreate"], "Resizing", "12Mi"),
        (seen(12), spare(), RESIZING, 20, ["blkdiscard", "sync"], "Resizing", "12Mi"),
        (seen(12), spare(flags="-wi-------"), RESIZING, 20, ["lvchange"], "Resizing", "12Mi"),
        # Of another growth.
        (seen(12), spare(4), RESIZING, 20, ["lvremove"], "Resizing", "12Mi"),
        (seen(12), spare(), RESIZING, 12, ["lvremove"], "Created", "12Mi"),
        (seen(20, OURS | {growing_tag(20 * MIB)}), None, RESIZING, 20, [], "Created", "20Mi"),
        (seen(20, OURS | {growing_tag(20 * MIB)}), None, AT_20, 20, ["lvchange"], "Created", "20Mi"),
        (seen(20), None, RESIZING, 20, [], "Created", "20Mi"),
        (seen(20), None, CREATED, 20, [], "Created", "20Mi"),
        (seen(20, OURS | {ZERO}), None, CREATED, 20, ["lvchange"], "Created", "12Mi"),
        (seen(8), None, CREATED, 12, [], "Created", "8Mi"),
        (seen(12), None, RESIZING, 12, [], "Created", "12Mi"),
    ],
)
def test_how_a_volume_grows(
    volume: SeenVolume,
    beside: SeenVolume | None,
    status: LVMLogicalVolumeStatus,
    wanted: int,
    done: list[str],
    phase: str,
    actual: str,
) -> None:
    volumes = SeenVolumes((volume,) if beside is None else (volume, beside))
    decision = judged(volume, status, llv(mib=wanted, uid="u1"), volumes=volumes)
    assert commands_of(decision) == done
    assert (decision.status.phase, decision.status.actual_size) == (phase, Quantity(actual))


def test_a_volume_grows_by_exactly_the_extents_that_were_zeroed_and_its_group_is_held_meanwhile() -> None:
    volume = seen(12)
    decision = judged(
        volume,
        RESIZING,
        llv(mib=20, uid="u1"),
        volumes=SeenVolumes((volume, spare())),
        outcomes=zeroed(f"lv-2 {8 * MIB}"),
    )
    assert decision.work is not None
    assert [" ".join(step.argv[3:]) for step in decision.work.steps if isinstance(step, Run)] == [
        f"--addtag quorate.growing={20 * MIB} vg0/{NAME}",
        "--yes vg0/quorate-spare-u1",
        f"--size {20 * MIB}b vg0/{NAME} /dev/sdb:3-4",
    ]
    assert (decision.work.name, decision.work.beside) == (f"lvm/{NAME}", ("lvm-group/vg0",))


@pytest.mark.parametrize(
    "outcomes",
    [
        {},  # a new life of the agent
        zeroed(f"lv-1 {8 * MIB}"),  # another volume of that name
        zeroed(f"lv-2 {4 * MIB}"),
        zeroed(f"lv-2 {8 * MIB}", exit_code=1),
    ],
)
def test_extents_of_which_it_is_not_certain_that_they_are_zero_are_zeroed_again(outcomes: dict[str, Outcome]) -> None:
    volume = seen(12)
    volumes = SeenVolumes((volume, spare()))
    decision = judged(volume, RESIZING, llv(mib=20, uid="u1"), volumes=volumes, outcomes=outcomes)
    assert commands_of(decision) == ["blkdiscard", "sync"]
    assert decision.work is not None
    assert decision.work.heavy


def test_extents_that_are_being_moved_are_waited_for() -> None:
    volume = seen(12)
    moving = SeenVolumes((volume, spare(extents=("pvmove0:0-1",))))
    decision = judged(volume, RESIZING, llv(mib=20, uid="u1"), volumes=moving, outcomes=zeroed(f"lv-2 {8 * MIB}"))
    assert (decision.work, decision.retry_after is not None) == (None, True)


def test_a_spare_goes_before_the_volume_that_it_was_for() -> None:
    volume = seen(12)
    decision = judged(volume, RESIZING, deleting(finalizers.AGENT), volumes=SeenVolumes((volume, spare())))
    assert decision.work is not None
    assert [step.argv[-1] for step in decision.work.steps if isinstance(step, Run)] == ["vg0/quorate-spare-u1"]
    alone = judged(None, RESIZING, deleting(finalizers.AGENT), volumes=SeenVolumes((spare(),)), lvg=None)
    assert commands_of(alone) == ["lvremove"]


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


WITH_METADATA = seen(12, OURS | {METADATA_TAG}, "-wi-ao----")
ATTACHED = {"attached": True, "kernel_current": True, "device_size": 7 * MIB}


def owner(written: Quantity | None = None, **actual: Any) -> ReplicatedVolumeReplica:
    found = replica()
    drbd = ReplicaDrbd(actual=DrbdActual(backing_size=written, **actual))
    return replace(found, status=replace(found.status, drbd=drbd))


@pytest.mark.parametrize(
    ("written", "device_size", "ahead", "phase"),
    [
        (None, 7 * MIB, 12 * MIB, "Resizing"),
        (Quantity("16Mi"), 7 * MIB, 12 * MIB, "Resizing"),
        (Quantity("8Mi"), 7 * MIB, None, "Resizing"),
        # DRBD uses more than would fit on 8Mi: that size is stale, and its writer takes it back first.
        (Quantity("8Mi"), 11 * MIB, None, "Created"),
    ],
)
@pytest.mark.parametrize("recorded", ["", NAME])
def test_which_size_is_written_ahead(
    written: Quantity | None, device_size: int, ahead: int | None, phase: str, recorded: str
) -> None:
    """The tag on the volume says that metadata are on it, whatever the API remembers."""
    given = {**ATTACHED, "device_size": device_size, "replica": owner(written, metadata_created=recorded)}
    decision = judged(WITH_METADATA, CREATED, llv(mib=20, uid="u1"), **given)
    assert (decision.backing_size_ahead, decision.status.phase, decision.work) == (ahead, phase, None)


@pytest.mark.parametrize(
    ("volume", "known"),
    [
        (WITH_METADATA, {**ATTACHED, "attached": False}),
        (WITH_METADATA, {**ATTACHED, "kernel_current": False}),
        (seen(12, OURS | {METADATA_TAG}), ATTACHED),
    ],
)
@pytest.mark.parametrize("status", [CREATED, RESIZING])
def test_a_volume_with_metadata_grows_only_while_drbd_has_it(
    volume: SeenVolume, known: dict[str, Any], status: LVMLogicalVolumeStatus
) -> None:
    decision = judged(volume, status, llv(mib=20, uid="u1"), replica=owner(Quantity("12Mi")), **known)
    assert (decision.work, decision.backing_size_ahead) == (None, None)
    assert "attached" in decision.status.message
    assert decision.retry_after is not None


def test_a_volume_that_drbd_has_taken_since_the_last_look_is_looked_at_again() -> None:
    unopened = seen(12, OURS | {METADATA_TAG})
    for attached in (True, False):
        decision = judged(unopened, CREATED, llv(mib=20, uid="u1"), **{**ATTACHED, "attached": attached})
        assert decision.look_at_volumes is attached


def test_the_end_at_which_metadata_may_stay_is_written_on_the_volume_before_it_grows() -> None:
    volume = replace_seen(WITH_METADATA, tags=WITH_METADATA.tags | {end_tag(8 * MIB), growing_tag(16 * MIB)})
    decision = judged(
        volume,
        RESIZING,
        llv(mib=20, uid="u1"),
        volumes=SeenVolumes((volume, spare())),
        outcomes=zeroed(f"lv-2 {8 * MIB}"),
        replica=owner(Quantity("8Mi")),
        **ATTACHED,
    )
    assert decision.work is not None
    first = decision.work.steps[0]
    assert isinstance(first, Run)
    removed, added = f"--deltag quorate.growing={16 * MIB}", f"--addtag quorate.growing={20 * MIB}"
    assert " ".join(first.argv[3:]) == f"{removed} --addtag quorate.end={12 * MIB} {added} vg0/{NAME}"


@pytest.mark.parametrize(
    ("device_size", "current", "gone"),
    [(7 * MIB, True, ""), (9 * MIB, True, "8"), (13 * MIB, True, "8 12"), (13 * MIB, False, "")],
)
def test_a_former_end_is_forgotten_once_drbd_uses_more(device_size: int, current: bool, gone: str) -> None:
    ends = {end_tag(8 * MIB), end_tag(12 * MIB)}
    volume = seen(20, OURS | {METADATA_TAG} | ends, "-wi-ao----")
    given = {**ATTACHED, "device_size": device_size, "kernel_current": current}
    decision = judged(volume, AT_20, llv(mib=20, uid="u1"), **given)
    removed = [] if decision.work is None else decision.work.steps[0].argv[3:]  # type: ignore[union-attr]
    assert {word for word in removed if word.startswith("quorate.")} == {
        end_tag(int(size) * MIB) for size in gone.split()
    }


def test_a_growth_by_hand_is_noted_as_one_of_ours_would_be_but_for_zeros() -> None:
    grown = replace_seen(WITH_METADATA, size=20 * MIB)
    given = {"replica": owner(), **ATTACHED}
    noting = judged(grown, replace(CREATED, grown_zero=True), llv(mib=20, uid="u1"), **given)
    assert commands_of(noting) == ["lvchange"]
    noted = replace_seen(grown, tags=grown.tags | {end_tag(12 * MIB)})
    decision = judged(noted, replace(CREATED, grown_zero=True), llv(mib=20, uid="u1"), **given)
    assert (decision.backing_size_ahead, decision.status.actual_size) == (12 * MIB, Quantity("20Mi"))
    assert not decision.status.grown_zero


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
        ((finalizers.AGENT,), None, {"groups": SeenGroups(), "drives": (drive(online=False),)}, ["dmsetup"], False),
    ],
)
def test_when_a_volume_is_removed_and_its_object_let_go(
    held: tuple[str, ...], volume: SeenVolume | None, more: dict[str, Any], done: list[str], released: bool
) -> None:
    status = replace(CREATED, devices=(UsedDevice(path="/dev/sdb", drive_uuid="drive-b"),))
    decision = judged(volume, status, deleting(*held), **more)
    assert (commands_of(decision), decision.release) == (done, released)


GONE_GROUP, LIVING_GROUP, OWN_UUID = "g" * 32, "h" * 32, "v" * 32
LEFT = "vg0-pvc--1--0--0123abcd"


@pytest.mark.parametrize(
    ("told", "removed"),
    [
        (f"{LEFT}/LVM-{GONE_GROUP}{OWN_UUID}/0", True),
        # Open; another volume; another group; not LVM's; of a group that LVM sees.
        (f"{LEFT}/LVM-{GONE_GROUP}{OWN_UUID}/1", False),
        (f"vg0-pvc--2--0--0123abcd/LVM-{GONE_GROUP}{OWN_UUID}/0", False),
        (f"vg0-{LEFT}/LVM-{GONE_GROUP}{OWN_UUID}/0", False),
        (f"{LEFT}/CRYPT-{GONE_GROUP}{OWN_UUID}/0", False),
        (f"{LEFT}//0", False),
        (f"{LEFT}/LVM-{LIVING_GROUP}{OWN_UUID}/0", False),
        ("No devices found", False),
        ("", False),
    ],
)
def test_the_device_of_a_volume_that_went_with_its_drive_is_removed_with_it(told: str, removed: bool) -> None:
    status = replace(CREATED, devices=(UsedDevice(path="/dev/sdb", drive_uuid="drive-b"),))
    living = SeenGroup("vg1", "hhhhhh-hhhh-hhhh-hhhh-hhhh-hhhh-hhhhhh", 256 * MIB, 128 * MIB, 4 * MIB)
    given: dict[str, Any] = {"groups": SeenGroups((living,)), "drives": (drive(online=False),)}
    listed = {"mapped": Outcome("mapped", "", "dmsetup info", NOW, 0, f"vg1-x/LVM-x/1\n{told}\n")}
    decision = judged(None, status, deleting(finalizers.AGENT), **given, outcomes=listed)
    assert decision.release is not removed
    steps = () if decision.work is None else decision.work.steps
    assert [step.argv for step in steps if isinstance(step, Run)] == [("dmsetup", "remove", "--retry", LEFT)] * removed
    tried = {**listed, "unmap": Outcome("unmap", LEFT, "dmsetup remove", NOW, 1, "busy", failures=1)}
    assert judged(None, status, deleting(finalizers.AGENT), **given, outcomes=tried).release


@pytest.mark.parametrize("made", [llv(uid="u1"), deleting(finalizers.AGENT)])
@pytest.mark.parametrize("status", [CREATED, LVMLogicalVolumeStatus()])
def test_a_volume_that_lvm_did_not_tell_of_is_neither_made_nor_given_up(
    made: LVMLogicalVolume, status: LVMLogicalVolumeStatus
) -> None:
    decision = judged(None, status, made, volumes=SeenVolumes((), "lvs ended with 5: I/O error"))
    assert (decision.work, decision.release) == (None, False)
    assert decision.status.reason == "CommandFailed"
    assert "lvs ended with 5: I/O error" in decision.status.message
    assert decision.status.actual_size == status.actual_size


def test_nothing_is_decided_before_somebody_has_looked() -> None:
    for made in (llv(uid="u1"), deleting(finalizers.AGENT)):
        decision = judged(None, CREATED, made, volumes=None)
        assert (decision.look_at_volumes, decision.work, decision.release) == (True, None, False)
        assert decision.status == CREATED


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


def test_zeroing_leaves_slots_for_other_commands_and_what_hangs_keeps_nobody_from_zeroing() -> None:
    assert AT_ONCE < SLOTS

    async def main(sim: Simulation) -> None:
        machine = Waiting(sim.clock)
        hands = Hands(machine, Memory(), clock=sim.clock)
        heavy, told = HeavyWork(hands), list[int]()

        def ask(number: int) -> None:
            step = Run((f"{number}",), "zero")
            heavy.start(Work(f"lvm-heavy/{number}", (step,), heavy=True), partial(told.append, number))

        for number in range(6):
            ask(number)
        await sim.clock.sleep(1)
        assert set(machine.begun) == {"0", "1", "2", "3"}
        machine.hanging.add("0")
        await sim.clock.sleep(60)
        assert {4, 5} <= set(told)
        ask(4)
        ask(5)
        await sim.clock.sleep(1)
        assert machine.begun[4:] == ["4"]
        machine.ended.add("1")
        await sim.clock.sleep(60)
        ask(5)
        await sim.clock.sleep(1)
        assert machine.begun[4:] == ["4", "5"]
        await hands.close()

    run(main, seed=1)


class Waiting(FakeMachine):
    """A machine whose commands end when they are told to."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.ended: set[str] = set()
        self.hanging: set[str] = set()
        self._clock = clock

    async def run(self, *argv: str, silence: float, stdin: object = None) -> Completed:
        self.begun.append(argv[0])
        while argv[0] not in self.ended:
            await self._clock.sleep(1)
            if argv[0] in self.hanging:
                raise CommandHung("it hangs", still_there=lambda: True)
        return Completed(0, "")
