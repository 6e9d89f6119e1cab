"""Members come and go on simulated nodes: the controllers and agents that really run, and the kernel's model."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from quorate.api import annotation_keys, core
from quorate.api.longhorn import DiskSchedule
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from quorate.placement.layout import LEVELS
from tests.support.faults import Sent
from tests.volumes.laboratory import VolumeLab, volume_lab

FULL = os.environ.get("QUORATE_PROOF") == "full"
SETTLED = 30.0
NODES = Layout(nodes=5)
LEVELS_WITH_MOVES = [
    Replication.NONE,
    Replication.AVAILABILITY,
    Replication.CONSISTENCY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
]


async def formed(lab: VolumeLab, replication: Replication) -> ReplicatedVolume:
    name = await lab.provide(replication)
    await lab.sleep(SETTLED)
    await lab.create("v", name)
    return await lab.until_ready()


async def evacuate(lab: VolumeLab, node: str, value: str | None = "true") -> None:
    patch = {"metadata": {"annotations": {annotation_keys.EVACUATE: value}}}
    await lab.store.patch(core.Node, node, patch=patch)


async def members(lab: VolumeLab) -> list[str]:
    return [each.node_name for each in (await lab.volume()).status.datamesh.members]


async def until_without(lab: VolumeLab, node: str, replication: Replication, patience: float = 900.0) -> None:
    """The layout is whole, and nobody is on the node."""

    async def check() -> bool:
        volume = await lab.volume()
        there = any(each.spec.node_name == node for each in await lab.replicas())
        whole = volume.status.membership_layout == str(LEVELS[replication])
        return whole and not there and not volume.status.datamesh_transitions

    await lab.until(f"{node} is empty and the layout whole", check, patience)


def never_more_than_one_beyond(lab: VolumeLab, replication: Replication) -> Callable[[Sent], None]:
    most = LEVELS[replication].members + 1

    def watch(write: Sent) -> None:
        found = lab.store.read_page(ReplicatedVolumeReplica.KIND).records
        counted = [each.typed for each in found if isinstance(each.typed, ReplicatedVolumeReplica)]
        assert len(counted) <= most, [each.name for each in counted]

    return watch


@pytest.mark.parametrize("replication", LEVELS_WITH_MOVES, ids=lambda level: str(LEVELS[level]))
def test_a_node_that_is_evacuated_is_left_by_every_replica(replication: Replication) -> None:
    """M29: the annotation, seen when it is set, however often."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, NODES) as lab:
            volume = await formed(lab, replication)
            for member in volume.status.datamesh.members:
                lab.watcher = never_more_than_one_beyond(lab, replication)
                await evacuate(lab, member.node_name)
                await until_without(lab, member.node_name, replication)
                await evacuate(lab, member.node_name, None)
            await lab.until_ready()
            await lab.sleep(60)  # Whatever is only counted now and then has been.
            since = len(lab.sent)
            await lab.sleep(300)
            assert [write for write in lab.sent[since:] if write.kind.startswith("Replicated")] == []

    run(main, seed=3)


@pytest.mark.parametrize("replication", [Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_node_that_is_lost_is_replaced_and_its_replica_goes_when_it_is_back(
    replication: Replication, place: int
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, NODES) as lab:
            volume = await formed(lab, replication)
            lost = volume.status.datamesh.members[place].node_name
            lab.cluster.inject(faults.NodeDown(lost))

            async def whole() -> bool:
                found = (await lab.volume()).status
                alive = lost not in [each.node_name for each in found.datamesh.members]
                return alive and found.membership_layout == str(LEVELS[replication]) and not found.datamesh_transitions

            await lab.until("the volume is whole without the node", whole, 3600)
            assert lost not in await members(lab)
            lab.cluster.inject(faults.NodeUp(lost))
            await until_without(lab, lost, replication)

    run(main, seed=4)


def test_a_diskful_member_stays_while_nobody_can_take_its_place() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=3)) as lab:
            volume = await formed(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            node = volume.status.datamesh.members[0].node_name
            await evacuate(lab, node)
            await lab.sleep(600)
            assert node in await members(lab)
            diskful = [each for each in await lab.replicas() if each.spec.type is ReplicaType.DISKFUL]
            assert len(diskful) <= 4

    run(main, seed=5)


def test_a_node_that_leaves_the_cluster_takes_nothing_with_it() -> None:
    """``rvr-missing-node``: forced out, its space released, its object gone, another in its place."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, NODES) as lab:
            volume = await formed(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            lost = volume.status.datamesh.members[1].node_name
            lab.cluster.inject(faults.NodeDown(lost))
            await lab.sleep(60)
            await lab.store.delete(core.Node, lost)
            await until_without(lab, lost, Replication.CONSISTENCY_AND_AVAILABILITY)
            for ledger in (await lab.store.list(DiskSchedule)).items:
                assert ledger.spec.node_id != lost or not ledger.spec.replicas
            await lab.until_ready()

    run(main, seed=6)


def survives_a_crash_after(write_number: int, replication: Replication, place: int) -> bool:
    """Whether there was a write of that number; the controllers are killed right after it, and started again."""
    reached = False

    async def main(sim: Simulation) -> None:
        nonlocal reached
        async with volume_lab(sim, NODES) as lab:
            volume = await formed(lab, replication)
            node = volume.status.datamesh.members[place].node_name
            count = 0

            def crash() -> None:
                lab.kill()
                lab.start()

            def kill(_: Sent) -> None:
                nonlocal count, reached
                count += 1
                if count == write_number:
                    reached, lab.watcher = True, None
                    sim.loop.call_soon(crash)

            lab.watcher = kill
            await evacuate(lab, node)
            await until_without(lab, node, replication)
            await lab.until_ready()
            lab.kill()
            await lab.sleep(5)  # What it has sent is on its way still.

    run(main, seed=write_number)
    return reached


@pytest.mark.parametrize("first", range(1, 9) if FULL else (7,))
def test_the_controllers_may_be_killed_after_any_write_of_a_move(first: int) -> None:
    """After each of them nightly (``QUORATE_PROOF=full``), otherwise after a few."""
    write_number = first
    while survives_a_crash_after(write_number, Replication.AVAILABILITY, place=1):
        write_number += 8 if FULL else 37
    assert write_number > first
