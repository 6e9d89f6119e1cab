"""Replicas and attachments on simulated nodes: with the controllers and agents that really run."""

from __future__ import annotations

from quorate.api import conditions, core
from quorate.api.conditions import rva, rvr
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeAttachment, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rva import AttachmentPhase, ReplicatedVolumeAttachmentSpec
from quorate.engine.simulation import Simulation, run
from quorate.errors import NotFound
from quorate.lab import faults
from tests.volumes.laboratory import VolumeLab, volume_lab

#: Until agents have reported their disks and the pool lists its nodes.
SETTLED = 30.0


async def formed(lab: VolumeLab, replication: Replication) -> None:
    class_name = await lab.provide(replication)
    await lab.sleep(SETTLED)
    await lab.create("v", class_name)
    await lab.until_ready()


async def left_on(lab: VolumeLab, node: str) -> list[str]:
    """Objects that the node has something of."""
    replicas = [each.name for each in await lab.replicas() if each.spec.node_name == node]
    volumes = (await lab.store.list(LVMLogicalVolume)).items
    return [*replicas, *(each.name for each in volumes if each.metadata.labels["quorate.io/node"] == node)]


def test_a_down_node_holds_a_deletion_until_its_node_object_is_deleted() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            lab.cluster.inject(faults.NodeDown("node-2"))
            await lab.sleep(60)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.sleep(60)
            (stuck,) = await lab.replicas()
            assert stuck.spec.node_name == "node-2"
            ready = conditions.find(stuck.status.conditions, rvr.Ready)
            assert ready is not None
            assert ready.reason == rvr.Ready.NODE_DOWN.code
            assert "node-2" in stuck.status.message
            await lab.store.delete(core.Node, "node-2")
            await lab.until_gone()
            assert await left_on(lab, "node-2") == []
            for ledger in (await lab.store.list(DiskSchedule)).items:
                assert not ledger.spec.replicas

    run(main, seed=1)


def test_a_deleted_logical_volume_of_a_member_stays_where_it_is() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab, Replication.AVAILABILITY)
            (victim, *_) = (await lab.store.list(LVMLogicalVolume)).items
            await lab.store.delete(LVMLogicalVolume, victim.name)
            await lab.sleep(120)
            kept = await lab.store.get(LVMLogicalVolume, victim.name)
            assert kept.deleting
            node = lab.cluster.nodes[kept.metadata.labels["quorate.io/node"]]
            there = [name for group in node.host.lvm.groups.values() for name in group.volumes]
            assert kept.spec.actual_lv_name_on_the_node in there

    run(main, seed=1)


def test_an_attachment_is_served_says_so_and_goes() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            (first, *_) = await lab.replicas()
            assert first.spec.node_name is not None
            await lab.store.create(
                ReplicatedVolumeAttachment(
                    metadata=ObjectMeta(name="mine"),
                    spec=ReplicatedVolumeAttachmentSpec(
                        replicated_volume_name=VolumeName("v"), node_name=NodeName(first.spec.node_name)
                    ),
                )
            )

            async def served() -> bool:
                found = await lab.store.get(ReplicatedVolumeAttachment, "mine")
                return conditions.is_true(found.status.conditions, rva.Ready)

            await lab.until("attachment served", served)
            found = await lab.store.get(ReplicatedVolumeAttachment, "mine")
            assert found.status.phase is AttachmentPhase.ATTACHED
            assert found.status.device_path.startswith("/dev/drbd")
            primary = await lab.store.get(ReplicatedVolumeReplica, first.name)
            assert conditions.is_true(primary.status.conditions, rvr.VolumeAccessReady)
            await lab.store.delete(ReplicatedVolumeAttachment, "mine")

            async def gone() -> bool:
                try:
                    await lab.store.get(ReplicatedVolumeAttachment, "mine")
                except NotFound:
                    return True
                return False

            await lab.until("attachment gone", gone)
            await lab.sleep(10)
            after = await lab.store.get(ReplicatedVolumeReplica, first.name)
            assert not conditions.is_true(after.status.conditions, rvr.Primary)

    run(main, seed=1)
