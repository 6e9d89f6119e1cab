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
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.lab import faults
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout, object_name, volume_group

NODE = NodeName("node-1")
DISK = object_name(NODE, "1")
GROUP = volume_group("1")
FAULTS: tuple[faults.Fault, ...] = (
    faults.AgentKill(node=NODE),
    faults.Reboot(node=NODE),
    faults.CutApi(node=NODE),
    *(faults.Hang(node=NODE, command=name) for name in ("lvs", "lvcreate", "lvextend", "dd", "lvchange", "lvremove")),
    *(faults.Slow(node=NODE, command=name, seconds=5.0) for name in ("lvs", "vgs", "dd", "blkdiscard")),
)


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


def test_whatever_happens_to_a_node_its_volumes_come_to_be_grow_and_go_and_none_is_left_behind() -> None:
    """Kills, power losses, hung and slow commands, a lost API: through the lives of six volumes."""

    async def main(sim: Simulation) -> None:
        store = await _opened(sim)
        random = sim.random("faults")
        cluster = Cluster(Layout(nodes=1, drives=1), clock=sim.clock, seed=sim.seed)
        await deliver(store, cluster.plans)
        volumes = [f"v{number}" for number in range(6)]

        async def trouble(seconds: float) -> None:
            until = sim.clock.monotonic() + seconds
            while sim.clock.monotonic() < until:
                await sim.clock.sleep(random.expovariate(1 / 4.0))
                cluster.inject(random.choice(FAULTS))
                if random.random() < 0.5:
                    cluster.inject(faults.Release(node=NODE))
                    cluster.inject(faults.Heal())
            cluster.inject(faults.Release(node=NODE))
            cluster.inject(faults.Heal())
            await sim.clock.sleep(700)

        async def all_are(size: str) -> None:
            found = (await store.list(LVMLogicalVolume)).items
            assert {(each.status.phase, each.status.actual_size) for each in found} == {
                (LogicalVolumePhase.CREATED, Quantity(size))
            }, [each.status for each in found]

        async with cluster.running(lambda _: store):
            for number, name in enumerate(volumes):
                await store.create(llv(name, zeroed=number % 2 == 1))
            await trouble(60)
            await all_are("1Gi")
            devices = [volume.device for volume in cluster.node(NODE).host.lvm.groups[GROUP].volumes.values()]
            for device in devices:
                device.write(0, 1 << 30, "data")
            for name in volumes:
                await store.patch(LVMLogicalVolume, name, patch={"spec": {"size": "2Gi"}})
            await trouble(60)
            await all_are("2Gi")
            for volume in cluster.node(NODE).host.lvm.groups[GROUP].volumes.values():
                runs = [(start * 4096, tag) for start, _, tag in volume.device.contents.runs(0, (2 << 30) // 4096)]
                assert runs == [(0, "data"), (1 << 30, None)]
            for name in volumes:
                await store.delete(LVMLogicalVolume, name)
                await store.patch(LVMLogicalVolume, name, patch={"metadata": {"finalizers": [finalizers.AGENT]}})
            await trouble(60)
            assert (await store.list(LVMLogicalVolume)).items == ()
            assert cluster.node(NODE).host.lvm.groups[GROUP].volumes == {}
            assert cluster.node(NODE).agent_failures == []

    for_each_seed(main, range(6))
