"""Drives, groups and logical volumes with real LVM and udev; no DRBD."""

from __future__ import annotations

import json

from metal.machines import block_text
from metal.people import (
    GROUP,
    THIN,
    make_group,
    make_logical_volume,
    until_created,
    until_gone,
    until_group,
)
from metal.stage import Scenario, Stage
from quorate.api import annotation_keys
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.cluster_config import ClusterConfig
from quorate.api.names import CLUSTER
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.lvg import VolumeGroupPhase

NODE = "n1"


async def volumes_of(stage: Stage, group: str = GROUP) -> dict[str, str]:
    """Logical volumes as LVM has them: name, size and pool."""
    said = await stage.machines.expect(
        NODE, f"lvs --reportformat json --units b --nosuffix -o lv_name,lv_size,pool_lv,lv_attr {group}"
    )
    rows = json.loads(said)["report"][0]["lv"]
    return {row["lv_name"]: f"{row['lv_size']} {row['pool_lv']} {row['lv_attr'][0]}".replace("  ", " ") for row in rows}


async def devices_of(stage: Stage, *names: str) -> list[str]:
    """Those of a group's logical volumes that are there as udev shows them."""
    found = [(name, await stage.machines.run(NODE, f"blockdev --getsize64 /dev/{GROUP}/{name}")) for name in names]
    return [name for name, said in found if said.exit == 0]


async def drives_seen(stage: Stage) -> dict[str, str]:
    """The Drives of the machine: whether they are there, by serial number."""
    found = (await stage.machines.store.list(Drive)).items
    return {each.spec.serial_number: str(each.status.presence) for each in found if not each.spec.is_system}


async def until_drives(stage: Stage, wanted: dict[str, str], seconds: float = 120.0) -> None:
    """Until the Drives are so."""

    async def check() -> bool:
        return {key: value for key, value in (await drives_seen(stage)).items() if key in wanted} == wanted

    await stage.machines.until(f"drives: {wanted}", check, seconds, every=2.0)


async def drive_of(stage: Stage, serial: str) -> Drive:
    """By its serial number."""
    found = (await stage.machines.store.list(Drive)).items
    return next(each for each in found if each.spec.serial_number == serial)


async def until_phase(stage: Stage, serial: str, phase: OperationalStatus, seconds: float = 200.0) -> None:
    """Until a drive is so far on its way out."""

    async def check() -> bool:
        status = (await drive_of(stage, serial)).status
        stage.machines.journal.tell(
            stage.machines.now(), NODE, f"{serial}: {status.health} {status.operational_status} {status.message}"
        )
        return status.operational_status is phase

    await stage.machines.until(f"{serial} is {phase}", check, seconds, every=2.0)


async def group_of(stage: Stage, name: str) -> str:
    """The serial numbers of the drives that a group really lies on."""
    said = json.loads(await stage.machines.expect(NODE, "pvs --reportformat json -o pv_name,vg_name"))
    paths = [row["pv_name"] for row in said["report"][0]["pv"] if row["vg_name"] == name]
    drives = json.loads(await stage.machines.expect(NODE, "lsblk --nodeps --json -o PATH,SERIAL"))["blockdevices"]
    return " ".join(sorted(row["serial"] for row in drives if row["path"] in paths))


async def mapped(stage: Stage) -> list[str]:
    """Device-mapper's devices of the group."""
    said = await stage.machines.run(NODE, "dmsetup ls")
    return sorted(word for word in said.output.split() if word.startswith(f"{GROUP}-"))


# --- scenarios ---


async def check(stage: Stage) -> None:
    """``agent --check`` on a plain Debian says what is missing and how to mend it; mended so, it is content."""
    first = await _checked(stage)
    stage.answer("what agent --check says", {name: f"{each['state']}: {each['found']}" for name, each in first.items()})
    wrong = {name: each for name, each in first.items() if each["state"] != "ok"}
    silent = [name for name, each in wrong.items() if not each["fix"]]
    stage.hold("whatever is not as it must be has a remedy", not silent, silent)
    told = await stage.machines.run(NODE, "ls /lib/modules/$(uname -r)/updates/drbd.ko")
    module = first["DRBD module"]
    if told.exit:
        stage.hold("that DRBD 9 is missing is said", module["state"] != "ok" and "drbd" in module["fix"], module)
    else:
        stage.hold("DRBD 9 is found", module["state"] == "ok", module)
    stage.hold("the API server is reached over TLS with the node's own token", first["API server"]["state"] == "ok")
    # Mended word for word, where the remedy is a command.
    for name in ("usermode_helper", "drbd.service", "LVM filter"):
        fix = wrong.get(name, {}).get("fix", "")
        stage.machines.journal.tell(stage.machines.now(), NODE, f"{name}: {fix}")
        if fix.startswith(("echo ", "systemctl ")):
            for command in fix.replace("and for the loaded one: ", "").split("; "):
                await stage.machines.expect(NODE, command)
            again = await _checked(stage)
            stage.hold(f"{name} is as it must be after what it told to do", again[name]["state"] == "ok", again[name])


async def _checked(stage: Stage) -> dict[str, dict[str, str]]:
    given = f"--node-name {NODE} --register-node --address 10.77.0.1 --kubeconfig /etc/quorate/kubeconfig"
    command = f"python3 -m quorate agent --check {given} --output json"
    said = await stage.machines.run(NODE, command, seconds=60)
    return {each["name"]: each for each in json.loads(said.output)}


async def groups(stage: Stage) -> None:
    """Two drives, each in the group whose selector names its serial number, whatever their device names are."""
    first, second = stage.machines.drives(NODE)
    await until_drives(stage, {first: "ONLINE", second: "ONLINE"})
    await make_group(stage, NODE, second, group="vg1", wait=False)
    await make_group(stage, NODE, first, thin=True, wait=False)
    await until_group(stage, f"{NODE}-vg1")
    await until_group(stage, f"{NODE}-{GROUP}")
    stage.see("drives of the groups", {name: await group_of(stage, name) for name in (GROUP, "vg1")})
    stage.hold("each group lies on its own drive", stage.seen["drives of the groups"] == {GROUP: first, "vg1": second})
    # A thin pool that is asked for later.
    name = f"{NODE}-vg1"
    patch = {"spec": {"thinPools": [{"name": THIN, "size": "40%"}]}}
    await stage.machines.store.patch(LVMVolumeGroup, name, patch=patch)
    await until_group(stage, name)
    found = await volumes_of(stage, "vg1")
    stage.see("a thin pool made later", found.get(THIN, "").split()[-1:])
    stage.hold("it is a thin pool", found[THIN].endswith("t"), found)


async def logical_volumes(stage: Stage) -> None:
    """Made, tagged, seen by udev, zeroed where it is asked for, grown; removed without a trace, power loss or not."""
    await make_group(stage, NODE, stage.machines.drives(NODE)[0], thin=True)
    # Somebody's bytes, where new volumes will be: they must not be readable in one that is said to be zeroed.
    await stage.machines.expect(NODE, f"lvcreate -y -W n -n before -L 64M {GROUP}")
    await stage.machines.write_file(NODE, "/root/block", block_text(3, "former").decode())
    await stage.machines.expect(NODE, f"dd if=/root/block of=/dev/{GROUP}/before bs=4096 seek=2048 conv=notrunc")
    await stage.machines.expect(NODE, f"lvremove -y {GROUP}/before")
    await make_logical_volume(stage, NODE, "zeroed", "64Mi", zeroed=True)
    await until_created(stage, "zeroed")
    stage.hold(
        "a former block is gone", await stage.machines.read_blocks(NODE, f"/dev/{GROUP}/zeroed", [2048]) == ["-"]
    )
    await make_logical_volume(stage, NODE, "thick", "32Mi")
    await make_logical_volume(stage, NODE, "thin-1", "256Mi", thin=True)
    await until_created(stage, "thick", "thin-1")
    made = await volumes_of(stage)
    stage.see("made", {name: text for name, text in made.items() if not name.startswith("lvol")})
    stage.see("udev's links", await devices_of(stage, "thick", "thin-1", "zeroed"))
    tags = await stage.machines.expect(NODE, f"lvs --noheadings -o lv_tags {GROUP}/thick")
    stage.hold("it has our tag", tags.strip() != "", tags.strip())
    # What a user has written is there after a power loss, in every sort.
    for name in ("thick", "thin-1", "zeroed"):
        await stage.machines.expect(
            NODE, f"dd if=/root/block of=/dev/{GROUP}/{name} bs=4096 seek=100 conv=notrunc,fsync"
        )
    await stage.machines.power_off(NODE)
    await stage.machines.power_on(NODE)
    await until_created(stage, "thick", "thin-1", "zeroed")

    async def there() -> bool:
        return len(await devices_of(stage, "thick", "thin-1", "zeroed")) == 3

    await stage.machines.until("udev has the links again", there, 60, every=1.0)
    stage.hold("as before the power loss", await volumes_of(stage) == made)
    for name in ("thick", "thin-1", "zeroed"):
        found = await stage.machines.read_blocks(NODE, f"/dev/{GROUP}/{name}", [100])
        stage.hold(f"{name} has its block", found == ["3.former"], found)
    # Grown; then removed.
    await stage.machines.store.patch(LVMLogicalVolume, "thick", patch={"spec": {"size": "48Mi"}})
    await until_size(stage, "thick", 48 << 20)
    stage.see("grown", (await volumes_of(stage))["thick"])
    for name in ("thick", "thin-1", "zeroed"):
        await stage.machines.store.delete(LVMLogicalVolume, name)
    for name in ("thick", "thin-1", "zeroed"):
        await until_gone(stage, LVMLogicalVolume, name)
    left = [name for name in await volumes_of(stage) if name in ("thick", "thin-1", "zeroed")]
    stage.hold("no logical volume is left", not left, left)
    ours = await mapped(stage)
    stage.hold("no device is left", not {f"{GROUP}-thick", f"{GROUP}-thin--1", f"{GROUP}-zeroed"} & set(ours), ours)


async def until_size(stage: Stage, name: str, size: int) -> None:
    """Until a logical volume is so large, and says so."""

    async def check() -> bool:
        found = await stage.machines.store.get(LVMLogicalVolume, name)
        return found.status.actual_size is not None and int(found.status.actual_size) == size

    await stage.machines.until(f"{name} has {size} bytes", check, 90, every=1.0)


async def killed_agent(stage: Stage) -> None:
    """The agent dies before and after every command that changes something, and everything is made all the same."""
    await stage.machines.kill_agents_at_commands([NODE])
    await make_group(stage, NODE, stage.machines.drives(NODE)[0], thin=True, wait=False)
    await until_group(stage, f"{NODE}-{GROUP}", 400)
    await make_logical_volume(stage, NODE, "thick", "32Mi", zeroed=True)
    await until_created(stage, "thick", seconds=400)
    made = await volumes_of(stage)
    stage.see("made", {name: text for name, text in made.items() if not name.startswith("lvol")})
    await stage.machines.store.delete(LVMLogicalVolume, "thick")
    await until_gone(stage, LVMLogicalVolume, "thick", 400)
    died = await stage.machines.deaths(NODE)
    verbs = sorted({" ".join(each.split()[:3]) for each in died})
    stage.see("died", [each for each in verbs if "modprobe" not in each])
    stage.hold("it has died at commands", len(died) >= 8, len(died))
    left = [name for name in await volumes_of(stage) if name == "thick"]
    stage.hold("nothing is left", not left, left)


async def drive_swapped(stage: Stage) -> None:
    """A drive with logical volumes is pulled and a new one takes its place: the group is made again there (F6)."""
    first, second = stage.machines.drives(NODE)
    await until_drives(stage, {first: "ONLINE", second: "ONLINE"})
    name = await make_group(stage, NODE, first)
    await make_logical_volume(stage, NODE, "held", "32Mi")
    await make_logical_volume(stage, NODE, "other", "32Mi")
    await until_created(stage, "held", "other")
    grace = {"spec": {"gracePeriods": {"driveMissing": "10s"}}}
    await stage.machines.store.patch(ClusterConfig, CLUSTER, patch=grace)
    await stage.machines.pull(NODE, first)
    await until_drives(stage, {first: "OFFLINE", second: "ONLINE"})

    async def not_ready() -> bool:
        found = await stage.machines.store.get(LVMVolumeGroup, name)
        return found.status.phase is not VolumeGroupPhase.READY

    await stage.machines.until("the group is said not to be Ready", not_ready, 120, every=2.0)
    for each in ("held", "other"):
        await stage.machines.store.delete(LVMLogicalVolume, each)
    for each in ("held", "other"):
        await until_gone(stage, LVMLogicalVolume, each, 300)
    ours = await mapped(stage)
    stage.hold("the pulled drive's volumes left no device behind", not ours, ours)
    await until_phase(stage, first, OperationalStatus.RELEASED)
    old = await drive_of(stage, first)
    said = {"metadata": {"annotations": {annotation_keys.DRIVE_REPLACEMENT[0]: "ready"}}}
    await stage.machines.store.patch(Drive, old.name, patch=said)
    await until_phase(stage, first, OperationalStatus.REMOVED)
    replacement = f"{first}-new"
    await stage.machines.plug(NODE, replacement)
    await until_drives(stage, {replacement: "ONLINE"})
    selector = {"spec": {"deviceSelector": {"serialNumbers": [replacement]}}}
    await stage.machines.store.patch(LVMVolumeGroup, name, patch=selector)
    await until_group(stage, name, 200)
    stage.see("the group's drive", await group_of(stage, GROUP))
    stage.hold("the group is on the new drive", stage.seen["the group's drive"] == replacement)
    await make_logical_volume(stage, NODE, "again", "32Mi")
    await until_created(stage, "again")


async def drive_back(stage: Stage) -> None:
    """A drive is pulled for a moment and put back: everything on it is as it was."""
    first, second = stage.machines.drives(NODE)
    await until_drives(stage, {first: "ONLINE", second: "ONLINE"})
    name = await make_group(stage, NODE, second)
    await make_logical_volume(stage, NODE, "kept", "32Mi")
    await until_created(stage, "kept")
    await stage.machines.write_file(NODE, "/root/block", block_text(7, "kept").decode())
    await stage.machines.expect(NODE, f"dd if=/root/block of=/dev/{GROUP}/kept bs=4096 seek=7 conv=notrunc,fsync")
    await stage.machines.pull(NODE, second)
    await until_drives(stage, {second: "OFFLINE"})
    await stage.machines.plug(NODE, second)
    await until_drives(stage, {second: "ONLINE"})
    await until_group(stage, name, 200)
    stage.see("logical volumes", await volumes_of(stage))
    # The old device-mapper device still points at the drive that went: it takes a new activation, as after a boot.
    await stage.machines.run(NODE, f"lvchange -an {GROUP}/kept; lvchange -ay {GROUP}/kept; udevadm settle")
    found = await stage.machines.read_blocks(NODE, f"/dev/{GROUP}/kept", [7])
    stage.hold("its block is there", found == ["7.kept"], found)


SCENARIOS = (
    Scenario("check", "agent --check on a plain Debian", check, predicted=False, seconds=120),
    Scenario("groups", "drives with serial numbers, groups, thin pools", groups, drives=2, seconds=120),
    Scenario("logical-volumes", "LVM's life with udev, and a power loss", logical_volumes, seconds=180),
    Scenario("killed-agent", "the agent dies at every command", killed_agent, seconds=300),
    Scenario("drive-swapped", "a drive with volumes is replaced", drive_swapped, drives=2, seconds=300),
    Scenario("drive-back", "a drive is pulled and put back", drive_back, drives=2, seconds=240),
)
