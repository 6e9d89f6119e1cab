"""A user that was cut off and overtaken says what that may have cost, on the volume too."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.conditions.rvr import VolumeAccessReady
from quorate.api.core import Event
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import volume_lab


def test_a_forced_demotion_is_told_with_its_node_once() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.AVAILABILITY)
            old, new, *_ = sorted(lab.cluster.nodes, key=lambda node: node not in story.roles())
            await story.attach(old)
            await story.until_primary(old)
            close = story.hold_open(old)
            lab.cluster.inject(faults.Isolate(node=old))
            await lab.sleep(60)
            await story.detach(old)
            await story.attach(new)

            async def taken_over() -> bool:
                return new in story.primaries()

            await lab.until("it is used elsewhere", taken_over, 200)
            assert await story.write(new, "newer")
            lab.cluster.inject(faults.Heal())

            async def told() -> bool:
                replica = await story.replica_on(old)
                said = conditions.find(replica.status.conditions, VolumeAccessReady) if replica is not None else None
                return said is not None and said.reason == "IOFails" and old in said.message

            await lab.until("what it may have cost is said", told, 120)
            close()
            await story.until_primary(new)
            events = [each for each in (await lab.store.list(Event)).items if each.reason == "IOFails"]
            assert [(each.involved_object.kind, each.involved_object.name) for each in events] == [
                ("ReplicatedVolume", "v")
            ]

    run(main, seed=1)
