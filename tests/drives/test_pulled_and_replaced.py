"""A drive is pulled under replicas and another serial number comes: nothing is done by hand on the node (F6)."""

from __future__ import annotations

import pytest

from quorate.api import names
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.cluster_config import ClusterConfig
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.configuration import Replication
from quorate.api.storage.lvg import VolumeGroupPhase
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import DriveLab, drive_lab

THREE = Layout(nodes=3)
NODE = "node-1"
GROUP = f"{NODE}-disk-1"


async def pulled_and_replaced(lab: DriveLab, *, serial_numbers: bool) -> tuple[Drive, Drive]:
    """The drive that was pulled, and the one that has come for it."""
    old = await lab.drive(NODE)
    if serial_numbers:
        selector = {"slots": None, "serialNumbers": [old.spec.serial_number]}
        await lab.store.patch(LVMVolumeGroup, GROUP, patch={"spec": {"deviceSelector": selector}})
    lab.lab.cluster.inject(faults.DrivePull(node=NODE, drive="1"))
    await lab.until_phase(old, OperationalStatus.RELEASED, patience=900)
    return old, await lab.replace(old)


def left_of(lab: DriveLab, group: str) -> list[str]:
    """What device mapper has of a group that LVM does not see."""
    host = lab.lab.cluster.node(NODE).host
    seen = {id(each) for each in host.lvm.visible().values()}
    return [each.name for each in host.volume_devices() if each.group.name == group and id(each.group) not in seen]


@pytest.mark.parametrize("serial_numbers", [False, True], ids=["slot", "serial number"])
def test_the_new_drive_becomes_the_group_again_and_replicas_return(serial_numbers: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, THREE) as lab:
            await lab.volumes(3, Replication.CONSISTENCY_AND_AVAILABILITY)
            old, new = await pulled_and_replaced(lab, serial_numbers=serial_numbers)
            assert new.status.replaces == (old.spec.serial_number,)
            for name in ("v", "v1", "v2"):
                await lab.until_copies(name, 3)
                assert NODE in lab.up_to_date(name)
            group = await lab.store.get(LVMVolumeGroup, GROUP)
            assert [device.drive_uuid for device in group.status.devices] == [new.name]
            assert left_of(lab, group.spec.actual_vg_name_on_the_node) == []

    run(main, seed=1)


def test_where_replacements_do_not_join_the_group_says_which_drive_is_unused() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, THREE) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            patch = {"spec": {"disks": {"replacementsJoin": False}}}
            await lab.store.patch(ClusterConfig, names.CLUSTER, patch=patch)
            old, new = await pulled_and_replaced(lab, serial_numbers=True)
            await lab.sleep(120)
            said = (await lab.store.get(LVMVolumeGroup, GROUP)).status.message
            assert f"no drive of the node is selected (serial number {old.spec.serial_number})" in said
            assert new.spec.serial_number in said
            selector = {"serialNumbers": [new.spec.serial_number]}
            await lab.store.patch(LVMVolumeGroup, GROUP, patch={"spec": {"deviceSelector": selector}})
            await lab.until_copies("v", 3)

    run(main, seed=2)


def test_a_new_drive_goes_to_the_group_that_names_it_not_to_that_of_the_one_before() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, THREE) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            other, beside = f"{NODE}-disk-2", await lab.drive(NODE, 2)

            async def replacements_join(joins: bool) -> None:
                patch = {"spec": {"disks": {"replacementsJoin": joins}}}
                await lab.store.patch(ClusterConfig, names.CLUSTER, patch=patch)

            await replacements_join(False)
            _, new = await pulled_and_replaced(lab, serial_numbers=True)
            await lab.sleep(60)
            named = {"slots": None, "serialNumbers": [beside.spec.serial_number, new.spec.serial_number]}
            lab.lab.cluster.inject(faults.Hang(node=NODE, command="vgextend"))
            await lab.store.patch(LVMVolumeGroup, other, patch={"spec": {"deviceSelector": named}})
            await replacements_join(True)
            await lab.sleep(30)
            lab.lab.cluster.inject(faults.Release())
            await lab.sleep(60)
            assert (await lab.store.get(LVMVolumeGroup, GROUP)).status.phase is not VolumeGroupPhase.READY
            drives = {each.drive_uuid for each in (await lab.store.get(LVMVolumeGroup, other)).status.devices}
            assert drives == {beside.name, new.name}

    run(main, seed=4)


def test_devices_that_an_older_agent_left_are_found_when_the_group_is_made() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, THREE) as lab:
            name = (await lab.store.get(LVMVolumeGroup, GROUP)).spec.actual_vg_name_on_the_node
            await lab.sleep(30)
            host = lab.lab.cluster.node(NODE).host
            pools = [{"name": "thin", "size": "50%"}]
            await lab.store.patch(LVMVolumeGroup, GROUP, patch={"spec": {"thinPools": pools}})
            await lab.sleep(30)
            host.execute(["lvcreate", "--yes", "--name", "old", "--size", "8M", name])
            host.execute(["lvcreate", "--yes", "--thinpool", "thin", "--name", "sparse", "--virtualsize", "8M", name])
            old = await lab.drive(NODE)
            lab.lab.cluster.inject(faults.DrivePull(node=NODE, drive="1"))
            await lab.sleep(30)
            assert len(left_of(lab, name)) == 6
            await lab.store.delete(Drive, old.name)
            lab.lab.cluster.inject(faults.DriveInsert(node=NODE))
            lab.lab.cluster.inject(faults.DriveSwap(node=NODE, drive="1"))

            async def made() -> bool:
                group = await lab.store.get(LVMVolumeGroup, GROUP)
                drives = {device.drive_uuid for device in group.status.devices}
                return group.status.phase is VolumeGroupPhase.READY and old.name not in drives

            await lab.until("the group is made of the new drive", made, 600)
            assert left_of(lab, name) == []

    run(main, seed=3)
