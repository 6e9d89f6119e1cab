"""Kubernetes deletes what nobody owns. Our references give it nothing to delete, and what it deletes loses no data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from quorate.api import all_kinds, annotation_keys, core
from quorate.api.meta import ObjectMeta, Resource, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.volumes.replica.owners import owner_reference
from tests.support.apiserver import ApiServer
from tests.support.garbage import Collector, misplaced
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

D = ReplicaType.DISKFUL
THREE = Replication.CONSISTENCY_AND_AVAILABILITY


@asynccontextmanager
async def collected(sim: Simulation) -> AsyncIterator[tuple[VolumeLab, Collector]]:
    """A cluster in which the collector works, all the time."""
    async with volume_lab(sim, FIVE) as lab:
        collector = Collector(lab.store)
        process = sim.process("collector")
        process.spawn(collector.run(sim.clock))
        yield lab, collector
        process.kill()


def test_in_a_whole_life_it_finds_nothing_to_delete() -> None:
    """Children go before their parents do: a finalizer keeps each parent until then."""

    async def main(sim: Simulation) -> None:
        async with collected(sim) as (lab, collector):
            story = await Story.of(lab, THREE)
            nodes = await story.nodes(D)
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            known = await collector.everything()
            assert {each.KIND.name for each in known if each.metadata.owner_references} >= {
                "ReplicatedVolumeReplica",
                "LVMLogicalVolume",
            }
            assert not [each.name for each in known if misplaced(each, known)]
            await lab.store.patch(core.Node, nodes[2], patch=_annotated(annotation_keys.EVACUATE, "true"))

            async def moved() -> bool:
                there = await story.nodes(D)
                return nodes[2] not in there and len(there) == 3

            await lab.until("a copy has moved", moved, 300)
            lab.cluster.inject(faults.Reboot(nodes[1]))
            await story.detach(nodes[0])
            await story.until_primary()
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.until_gone()
            await lab.sleep(30)
            assert collector.deleted == []

    run(main, seed=1)


def test_a_volume_whose_object_is_lost_loses_no_data_to_it() -> None:
    """An object may be lost with a backup of etcd, or by somebody who removes finalizers: its children follow it."""

    async def main(sim: Simulation) -> None:
        async with collected(sim) as (lab, collector):
            story = await Story.of(lab, THREE)
            nodes = await story.nodes(D)
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            assert await story.write(nodes[0], "precious")
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"finalizers": []}})
            await lab.sleep(300)
            assert {name for kind, name in collector.deleted if kind == "ReplicatedVolumeReplica"} == {
                "v-0",
                "v-1",
                "v-2",
            }
            assert sorted(each.name for each in await lab.replicas()) == ["v-0", "v-1", "v-2"]
            assert list(story.copies().values()) == ["precious"] * 3
            assert len((await lab.store.list(LVMLogicalVolume)).items) == 3

    run(main, seed=1)


def test_a_volume_that_was_restored_under_another_uid_loses_no_data_to_it() -> None:
    """Its replicas name the volume as it was. They are deleted before anybody can put that right, and held."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, THREE)
            nodes = await story.nodes(D)
            await story.attach(nodes[0])
            await story.until_primary(nodes[0])
            assert await story.write(nodes[0], "precious")
            lab.kill()
            before = await story.volume()
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"finalizers": []}})
            made = await lab.store.create(ReplicatedVolume(metadata=ObjectMeta(name="v"), spec=before.spec))
            assert made.metadata.uid != before.metadata.uid
            collector = Collector(lab.store)
            await collector.sweep()
            assert len(collector.deleted) == 3
            lab.start()
            await lab.sleep(300)
            assert list(story.copies().values()) == ["precious"] * 3
            assert len((await lab.store.list(LVMLogicalVolume)).items) == 3

    run(main, seed=1)


@pytest.fixture
async def real(apiserver: ApiServer) -> AsyncIterator[KubernetesStore]:
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd)
    connection = load_connection(environ={}, clock=SystemClock(), kubeconfig=apiserver.kubeconfig)
    store = KubernetesStore(connection, clock=SystemClock(), random=Random(1))
    yield store
    await store.close()
    apiserver.clear(ReplicatedVolumeReplica.KIND, ReplicatedVolume.KIND)


@pytest.mark.apiserver
async def test_references_as_a_real_server_keeps_them_resolve(real: KubernetesStore) -> None:
    """The uid that it gives is the one that we name. Its collector is a program of its own: its rules judge here."""
    spec = ReplicatedVolumeSpec(size=Quantity("64Mi"), replicated_storage_class_name="c")
    volume = await real.create(ReplicatedVolume(metadata=ObjectMeta(name="v"), spec=spec))
    await real.create(_replica("v-0", volume))
    collector = Collector(real)
    assert await collector.garbage() == []
    stranger = ReplicatedVolume(metadata=ObjectMeta(name="v", uid="another"), spec=spec)
    await real.create(_replica("v-1", stranger))
    assert [each.name for each in await collector.garbage()] == ["v-1"]
    await real.delete(ReplicatedVolume, "v")
    assert sorted(each.name for each in await collector.garbage()) == ["v-0", "v-1"]


def _replica(name: str, owner: Resource) -> ReplicatedVolumeReplica:
    spec = ReplicatedVolumeReplicaSpec(replicated_volume_name=VolumeName("v"), type=ReplicaType.ACCESS)
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(name=name, owner_references=(owner_reference(owner),)), spec=spec
    )


def _annotated(key: str, value: str) -> dict[str, dict[str, dict[str, str]]]:
    return {"metadata": {"annotations": {key: value}}}
