"""A drive comes back with the logical volume of a replica that is gone, and the number is given again on that disk."""

from __future__ import annotations

from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import volume_lab


def test_a_replica_is_made_under_another_number_beside_what_an_old_drive_brought_back() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4)) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = (await story.nodes(ReplicaType.DISKFUL))[1]
            host = lab.cluster.node(node).host
            drive, _ = next(iter(host.bays.items()))
            lab.cluster.inject(faults.DrivePull(node=node, drive=drive))
            await lab.sleep(60)

            async def replaced(name: str) -> None:
                uid = next(each.metadata.uid for each in await lab.replicas() if each.name == name)
                await lab.store.delete(ReplicatedVolumeReplica, name)

                async def done() -> bool:
                    found = await lab.replicas()
                    whole = len(found) == 3 and not any(each.deleting for each in found)
                    return whole and uid not in {each.metadata.uid for each in found}

                await lab.until(f"{name} is replaced", done, 1800.0)
                await story.until_calm()

            await replaced("v-1")
            lab.cluster.inject(faults.DriveInsert(node=node))
            await lab.sleep(60)
            before = {name for group in host.lvm.groups.values() for name in group.volumes}
            await replaced((await lab.replicas())[-1].name)
            after = {name for group in host.lvm.groups.values() for name in group.volumes}
            assert before < after, "what was there stays, and the new one is beside it"

    run(main, seed=1)
