"""An agent that has only LVM's part, over a store in memory and a fake machine, in virtual time."""

from __future__ import annotations

from typing import Any

from quorate.agent import lvm
from quorate.agent.inventory.discovery import Discovered
from quorate.agent.machine import Machine
from quorate.agent.node import Node
from quorate.agent.steps import DRIVES
from quorate.api import all_kinds, finalizers, labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, DriveStatus, Presence
from quorate.api.meta import Bytes, NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.drbd import DrbdStatus, ReplicaType
from quorate.api.storage.llv import LogicalVolumeSource, LogicalVolumeType, LVMLogicalVolumeSpec, ThinSource
from quorate.api.storage.lvg import DeviceSelector, LocalGroup, LVMVolumeGroupSpec, ThinPool
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine import Reader
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Process, Simulation
from tests.agent.lvm.fake import MIB

HERE = NodeName("n1")


def lvg(
    *pools: str, selector: DeviceSelector | None = None, name: str = "disk-1", group: str = "vg0"
) -> LVMVolumeGroup:
    return LVMVolumeGroup(
        metadata=ObjectMeta(name=name, labels={labels.NODE: HERE}),
        spec=LVMVolumeGroupSpec(
            actual_vg_name_on_the_node=group,
            local=LocalGroup(node_name=HERE),
            device_selector=selector,
            thin_pools=tuple(ThinPool(name=pool, size="32Mi") for pool in pools),
        ),
    )


def llv(
    name: str = "pvc-1-0-0123abcd",
    mib: int = 10,
    *,
    pool: str = "",
    zeroed: bool = False,
    source: str = "",
    checksum: str = "",
    lv_name: str = "",
    uid: str = "",
) -> LVMLogicalVolume:
    return LVMLogicalVolume(
        metadata=ObjectMeta(
            name=name, uid=uid, labels={labels.NODE: HERE}, finalizers=finalizers.OF_A_NEW_LOGICAL_VOLUME
        ),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=lv_name or name,
            type=LogicalVolumeType.THIN if pool else LogicalVolumeType.THICK,
            size=Quantity.of_bytes(mib * MIB),
            lvm_volume_group_name="disk-1",
            thin=ThinSource(pool_name=pool) if pool else None,
            zeroed=zeroed,
            source=LogicalVolumeSource(path=source, checksum=checksum) if source else None,
        ),
    )


def replica(name: str = "pvc-1-0") -> ReplicatedVolumeReplica:
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(name=name, labels={labels.NODE: HERE}, finalizers=finalizers.OF_A_NEW_REPLICA),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VolumeName(name[:-2]),
            type=ReplicaType.DISKFUL,
            node_name=HERE,
            lvm_volume_group_name="disk-1",
        ),
    )


def drive(path: str = "/dev/sdb", *, name: str = "drive-b", slot: str = "1", **facts: bool) -> Drive:
    return Drive(
        metadata=ObjectMeta(name=name, labels={labels.NODE: HERE}),
        spec=DriveSpec(
            uuid=name,
            serial_number=f"S-{name}",
            node_id=HERE,
            path=path,
            size=Bytes(256 * MIB),
            slot=slot,
            is_system=facts.get("is_system", False),
            is_clean=facts.get("is_clean", True),
        ),
        status=DriveStatus(presence=Presence.ONLINE if facts.get("online", True) else Presence.OFFLINE),
    )


class Rig:
    """The store, and the agent's present life."""

    def __init__(self, sim: Simulation, store: EmbeddedStore, machine: Machine) -> None:
        self.sim = sim
        self.store = store
        self.machine = machine
        self.lives = 0
        self.process: Process | None = None
        self.node: Node | None = None
        self.manager: Manager | None = None

    @classmethod
    async def begin(cls, sim: Simulation, machine: Machine) -> Rig:
        clock = sim.clock
        store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=sim.random("store"), inline=True)
        sim.cleanup.push_async_callback(store.close)
        return cls(sim, store, machine)

    def start(self) -> None:
        """Begin a life of the agent."""
        self.lives += 1
        random = self.sim.random(f"agent-{self.lives}")
        self.node = node = Node(HERE, self.machine, clock=self.sim.clock, random=random)
        node.hands.lookers[DRIVES] = self.look_at_drives
        manager = Manager(
            self.store, lvm.controllers(node), clock=self.sim.clock, random=random, identity=f"agent-{self.lives}"
        )
        self.manager = manager
        self.process = self.sim.process(f"agent-{self.lives}")
        self.process.spawn(manager.run())
        for task in lvm.tasks(node):
            self.process.spawn(task)

    async def look_at_drives(self, _: str) -> None:
        """What the inventory's part does: see the drives, which are here as their objects say."""
        assert self.node is not None
        marks, listing = self.node.memory.drives.marks, await self.store.list(Drive)
        there = [each for each in listing.items if each.status.presence is Presence.ONLINE]
        self.node.memory.drives.saw(tuple(Discovered(each.spec) for each in there), marks=marks)

    @property
    def reader(self) -> Reader:
        """What the agent knows of the store."""
        assert self.manager is not None
        return self.manager.reader

    def show(self, status: DrbdStatus) -> None:
        """Let the agent see a resource of the kernel."""
        assert self.node is not None
        self.node.memory.resource(status.name).saw(status, marks=0)

    def kill(self) -> None:
        """End it, wherever it is."""
        assert self.process is not None
        self.process.kill()

    async def created(self, name: str = "pvc-1-0-0123abcd") -> LVMLogicalVolume:
        return await self.store.get(LVMLogicalVolume, name)

    async def grow(self, mib: int, name: str = "pvc-1-0-0123abcd") -> None:
        await self.store.patch(LVMLogicalVolume, name, patch={"spec": {"size": f"{mib}Mi"}})

    async def delete(self, name: str = "pvc-1-0-0123abcd") -> None:
        """What the controllers do: ask for deletion, and let go."""
        await self.store.delete(LVMLogicalVolume, name)
        found = await self.store.get(LVMLogicalVolume, name)
        left = [each for each in found.metadata.finalizers if each != finalizers.CONTROLLER]
        await self.store.patch(LVMLogicalVolume, name, patch={"metadata": {"finalizers": left}})

    async def names(self) -> list[str]:
        listing: Any = await self.store.list(LVMLogicalVolume)
        return [each.name for each in listing.items]
