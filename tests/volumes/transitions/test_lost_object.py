"""A member whose object was lost, finalizers and all: nobody can tell it anything, so it is replaced and forgotten."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.conditions.rv import Ready
from quorate.api.meta import ConditionStatus
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import volume_lab


def test_it_leaves_once_nobody_is_in_touch_with_it_and_until_then_the_volume_is_not_ready() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            nodes = await story.nodes(ReplicaType.DISKFUL)
            await lab.store.patch(ReplicatedVolumeReplica, "v-2", patch={"metadata": {"finalizers": None}})
            await lab.store.delete(ReplicatedVolumeReplica, "v-2")
            await lab.sleep(60)
            status = (await story.volume()).status
            ready = conditions.find(status.conditions, Ready)
            assert ready is not None
            assert ready.status is ConditionStatus.FALSE
            assert f"yet connected with v-0 on {nodes[0]}, v-1 on {nodes[1]}" in status.message
            assert [each.name for each in status.datamesh.members] == ["v-0", "v-1", "v-2"]
            lab.cluster.inject(faults.Reboot(node=nodes[2]))

            async def replaced() -> bool:
                found = (await story.volume()).status.datamesh.members
                return [each.name for each in found] == ["v-0", "v-1", "v-3"]

            await lab.until("another one has taken its place", replaced, 120)
            await lab.until_ready()

    run(main, seed=5)
