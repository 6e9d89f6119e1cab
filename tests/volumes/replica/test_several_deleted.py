"""A person deletes several replicas of one volume at once, and there are nodes for one replacement after another."""

from __future__ import annotations

import pytest

from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import NAMES, Story
from tests.volumes.laboratory import volume_lab

FEW_NODES = [
    pytest.param(each, nodes, id=f"{NAMES[each]} on {nodes} nodes")
    for each, nodes in ((Replication.CONSISTENCY, 3), (Replication.CONSISTENCY_AND_AVAILABILITY, 4))
]


@pytest.mark.parametrize(("replication", "nodes"), FEW_NODES)
def test_replicas_that_are_deleted_together_are_replaced_one_after_the_other(
    replication: Replication, nodes: int
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=nodes)) as lab:
            story = await Story.of(lab, replication)
            doomed = {each.metadata.uid for each in (await lab.replicas())[:2]}
            for name in ("v-0", "v-1"):
                await lab.store.delete(ReplicatedVolumeReplica, name)

            async def replaced() -> bool:
                return not doomed & {each.metadata.uid for each in await lab.replicas()}

            await lab.until("both are replaced", replaced, 1800.0)
            await story.until_calm()

    run(main, seed=1)
