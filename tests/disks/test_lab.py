"""Disks on simulated hardware: real agents report them, make the copies of images, and lose their drives."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from quorate import nodes
from quorate.api import all_kinds, names
from quorate.api.conditions import find
from quorate.api.conditions.backing_image import Ready as ImageReady
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.lvm import Ready as GroupReady
from quorate.api.kind import Kind
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.backing_image import BackingImageSpec
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.cluster import CLUSTER_CONTROLLER
from quorate.disks import CONTROLLERS
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout, object_name
from tests.disks.cluster import EveryVersion
from tests.support.widgets import open_store

LAYOUT = Layout(nodes=3, zones=3, drives=2)
GROUP = object_name("node-1", "1")


@dataclass(frozen=True)
class Lab:
    sim: Simulation
    store: EmbeddedStore
    cluster: Cluster
    eye: EveryVersion

    async def schedule(self, group: str = GROUP) -> DiskSchedule:
        """The ledger of a group's own space."""
        found = await self.store.get(LVMVolumeGroup, group)
        return await self.store.get(DiskSchedule, names.disk_schedule(found.status.vg_uuid), names.NAMESPACE)

    async def reason(self) -> str:
        condition = find((await self.schedule()).status.conditions, Schedulable)
        assert condition is not None
        return condition.reason

    def logical_volumes(self) -> list[str]:
        """What is really on the drives."""
        hosts = [node.host for node in self.cluster.nodes.values()]
        return [name for host in hosts for group in host.lvm.groups.values() for name in group.volumes]


@asynccontextmanager
async def laboratory(sim: Simulation) -> AsyncIterator[Lab]:
    store = await open_store(sim, kinds=all_kinds())
    controllers = (CLUSTER_CONTROLLER, *nodes.CONTROLLERS, *CONTROLLERS)
    manager = Manager(store, controllers, clock=sim.clock, random=sim.random("manager"), identity="manager")
    sim.process("manager").spawn(manager.run())
    cluster = Cluster(LAYOUT, clock=sim.clock, seed=sim.seed)
    await deliver(store, cluster.plans)
    eye = EveryVersion(store)
    sim.process("eye").spawn(eye.run())
    async with cluster.running(lambda _: store):
        await sim.clock.sleep(60)
        yield Lab(sim, store, cluster, eye)
        await eye.caught_up()


def test_every_drive_of_a_new_cluster_becomes_a_disk_with_a_ledger() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            for group in (await lab.store.list(LVMVolumeGroup)).items:
                condition = find(group.status.conditions, GroupReady)
                assert condition is not None
                assert condition.reason == "Ready"
                assert group.status.vg_size is not None
                ledger = await lab.schedule(group.name)
                assert ledger.status.storage_available == int(group.status.vg_size)
                assert ledger.spec.node_id == group.spec.local.node_name
            found = (await lab.store.list(Node)).items
            assert [len(node.status.disk_status) for node in found] == [2, 2, 2]
            assert [node.status.zone for node in found] == ["zone-a", "zone-b", "zone-c"]
            assert all(disk.drives for node in found for disk in node.status.disk_status.values())
            assert await lab.reason() == "Schedulable"

    run(main, seed=1)


def test_a_pulled_drive_takes_nothing_new_and_does_again_when_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            lab.cluster.inject(faults.DrivePull("node-1", "1"))
            await sim.clock.sleep(120)
            assert await lab.reason() == "DiskNotReady"
            lab.cluster.inject(faults.DriveInsert("node-1"))
            await sim.clock.sleep(120)
            assert await lab.reason() == "Schedulable"

    run(main, seed=2)


def test_a_node_without_power_has_disks_that_take_nothing_new() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            lab.cluster.inject(faults.NodeDown("node-1"))
            await sim.clock.sleep(60)
            assert await lab.reason() == "DiskNotReady"
            lab.cluster.inject(faults.NodeUp("node-1"))
            await sim.clock.sleep(60)
            assert await lab.reason() == "Schedulable"

    run(main, seed=3)


def test_an_image_is_filled_from_its_source_verified_and_leaves_nothing_behind() -> None:
    content = b"quorate" * 1000
    checksum = hashlib.sha512(content).hexdigest()

    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            for name in ("node-1", "node-2"):
                lab.cluster.node(name).host.files["/var/lib/quorate/images/os"] = content
                await lab.store.patch(Node, name, names.NAMESPACE, patch={"spec": {"tags": ["images"]}})
            spec = BackingImageSpec(
                min_number_of_copies=2,
                size=Quantity("1Gi"),
                source_path="os",
                checksum=checksum,
                node_selector=("images",),
            )
            await lab.store.create(BackingImage(metadata=ObjectMeta(name="os", namespace=names.NAMESPACE), spec=spec))
            await sim.clock.sleep(300)
            image = await lab.store.get(BackingImage, "os", names.NAMESPACE)
            condition = find(image.status.conditions, ImageReady)
            assert condition is not None
            assert (condition.reason, image.status.ready_copies, image.status.checksum) == ("Ready", 2, checksum)
            copies = (await lab.store.list(LVMLogicalVolume)).items
            assert len({copy.spec.lvm_volume_group_name for copy in copies}) == 2
            assert len(lab.logical_volumes()) == 2
            await lab.store.delete(BackingImage, "os", names.NAMESPACE)
            await sim.clock.sleep(120)
            assert (await lab.store.list(BackingImage)).items == ()
            assert (await lab.store.list(LVMLogicalVolume)).items == ()
            assert lab.logical_volumes() == []
            ledgers = (await lab.store.list(DiskSchedule)).items
            assert [ledger.status.storage_scheduled for ledger in ledgers] == [0] * 6

    run(main, seed=4)


def test_an_image_that_is_not_what_it_should_be_says_so() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            for node in lab.cluster.nodes.values():
                node.host.files["/var/lib/quorate/images/os"] = b"something else"
            spec = BackingImageSpec(size=Quantity("1Gi"), source_path="os", checksum="ab" * 64)
            await lab.store.create(BackingImage(metadata=ObjectMeta(name="os", namespace=names.NAMESPACE), spec=spec))
            await sim.clock.sleep(300)
            image = await lab.store.get(BackingImage, "os", names.NAMESPACE)
            condition = find(image.status.conditions, ImageReady)
            assert condition is not None
            assert condition.reason == "CopyFailed"
            assert "ChecksumMismatch" in condition.message

    run(main, seed=5)


def test_with_nothing_changing_nothing_is_written() -> None:
    async def main(sim: Simulation) -> None:
        async with laboratory(sim) as lab:
            kinds = (DiskSchedule, Node, LVMVolumeGroup)
            before = [_versions(lab, cls.KIND) for cls in kinds]
            await sim.clock.sleep(3600)
            assert [_versions(lab, cls.KIND) for cls in kinds] == before

    run(main, seed=6)


def _versions(lab: Lab, kind: Kind) -> list[str]:
    return [record.typed.metadata.resource_version for record in lab.store.read_page(kind).records]
