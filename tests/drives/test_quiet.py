"""With nothing changing nothing is written: in service, released and waiting, removed and waiting."""

from __future__ import annotations

from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout

from .laboratory import DriveLab, drive_lab

RELEASED, REMOVED = OperationalStatus.RELEASED, OperationalStatus.REMOVED


async def writes_in(lab: DriveLab, seconds: float) -> list[tuple[str, str, str]]:
    begin = len(lab.lab.sent)
    await lab.sleep(seconds)
    return sorted(lab.lab.writes(begin))


def test_who_waits_writes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=5)) as lab:
            await lab.volumes(2, Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.sleep(120)
            assert await writes_in(lab, 600) == []
            drive = await lab.drive(await lab.node_of("v-0"))
            await lab.annotate(drive, health="BAD")
            await lab.until_phase(drive, RELEASED)
            await lab.sleep(120)
            assert await writes_in(lab, 600) == []
            await lab.annotate(drive, replacement="ready")
            await lab.until_phase(drive, REMOVED)
            await lab.sleep(120)
            assert await writes_in(lab, 600) == []

    run(main, seed=61)


def test_a_release_that_cannot_go_on_writes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        async with drive_lab(sim, Layout(nodes=3)) as lab:
            await lab.volumes(1, Replication.CONSISTENCY_AND_AVAILABILITY)
            drive = await lab.drive("node-1")
            await lab.annotate(drive, health="BAD")
            await lab.sleep(300)
            assert (await lab.again(drive)).status.operational_status is OperationalStatus.RELEASING
            assert await writes_in(lab, 900) == []

    run(main, seed=62)
