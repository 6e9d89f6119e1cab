"""The drive under a volume's user dies: what was on it is made elsewhere, and the user goes on from there."""

from __future__ import annotations

import pytest

from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.faults import Fault
from quorate.lab.layout import Layout

from .laboratory import drive_lab, in_use


@pytest.mark.parametrize("death", [faults.DrivePull, faults.DriveFail])
@pytest.mark.parametrize(
    ("level", "copies"),
    [(Replication.CONSISTENCY, 2), (Replication.AVAILABILITY, 2), (Replication.CONSISTENCY_AND_AVAILABILITY, 3)],
)
def test_the_copy_under_the_user_is_made_elsewhere_while_it_stays(
    level: Replication, copies: int, death: type[faults.DrivePull | faults.DriveFail]
) -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5)) as lab:
            await lab.volumes(1, level)
            user = await lab.node_of("v-0")
            story = await in_use(lab, user)
            drive = await lab.drive(user)
            fault: Fault = death(node=user, drive="1")
            lab.lab.cluster.inject(fault)
            story.begin_write(user, "finds out")
            if death is faults.DriveFail:
                await lab.annotate(drive, health="BAD")

            async def made() -> bool:
                return len([node for node in lab.up_to_date("v") if node != user]) == copies

            await lab.until("as many copies as are promised are elsewhere", made, 600)
            # Whoever stood still for want of copies is asked again within a minute.
            await lab.sleep(90)
            assert story.primaries() == [user]
            assert await story.write(user, "after", seconds=10)
            held = {node for node, tag in story.copies().items() if tag == "after"}
            assert held == set(lab.up_to_date("v"))
            assert len(held) == copies
            await story.detach(user)
            await lab.until_phase(drive, OperationalStatus.RELEASED, patience=300)
            await lab.until_copies("v", copies)

    run(main, seed=1)


def test_a_new_copy_whose_first_source_dies_takes_from_another() -> None:
    """It had met the others meanwhile, and waited with them for the first copy to be whole."""

    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5)) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            await lab.sleep(60)
            await lab.annotate(drive, health="BAD")

            async def made() -> bool:
                return len([each for each in lab.up_to_date("v") if each != node]) == 3

            await lab.until("three copies are elsewhere", made, 300)

    run(main, seed=51)
