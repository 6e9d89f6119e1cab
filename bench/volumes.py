"""Volumes: what it costs to form them, to keep them, and to look at all of them when a node is lost.

``python -m bench.volumes`` runs everything in one process: the embedded engine with its file, all controllers, and
simulated nodes with the agents that really run. QUORATE_BENCH_VOLUMES and QUORATE_BENCH_REPLICAS make it smaller, or
bigger: the steady state is that of as many volumes as were formed.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.harness import Report
from bench.shares import AGENTS, CONTROLLERS, HARDWARE, ONLOOKER, OWNER, Shares, booked
from quorate.api import all_kinds, conditions
from quorate.api.conditions.rv import Ready, Resilient
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMVolumeGroup, ReplicatedStorageClass, ReplicatedStoragePool, ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec, StoragePoolPhase
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.engine import logs
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.store import Store
from quorate.lab import faults
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.layout import Layout
from quorate.server.controllers import cluster_wide

VOLUMES = int(os.environ.get("QUORATE_BENCH_VOLUMES", "1000"))
REPLICAS = int(os.environ.get("QUORATE_BENCH_REPLICAS", "2000"))
#: Volumes for each simulated node; and how long nothing is done, to see what it costs.
PER_NODE = 10
QUIET = 60.0
#: Until new nodes, or new volumes, have said all that they have to say: agents look at their drives every minute.
SETTLING = 75.0
SIZE = "16Mi"
#: Volumes made at the same time on three nodes.
AT_ONCE = 30
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

        async def write(target: Any, *arguments: Any, **options: Any) -> Any:
            cls: Any = target if isinstance(target, type) else type(target)
            kind = cls.KIND.name
            answer = await method(target, *arguments, **options)
            self._count[self._writer, name.replace("_", " "), kind] += 1
            return answer

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
async def controlled(store: EmbeddedStore, written: Counter[tuple[str, str, str]]) -> AsyncIterator[None]:
    """All controllers at work, and what they write counted."""
    token = OWNER.set(CONTROLLERS)
    counted: Any = Counted(store, CONTROLLERS, written)
    clock, chance = SystemClock(), random.Random(1)
    manager = Manager(counted, cluster_wide(), clock=clock, random=chance, identity="bench", freeze_gc=True)
    managing = asyncio.create_task(manager.run())
    OWNER.reset(token)
    try:
        yield
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
        await ending.enter_async_context(controlled(store, made.written))
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


def run() -> Report:
    """All figures."""
    logs.configure(json=True, level="error")
    nodes = max(6, VOLUMES // PER_NODE)
    report = Report(f"Volumes ({VOLUMES:,} volumes of 3 copies on {nodes} simulated nodes, in one process)")
    with booked() as shares:
        asyncio.run(_form_and_rest(report, nodes, shares))
        asyncio.run(_lose(report, shares))
    return report


async def _form_and_rest(report: Report, nodes: int, shares: Shares) -> None:
    OWNER.set(ONLOOKER)
    async with bed(Layout(nodes=nodes, zones=3), shares) as measured:
        await asyncio.sleep(SETTLING)
        measured.writes()
        await measured.form(1, "first-")
        _report_writes(report, measured.writes())
        shares.taken()
        await measured.form(VOLUMES, "v-")
        _report_forming(report, shares.taken())
        await asyncio.sleep(SETTLING)
        measured.writes()
        shares.taken()
        await asyncio.sleep(QUIET)
        used = sum(cpu for owner, cpu in shares.taken().items() if owner.startswith(CONTROLLERS))
        written = measured.writes()
        report.add(
            f"steady state with {VOLUMES:,} volumes: writes in {QUIET:.0f} s, Leases apart",
            str(sum(written.values())),
            "none",
            not written,
            ", ".join(f"{number} {' '.join(key)}" for key, number in written.items()),
        )
        share = used / QUIET
        report.add(
            f"steady state with {VOLUMES:,} volumes: controllers", f"{share:.2%} of a core", "under 1 %", share < 0.01
        )


def _report_writes(report: Report, written: Counter[tuple[str, str, str]]) -> None:
    for (writer, verb, kind), number in sorted(written.items()):
        report.add(f"writes of one 3D volume: {writer}, {verb} {kind}", str(number), "")
    total = sum(written.values())
    report.add("writes from the volume's creation to Ready", str(total), "at most 48", total <= 48)


def _report_forming(report: Report, used: dict[str, float]) -> None:
    each = {owner: cpu / VOLUMES * 1000 for owner, cpu in used.items() if owner != ONLOOKER}
    total = sum(each.values())
    report.add(
        "CPU of a volume from apply to Ready, everything included", f"{total:.1f} ms", "at most 100 ms", total <= 100
    )
    for owner, cpu in sorted(each.items(), key=lambda item: -item[1]):
        report.add(f"of which {owner}", f"{cpu:.1f} ms", "")


async def _lose(report: Report, shares: Shares) -> None:
    """One of three nodes, with a replica of every volume."""
    OWNER.set(ONLOOKER)
    # A ledger has at most a thousand entries, so a node needs disks enough.
    async with bed(Layout(nodes=3, zones=3, drives=2 + REPLICAS // 900), shares) as measured:
        # Not all at once: only what comes afterwards is measured, and LVM does one thing at a time to a group.
        for first in range(0, REPLICAS, AT_ONCE):
            await measured.form(min(AT_ONCE, REPLICAS - first), f"v-{first}-")
        await asyncio.sleep(5.0)
        measured.cluster.inject(faults.NodeDown("node-1"))
        shares.taken()
        await measured.until(_is_reduced)
        used = shares.taken()
        controllers = sum(cpu for owner, cpu in used.items() if owner.startswith(CONTROLLERS))
        report.add(
            f"one node lost with {REPLICAS:,} replicas: all volumes looked at again",
            f"{controllers:.2f} s of the controllers' CPU",
            "under 5 s",
            controllers < 5,
            f"(agents {used[AGENTS]:.1f} s, simulation {used[HARDWARE]:.1f} s)",
        )


def _is_reduced(volume: ReplicatedVolume) -> bool:
    found = conditions.find(volume.status.conditions, Resilient)
    return found is not None and not conditions.is_true(volume.status.conditions, Resilient)


if __name__ == "__main__":
    run()
