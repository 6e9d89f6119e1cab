"""A logical volume's whole life, with the agent killed anywhere."""

from __future__ import annotations

import contextvars
import json

import pytest

from quorate.agent.lvm.seen import METADATA_TAG, NEW, ZERO, end_tag
from quorate.agent.machine import Completed
from quorate.api import names
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.drbd import Device, DrbdStatus
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.storage.lvg import VolumeGroupPhase
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import DATA, EXTENT, FILE, MIB, OLD, ZEROS, FakeMachine, Lv
from tests.agent.lvm.rig import Rig, drive, llv, lvg, replica

NAME = "pvc-1-0-0123abcd"
PATH = f"vg0/{NAME}"


async def _settled(rig: Rig, seconds: float = 20.0) -> LVMLogicalVolume:
    await rig.sim.clock.sleep(seconds)
    return await rig.created()


def test_a_thick_volume_is_made_wiped_at_both_ends_and_reported_and_then_nothing_more_happens() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        for obj in (lvg(), llv(), drive()):
            await rig.store.create(obj)
        await rig.store.patch_status(type(drive()), "drive-b", patch={"presence": "ONLINE"})
        rig.start()
        found = await _settled(rig)
        assert found.status.phase is LogicalVolumePhase.CREATED
        assert found.status.actual_size == Quantity("12Mi")
        assert not found.status.known_zero
        assert [(device.path, device.drive_uuid) for device in found.status.devices] == [("/dev/sdb", "drive-b")]
        lv = machine.volumes[PATH]
        assert NEW not in lv.tags
        assert bytes(lv.content) == bytes([ZEROS]) + bytes([OLD]) * 10 + bytes([ZEROS])
        ran, version = len(machine.changing()), found.metadata.resource_version
        before = len(machine.ran)
        await sim.clock.sleep(541)
        assert len(machine.changing()) == ran
        assert (await rig.created()).metadata.resource_version == version
        assert machine.ran[before:] == [machine.ran[before]] * 9, "one lvs a minute"
        assert machine.ran[before][0] == "lvs"

    run(main, seed=1)


@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.parametrize("pool", ["", "thin"])
def test_only_zeroed_and_zeroing_thin_space_is_known_to_be_zero(zeroed: bool, pool: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = await Rig.begin(sim, FakeMachine())
        await rig.store.create(lvg(*([pool] if pool else [])))
        await rig.store.create(llv(zeroed=zeroed, pool=pool))
        rig.start()
        found = await _settled(rig, 60)
        assert found.status.phase is LogicalVolumePhase.CREATED
        assert found.status.known_zero == (zeroed or bool(pool))

    run(main, seed=1)


def test_a_source_is_copied_read_back_and_its_checksum_reported() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv(source="a", checksum="AB" * 64))
        rig.start()
        found = await _settled(rig)
        assert (found.status.phase, found.status.checksum) == (LogicalVolumePhase.CREATED, "ab" * 64)
        assert machine.volumes[PATH].content[0] == FILE

    run(main, seed=1)


def test_a_source_with_another_checksum_fails_and_the_volume_stays_new() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv(source="a", checksum="cd" * 64))
        rig.start()
        found = await _settled(rig)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.FAILED, "ChecksumMismatch")
        assert NEW in machine.volumes[PATH].tags
        copies = sum(argv[0] == "dd" and "conv=fsync,nocreat" in argv for argv in machine.ran)
        await sim.clock.sleep(200)
        assert sum(argv[0] == "dd" and "conv=fsync,nocreat" in argv for argv in machine.ran) == copies == 1

    run(main, seed=1)


def test_a_volume_without_the_tag_that_is_not_known_as_ours_is_left_alone_and_outlives_the_object() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.volumes[PATH] = Lv(NAME, "lv-foreign", bytearray([DATA]) * 12, set())
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        found = await _settled(rig)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.FAILED, "LVExists")
        await rig.delete()
        await sim.clock.sleep(20)
        assert await rig.names() == []
        assert machine.changing() == []
        assert machine.volumes[PATH].content == bytearray([DATA]) * 12

    run(main, seed=1)


def test_lvms_own_words_are_reported_when_it_refuses_a_name() -> None:
    async def main(sim: Simulation) -> None:
        # One that only a later LVM keeps for itself: those that we know of are not even tried.
        refusal = Completed(5, "", 'Names including "_new" are reserved. Please choose a different LV name.')
        rig = await Rig.begin(sim, FakeMachine(failing={"x_new": refusal}))
        await rig.store.create(lvg())
        await rig.store.create(llv(lv_name="x_new"))
        rig.start()
        found = await _settled(rig)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.FAILED, "CommandFailed")
        assert "are reserved" in found.status.message

    run(main, seed=1)


def test_an_open_volume_is_not_removed_before_it_is_closed() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        machine.volumes[PATH].open = True
        await rig.delete()
        found = await _settled(rig, 30)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.TERMINATING, "DeviceInUse")
        assert PATH in machine.volumes
        machine.volumes[PATH].open = False
        await sim.clock.sleep(30)
        assert (await rig.names(), list(machine.volumes)) == ([], [])

    run(main, seed=1)


def test_growing_beyond_the_group_is_refused_and_changes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        ran = machine.changing()
        await rig.grow(10_000)
        found = await _settled(rig)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.CREATED, "NoSpace")
        assert machine.changing() == ran
        machine.free["vg0"] = 10_000
        assert (await _settled(rig, 120)).status.actual_size == Quantity("10000Mi")

    run(main, seed=1)


def test_a_volume_that_vanished_is_not_made_again() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        del machine.volumes[PATH]
        found = await _settled(rig, 200)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.FAILED, "LVMissing")
        assert machine.volumes == {}

    run(main, seed=1)


def test_a_failing_command_is_tried_again_ever_more_rarely() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine(failing={"lvcreate": Completed(5, "", "  something is wrong")})
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        found = await _settled(rig, 3600)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.FAILED, "CommandFailed")
        assert 10 < len(machine.changing()) < 25
        machine.failing.clear()
        assert (await _settled(rig, 400)).status.phase is LogicalVolumePhase.CREATED

    run(main, seed=1)


def test_a_command_that_succeeds_and_does_not_help_is_repeated_ever_more_rarely() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        ran = len(machine.changing())
        machine.volumes[PATH].active = False
        machine.failing["--activate"] = Completed(0, "")
        await sim.clock.sleep(3600)
        assert 5 < len(machine.changing()) - ran < 25

    run(main, seed=1)


@pytest.mark.parametrize("words", ["if=/dev/zero", "conv=fsync,nocreat", "sha512sum", "cmp"])
def test_a_step_of_filling_that_fails_is_reported_and_tried_ever_more_rarely(words: str) -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine(failing={words: Completed(2, "", "it is broken")})
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv(source="a"))
        rig.start()
        found = await _settled(rig, 3600)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.FAILED, "CommandFailed")
        assert "it is broken" in found.status.message
        assert sum(words in " ".join(argv) for argv in machine.ran) < 25
        machine.failing.clear()
        assert (await _settled(rig, 400)).status.phase is LogicalVolumePhase.CREATED

    run(main, seed=1)


@pytest.mark.parametrize("command", ["lvs", "vgs"])
@pytest.mark.parametrize("answer", [Completed(5, "", "locked"), Completed(0, "no report")])
def test_a_look_that_fails_is_made_again_ever_more_rarely_and_nothing_is_decided_meanwhile(
    command: str, answer: Completed
) -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine(failing={command: answer})
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        found = await _settled(rig, 3600)
        assert found.status.phase is None
        assert machine.changing() == []
        assert len(machine.ran) < 250
        machine.failing.clear()
        assert (await _settled(rig, 400)).status.phase is LogicalVolumePhase.CREATED

    run(main, seed=1)


def test_a_look_that_keeps_failing_is_told_of_and_no_more_once_it_works() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        machine.failing["lvs"] = Completed(6, "", "  Locking failed")
        found = await _settled(rig, 120)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.CREATED, "CommandFailed")
        assert "Locking failed" in found.status.message
        group = await rig.store.get(LVMVolumeGroup, "disk-1")
        assert (group.status.phase, group.status.vg_uuid) == (VolumeGroupPhase.NOT_READY, "uuid-vg0")
        assert "Locking failed" in group.status.message
        machine.failing.clear()
        found = await _settled(rig, 400)
        assert (found.status.reason, found.status.message) == ("", "")
        assert (await rig.store.get(LVMVolumeGroup, "disk-1")).status.phase is VolumeGroupPhase.READY

    run(main, seed=1)


def test_what_lvm_could_read_counts_although_it_could_not_read_everything() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        report = Completed(5, json.dumps({"report": [machine._lvs()]}), "  WARNING: VG other is missing a device")
        machine.failing["lvs"] = report
        await _settled(rig, 120)
        assert (await rig.store.get(LVMVolumeGroup, "disk-1")).status.phase is VolumeGroupPhase.READY
        assert (await rig.created()).status.message == ""
        machine.failing["lvs"] = Completed(5, json.dumps({"report": [{"lv": []}]}), "  Error reading device")
        found = await _settled(rig, 200)
        assert (found.status.phase, found.status.reason) == (LogicalVolumePhase.CREATED, "CommandFailed")
        assert PATH in machine.volumes

    run(main, seed=1)


@pytest.mark.parametrize("kind", ["thick", "zeroed", "thin", "filled"])
def test_killed_between_any_two_commands_nothing_of_value_is_wiped_nothing_leaks_and_it_converges(kind: str) -> None:
    """The agent dies at the n-th chance, for every n, through making, using, growing and removing a volume."""
    chances = 0
    while True:
        if _life_with_a_death(kind, chances):
            break
        chances += 1
    assert chances >= {"thick": 10, "zeroed": 10, "thin": 7, "filled": 14}[kind]


def _life_with_a_death(kind: str, dies_at: int) -> bool:
    """Whether the agent lived to the end."""
    made = {
        "thick": llv(),
        "zeroed": llv(zeroed=True),
        "thin": llv(pool="thin"),
        "filled": llv(source="a", checksum="ab" * 64),
    }[kind]

    async def main(sim: Simulation) -> bool:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        left = [dies_at]

        def chance() -> None:
            left[0] -= 1
            if left[0] == -1:
                rig.kill()
                sim.loop.call_later(1.0, rig.start, context=outside)

        outside = contextvars.copy_context()
        machine.pause = chance
        await rig.store.create(lvg("thin") if kind == "thin" else lvg())
        await rig.store.create(made)
        rig.start()
        found = await _settled(rig, 120)
        assert found.status.phase is LogicalVolumePhase.CREATED, found.status
        lv = machine.volumes[PATH]
        assert NEW not in lv.tags
        assert (ZERO in lv.tags) == found.status.known_zero == (kind in ("zeroed", "thin"))
        if kind == "zeroed":
            assert set(lv.content) == {ZEROS}
        lv.content[:] = bytes([DATA]) * len(lv.content)  # a user writes all over it
        lv.open = True
        await rig.grow(20)
        found = await _settled(rig, 120)
        assert (found.status.phase, found.status.actual_size) == (LogicalVolumePhase.CREATED, Quantity("20Mi"))
        assert found.status.grown_zero
        assert bytes(lv.content) == bytes([DATA]) * 12 + bytes([ZEROS]) * 8
        lv.open = False
        await rig.delete()
        await sim.clock.sleep(120)
        assert await rig.names() == []
        assert [name for name in machine.volumes if not machine.volumes[name].is_pool] == []
        assert machine.violations == []
        ran = len(machine.changing())
        await sim.clock.sleep(300)
        assert len(machine.changing()) == ran
        lived = left[0] >= 0
        assert rig.lives == (1 if lived else 2)
        return lived

    return run(main, seed=dies_at)


def test_the_old_size_is_written_ahead_before_a_volume_with_drbds_metadata_grows() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        name = names.logical_volume("pvc-1-0", "disk-1")
        made = replica("pvc-1-0")
        for obj in (lvg(), llv(name), made):
            await rig.store.create(obj)
        rig.start()
        await sim.clock.sleep(20)
        lv = machine.volumes[f"vg0/{name}"]
        lv.tags.add(METADATA_TAG)
        lv.open = True
        lv.content[:] = bytes([DATA]) * len(lv.content)
        await rig.grow(20, name)
        await sim.clock.sleep(100)
        assert lv.size == 12 * MIB, "DRBD has not got it"
        rig.show(DrbdStatus(name="pvc-1", devices=(Device(disk_state="UpToDate", size=7 * 1024),)))
        sizes: list[object] = []
        extend = machine._lvextend

        def watched(words: tuple[str, ...]) -> Completed:
            (owner,), (volume,) = rig.reader.list(ReplicatedVolumeReplica), rig.reader.list(LVMLogicalVolume)
            ends = {tag for tag in lv.tags if tag.startswith("quorate.end")}
            sizes.extend((owner.status.drbd.actual.backing_size, volume.status.phase, ends))
            return extend(words)

        machine._lvextend = watched  # type: ignore[method-assign]
        await sim.clock.sleep(20)
        assert sizes == [Quantity("12Mi"), LogicalVolumePhase.RESIZING, {end_tag(12 * MIB)}]
        await rig.grow(40, name)
        await sim.clock.sleep(20)
        # DRBD has not used the first growth: its metadata is still at the end of 12Mi, or just now going to 20Mi.
        ends = {end_tag(12 * MIB), end_tag(20 * MIB)}
        assert sizes[3:] == [Quantity("12Mi"), LogicalVolumePhase.RESIZING, ends]
        assert lv.size == 40 * MIB
        assert machine.violations == []

    run(main, seed=1)


def test_a_spare_whose_extents_somebody_else_takes_is_made_again() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await _settled(rig)
        machine.volumes[PATH].open = True
        extend, taken = machine._lvextend, list[Completed]()

        def beaten(words: tuple[str, ...]) -> Completed:
            if not taken:
                taken.append(machine._lvcreate(("--name", "other", "--size", f"{EXTENT}b", "vg0")))
            return extend(words)

        machine._lvextend = beaten  # type: ignore[method-assign]
        await rig.grow(20)
        found = await _settled(rig, 60)
        assert (found.status.actual_size, found.status.grown_zero) == (Quantity("20Mi"), True)
        assert [argv[0] for argv in machine.ran].count("blkdiscard") == 2
        assert sorted(machine.volumes) == ["vg0/other", PATH]
        assert machine.violations == []

    run(main, seed=1)


def test_a_volume_begun_for_an_object_that_is_gone_gives_way() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.volumes[PATH] = Lv(NAME, "lv-old", bytearray([OLD]) * 4, {NEW, "quorate.llv=somebody-else"})
        machine.free["vg0"] -= 1
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        found = await _settled(rig)
        assert (found.status.phase, found.status.actual_size) == (LogicalVolumePhase.CREATED, Quantity("12Mi"))
        assert machine.volumes[PATH].uuid != "lv-old"

    run(main, seed=1)


def test_a_lost_status_costs_nothing() -> None:
    """The API forgets that the volume was Created. The tag says whose it is, so it is taken up as it is."""

    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv(zeroed=True))
        rig.start()
        await _settled(rig)
        machine.volumes[PATH].content[:] = bytes([DATA]) * 12
        ran = machine.changing()
        empty = {"phase": None, "actualSize": None, "knownZero": None, "devices": None}
        await rig.store.patch_status(LVMLogicalVolume, NAME, patch=empty)
        found = await _settled(rig)
        assert (found.status.phase, found.status.known_zero) == (LogicalVolumePhase.CREATED, True)
        assert machine.changing() == ran
        assert found.status.actual_size == Quantity.of_bytes(12 * MIB)

    run(main, seed=1)
