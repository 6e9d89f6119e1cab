"""Volume groups: what is reported of them, and of which drives they are made."""

from __future__ import annotations

from dataclasses import replace as but
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from quorate.agent.backoff import wait_before_retry
from quorate.agent.lvm.drives import as_seen, drive_behind, selected
from quorate.agent.lvm.failures import meaning
from quorate.agent.lvm.filtering import lvm
from quorate.agent.lvm.groups import GroupDecision, GroupView, judge
from quorate.agent.lvm.looker import Looker
from quorate.agent.lvm.mapped import left_over
from quorate.agent.lvm.seen import NEW, SeenDevice, SeenGroup, SeenGroups, SeenVolume, SeenVolumes
from quorate.agent.lvm.volume_groups import AFTER_JUDGING, VolumeGroups
from quorate.agent.memory import Outcome
from quorate.agent.node import Node
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import DeviceSelector, VolumeGroupPhase
from quorate.api.struct import replace
from quorate.engine import Key, Reader
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import DATA, MIB, FakeMachine, Lv
from tests.agent.lvm.rig import HERE, Rig, drive, llv, lvg

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VG0 = SeenGroup("vg0", "uuid-vg0", 256 * MIB, 128 * MIB, 4 * MIB)
SDB = SeenDevice("/dev/sdb", "vg0", "uuid-vg0", 256 * MIB)
AS_IT_SHOULD_BE = SeenGroups((VG0,), (SDB,))
SLOT_1 = DeviceSelector(slots=("1",))


def judged(
    group: LVMVolumeGroup,
    groups: SeenGroups = AS_IT_SHOULD_BE,
    volumes: tuple[SeenVolume, ...] = (),
    drives: tuple[Drive, ...] = (),
    outcomes: dict[str, Outcome] | None = None,
) -> GroupDecision:
    return judge(GroupView(group, drives or (drive(),), SeenVolumes(volumes), groups, outcomes or {}), NOW)


def argvs(decision: GroupDecision) -> list[str]:
    for step in decision.steps:
        assert step.argv[1:3] == lvm("")[1:]
    return [" ".join((step.argv[0], *step.argv[3:])) for step in decision.steps]


def outcome(purpose: str, seconds: float, output: str = "", *, exit_code: int = 0, about: str = "") -> Outcome:
    at, failures = NOW + timedelta(seconds=seconds), int(exit_code != 0)
    return Outcome(purpose, about, purpose, at, exit_code, output, failures=failures)


TAKEN = outcome("group", -10, "/dev/vg0: already exists in filesystem", exit_code=3, about="/dev/sdb")
GONE = "LVM-" + "g" * 32 + "v" * 32


@pytest.mark.parametrize(
    ("outcomes", "done"),
    [
        ((TAKEN,), ["dmsetup info"]),
        # From the top: what has something above it is open.
        (
            (TAKEN, outcome("mapped", -5, f"vg0-a/{GONE}/0\nvg0-thin-tpool/{GONE}-tpool/2\nvg0-thin/{GONE}/0")),
            ["dmsetup remove vg0-a", "dmsetup remove vg0-thin"],
        ),
        ((TAKEN, outcome("mapped", -5, f"vg0-a/{GONE}/0"), outcome("unmap", -4, about="vg0-a")), ["dmsetup info"]),
        ((TAKEN, outcome("unmap", -4, about="vg0-a"), outcome("mapped", -3)), ["vgcreate vg0"]),
        # Nobody else's, and nothing that is open.
        ((TAKEN, outcome("mapped", -5, f"vg0--x-a/{GONE}/0\nvg0-b/CRYPT-x/0")), ["vgcreate vg0"]),
        ((TAKEN, outcome("mapped", -5, f"vg0-a/{GONE}/1")), []),
        ((TAKEN, outcome("mapped", -31, f"vg0-a/{GONE}/1")), ["dmsetup info"]),
    ],
)
def test_what_device_mapper_has_of_a_lost_group_is_removed_when_the_next_is_made(
    outcomes: tuple[Outcome, ...], done: list[str]
) -> None:
    decision = judged(lvg(selector=SLOT_1), SeenGroups(), outcomes={each.purpose: each for each in outcomes})
    said = [" ".join(word for word in step.argv if word != "--retry") for step in decision.steps]
    assert [
        " ".join(words.replace(" ".join(lvm("")[1:]) + " ", "").split()[: 2 + ("remove" in words)]) for words in said
    ] == done
    if not done:
        assert "vg0-a, of a drive that is gone, is still open" in decision.status.message


def test_what_is_of_a_group_that_lvm_sees_is_never_removed() -> None:
    uuid = "aaaaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaaaa"
    living = SeenGroups((SeenGroup("vg0x", uuid, 256 * MIB, 0, 4 * MIB),))
    listed = outcome("mapped", -5, f"vg0-a/LVM-{'a' * 32}{'v' * 32}/0")
    decision = judged(lvg(selector=SLOT_1), living, outcomes={"group": TAKEN, "mapped": listed})
    assert not any("dmsetup" in step.argv for step in decision.steps)


def test_nothing_is_left_over_as_long_as_lvm_did_not_tell_everything() -> None:
    told = f"vg0-a/{GONE}/0"
    assert [each.name for each in left_over(told, "vg0", SeenGroups())] == ["vg0-a"]
    assert left_over(told, "vg0", SeenGroups(incomplete="a device does not answer")) == ()
    assert left_over(told, "vg", SeenGroups()) == ()


def test_a_selector_that_no_drive_fits_says_so_and_names_what_is_unused() -> None:
    wanted = DeviceSelector(serial_numbers=("S1",))
    others = (
        drive("/dev/sdc", name="new"),
        drive("/dev/sdd", name="used", is_clean=False),
        drive("/dev/sda", name="system", is_system=True),
        drive("/dev/sde", name="gone", online=False),
    )
    said = judged(lvg(selector=wanted), SeenGroups(), drives=others).status.message
    assert "no drive of the node is selected (serial number S1)" in said
    assert "S-new (/dev/sdc, slot 1)" in said
    assert "edit spec.deviceSelector" in said
    assert not any(name in said for name in ("S-used", "S-system", "S-gone"))
    alone = judged(lvg(selector=wanted), SeenGroups(), drives=(others[1],)).status.message
    assert "No drive of the node is unused" in alone


@pytest.mark.parametrize(("joins", "taken"), [(True, ["vgcreate vg0 /dev/sdc"]), (False, [])])
def test_a_drive_joins_in_the_place_of_the_one_that_it_replaced(joins: bool, taken: list[str]) -> None:
    wanted = DeviceSelector(serial_numbers=("S1",))
    new = drive("/dev/sdc", name="new")
    new = replace(new, status=replace(new.status, replaces=("S0", "S1")))
    view = GroupView(lvg(selector=wanted), (new,), SeenVolumes(()), SeenGroups(), replacements_join=joins)
    assert argvs(judge(view, NOW)) == taken


@pytest.mark.parametrize(
    ("other", "taken"),
    [
        (DeviceSelector(serial_numbers=("S-new",)), []),
        (DeviceSelector(slots=("1",)), []),
        # It was in that place later than the one that is asked for here.
        (DeviceSelector(serial_numbers=("S1",)), []),
        (DeviceSelector(serial_numbers=("S3",)), ["vgcreate vg0 /dev/sdc"]),
        (DeviceSelector(slots=("2",)), ["vgcreate vg0 /dev/sdc"]),
        (DeviceSelector(), ["vgcreate vg0 /dev/sdc"]),
    ],
)
def test_a_drive_that_another_group_names_more_closely_does_not_join(other: DeviceSelector, taken: list[str]) -> None:
    new = drive("/dev/sdc", name="new")
    new = replace(new, status=replace(new.status, replaces=("S1", "S2", "S3")))
    wanted = DeviceSelector(serial_numbers=("S2",))
    view = GroupView(lvg(selector=wanted), (new,), SeenVolumes(()), SeenGroups(), others=(other,))
    assert argvs(judge(view, NOW)) == taken
    reverse = GroupView(lvg(selector=other), (new,), SeenVolumes(()), SeenGroups(), others=(wanted,))
    assert bool(argvs(judge(reverse, NOW))) is not bool(taken)


def test_a_group_is_reported_with_its_sizes_and_the_drive_behind_each_device() -> None:
    status = judged(lvg()).status
    assert (status.phase, status.message) == (VolumeGroupPhase.READY, "")
    assert (status.vg_uuid, status.vg_size, status.vg_free) == ("uuid-vg0", Quantity("256Mi"), Quantity("128Mi"))
    assert (status.allocated_size, status.extent_size) == (Quantity("128Mi"), Quantity("4Mi"))
    assert [(each.path, each.drive_uuid, each.size) for each in status.devices] == [
        ("/dev/sdb", "drive-b", Quantity("256Mi"))
    ]


def test_a_group_that_lvm_did_not_tell_of_is_not_made_nor_its_pools() -> None:
    """``vgs`` and ``lvs`` ended with 5: what they could not read may be the very group, and the very pool."""
    was = replace(lvg("tp", selector=SLOT_1), status=judged(lvg()).status)
    decision = judged(was, but(SeenGroups(), incomplete="vgs ended with 5: I/O error"))
    assert argvs(decision) == []
    assert (decision.status.phase, decision.status.vg_uuid) == (VolumeGroupPhase.NOT_READY, "uuid-vg0")
    assert "vgs ended with 5: I/O error" in decision.status.message
    view = GroupView(was, (drive(),), SeenVolumes((), "lvs ended with 5"), AS_IT_SHOULD_BE)
    assert argvs(judge(view, NOW)) == []


def test_a_thin_pool_may_promise_up_to_its_limit() -> None:
    volumes = (
        SeenVolume("vg0", "tp", "pool-uuid", 32 * MIB, "twi-aotz--", used_percent=50),
        SeenVolume("vg0", "a", size=40 * MIB, attributes="Vwi-a-tz--", pool="tp"),
    )
    status = judged(lvg("tp"), volumes=volumes).status
    (pool,) = status.thin_pools
    assert (status.phase, pool.ready, pool.zeroing, pool.uuid) == (VolumeGroupPhase.READY, True, True, "pool-uuid")
    assert (pool.used_size, pool.allocated_size) == (Quantity("16Mi"), Quantity("40Mi"))
    assert pool.available_space == Quantity("8Mi")  # 150 % of 32Mi, less 40Mi


def test_a_missing_thin_pool_is_made_and_the_group_not_ready_before() -> None:
    decision = judged(lvg("tp"))
    assert decision.status.phase is VolumeGroupPhase.NOT_READY
    assert argvs(decision) == ["lvcreate --yes --type thin-pool --zero y --size 33554432b --name tp vg0"]


def test_a_share_of_the_group_is_left_to_lvm() -> None:
    group = lvg("tp")
    pools = tuple(replace(pool, size="50%") for pool in group.spec.thin_pools)
    decision = judged(replace(group, spec=replace(group.spec, thin_pools=pools)))
    assert "--extents 50%VG" in argvs(decision)[0]


@pytest.mark.parametrize(
    ("drives", "groups", "done", "said"),
    [
        ((drive(),), SeenGroups(), "vgcreate vg0 /dev/sdb", "being made"),
        ((drive(is_clean=False),), SeenGroups(), "", "something is on it"),
        ((drive(is_system=True),), SeenGroups(), "", "the node runs from it"),
        ((drive(online=False),), SeenGroups(), "", "no volume group vg0"),
        ((drive(slot="2"),), SeenGroups(), "", "no volume group vg0"),
        ((drive(is_clean=False),), SeenGroups((), (SeenDevice("/dev/sdb"),)), "vgcreate vg0 /dev/sdb", "being made"),
        ((drive(),), SeenGroups((), (SeenDevice("/dev/sdb1", "other", "u"),)), "", "belongs to volume group other"),
    ],
)
def test_a_group_is_made_only_of_selected_clean_drives(
    drives: tuple[Drive, ...], groups: SeenGroups, done: str, said: str
) -> None:
    decision = judged(lvg(selector=SLOT_1), groups, drives=drives)
    assert argvs(decision) == ([done] if done else [])
    assert said in decision.status.message


def test_a_new_drive_of_the_selection_joins_the_group() -> None:
    drives = (drive(), drive("/dev/sdc", name="drive-c"))
    decision = judged(lvg(selector=SLOT_1), drives=drives)
    assert argvs(decision) == ["vgextend vg0 /dev/sdc"]
    assert decision.status.phase is VolumeGroupPhase.READY


def _with_status(found: Drive, status: OperationalStatus) -> Drive:
    return replace(found, status=replace(found.status, operational_status=status))


@pytest.mark.parametrize(
    ("drives", "done"),
    [
        ((drive(is_clean=False),), []),
        ((_with_status(drive(), OperationalStatus.RELEASED),), []),
        ((drive(),), ["/dev/sdb"]),
        ((drive(online=False), drive("/dev/sdc", name="new")), []),
        ((_with_status(drive(online=False), OperationalStatus.REMOVING), drive("/dev/sdc", name="new")), []),
        ((_with_status(drive(online=False), OperationalStatus.REMOVED), drive("/dev/sdc", name="new")), ["/dev/sdc"]),
        ((drive("/dev/sdc", name="new"),), ["/dev/sdc"]),
    ],
)
def test_a_group_that_was_there_is_made_anew_only_when_nothing_can_be_left_of_it(
    drives: tuple[Drive, ...], done: list[str]
) -> None:
    group = lvg(selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    decision = judged(known, SeenGroups(), drives=drives)
    assert argvs(decision) == [f"vgcreate vg0 {path}" for path in done]


def test_a_drive_is_taken_only_as_it_was_seen_after_the_groups_were() -> None:
    """Swapped since the last look: its object still says that it is there, and as clean as before it had the group."""
    group = lvg(selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    made = GroupView(known, (drive(),), SeenVolumes(()), SeenGroups())
    extended = but(made, groups=AS_IT_SHOULD_BE, drives=(drive(), drive("/dev/sdc", name="drive-c")))
    for view in (made, extended):
        later = judge(but(view, drives_current=False), NOW)
        assert (argvs(later), later.look_at_drives) == ([], True)
        assert argvs(judge(view, NOW))
        assert not judge(view, NOW).look_at_drives
    swapped = as_seen((drive(), drive("/dev/sdb", name="new")), {"new": drive("/dev/sdb", name="new").spec})
    assert argvs(judge(but(made, drives=swapped), NOW)) == []


def test_a_group_whose_removal_was_given_up_half_way_is_made_anew() -> None:
    """``vgremove`` was done, the agent started anew, and a person wants the drive to stay."""
    group = lvg(selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    labelled = drive(is_clean=False)
    unused = SeenGroups((), (SeenDevice("/dev/sdb", "", "", 256 * MIB),))
    assert argvs(judged(known, unused, drives=(labelled,))) == ["vgcreate vg0 /dev/sdb"]
    others = SeenGroups((), (SeenDevice("/dev/sdb", "theirs", "uuid-theirs", 256 * MIB),))
    assert argvs(judged(known, others, drives=(labelled,))) == []


def test_a_group_of_several_drives_may_return_while_one_of_them_is_away() -> None:
    group = lvg(selector=SLOT_1)
    there = SeenGroups((VG0,), (SDB, SeenDevice("/dev/sdc", "vg0", "uuid-vg0", 256 * MIB)))
    known = replace(group, status=judged(group, there, drives=(drive(), drive("/dev/sdc", name="drive-c"))).status)
    away = drive("/dev/sdc", name="drive-c", online=False)
    assert argvs(judged(known, SeenGroups(), drives=(drive(), away))) == []


def test_what_was_known_of_a_group_that_is_gone_stays_known() -> None:
    group = lvg(selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    decision = judged(known, SeenGroups(), drives=(drive(online=False),))
    assert decision.status.phase is VolumeGroupPhase.NOT_READY
    assert decision.status.vg_uuid == "uuid-vg0"
    assert decision.status.devices == known.status.devices


def test_missing_devices_stay_listed_and_nothing_is_added_meanwhile() -> None:
    group = lvg(selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    partial = SeenGroups((but(VG0, missing=1),), (SeenDevice("[unknown]", "vg0", "uuid-vg0", 1, missing=True),))
    decision = judged(known, partial, drives=(drive(online=False), drive("/dev/sdc", name="drive-c")))
    assert (decision.status.phase, argvs(decision)) == (VolumeGroupPhase.NOT_READY, [])
    assert "1 devices of vg0 are missing" in decision.status.message
    assert [(each.path, each.drive_uuid) for each in decision.status.devices] == [("/dev/sdb", "drive-b")]


UNKNOWN = SeenDevice("[unknown]", "vg0", "uuid-vg0", 1, missing=True)


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param((SDB,), id="LVM was looked at before it went"),
        pytest.param((), id="it went between vgs and pvs, and the group with it"),
        pytest.param((UNKNOWN,), id="it went between vgs and pvs"),
    ],
)
def test_a_device_keeps_its_drive_however_early_or_late_lvm_was_looked_at(devices: tuple[SeenDevice, ...]) -> None:
    group = lvg(selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    away = (drive(online=False), drive("/dev/sdc", name="drive-c"))
    once = judged(known, SeenGroups((VG0,), devices), drives=away).status
    again = judged(replace(known, status=once), SeenGroups((VG0,), devices), drives=away).status
    for status in (once, again):
        assert [(each.path, each.drive_uuid) for each in status.devices] == [("/dev/sdb", "drive-b")]
    assert (once.phase is VolumeGroupPhase.READY) is (devices == (SDB,))


def test_a_path_that_another_drive_has_taken_is_that_drives() -> None:
    known = replace(lvg(), status=judged(lvg()).status)
    (device,) = judged(known, drives=(drive(online=False), drive(name="drive-c"))).status.devices
    assert device.drive_uuid == "drive-c"
    (device,) = judged(known, drives=(drive("/dev/sdc"),)).status.devices
    assert device.drive_uuid == ""  # It is there, and elsewhere.


def test_two_groups_of_one_name_are_not_ready() -> None:
    status = judged(lvg(), SeenGroups((VG0, but(VG0, uuid="other")), (SDB,))).status
    assert (status.phase, "2 volume groups" in status.message) == (VolumeGroupPhase.NOT_READY, True)


def test_a_refusal_of_lvm_is_reported_and_tried_again_later() -> None:
    failed = Outcome("group", "/dev/sdb", "vgcreate vg0 /dev/sdb", NOW, 5, "Cannot use /dev/sdb", failures=3)
    decision = judged(lvg(selector=SLOT_1), SeenGroups(), outcomes={"group": failed})
    assert (argvs(decision), decision.retry_after) == ([], 8.0)
    assert "Cannot use /dev/sdb" in decision.status.message


def test_the_status_of_a_group_settles() -> None:
    group = lvg("tp", selector=SLOT_1)
    known = replace(group, status=judged(group).status)
    assert judged(known).status == known.status


@pytest.mark.parametrize(
    ("path", "found"),
    [("/dev/sdb", "b"), ("/dev/sdb2", "b"), ("/dev/sdbc", ""), ("/dev/nvme0n1p3", "n"), ("/dev/nvme0n1", "n"),
     ("/dev/nvme0n11", ""), ("/dev/mapper/x", ""), ("[unknown]", "")],
)  # fmt: skip
def test_a_partition_belongs_to_its_drive(path: str, found: str) -> None:
    assert drive_behind(path, (drive(name="b"), drive("/dev/nvme0n1", name="n"))) == found


def test_an_empty_selector_selects_nothing() -> None:
    assert selected(DeviceSelector(), (drive(),)) == ()


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ('Volume group "vg0" has insufficient free space (3 extents): 25 required.', "NoSpace"),
        ("Insufficient suitable allocatable extents for logical volume x: 25 more required", "NoSpace"),
        ("Logical volume vg0/x in use.", "DeviceInUse"),
        ("Logical volume vg0/x is used by another device.", "DeviceInUse"),
        ('Volume group "vg9" not found', "VolumeGroupNotFound"),
        ("Thin pool vg0/tp not found.", "ThinPoolNotFound"),
        ('Logical Volume "x" already exists in volume group "vg0"', "LVExists"),
        ('Names including "_tdata" are reserved.', "CommandFailed"),
    ],
)
def test_the_words_of_lvm_are_understood(output: str, reason: str) -> None:
    assert meaning(Outcome("create", "", "lvcreate x", NOW, 5, output, failures=1)).code == reason


def test_what_failed_about_something_else_is_no_reason_to_wait() -> None:
    failed = Outcome("extend", "100", "lvextend", NOW, 5, "", failures=4)
    assert wait_before_retry(failed, NOW, "100") == 16.0
    assert wait_before_retry(failed, NOW, "200") == 0.0
    assert wait_before_retry(failed, NOW + timedelta(seconds=17), "100") == 0.0


def test_a_group_is_made_with_its_pools_and_then_left_alone() -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine(free={}, devices={})
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg("tp", selector=SLOT_1))
        await rig.store.create(drive())
        await rig.store.patch_status(type(drive()), "drive-b", patch={"presence": "ONLINE"})
        rig.start()
        await sim.clock.sleep(30)
        found = await rig.store.get(LVMVolumeGroup, "disk-1")
        assert (found.status.phase, found.status.message) == (VolumeGroupPhase.READY, "")
        assert [argv[0] for argv in machine.changing()] == ["vgcreate", "lvcreate"]
        version = found.metadata.resource_version
        await sim.clock.sleep(3600)
        assert (await rig.store.get(LVMVolumeGroup, "disk-1")).metadata.resource_version == version
        assert len(machine.changing()) == 2

    run(main, seed=1)


class FakeReader:
    """One group on one drive."""

    def list(self, cls: type[Any]) -> tuple[Any, ...]:
        there: dict[type[Any], tuple[Any, ...]] = {LVMVolumeGroup: (lvg(),), Drive: (drive(),)}
        return there.get(cls, ())

    def get(self, *_: object) -> None:
        return None


def test_a_look_at_groups_that_have_rested_is_judged_and_the_next_follows() -> None:
    """A pass that asked to be called again after no time at all would be refused, and so never end."""

    class Looked(FakeReader):
        known_volumes, known_groups, groups_at = SeenVolumes(()), AS_IT_SHOULD_BE, NOW
        current_volumes, current_groups = SeenVolumes(()), None

        def groups_rest(self) -> float:
            return 0.0

    async def main(sim: Simulation) -> None:
        node = Node(HERE, FakeMachine(), clock=sim.clock, random=sim.random("agent"))
        groups = VolumeGroups(node, cast("Looker", Looked()), Key("", "groups"))
        view = groups.observe(cast("Reader", Looked()), Key("", "groups"))
        assert view is not None
        assert groups.decide(view, NOW, sim.random("decide")).requeue_after == AFTER_JUDGING

    run(main, seed=1)


def test_logical_volumes_that_no_object_stands_for_are_told_of_on_the_group_or_the_drive() -> None:
    """What is in a group that nobody knows is somebody's all the same: the drive under it is not empty."""

    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        machine.volumes["vg0/by-hand"] = Lv("by-hand", "u-1", bytearray([DATA]) * 4, set())
        machine.volumes["vg0/begun"] = Lv("begun", "u-2", bytearray([DATA]) * 4, {NEW})
        rig = await Rig.begin(sim, machine)
        await rig.store.create(drive(is_clean=False))
        await rig.store.patch_status(Drive, "drive-b", patch={"presence": "ONLINE"})
        rig.start()
        await sim.clock.sleep(200)
        assert (await rig.store.get(Drive, "drive-b")).status.unmanaged_volumes == ("vg0/by-hand",)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        await sim.clock.sleep(200)
        assert (await rig.store.get(Drive, "drive-b")).status.unmanaged_volumes == ()
        assert (await rig.store.get(LVMVolumeGroup, "disk-1")).status.unmanaged_volumes == ("vg0/by-hand",)
        # Without the group's object, what its objects of volumes stand for is looked after by nobody either.
        await rig.store.delete(LVMVolumeGroup, "disk-1")
        await sim.clock.sleep(200)
        found = (await rig.store.get(Drive, "drive-b")).status.unmanaged_volumes
        assert found == ("vg0/by-hand", "vg0/pvc-1-0-0123abcd")
        # Of a drive that is away, what was known of it stays.
        await rig.store.patch_status(Drive, "drive-b", patch={"presence": "OFFLINE"})
        await sim.clock.sleep(200)
        assert (await rig.store.get(Drive, "drive-b")).status.unmanaged_volumes == found

    run(main, seed=1)


LEFT = ("vg0/by-hand",)


def test_what_lvm_did_not_tell_of_now_is_still_in_the_group() -> None:
    """``lvs`` told in part: a group that counts as empty for it would be let go of with what is in it."""
    was = replace(lvg(), status=replace(judged(lvg()).status, unmanaged_volumes=LEFT))
    other = SeenVolume("vg0", "other", "u2")
    view = GroupView(was, (drive(),), SeenVolumes((other,), "lvs ended with 5"), AS_IT_SHOULD_BE, unmanaged=(other,))
    assert judge(view, NOW).status.unmanaged_volumes == (*LEFT, "vg0/other")
    assert judge(but(view, volumes=SeenVolumes((other,))), NOW).status.unmanaged_volumes == ("vg0/other",)


@pytest.mark.parametrize(
    ("drives", "volumes", "groups", "kept"),
    [
        # Its drive is known, and something is on it: it may come back.
        ((drive(is_clean=False),), SeenVolumes(), SeenGroups(), LEFT),
        # Its Drive object was deleted: whoever did that does not expect it back.
        ((), SeenVolumes(), SeenGroups(), ()),
        ((), SeenVolumes((), "lvs ended with 5"), SeenGroups(), LEFT),
        ((), SeenVolumes(), SeenGroups(incomplete="vgs ended with 5"), LEFT),
    ],
)
def test_what_was_in_a_group_that_does_not_come_back_holds_its_object_no_more(
    drives: tuple[Drive, ...], volumes: SeenVolumes, groups: SeenGroups, kept: tuple[str, ...]
) -> None:
    was = replace(lvg(), status=replace(judged(lvg()).status, unmanaged_volumes=LEFT))
    assert judge(GroupView(was, drives, volumes, groups), NOW).status.unmanaged_volumes == kept


def test_a_group_that_is_being_deleted_is_still_reported_and_nothing_is_made_in_it() -> None:
    group = lvg("tp", selector=SLOT_1)
    going = replace(group, metadata=replace(group.metadata, deletion_timestamp=NOW))
    decision = judged(going, drives=(drive(), drive("/dev/sdc", name="drive-c")))
    assert argvs(decision) == []
    assert [device.drive_uuid for device in decision.status.devices] == ["drive-b"]
