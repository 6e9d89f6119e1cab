"""A drive is replaced and nobody said a word before: what was on it is made elsewhere, as after any loss."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import DriveLab, drive_lab

Happening = Callable[[DriveLab, str], Awaitable[None]]


async def swap(lab: DriveLab, node: str) -> None:
    lab.lab.cluster.inject(faults.DriveSwap(node=node, drive="1"))


async def swap_and_reboot(lab: DriveLab, node: str) -> None:
    await swap(lab, node)
    await lab.sleep(20)
    lab.lab.cluster.inject(faults.Reboot(node))


async def replace_the_node(lab: DriveLab, node: str) -> None:
    """Another machine under the same name: other drives, and an empty file system."""
    lab.lab.cluster.inject(faults.NodeDown(node))
    await lab.sleep(100)
    machine = lab.lab.cluster.node(node)
    for bay, _ in list(machine.host.bays.items()):
        machine.swap_drive(bay)
    machine.host.files.clear()
    lab.lab.cluster.inject(faults.NodeUp(node))


@pytest.mark.parametrize("happens", [swap, swap_and_reboot, replace_the_node])
def test_what_was_on_a_drive_that_another_has_replaced_is_made_elsewhere(happens: Happening) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5)) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = await lab.node_of("v-1")
            drive = await lab.drive(node)
            await happens(lab, node)
            await lab.until_phase(drive, OperationalStatus.RELEASED, patience=900)
            await lab.until_copies("v", 3)
            assert node not in lab.up_to_date("v")
            # The new one is taken once a person says that the old one does not come back.
            await lab.annotate(drive, replacement="ready")
            await lab.until_closed(drive, patience=300)
            assert (await lab.drive(node)).status.operational_status is OperationalStatus.OPERATIVE

    run(main, seed=1)
