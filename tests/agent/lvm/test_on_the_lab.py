"""LVM and inventory on a simulated node: the very commands, answered by other people's code."""

from __future__ import annotations

from random import Random

from quorate.api import all_kinds, finalizers, labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveHealth, Presence
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.llv import LogicalVolumePhase, LogicalVolumeType, LVMLogicalVolumeSpec, ThinSource
from quorate.api.storage.lvg import VolumeGroupPhase
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation, run
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout, object_name, volume_group

NODE = NodeName("node-1")
DISK = object_name(NODE, "1")
GROUP = volume_group("1")


def llv(name: str, size: str = "1Gi", *, pool: str = "", zeroed: bool = False) -> LVMLogicalVolume:
    return LVMLogicalVolume(
        metadata=ObjectMeta(name=name, labels={labels.NODE: NODE}, finalizers=finalizers.OF_A_NEW_LOGICAL_VOLUME),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=name,
            type=LogicalVolumeType.THIN if pool else LogicalVolumeType.THICK,
            size=Quantity(size),
            lvm_volume_group_name=DISK,
            thin=ThinSource(pool_name=pool) if pool else None,
            zeroed=zeroed,
        ),
    )


async def _opened(sim: Simulation) -> EmbeddedStore:
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=Random(1), inline=True)
    sim.cleanup.push_async_callback(store.close)
    return store


def test_a_delivered_node_reports_its_drives_and_makes_its_groups_and_volumes() -> None:
    async def main(sim: Simulation) -> None:
        store = await _opened(sim)
        cluster = Cluster(Layout(nodes=1, drives=3), clock=sim.clock)
        await deliver(store, cluster.plans)
        pools = {"spec": {"thinPools": [{"name": "thin", "size": "10Gi"}]}}
        await store.patch(LVMVolumeGroup, DISK, patch=pools)
        async with cluster.running(lambda _: store):
            await sim.clock.sleep(60)
            drives = (await store.list(Drive)).items
            assert [drive.status.presence for drive in drives] == [Presence.ONLINE] * 3
            assert [drive.status.smart and drive.status.smart.health for drive in drives] == [DriveHealth.GOOD] * 3
            groups = (await store.list(LVMVolumeGroup)).items
            assert [(lvg.status.phase, lvg.status.message) for lvg in groups] == [(VolumeGroupPhase.READY, "")] * 3
            assert {lvg.status.devices[0].drive_uuid for lvg in groups} == {drive.name for drive in drives}
            for made in (llv("thick"), llv("zeroed", zeroed=True), llv("thin-1", pool="thin")):
                await store.create(made)
            await sim.clock.sleep(60)
            volumes = {each.name: each.status for each in (await store.list(LVMLogicalVolume)).items}
            assert {status.phase for status in volumes.values()} == {LogicalVolumePhase.CREATED}, volumes
            assert {name: status.known_zero for name, status in volumes.items()} == {
                "thick": False,
                "zeroed": True,
                "thin-1": True,
            }
            await store.patch(LVMLogicalVolume, "thick", patch={"spec": {"size": "2Gi"}})
            await sim.clock.sleep(60)
            assert (await store.get(LVMLogicalVolume, "thick")).status.actual_size == Quantity("2Gi")
            for name in volumes:
                await store.delete(LVMLogicalVolume, name)
                left = {"metadata": {"finalizers": [finalizers.AGENT]}}
                await store.patch(LVMLogicalVolume, name, patch=left)
            await sim.clock.sleep(60)
            assert (await store.list(LVMLogicalVolume)).items == ()
            assert list(cluster.node(NODE).host.lvm.groups[GROUP].volumes) == ["thin"]

    run(main, seed=1)


def test_a_pulled_drive_is_offline_and_its_group_not_ready_until_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        store = await _opened(sim)
        cluster = Cluster(Layout(nodes=1, drives=2), clock=sim.clock)
        await deliver(store, cluster.plans)
        async with cluster.running(lambda _: store):
            await sim.clock.sleep(30)
            await store.create(llv("thick"))
            await sim.clock.sleep(30)
            node = cluster.node(NODE)
            drive = node.pull_drive("1")
            await sim.clock.sleep(130)
            found = {each.spec.serial_number: each for each in (await store.list(Drive)).items}
            assert found[drive.serial].status.presence is Presence.OFFLINE
            lvg = await store.get(LVMVolumeGroup, DISK)
            assert lvg.status.phase is VolumeGroupPhase.NOT_READY
            assert [device.drive_uuid for device in lvg.status.devices] == [found[drive.serial].name]
            volume = await store.get(LVMLogicalVolume, "thick")
            assert [device.drive_uuid for device in volume.status.devices] == [found[drive.serial].name]
            node.insert_drive("")
            await sim.clock.sleep(130)
            assert (await store.get(LVMVolumeGroup, DISK)).status.phase is VolumeGroupPhase.READY
            assert (await store.get(LVMLogicalVolume, "thick")).status.phase is LogicalVolumePhase.CREATED

    run(main, seed=1)
