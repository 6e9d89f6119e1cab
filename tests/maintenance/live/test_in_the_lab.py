"""The live broker over simulated hardware: what it grants, what volumes forbid, and what takes down what."""

from __future__ import annotations

from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from tests.maintenance.live.laboratory import broker_lab


def test_first_light() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            cls = await lab.provide(Replication.CONSISTENCY_AND_AVAILABILITY)
            await lab.create("v", cls)
            await lab.until_ready()
            await lab.sleep(5)
            live = lab.broker_of
            print([*live.model.nodes()])
            print([*live.model.groups()])
            members = await lab.members()
            print(await lab.ask(members[0]))
            print(await lab.ask(members[1]))
            print(await lab.permissions())

    run(main, seed=1)
