"""Replicas and attachments on simulated nodes: with the controllers and agents that really run."""

from __future__ import annotations

from itertools import combinations

import pytest

from quorate.api import conditions, core, names
from quorate.api.baremetal import Volume
from quorate.api.baremetal.volume import VolumeSpec
from quorate.api.conditions import rva, rvr
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import ConditionStatus, NodeName, ObjectMeta, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeAttachment, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rva import AttachmentPhase, ReplicatedVolumeAttachmentSpec
from quorate.engine.simulation import Simulation, run
from quorate.errors import NotFound
from quorate.lab import faults
from quorate.lab.layout import Layout
from quorate.volumes import effective
from quorate.volumes.view import NodeView, ReplicaView, VolumeView
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab
from tests.volumes.replica.making import LAYOUTS

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

            async def told() -> bool:
                primary = await lab.store.get(ReplicatedVolumeReplica, first.name)
                return conditions.is_true(primary.status.conditions, rvr.VolumeAccessReady)

            await lab.until("its replica says so", told, patience=5)
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


def test_a_deleted_replica_is_replaced_first_and_leaves_nothing_behind() -> None:
    """M31, and 000's gc conditions: the promised copies are there before the old one goes."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4)) as lab:
            await formed(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            (first, *_) = await lab.replicas()
            assert first.spec.node_name is not None
            await lab.store.delete(ReplicatedVolumeReplica, first.name)

            async def replaced() -> bool:
                names = [each.name for each in await lab.replicas()]
                return len(names) == 3 and first.name not in names

            await lab.until("the replica is replaced", replaced)
            await lab.until_ready()
            assert await left_on(lab, first.spec.node_name) == []
            entries = [name for ledger in (await lab.store.list(DiskSchedule)).items for name in ledger.spec.replicas]
            assert sorted(entries) == sorted(each.name for each in await lab.replicas())

    run(main, seed=1)


def test_a_drives_procedure_keeps_the_disk_of_a_replica_that_has_left() -> None:
    """03: nothing is destroyed before a person has said so, and a restart of the drive would find it as it was."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=4)) as lab:
            await formed(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            (first, *_) = await lab.replicas()
            disk = first.status.lvm_logical_volume_name
            spec = VolumeSpec(id=disk, location=first.spec.lvm_volume_group_name or "", node_id=NodeName("node-1"))
            await lab.store.create(Volume(metadata=ObjectMeta(name=disk, namespace=names.NAMESPACE), spec=spec))
            await lab.store.delete(ReplicatedVolumeReplica, first.name)
            await lab.sleep(120)
            left = await lab.store.get(ReplicatedVolumeReplica, first.name)
            assert first.name not in [member.name for member in (await lab.volume()).status.datamesh.members]
            assert left.deleting
            assert f"a drive's procedure keeps {disk}" in left.status.message
            assert not (await lab.store.get(LVMLogicalVolume, disk)).deleting
            await lab.store.delete(Volume, disk, names.NAMESPACE)

            async def gone() -> bool:
                return first.name not in [each.name for each in await lab.replicas()]

            await lab.until("the replica is let go of", gone)
            assert await left_on(lab, first.spec.node_name or "") == []

    run(main, seed=1)


LOSSES = [
    (replication, nodes)
    for replication, members in LAYOUTS.items()
    for count in range(1, len(members) + 1)
    for nodes in combinations(range(len(members)), count)
    if count < 3
]


@pytest.mark.parametrize(
    ("replication", "numbers"), LOSSES, ids=[f"{level}-{'-'.join(map(str, lost))}" for level, lost in LOSSES]
)
def test_what_is_foretold_of_a_loss_is_what_the_kernels_model_does(
    replication: Replication, numbers: tuple[int, ...]
) -> None:
    """Two implementations of the quorum rule that share no code: ours foretells, the lab's decides."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab, replication)
            await lab.sleep(10)
            replicas = await lab.replicas()
            nodes = [NodeName(replicas[number].spec.node_name or "") for number in numbers]
            foretold = effective.after_losing(seen(await lab.volume(), replicas), nodes)
            for node in nodes:
                lab.cluster.inject(faults.NodeDown(node))
            await lab.sleep(30)
            left = [each for each in await lab.replicas() if each.spec.node_name not in nodes]
            reports = {each.name: each.status.drbd.status for each in left}
            quorate = {
                name
                for name, report in reports.items()
                if report is not None and any(device.quorum for device in report.devices)
            }
            by_id = {replicas[number].name: foretold.verdicts[number].quorate for number in foretold.verdicts}
            assert {name for name, good in by_id.items() if good} == quorate
            with_disk = {each.name for each in left if each.spec.lvm_volume_group_name is not None}
            assert foretold.survives is bool(quorate & with_disk)

    run(main, seed=1)


def seen(rv: ReplicatedVolume, replicas: tuple[ReplicatedVolumeReplica, ...]) -> VolumeView:
    """The picture of a volume whose agents all live."""
    members = {member.name: member for member in rv.status.datamesh.members}
    views = []
    for replica in replicas:
        node = NodeView(NodeName(replica.spec.node_name or ""), core.Node(), fresh=True)
        views.append(ReplicaView(replica, member=members.get(ReplicaName(replica.name)), node=node))
    return VolumeView(
        VolumeName(rv.name), rv, replicas=tuple(views), nodes={each.node.name: each.node for each in views if each.node}
    )


def test_a_disk_that_fails_while_its_agent_cannot_look_is_known_by_the_word_of_its_peers() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            blind, user, _ = await story.nodes(ReplicaType.DISKFUL)
            await story.attach(user)
            await story.until_primary(user)
            lab.cluster.inject(faults.Hang(node=blind, command="drbdsetup"))
            await lab.sleep(5)
            drive, _ = next(iter(lab.cluster.node(blind).host.bays.items()))
            lab.cluster.inject(faults.DriveFail(node=blind, drive=drive))
            assert await story.write(user, "one", seconds=20)
            await lab.sleep(700)
            found = await story.replica_on(blind)
            assert found is not None
            for kind in (rvr.Quorum, rvr.InSync, rvr.Ready):
                condition = conditions.find(found.status.conditions, kind)
                assert condition is not None
                assert (condition.status, condition.reason) == (ConditionStatus.UNKNOWN, "AgentNotReady")
            assert (await lab.volume()).status.effective_layout.up_to_date_voters == 2

    run(main, seed=1)
