"""A drive that is being emptied is pulled and put back within its grace: nothing was lost, so nothing is given up."""

from __future__ import annotations

from quorate.api.baremetal.drive import OperationalStatus, Presence
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout

from .laboratory import drive_lab


def test_a_copy_is_let_go_of_only_once_its_drive_is_away_for_longer_than_its_grace() -> None:
    async def main(sim: Simulation) -> None:
        # Three nodes for three copies: the procedure has begun, and cannot end.
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = await lab.node_of("v-0")
            drive = await lab.drive(node)
            await lab.annotate(drive, health="SUSPECT")
            await lab.until_phase(drive, OperationalStatus.RELEASING)

            async def is_away() -> bool:
                return (await lab.again(drive)).status.presence is Presence.OFFLINE

            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            await lab.until("away", is_away)
            for _ in range(30):
                await lab.sleep(1)
                assert node in lab.up_to_date("v")
            lab.lab.cluster.inject(faults.DriveInsert(node=node))
            await lab.sleep(120)
            assert len(lab.up_to_date("v")) == 3
            # Away for longer it is let go of, although nothing else happens.
            lab.lab.cluster.inject(faults.DrivePull(node=node, drive="1"))
            await lab.until("away", is_away)
            await lab.sleep(330)
            assert node not in lab.up_to_date("v")

    run(main, seed=5)
