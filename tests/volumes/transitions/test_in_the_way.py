"""The last node that is left for a copy is taken by a user of the volume: it says so, and heals once that is over."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.conditions.rv import DiskAllocation
from quorate.api.storage import ReplicatedStorageClass
from quorate.api.storage.configuration import Replication, Topology
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import SETTLED, Story
from tests.volumes.laboratory import volume_lab

D = ReplicaType.DISKFUL
THREE = Replication.CONSISTENCY_AND_AVAILABILITY


def test_a_lost_copy_is_replaced_where_the_volume_was_in_use_once_it_is_not() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4, zones=3, drives=1)) as lab:
            name = await lab.provide(THREE, topology=Topology.TRANS_ZONAL)
            short = {"spec": {"eligibleNodesPolicy": {"notReadyGracePeriod": "30s"}}}
            await lab.store.patch(ReplicatedStorageClass, name, patch=short)
            await lab.sleep(SETTLED)
            await lab.create("v", name)
            await lab.until_ready()
            story = Story(lab)
            user = await story.free_node()
            [lost] = {"node-1", "node-4"} - {user}
            await story.attach(user)
            await story.until_primary(user)
            lab.cluster.inject(faults.NodeDown(lost))

            async def told() -> bool:
                found = conditions.find((await story.volume()).status.conditions, DiskAllocation)
                words = f"{user} is taken by v-3, through which the volume is in use there: once it is detached"
                return found is not None and words in found.message

            await lab.until("it says who is in the way", told, 200)
            assert await story.write(user, "still served")
            await story.detach(user)

            async def healed() -> bool:
                members = (await story.volume()).status.datamesh.members
                there = [each.node_name for each in members if each.type is D and not each.hidden]
                return user in there and lost not in there and len(there) == 3

            await lab.until("the copy is where it was used", healed, 300)
            await lab.until_ready()
            assert story.copies()[user] == "still served"

    run(main, seed=1)
