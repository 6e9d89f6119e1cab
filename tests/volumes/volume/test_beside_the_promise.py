"""Whoever is to join, or is one too many, is told of beside the promise: a volume that keeps it is Ready."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.annotation_keys import EVACUATE
from quorate.api.conditions.rv import AllReplicasReady, DiskAllocation, Ready, Resilient
from quorate.api.core import Event, Node
from quorate.api.meta import ObjectMeta, VolumeName
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import VolumePhase
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.support.faults import Sent
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import volume_lab

D = ReplicaType.DISKFUL


def test_a_replacement_without_a_place_leaves_a_volume_ready_that_keeps_its_promise() -> None:
    """2D with two nodes, one of which is to be emptied: nothing is lost yet, and there is nowhere to go."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=2)) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            first = (await story.nodes(D))[0]
            await story.attach((await story.nodes(D))[1])
            await lab.store.patch(Node, first, patch={"metadata": {"annotations": {EVACUATE: "true"}}})
            await lab.sleep(120)
            volume = await story.volume()
            [newcomer] = [each.name for each in await lab.replicas() if each.spec.node_name is None]
            assert conditions.is_true(volume.status.conditions, Ready)
            assert conditions.is_true(volume.status.conditions, Resilient)
            assert volume.status.phase is VolumePhase.READY
            said = conditions.find(volume.status.conditions, AllReplicasReady)
            assert said is not None
            assert said.message == f"to join: {newcomer}"
            assert f"no place for {newcomer}" in volume.status.message
            pending = conditions.find(volume.status.conditions, DiskAllocation)
            assert pending is not None
            assert pending.reason == "Pending"

    run(main, seed=1)


def test_one_copy_too_many_goes_with_a_word_and_the_volume_is_never_called_degraded() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=5)) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            phases: set[object] = set()

            def look(write: Sent) -> None:
                if write.kind == "ReplicatedVolume":
                    phases.add(lab.store.read_page(type(volume).KIND).records[0].typed.status.phase)  # type: ignore[attr-defined]

            async def gone() -> bool:
                return all(each.name != "v-5" for each in await lab.replicas())

            volume = await story.volume()
            lab.watcher = look
            spec = ReplicatedVolumeReplicaSpec(replicated_volume_name=VolumeName("v"), type=D)
            extra = ReplicatedVolumeReplica(metadata=ObjectMeta(name="v-5"), spec=spec)
            await lab.store.create(extra)
            await lab.until("it is gone again", gone, 600)
            await story.until_calm()
            lab.watcher = None
            events = (await lab.store.list(Event)).items
            told = [each for each in events if each.reason == "ReplicaDeleted" and "v-5" in each.message]
            assert {each.involved_object.kind for each in told} == {"ReplicatedVolume", "ReplicatedVolumeReplica"}
            assert all("4 diskful replicas, 3 are enough" in each.message for each in told)
            assert VolumePhase.DEGRADED not in phases

    run(main, seed=2)
