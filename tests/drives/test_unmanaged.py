"""A drive with data that no object stands for is not empty, whoever took the objects away."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.conditions.drive import Released
from quorate.api.conditions.lvm import Removable
from quorate.api.meta import ObjectMeta
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.errors import NotFound
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import drive_lab

OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus
NONE = Replication.NONE


def test_a_group_with_the_only_copy_is_kept_when_it_is_deleted_and_emptied_like_any_other() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.volumes(1, NONE)
            node = await lab.node_of("v-0")
            name, drive = f"{node}-disk-1", await lab.drive(node)
            await lab.store.delete(LVMVolumeGroup, name)
            await lab.sleep(30)
            held = conditions.find((await lab.store.get(LVMVolumeGroup, name)).status.conditions, Removable)
            assert held is not None
            assert "replica v-0 of volume v" in held.message
            await lab.annotate(drive, health="BAD")
            # The only copy is moved before anybody says that the drive is empty.
            drive = await lab.until_phase(drive, RELEASED, FAILED)
            assert drive.status.operational_status is RELEASED
            assert set(lab.up_to_date("v")) - {node}
            assert not lab.violations
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)
            # The group's object is there for as long as its agent must know the group for ours.
            assert FAILED not in lab.history[drive.spec.serial_number]

            async def gone() -> bool:
                try:
                    await lab.store.get(LVMVolumeGroup, name)
                except NotFound:
                    return True
                return False

            await lab.until("the group goes once nothing is in it", gone)

    run(main, seed=31)


@pytest.mark.parametrize("pulled", [False, True])
def test_a_drive_whose_group_nobody_knows_any_more_is_not_empty(pulled: bool) -> None:
    async def main(sim: Simulation) -> None:
        # One node: there is no other place for it.
        async with drive_lab(sim, Layout(nodes=1)) as lab:
            await lab.volumes(1, NONE)
            name, drive = "node-1-disk-1", await lab.drive("node-1")
            group = await lab.store.get(LVMVolumeGroup, name)
            # By force: nobody but a person takes our finalizer away.
            await lab.store.delete(LVMVolumeGroup, name)
            await lab.store.patch(LVMVolumeGroup, name, patch={"metadata": {"finalizers": None}})
            await lab.sleep(30)
            if pulled:
                lab.lab.cluster.inject(faults.DrivePull(node="node-1", drive="1"))
                await lab.sleep(30)
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.sleep(300)
            drive = await lab.again(drive)
            assert drive.status.operational_status is (FAILED if pulled else RELEASING)
            assert drive.status.progress == 0
            assert "quorate-1/" in drive.status.message
            assert RELEASED not in lab.history[drive.spec.serial_number]
            if pulled:
                assert "deleting its Drive object" in drive.status.message
                return
            said = conditions.find(drive.status.conditions, Released)
            assert said is not None
            assert said.reason == "UnmanagedVolumes"
            # With its object, what is in the group is looked after again.
            await lab.store.create(LVMVolumeGroup(metadata=ObjectMeta(name=name), spec=group.spec))
            await lab.sleep(120)
            drive = await lab.again(drive)
            assert drive.status.unmanaged_volumes == ()
            assert drive.status.operational_status is RELEASING
            assert "v: no place for a replacement" in drive.status.message
            assert lab.up_to_date("v") == ["node-1"]

    run(main, seed=32)


def test_a_logical_volume_that_somebody_made_in_a_group_of_ours_counts_as_well() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.sleep(30)
            drive, host = await lab.drive("node-1"), lab.lab.cluster.node("node-1").host
            host.execute(["lvcreate", "--yes", "--size", "8388608b", "--name", "theirs", "quorate-1"])
            await lab.sleep(90)
            await lab.annotate(drive, health="BAD", replacement="ready")
            await lab.sleep(60)
            drive = await lab.again(drive)
            assert (drive.status.operational_status, drive.status.progress) == (RELEASING, 0)
            assert "quorate-1/theirs" in drive.status.message
            host.execute(["lvremove", "--yes", "quorate-1/theirs"])
            await lab.until_phase(drive, REMOVED)

    run(main, seed=33)
