"""A cluster to measure on: the embedded engine with its file, all controllers, and simulated nodes with real agents."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bench.shares import AGENTS, CONTROLLERS, OWNER, Shares, deciding
from quorate.api import all_kinds, conditions
from quorate.api.conditions.rv import Ready
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMVolumeGroup, ReplicatedStorageClass, ReplicatedStoragePool, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec, StoragePoolPhase
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.store import Store
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout
from quorate.server.controllers import cluster_wide

SIZE = "16Mi"
HOUSEKEEPING = ("Lease", "Event")
WRITES = ("create", "patch", "patch_status", "delete")


class Counted:
    """A store that counts who writes what through it."""

    def __init__(self, store: Store, writer: str, count: Counter[tuple[str, str, str]]) -> None:
        self._store = store
        self._writer = writer
        self._count = count

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in WRITES:
            return method
        verb = name.replace("_", " ")

        async def write(target: Any, *arguments: Any, **options: Any) -> Any:
            cls: Any = target if isinstance(target, type) else type(target)
            kind = cls.KIND.name
            answer = await method(target, *arguments, **options)
            self._count[self._writer, verb, kind] += 1
            return answer

        setattr(self, name, write)
        return write


@dataclass
class Bed:
    """A cluster to measure on."""

    store: EmbeddedStore
    cluster: Cluster
    shares: Shares
    written: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    async def form(self, count: int, prefix: str) -> None:
        """Make volumes of three copies and wait until all of them are Ready."""
        spec = ReplicatedVolumeSpec(size=Quantity(SIZE), replicated_storage_class_name="three")
        for number in range(count):
            await self.store.create(ReplicatedVolume(metadata=ObjectMeta(name=f"{prefix}{number}"), spec=spec))
        await self.until(lambda volume: conditions.is_true(volume.status.conditions, Ready))

    async def until(self, holds: Callable[[ReplicatedVolume], bool], pause: float = 0.5) -> None:
        """Wait until something holds of every volume; looking is nobody's cost that is measured."""
        while not all(holds(volume) for volume in (await self.store.list(ReplicatedVolume)).items):
            await asyncio.sleep(pause)

    def writes(self) -> Counter[tuple[str, str, str]]:
        """Since the last look, without Leases and Events."""
        found = Counter({key: number for key, number in self.written.items() if key[2] not in HOUSEKEEPING})
        self.written.clear()
        return found


@asynccontextmanager
async def opened() -> AsyncIterator[EmbeddedStore]:
    """An embedded store with a file of its own."""
    with tempfile.TemporaryDirectory() as directory:
        path, chance = Path(directory) / "bench.db", random.Random(1)
        store = await EmbeddedStore.open(path, kinds=all_kinds(), clock=SystemClock(), random=chance)
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def controlled(
    store: EmbeddedStore, written: Counter[tuple[str, str, str]], shares: Shares
) -> AsyncIterator[Callable[[], bool]]:
    """All controllers at work, and what they write counted; gives what says whether any of them has something to do."""
    token = OWNER.set(CONTROLLERS)
    counted: Any = Counted(store, CONTROLLERS, written)
    clock, chance = SystemClock(), random.Random(1)
    registry = CollectorRegistry()
    controllers = [deciding(shares, each) for each in cluster_wide()]
    manager = Manager(
        counted, controllers, clock=clock, random=chance, identity="bench", registry=registry, freeze_gc=True
    )

    def busy() -> bool:
        return not manager.leading or any(
            sample.value
            for metric in registry.collect()
            for sample in metric.samples
            if sample.name == "workqueue_depth"
        )

    managing = asyncio.create_task(manager.run())
    OWNER.reset(token)
    try:
        yield busy
    finally:
        manager.stop()
        await managing


@asynccontextmanager
async def bed(layout: Layout, shares: Shares) -> AsyncIterator[Bed]:
    """Everything running, with a pool of every disk and a class of three copies."""
    async with opened() as store, bed_on(store, layout, shares) as made:
        yield made


@asynccontextmanager
async def bed_on(store: EmbeddedStore, layout: Layout, shares: Shares) -> AsyncIterator[Bed]:
    """The same on a store that goes on."""
    cluster = Cluster(layout, clock=SystemClock(), seed=1)
    made = Bed(store, cluster, shares)
    async with AsyncExitStack() as ending:
        await ending.enter_async_context(controlled(store, made.written, shares))
        await deliver(store, cluster.plans)
        token = OWNER.set(AGENTS)
        await ending.enter_async_context(cluster.running(lambda _: Counted(store, AGENTS, made.written)))
        OWNER.reset(token)
        await _provide(store, layout)
        yield made


async def _provide(store: EmbeddedStore, layout: Layout) -> None:
    while len(groups := (await store.list(LVMVolumeGroup)).items) < layout.nodes * layout.drives:
        await asyncio.sleep(0.1)
    members = tuple(PoolVolumeGroup(name=group.name) for group in groups)
    spec = ReplicatedStoragePoolSpec(type=PoolType.LVM, lvm_volume_groups=members)
    await store.create(ReplicatedStoragePool(metadata=ObjectMeta(name="all"), spec=spec))
    level = ReplicatedStorageClassSpec(storage_pool="all", replication=Replication.CONSISTENCY_AND_AVAILABILITY)
    await store.create(ReplicatedStorageClass(metadata=ObjectMeta(name="three"), spec=level))
    while True:
        status = (await store.get(ReplicatedStoragePool, "all")).status
        ready = [group.ready for node in status.eligible_nodes for group in node.lvm_volume_groups]
        if status.phase is StoragePoolPhase.READY and len(ready) == len(groups) and all(ready):
            return
        await asyncio.sleep(0.1)
