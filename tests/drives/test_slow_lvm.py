"""A drive is pulled while LVM takes its time to answer: what lay on it is not forgotten."""

from __future__ import annotations

import pytest

from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import drive_lab


@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_a_pulled_drive_keeps_its_group_and_its_volumes_move_however_slow_lvm_is(seconds: float) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5)) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            for command in ("vgs", "pvs", "lvs"):
                lab.lab.cluster.inject(faults.Slow(node=node, command=command, seconds=seconds))
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            for _ in range(600):
                await lab.sleep(0.5)
                group = await lab.store.get(LVMVolumeGroup, f"{node}-disk-1")
                assert [device.drive_uuid for device in group.status.devices] == [drive.name]
            await lab.until_phase(drive, OperationalStatus.RELEASED, patience=900)
            await lab.until_copies("v")
            assert node not in lab.up_to_date("v")

    run(main, seed=5)
