"""What is told of volumes on simulated nodes: healthy, with a node down, without room, unknown."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from quorate.api import annotation_keys, conditions, core
from quorate.api.conditions.rv import DiskAllocation
from quorate.api.storage import ReplicatedStoragePool, ReplicatedVolume
from quorate.api.storage.configuration import Replication, Topology
from quorate.engine.simulation import Simulation, run
from quorate.explain.listing import fetch
from quorate.explain.story import ReplicaStory, VolumeStory, tell, tell_replica
from quorate.explain.text import replica_lines, volume_lines
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.laboratory import VolumeLab, volume_lab

LEVEL = Replication.CONSISTENCY_AND_AVAILABILITY
#: Until agents have reported their disks; and until a silent agent counts as such.
SETTLED, SILENT = 30.0, 60.0


@asynccontextmanager
async def formed(
    sim: Simulation, replication: Replication = LEVEL, topology: Topology = Topology.TRANS_ZONAL
) -> AsyncIterator[VolumeLab]:
    async with volume_lab(sim, Layout(nodes=6, zones=3)) as lab:
        name = await lab.provide(replication, topology=topology)
        await lab.sleep(SETTLED)
        await lab.create("v", name)
        await lab.until_ready()
        yield lab


async def told(lab: VolumeLab, name: str = "v") -> VolumeStory:
    now = lab.sim.clock.now()
    story = tell(await fetch(lab.store, now), name, now)
    assert story is not None
    return story


def here(replica: ReplicaStory) -> list[tuple[str, str]]:
    return [(each.node, each.disk) for each in replica.candidates if each.here]


def test_of_a_healthy_volume_it_tells_every_place_and_that_nothing_waits() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            story = await told(lab)
            assert (story.phase, story.waits, story.troubles) == ("Ready", (), ())
            assert [replica.name for replica in story.replicas] == ["v-0", "v-1", "v-2"]
            for replica in story.replicas:
                assert here(replica) == [(replica.node, replica.disk)]
                assert {each.node for each in replica.candidates} == set(lab.cluster.nodes)
                assert replica.state == "Secondary, UpToDate, has quorum"
                assert replica.troubles == ()

    run(main, seed=1)


def test_a_place_is_possible_exactly_where_the_rules_would_let_the_replica_go() -> None:
    """One voter in each of three zones: the other node of its own zone, and no other, could have it instead."""

    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            story = await told(lab)
            taken = {replica.node for replica in story.replicas}
            for replica in story.replicas:
                for candidate in replica.candidates:
                    same_zone = candidate.zone == replica.zone
                    assert candidate.possible == same_zone, (replica.name, candidate)
                    if candidate.node in taken - {replica.node}:
                        assert candidate.message == "taken by a replica of this volume"
                    elif not same_zone:
                        assert candidate.message == "the topology rules its zone out"

    run(main, seed=1)


def test_it_foretells_what_each_loss_does() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            story = await told(lab)
            assert [(loss.node, loss.survives, loss.copies) for loss in story.losses] == [
                (replica.node, True, 2) for replica in story.replicas
            ]
            gone = story.replicas[2].node
            lab.cluster.inject(faults.NodeDown(gone))
            await lab.sleep(SILENT)
            story = await told(lab)
            assert story.resilience.startswith(f"out of reach: {story.replicas[2].name} on {gone};")
            assert {loss.node: loss.survives for loss in story.losses} == {
                replica.node: replica.node == gone for replica in story.replicas
            }
            lost = story.replicas[2]
            assert (lost.state, lost.said_by) == ("down", ())
            assert "AgentNotReady" in {trouble.reason for trouble in lost.troubles}

    run(main, seed=1)


def test_it_tells_of_whom_a_loss_takes_the_volume_away_although_it_goes_on() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            user = (await told(lab)).replicas[0].node
            await lab.store.patch(ReplicatedVolume, "v", patch={"spec": {"publishOn": [user]}})
            await lab.sleep(10)
            story = await told(lab)
            assert story.published_on == (user,)
            stops = {loss.node for loss in story.losses if "whoever uses it there stops with the node" in loss.message}
            assert stops == {user}
            assert all(loss.survives for loss in story.losses)

    run(main, seed=1)


def test_of_a_volume_whose_pool_was_deleted_it_tells_that_nothing_could_be_replaced() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            (pool,) = (await lab.store.list(ReplicatedStoragePool)).items
            await lab.store.delete(ReplicatedStoragePool, pool.name)
            await lab.sleep(10)
            (wait,) = (await told(lab)).waits
            assert wait.reason == "StoragePoolNotReady"
            assert pool.name in wait.message

    run(main, seed=1)


def test_of_a_volume_that_lost_its_status_it_tells_that_and_no_formation() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            await lab.store.patch(ReplicatedVolume, "v", patch={"metadata": {"finalizers": None}})
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.create("v", LEVEL.value.lower())
            await lab.sleep(10)
            story = await told(lab)
            (wait, *others) = story.waits
            assert (wait.what, wait.reason) == ("the volume", "StatusLost")
            assert "may hold data and the volume's status is gone" in wait.message
            assert "the volume" not in {each.what for each in others}
            assert (story.phase, story.resilience) == ("Degraded", "nothing is known: its status is lost")

    run(main, seed=1)


def test_of_a_volume_without_room_it_tells_who_has_too_little() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            await lab.create("huge", LEVEL.value.lower(), "10Ti")
            await lab.sleep(60)
            story = await told(lab, "huge")
            assert (story.phase, story.resilience) == ("Forming", "it is being formed")
            (first, *_) = story.replicas
            assert first.node == ""
            assert not any(each.possible for each in first.candidates)
            assert {each.message.partition(":")[0] for each in first.candidates} == {"no room"}
            assert {f"a place for huge-{number}" for number in range(3)} <= {wait.what for wait in story.waits}
            text = "\n".join(volume_lines(story))
            assert "why nowhere" in text
            assert "10Ti" in text

    run(main, seed=1)


def test_of_a_volume_whose_class_is_missing_it_tells_which() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=1)) as lab:
            await lab.create("v", "nowhere")
            await lab.sleep(30)
            (wait,) = (await told(lab)).waits
            assert (wait.reason, wait.blockers) == ("WaitingForStorageClass", ("ReplicatedStorageClass nowhere",))
            status = (await lab.volume()).status
            assert status.message == wait.message == "there is no ReplicatedStorageClass nowhere"
            allocation = conditions.find(status.conditions, DiskAllocation)
            assert allocation is not None
            assert allocation.message == "no space is asked for yet"

    run(main, seed=1)


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (LEVEL, "is replaced if it is not back by "),
        (Replication.CONSISTENCY, "counts as lost, but is replaced only once there is quorum, if it is not back by "),
    ],
)
def test_while_a_grace_runs_it_tells_when_it_ends_and_promises_nothing_that_takes_quorum(
    level: Replication, words: str
) -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim, level) as lab:
            lost = (await told(lab)).replicas[1]
            lab.cluster.inject(faults.NodeDown(lost.node))
            await lab.sleep(120)
            found = [wait.message for wait in (await told(lab)).waits if wait.reason == "NodeNotReady"]
            begin = f"{lost.node} is not ready; {lost.name} {words}"
            assert [message.startswith(begin) for message in found] == [True], found

    run(main, seed=1)


def test_of_a_replica_that_is_moved_it_tells_why_it_leaves_and_what_its_replacement_waits_for() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            (leaving, *_) = (await told(lab)).replicas
            for node in lab.cluster.nodes:
                lab.cluster.inject(faults.Hang(node, "lvcreate"))
            patch = {"metadata": {"annotations": {annotation_keys.EVACUATE: "true"}}}
            await lab.store.patch(core.Node, leaving.node, patch=patch)
            await lab.sleep(30)
            story = await told(lab)
            (coming,) = (each for each in story.replicas if each.name == "v-3")
            assert [(wait.what, wait.reason) for wait in story.waits] == [
                (leaving.name, "Evacuated"),
                (f"v-3 on {coming.node}, to join", "Provisioning"),
            ]
            assert f"it is to leave {leaving.node}" in story.waits[0].message
            assert "It is being made" in story.waits[1].message

    run(main, seed=1)


def test_of_the_only_copy_whose_logical_volume_is_gone_it_tells_that_io_stands_and_why() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim, Replication.NONE, Topology.IGNORED) as lab:
            (only,) = (await told(lab)).replicas
            host = lab.cluster.node(only.node).host
            lab.cluster.inject(faults.NodeDown(only.node))
            for group in host.lvm.groups.values():
                group.volumes.clear()
            lab.cluster.inject(faults.NodeUp(only.node))
            await lab.sleep(120)
            story = await told(lab)
            assert story.phase == "Degraded"
            assert story.resilience.startswith("I/O stands: not up, by the word of living agents: v-0 on ")
            assert "LVMissing" in {wait.reason for wait in story.waits}

    run(main, seed=1)


def test_a_volume_that_is_held_names_its_holder() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            patch = {"metadata": {"finalizers": ["example.com/mine", *(await lab.volume()).metadata.finalizers]}}
            await lab.store.patch(ReplicatedVolume, "v", patch=patch)
            await lab.store.delete(ReplicatedVolume, "v")
            await lab.sleep(10)
            (wait, *_) = (await told(lab)).waits
            assert wait.reason == "ForeignFinalizer"
            assert "example.com/mine" in wait.message
            assert wait.blockers == ("ReplicatedVolume v",)

    run(main, seed=1)


def test_what_is_not_there_has_no_story() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            now = lab.sim.clock.now()
            listing = await fetch(lab.store, now)
            assert tell(listing, "other", now) is None
            assert tell_replica(listing, "v-7") is None
            assert tell_replica(listing, "nonsense") is None
            found = tell_replica(listing, "v-1")
            assert found is not None
            assert found == (await told(lab)).replicas[1]
            assert "is here" in "\n".join(replica_lines(found))

    run(main, seed=1)


def test_no_secret_is_told() -> None:
    async def main(sim: Simulation) -> None:
        async with formed(sim) as lab:
            secret = (await lab.volume()).status.drbd.config.shared_secret
            assert secret is not None
            story = await told(lab)
            said = json.dumps(msgspec.to_builtins(story)) + "\n".join(volume_lines(story))
            assert secret.reveal() not in said

    run(main, seed=1)
