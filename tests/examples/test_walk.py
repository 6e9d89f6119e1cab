"""The walk of ``examples/README.md`` in virtual time: the files as they are, all controllers, agents and kernels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quorate.api import conditions
from quorate.api.conditions.declaration import ConditionType
from quorate.api.conditions.rv import PublishSucceeded, Ready, Resilient
from quorate.api.longhorn import DiskSchedule
from quorate.api.quantity import Quantity
from quorate.api.storage import (
    LVMLogicalVolume,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel.io import IoState
from quorate.lab.layout import Layout
from tests.examples.files import apply
from tests.volumes.laboratory import VolumeLab, volume_lab

LAYOUT = Layout(nodes=6, zones=3)
LEVELS = {"scratch": "1D", "web": "2D+1TB", "ledger": "2D", "demo": "3D", "sparse": "3D"}
#: Seconds of a node's silence until its replica is lost: the agent's Lease, then the grace period of class safe.
LOST = 40.0 + 60.0


@asynccontextmanager
async def applied(sim: Simulation, *files: str) -> AsyncIterator[VolumeLab]:
    async with volume_lab(sim, LAYOUT) as lab:
        for file in ("pool.yaml", "classes.yaml", *files):
            await apply(lab.store, file)
        for volume in (await lab.store.list(ReplicatedVolume)).items:
            await lab.until_ready(volume.name)
        yield lab


async def used_on(lab: VolumeLab, name: str, *nodes: str) -> None:
    async def check() -> bool:
        return sorted((await lab.volume(name)).status.published_on) == sorted(nodes)

    await lab.until(f"{name} is in use on {nodes}", check)


async def writes(lab: VolumeLab, name: str, node: str) -> bool:
    """Whether a write on a node is acknowledged within a few seconds."""
    minor = (await lab.volume(name)).status.drbd.config.device_minor
    kernel = lab.cluster.node(node).host.kernel
    assert minor is not None
    lab.cluster.driver.catch_up()
    assert kernel.open(minor, "test", 1)
    io = kernel.write(minor, 0, 4096, "data")
    lab.cluster.driver.touch()
    await lab.sleep(5)
    lab.cluster.driver.catch_up()
    kernel.close(minor, 1)
    lab.cluster.driver.touch()
    return io.state is IoState.DONE


def is_true(volume: ReplicatedVolume, wanted: type[ConditionType]) -> bool:
    return conditions.is_true(volume.status.conditions, wanted)


def test_a_volume_of_each_level_becomes_ready_with_the_layout_of_its_level() -> None:
    async def main(sim: Simulation) -> None:
        async with applied(sim, "volumes.yaml", "thin.yaml") as lab:
            found = (await lab.store.list(ReplicatedVolume)).items
            assert {volume.name: volume.status.membership_layout for volume in found} == LEVELS
            assert all(is_true(volume, Resilient) for volume in found)
            entries = [name for each in (await lab.store.list(DiskSchedule)).items for name in each.status.replicas]
            replicas = await lab.replicas()
            diskful = [replica.name for replica in replicas if replica.spec.type is ReplicaType.DISKFUL]
            assert sorted(entries) == sorted(diskful)

    run(main, seed=1)


def test_it_is_used_where_an_attachment_asks_and_where_publish_on_says_so() -> None:
    async def main(sim: Simulation) -> None:
        async with applied(sim, "volumes.yaml") as lab:
            await apply(lab.store, "attachment.yaml")
            await used_on(lab, "demo", "node-1")
            await apply(lab.store, "published.yaml")
            await used_on(lab, "web", "node-2")
            assert await writes(lab, "demo", "node-1")
            assert await writes(lab, "web", "node-2")

    run(main, seed=1)


def test_it_migrates_while_it_is_in_use_where_the_layout_allows_it() -> None:
    async def main(sim: Simulation) -> None:
        async with applied(sim, "volumes.yaml") as lab:
            members = (await lab.volume("ledger")).status.datamesh.members
            here, there = (member.node_name for member in members)
            for nodes in ((here,), (here, there), (there,)):
                await lab.store.patch(ReplicatedVolume, "ledger", patch={"spec": {"publishOn": list(nodes)}})
                await used_on(lab, "ledger", *nodes)
            await lab.store.patch(ReplicatedVolume, "web", patch={"spec": {"publishOn": ["node-1", "node-2"]}})
            await lab.sleep(60)
            volume = await lab.volume("web")
            assert len(volume.status.published_on) == 1
            told = conditions.find(volume.status.conditions, PublishSucceeded)
            assert told is not None
            assert told.reason == PublishSucceeded.TWO_PRIMARIES_NOT_ALLOWED.code

    run(main, seed=1)


def test_with_a_node_down_it_stays_writable_and_heals() -> None:
    async def main(sim: Simulation) -> None:
        async with applied(sim, "volumes.yaml") as lab:
            await apply(lab.store, "attachment.yaml")
            await used_on(lab, "demo", "node-1")
            replicas = await lab.store.list(ReplicatedVolumeReplica)
            lost = next(
                each
                for each in replicas.items
                if each.spec.replicated_volume_name == "demo"
                and each.spec.type is ReplicaType.DISKFUL
                and each.spec.node_name not in ("node-1", "node-4")  # one zone: nobody could take the other's place
            )
            assert lost.spec.node_name is not None
            lab.cluster.inject(faults.NodeDown(lost.spec.node_name))
            assert await writes(lab, "demo", "node-1")

            async def healed() -> bool:
                volume = await lab.volume("demo")
                names = [member.name for member in volume.status.datamesh.members]
                return lost.name not in names and is_true(volume, Resilient) and is_true(volume, Ready)

            await lab.sleep(LOST)
            await lab.until("another replica has taken its place", healed)
            assert (await lab.volume("demo")).status.membership_layout.startswith("3D")
            assert await writes(lab, "demo", "node-1")

    run(main, seed=1)


def test_it_grows_while_it_is_in_use() -> None:
    async def main(sim: Simulation) -> None:
        async with applied(sim, "volumes.yaml") as lab:
            await apply(lab.store, "attachment.yaml")
            await used_on(lab, "demo", "node-1")
            await lab.store.patch(ReplicatedVolume, "demo", patch={"spec": {"size": "2Gi"}})

            async def grown() -> bool:
                size = (await lab.volume("demo")).status.actual_size
                return size is not None and int(size) >= int(Quantity("2Gi"))

            await lab.until("it has grown", grown)
            assert await writes(lab, "demo", "node-1")

    run(main, seed=1)


def test_after_the_last_delete_nothing_is_left() -> None:
    async def main(sim: Simulation) -> None:
        async with applied(sim, "volumes.yaml") as lab:
            await apply(lab.store, "attachment.yaml")
            await used_on(lab, "demo", "node-1")
            await lab.store.delete(ReplicatedVolume, "demo")
            await lab.sleep(30)
            assert (await lab.volume("demo")).status.published_on == ("node-1",), "an attachment holds its volume"
            await lab.store.delete(ReplicatedVolumeAttachment, "demo-on-node-1")
            for name in ("scratch", "web", "ledger"):
                await lab.store.delete(ReplicatedVolume, name)
            for name in ("scratch", "web", "ledger", "demo"):
                await lab.until_gone(name)
            for kind in (ReplicatedVolumeReplica, LVMLogicalVolume, ReplicatedVolumeAttachment):
                assert (await lab.store.list(kind)).items == ()
            for ledger in (await lab.store.list(DiskSchedule)).items:
                assert not ledger.status.replicas

    run(main, seed=1)
