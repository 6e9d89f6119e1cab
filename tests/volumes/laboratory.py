"""A simulated cluster with every controller of volumes, disks and placement, in virtual time.

The controllers run in a process of their own, so that a test can kill it between any two writes; every write of theirs
and of the agents' is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from quorate import disks, nodes, placement
from quorate.api import all_kinds, conditions, names
from quorate.api.conditions.declaration import ConditionType
from quorate.api.conditions.rv import Ready
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.configuration import Replication, Topology
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.cluster import CLUSTER_CONTROLLER
from quorate.engine import Controller
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Election, Manager
from quorate.engine.simulation import Process, Simulation
from quorate.errors import NotFound
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout
from quorate.volumes.controllers import controllers
from tests.support.faults import Faults, FaultyStore, Sent

POOL = "pool"
THIN = "thin"
HOUSEKEEPING = ("Lease", "Event")


class NeverHappened(AssertionError):
    """Something that was waited for did not come about."""


@dataclass
class VolumeLab:
    """Nodes with agents, and the leader's controllers."""

    sim: Simulation
    store: EmbeddedStore
    cluster: Cluster
    network: Process
    faults: Faults = field(default_factory=Faults)
    sent: list[Sent] = field(default_factory=list)
    #: Called with every write of the controllers, before anything else happens.
    watcher: Callable[[Sent], None] | None = None
    starts: int = 0
    controller: Process | None = None
    #: What runs beside the controllers of volumes, disks and placement.
    more: tuple[Controller[Any], ...] = ()
    #: Everybody who talks to the store.
    clients: list[FaultyStore] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        await self.sim.clock.sleep(seconds)

    # The controllers' process.

    def start(self) -> None:
        self.starts += 1
        identity = f"controller-{self.starts}"
        manager = Manager(
            self._store_of("controller"),
            (
                CLUSTER_CONTROLLER,
                *nodes.CONTROLLERS,
                *disks.CONTROLLERS,
                *placement.CONTROLLERS,
                *controllers(),
                *self.more,
            ),
            clock=self.sim.clock,
            random=self.sim.random(identity),
            identity=identity,
            election=Election("quorate-controller", names.NAMESPACE),
        )
        self.controller = self.sim.process(identity)
        self.controller.spawn(manager.run())

    def kill(self) -> None:
        assert self.controller is not None
        self.controller.kill()
        self.controller = None

    def _store_of(self, sender: str) -> FaultyStore:
        client = FaultyStore(
            self.store, self.sim, sender=sender, faults=self.faults, network=self.network, reached=self._reached
        )
        self.clients.append(client)
        return client

    def _reached(self, write: Sent) -> None:
        self.sent.append(write)
        if self.watcher is not None and write.sender == "controller" and write.kind not in HOUSEKEEPING:
            self.watcher(write)

    # What people do.

    async def provide(
        self, replication: Replication, *, thin: bool = False, topology: Topology = Topology.IGNORED
    ) -> str:
        """A pool of every node's first disk, and a class; returns the class's name."""
        groups = sorted((await self.store.list(LVMVolumeGroup)).items, key=lambda group: group.name)
        first = [group for group in groups if group.name.endswith("-1")]
        if thin:
            for group in first:
                pools = [{"name": THIN, "size": "50%"}]
                await self.store.patch(LVMVolumeGroup, group.name, patch={"spec": {"thinPools": pools}})
        members = tuple(PoolVolumeGroup(name=group.name, thin_pool_name=THIN if thin else None) for group in first)
        spec = ReplicatedStoragePoolSpec(type=PoolType.LVM_THIN if thin else PoolType.LVM, lvm_volume_groups=members)
        await self.store.create(ReplicatedStoragePool(metadata=ObjectMeta(name=POOL), spec=spec))
        name = replication.value.lower()
        await self.store.create(
            ReplicatedStorageClass(
                metadata=ObjectMeta(name=name),
                spec=ReplicatedStorageClassSpec(storage_pool=POOL, replication=replication, topology=topology),
            )
        )
        return name

    async def create(self, name: str, class_name: str, size: str = "64Mi") -> None:
        spec = ReplicatedVolumeSpec(size=Quantity(size), replicated_storage_class_name=class_name)
        await self.store.create(ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec))

    # Looking and waiting.

    async def volume(self, name: str = "v") -> ReplicatedVolume:
        return await self.store.get(ReplicatedVolume, name)

    async def replicas(self) -> tuple[ReplicatedVolumeReplica, ...]:
        return tuple((await self.store.list(ReplicatedVolumeReplica)).items)

    async def until_ready(self, name: str = "v", patience: float = 300.0) -> ReplicatedVolume:
        return await self.until_condition(Ready, name, patience=patience)

    async def until_condition(
        self, wanted: type[ConditionType], name: str = "v", *, patience: float = 300.0
    ) -> ReplicatedVolume:
        async def check() -> bool:
            return conditions.is_true((await self.volume(name)).status.conditions, wanted)

        await self.until(f"{wanted.__name__} of {name}", check, patience)
        return await self.volume(name)

    async def until_gone(self, name: str = "v", patience: float = 300.0) -> None:
        async def check() -> bool:
            try:
                await self.volume(name)
            except NotFound:
                return True
            return False

        await self.until(f"{name} is gone", check, patience)

    async def until(self, what: str, check: Callable[[], object], patience: float = 300.0) -> None:
        end = self.sim.clock.monotonic() + patience
        while not await check():  # type: ignore[misc]
            if self.sim.clock.monotonic() > end:
                raise NeverHappened(f"{what}: not within {patience:.0f} s\n{await self.described()}")
            await self.sleep(0.1)

    async def described(self) -> str:
        lines: list[str] = []
        for volume in (await self.store.list(ReplicatedVolume)).items:
            status = volume.status
            lines.append(f"{volume.name}: {status.phase} {status.message!r} revision {status.datamesh_revision}")
            lines += [
                f"  {each.type} {each.formation} {each.reason} {each.message}" for each in status.datamesh_transitions
            ]
            lines += [f"  {each.type}={each.status} {each.reason}: {each.message}" for each in status.conditions]
        for replica in await self.replicas():
            drbd = replica.status.drbd
            lines.append(
                f"{replica.name} {replica.spec.node_name} {replica.spec.lvm_volume_group_name} "
                f"{replica.metadata.finalizers} {replica.status.phase} {replica.status.message!r} "
                f"revision {replica.status.datamesh_revision} {drbd.status} {drbd.errors}"
            )
            lines += _told(replica.status.conditions)
        lines += [f"{each.name} {each.status}" for each in (await self.store.list(LVMLogicalVolume)).items]
        lines += [f"{each.name} {each.status}" for each in (await self.store.list(DRBDResourceOperation)).items]
        return "\n".join(lines)

    def writes(self, since: int = 0) -> Counter[tuple[str, str, str]]:
        """By writer, verb and kind, housekeeping apart."""
        return Counter(
            ("controller" if write.sender == "controller" else "agents", write.verb, write.kind)
            for write in self.sent[since:]
            if write.kind not in HOUSEKEEPING and write.result == "ok" and write.sender != "person"
        )


@asynccontextmanager
async def volume_lab(
    sim: Simulation,
    layout: Layout = Layout(),  # noqa: B008 - frozen
    more: tuple[Controller[Any], ...] = (),
) -> AsyncIterator[VolumeLab]:
    """Everything running; the block plays the people."""
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    cluster = Cluster(layout, clock=sim.clock, seed=sim.seed)
    lab = VolumeLab(sim, store, cluster, sim.process("network"), more=more)
    await deliver(store, cluster.plans)
    lab.start()
    async with cluster.running(lab._store_of):
        yield lab
        failures = [why for node in cluster.nodes.values() for why in node.agent_failures]
        assert not failures, "\n".join(failures)
    if lab.controller is not None:
        lab.kill()
    # What was sent before is still on its way, and must find the store open.
    await lab.sleep(5)
    await lab.store.close()


def _told(found: tuple[Condition, ...]) -> list[str]:
    return [f"  {each.type}={each.status} {each.reason}: {each.message}" for each in found]
