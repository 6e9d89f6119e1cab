"""The object of a replica's disk is lost, and nothing else."""

from __future__ import annotations

from quorate.api.storage import LVMLogicalVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import volume_lab


def test_a_disk_whose_object_was_lost_is_found_again_with_everything_on_it() -> None:
    """Somebody took its finalizers away and deleted it: the replica makes another one, for the same logical volume."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            nodes = await story.nodes(ReplicaType.DISKFUL)
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            assert await story.write(nodes[0], "kept")
            lost = next(each for each in (await lab.store.list(LVMLogicalVolume)).items if each.name.startswith("v-1-"))
            await lab.store.patch(LVMLogicalVolume, lost.name, patch={"metadata": {"finalizers": None}})
            await lab.store.delete(LVMLogicalVolume, lost.name)

            async def is_there() -> bool:
                found = [each for each in (await lab.store.list(LVMLogicalVolume)).items if each.name == lost.name]
                return [each.status.phase for each in found] == [LogicalVolumePhase.CREATED]

            await lab.until("another object", is_there)
            lab.cluster.inject(faults.Reboot(node=nodes[1]))
            await lab.sleep(60)
            await lab.until_ready()
            assert story.copies()[nodes[1]] == "kept"
            # It goes with its replica, as any other.
            await lab.store.delete(ReplicatedVolumeReplica, "v-1")
            await lab.sleep(300)
            assert nodes[1] not in story.copies()

    run(main, seed=1)
