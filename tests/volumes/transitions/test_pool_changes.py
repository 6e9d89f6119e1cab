"""A settled volume hears that its pool no longer lists a node."""

from __future__ import annotations

from quorate.api import core
from quorate.api.meta import ObjectMeta
from quorate.api.storage import LVMVolumeGroup, ReplicatedStorageClass, ReplicatedStoragePool
from quorate.api.storage.configuration import Replication, Topology
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import LabelSelector, PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec
from quorate.engine.simulation import Simulation, run
from tests.volumes.attach.stories import FIVE, SETTLED, Story
from tests.volumes.laboratory import VolumeLab, volume_lab


async def provide(lab: VolumeLab) -> None:
    """A pool of the nodes with a label, which all have, and a class of three copies."""
    for node in lab.cluster.nodes:
        await label(lab, node, "yes")
    groups = [each.name for each in (await lab.store.list(LVMVolumeGroup)).items if each.name.endswith("-1")]
    spec = ReplicatedStoragePoolSpec(
        type=PoolType.LVM,
        lvm_volume_groups=tuple(PoolVolumeGroup(name=name) for name in sorted(groups)),
        node_label_selector=LabelSelector(match_labels={"use": "yes"}),
    )
    await lab.store.create(ReplicatedStoragePool(metadata=ObjectMeta(name="pool"), spec=spec))
    three = ReplicatedStorageClassSpec(
        storage_pool="pool", replication=Replication.CONSISTENCY_AND_AVAILABILITY, topology=Topology.IGNORED
    )
    await lab.store.create(ReplicatedStorageClass(metadata=ObjectMeta(name="three"), spec=three))


async def label(lab: VolumeLab, node: str, value: str) -> None:
    await lab.store.patch(core.Node, node, patch={"metadata": {"labels": {"use": value}}})


def test_a_copy_on_a_node_that_the_pool_drops_is_moved() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            await lab.sleep(SETTLED)
            await provide(lab)
            await lab.sleep(SETTLED)
            await lab.create("v", "three")
            await lab.until_ready()
            story = Story(lab)
            nodes = await story.nodes(ReplicaType.DISKFUL)
            await lab.sleep(30)
            await label(lab, nodes[2], "no")

            async def moved() -> bool:
                copies = await story.nodes(ReplicaType.DISKFUL)
                return nodes[2] not in copies and len(copies) == 3

            await lab.until("the copy is elsewhere", moved, 120)
            await lab.until_ready()

    run(main, seed=5)
