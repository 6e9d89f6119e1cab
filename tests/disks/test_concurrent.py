"""The three tests that the seed names and leaves empty, on the embedded engine and on a real API server.

Three managers work without an election, each sure that it leads: what keeps them from granting the same bytes twice is
the compare-and-swap of the ledger alone. Every version of every ledger is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from quorate.api import all_kinds, core, names
from quorate.api.core import Namespace
from quorate.api.longhorn import BackingImage, DiskSchedule
from quorate.api.longhorn.backing_image import BackingImageSpec
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.disks import CONTROLLERS
from quorate.disks.entries import all_requests, replica
from quorate.disks.requests import State, granted_size
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.manager import Manager
from quorate.engine.store import Store
from quorate.errors import AlreadyExists
from tests.conformance.targets import embedded
from tests.disks.cluster import Agents, EveryVersion, ledger_of
from tests.disks.owner import Owner
from tests.support.apiserver import ApiServer

KINDS = tuple(kind for kind in all_kinds() if kind.crd)
MANAGERS = 3
NODES = {"disks-n1": "disks-g1", "disks-n2": "disks-g2", "disks-n3": "disks-g3"}
LEDGERS = [ledger_of(group) for group in NODES.values()]
SIZE = 100
PATIENCE = 60.0

Connect = Callable[[], Store]


class Cluster:
    """Three nodes with a disk each, and whoever works on them."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._clock = SystemClock()
        self.store = connect()
        self.eye = EveryVersion(connect())
        self.agents = Agents(connect(), self._clock)
        self.managers = [
            Manager(connect(), CONTROLLERS, clock=self._clock, random=Random(number), identity=f"m{number}")
            for number in range(MANAGERS)
        ]

    async def begin(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        with suppress(AlreadyExists):
            await self.store.create(Namespace(metadata=ObjectMeta(name=names.NAMESPACE)))
        for node, group in NODES.items():
            await self.agents.install(node, group, SIZE)
        running = [tasks.create_task(self.eye.run()), tasks.create_task(self.agents.run())]
        running += [tasks.create_task(manager.run()) for manager in self.managers]
        await self.eventually(self._all_open)
        return running

    async def _all_open(self) -> bool:
        found = (await self.store.list(DiskSchedule)).items
        return [ledger.status.storage_available for ledger in found] == [SIZE] * len(NODES)

    def owner(self, name: str) -> Owner:
        return Owner(self._connect(), self._clock, Random(name), name, pause=0.03)

    async def eventually(self, check: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await check():
                await self._clock.sleep(0.05)

    async def settled(self) -> bool:
        """Whether everything that is asked for is answered."""
        found = (await self.store.list(DiskSchedule)).items
        return all(ledger.status.observed_generation == ledger.metadata.generation for ledger in found)

    async def granted(self) -> list[list[int]]:
        """What each disk has granted, in order of size."""
        await self.eye.caught_up()
        ledgers = [await self.store.get(DiskSchedule, name, names.NAMESPACE) for name in LEDGERS]
        return [sorted(granted_size(ledger, entry) for entry, _ in all_requests(ledger)) for ledger in ledgers]


@asynccontextmanager
async def _on_the_embedded_engine(directory: Path) -> AsyncIterator[Connect]:
    async with embedded(directory, KINDS) as target:
        yield lambda: target.store


@asynccontextmanager
async def _on_a_real_server(apiserver: ApiServer) -> AsyncIterator[Connect]:
    apiserver.install_crds(KINDS)
    clock = SystemClock()
    async with AsyncExitStack() as stores:

        def connect() -> Store:
            connection = load_connection(environ={}, clock=clock, kubeconfig=apiserver.kubeconfig)
            store = KubernetesStore(connection, clock=clock, random=Random(1))
            stores.push_async_callback(store.close)
            return store

        try:
            yield connect
        finally:
            apiserver.clear(*KINDS, core.Event.KIND)
            store = connect()
            for node in NODES:
                await store.delete(core.Node, node)
                await store.delete(core.Lease, names.agent_lease(NodeName(node)), names.NAMESPACE)


@pytest.fixture(params=["embedded", pytest.param("apiserver", marks=pytest.mark.apiserver)])
async def connect(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Connect]:
    """Ways to the store, on every engine in turn."""
    if request.param == "embedded":
        async with _on_the_embedded_engine(tmp_path) as found:
            yield found
    else:
        async with _on_a_real_server(request.getfixturevalue("apiserver")) as found:
            yield found


@asynccontextmanager
async def running(connect: Connect) -> AsyncIterator[Cluster]:
    cluster = Cluster(connect)
    async with asyncio.TaskGroup() as tasks:
        begun = await cluster.begin(tasks)
        yield cluster
        for task in begun:
            task.cancel()


async def test_concurrent_replica_allocation(connect: Connect) -> None:
    async with running(connect) as cluster:
        owners = [cluster.owner(f"v{number}") for number in range(15)]
        got = await asyncio.gather(
            *(owner.acquire(0, 30, LEDGERS[turn % 3 :] + LEDGERS[: turn % 3]) for turn, owner in enumerate(owners))
        )
        assert sum(ledger is not None for ledger in got) == 9, "three times 30 on each of three times 100"
        assert await cluster.granted() == [[30, 30, 30]] * 3
        assert cluster.eye.rejected >= 6


async def test_concurrent_backing_image_copy_allocation(connect: Connect) -> None:
    async with running(connect) as cluster:
        spec = BackingImageSpec(size=Quantity("30"), min_number_of_copies=2)
        images = [
            BackingImage(metadata=ObjectMeta(name=f"image{number}", namespace=names.NAMESPACE), spec=spec)
            for number in range(8)
        ]
        await asyncio.gather(*(cluster.store.create(image) for image in images))

        async def as_many_as_fit() -> bool:
            return sum(image.status.ready_copies for image in (await cluster.store.list(BackingImage)).items) == 9

        await cluster.eventually(as_many_as_fit)
        assert await cluster.granted() == [[30, 30, 30]] * 3
        assert len((await cluster.store.list(LVMLogicalVolume)).items) == 9

        for image in images:
            await cluster.store.delete(BackingImage, image.name, names.NAMESPACE)

        async def all_given_back() -> bool:
            left = [await cluster.store.list(cls) for cls in (BackingImage, LVMLogicalVolume)]
            return not any(listing.items for listing in left) and await cluster.granted() == [[], [], []]

        await cluster.eventually(all_given_back)


async def test_concurrent_disk_expansion(connect: Connect) -> None:
    async with running(connect) as cluster:
        owners = [cluster.owner(f"v{number}") for number in range(6)]
        disks = LEDGERS[:2]
        for owner in owners:
            assert [await owner.acquire(number, 10, [disk]) for number, disk in enumerate(disks)] == disks
        states = await asyncio.gather(*(owner.grow(disks, 10, 25) for owner in owners))
        # Two that got in each other's way may both have gone back. What is left to be had is had one by one.
        for turn, owner in enumerate(owners):
            await cluster.eventually(cluster.settled)
            if states[turn] is not State.GRANTED:
                states[turn] = await owner.grow(disks, 10, 25)
        assert states.count(State.GRANTED) == 2, "40 of 100 was left, and each takes 15"

        async def both_or_neither() -> bool:
            ledgers = [await cluster.store.get(DiskSchedule, name, names.NAMESPACE) for name in disks]
            sizes = [
                {granted_size(ledger, replica(owner.name(number))) for number, ledger in enumerate(ledgers)}
                for owner in owners
            ]
            return sorted(map(sorted, sizes)) == [[10]] * 4 + [[25]] * 2

        await cluster.eventually(both_or_neither)
        assert await cluster.granted() == [[10, 10, 10, 10, 25, 25]] * 2 + [[]]
