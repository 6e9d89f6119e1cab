"""A replica that a person makes, with a node or also a disk chosen: it is taken in like one of ours, or it goes."""

from __future__ import annotations

import pytest

from quorate.api import conditions, finalizers, labels
from quorate.api.conditions.rvr import AddressConfigured, BackingVolumeReady
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine.simulation import Simulation, run
from quorate.errors import NotFound
from tests.volumes.attach.stories import FIVE, SETTLED, Story
from tests.volumes.laboratory import VolumeLab, volume_lab


async def make(
    lab: VolumeLab, number: int, kind: ReplicaType, node: str, group: str | None = None, label: str | None = None
) -> str:
    """What ``kubectl create`` of a replica sends: neither labels nor finalizers."""
    name = f"v-{number}"
    spec = ReplicatedVolumeReplicaSpec(
        replicated_volume_name=VolumeName("v"), type=kind, node_name=NodeName(node), lvm_volume_group_name=group
    )
    labelled = {labels.NODE: label} if label is not None else {}
    await lab.store.create(ReplicatedVolumeReplica(metadata=ObjectMeta(name=name, labels=labelled), spec=spec))
    return name


async def first_group(lab: VolumeLab, node: str) -> str:
    """The node's group that is in the pool."""
    groups = (await lab.store.list(LVMVolumeGroup)).items
    return next(each.name for each in groups if each.spec.local.node_name == node and each.name.endswith("-1"))


async def free_node(lab: VolumeLab) -> str:
    taken = {each.spec.node_name for each in await lab.replicas()}
    return next(node for node in sorted(lab.cluster.nodes) if node not in taken)


#: What a person can choose: a node, and for a copy also a disk of it.
CHOICES = [
    (ReplicaType.DISKFUL, False),
    (ReplicaType.DISKFUL, True),
    (ReplicaType.TIE_BREAKER, False),
    (ReplicaType.ACCESS, False),
]


async def nothing_is_left(lab: VolumeLab) -> None:
    assert await lab.replicas() == ()
    assert (await lab.store.list(LVMLogicalVolume)).items == ()
    ledgers = (await lab.store.list(DiskSchedule)).items
    assert not any(each.startswith("v-") for ledger in ledgers for each in ledger.spec.replicas)


@pytest.mark.parametrize(("kind", "with_disk"), CHOICES)
def test_a_replica_made_by_hand_does_not_hold_its_volume_in_terminating(kind: ReplicaType, with_disk: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.CONSISTENCY)
            await lab.sleep(SETTLED)
            await make(lab, 5, kind, "node-2", await first_group(lab, "node-2") if with_disk else None)
            await lab.sleep(20)
            await lab.create("v", name)
            await lab.sleep(20)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone(patience=60)
            await nothing_is_left(lab)

    run(main, seed=1)


@pytest.mark.parametrize(("kind", "with_disk"), CHOICES)
def test_a_replica_made_by_hand_for_a_volume_that_never_was_goes_when_it_is_deleted(
    kind: ReplicaType, with_disk: bool
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            await lab.sleep(SETTLED)
            name = await make(lab, 5, kind, "node-2", await first_group(lab, "node-2") if with_disk else None)
            await lab.sleep(20)
            await lab.store.delete(ReplicatedVolumeReplica, name)
            await lab.sleep(20)
            await nothing_is_left(lab)

    run(main, seed=1)


def test_a_replica_made_by_hand_that_is_deleted_at_once_goes() -> None:
    """Before anybody has seen to it, or while no controller runs."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            await Story.of(lab, Replication.CONSISTENCY)
            lab.kill()
            name = await make(lab, 5, ReplicaType.DISKFUL, await free_node(lab))
            held = {"metadata": {"finalizers": [finalizers.AGENT]}}
            await lab.store.patch(ReplicatedVolumeReplica, name, patch=held)
            await lab.store.delete(ReplicatedVolumeReplica, name)
            lab.start()
            await lab.sleep(60)
            with pytest.raises(NotFound):
                await lab.store.get(ReplicatedVolumeReplica, name)

    run(main, seed=1)


@pytest.mark.parametrize("with_disk", [False, True], ids=["node", "node and disk"])
def test_a_volume_is_formed_of_the_replicas_that_a_person_made_where_they_are(with_disk: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.CONSISTENCY)
            await lab.sleep(SETTLED)
            for number, node in ((0, "node-2"), (1, "node-4")):
                group = await first_group(lab, node) if with_disk else None
                await make(lab, number, ReplicaType.DISKFUL, node, group)
            await lab.create("v", name)
            await lab.until_ready()
            found = await lab.replicas()
            assert {each.name: each.spec.node_name for each in found} == {"v-0": "node-2", "v-1": "node-4"}
            for each in found:
                assert each.metadata.labels[labels.NODE] == each.spec.node_name
                assert set(finalizers.OF_A_NEW_REPLICA) < set(each.metadata.finalizers)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone()

    run(main, seed=1)


def test_a_replica_made_by_hand_on_a_disk_without_room_says_so_and_goes_with_its_volume() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.NONE)
            await lab.sleep(SETTLED)
            await make(lab, 0, ReplicaType.DISKFUL, "node-2", await first_group(lab, "node-2"))
            await lab.create("v", name, "100Ti")
            await lab.sleep(60)
            replica = (await lab.replicas())[0]
            told = conditions.find(replica.status.conditions, BackingVolumeReady)
            assert told is not None
            assert "NoSpace" in told.message, told
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone()

    run(main, seed=1)


def test_a_replica_whose_label_names_another_node_says_so_and_holds_nothing() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            name = await lab.provide(Replication.NONE)
            await lab.sleep(SETTLED)
            await make(lab, 0, ReplicaType.DISKFUL, "node-2", await first_group(lab, "node-2"), label="node-4")
            await lab.create("v", name)
            await lab.sleep(60)
            replica = (await lab.replicas())[0]
            told = conditions.find(replica.status.conditions, AddressConfigured)
            assert told is not None
            assert told.reason == AddressConfigured.WRONG_LABEL.code
            assert "node-4" in told.message
            assert "node-2" in told.message
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone()

    run(main, seed=1)
