"""A real broker over a small cluster in memory, served from a thread of its own: clients here may block.

Over the small cluster its clock stands still, so whatever changes in its ledger was changed by somebody who asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from aiohttp import web

from quorate.api import all_kinds
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.struct import replace
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.maintenance.broker import Broker
from quorate.maintenance.entries import Ledger
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Species, VDiskId, VDiskInfo
from quorate.server.broker import Access, mount, serve_grpc
from quorate.server.broker.answering import MAX_BODY, explained
from quorate.server.broker.listening import Address, Security, serve_http
from quorate.server.broker.process import serving

NODES = 8
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 30.0


class StandingClock:
    """It is always the same moment."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 1000.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


def small_cluster() -> ClusterModel:
    """Eight nodes with a drive each, and a block-4-2 group over them."""
    model = ClusterModel(BrokerConfigSpec())
    for node in range(1, NODES + 1):
        model.put_node(NodeInfo(id=node, host=f"h{node}", tenant="t" if node > 6 else ""))
        model.put_drive(DriveInfo(id=DriveId(node, 1), path="/dev/sdb"))
    parts = tuple(
        VDiskInfo(id=VDiskId(0, 1, 0, node - 1, 0), node=node, drives=(DriveId(node, 1),))
        for node in range(1, NODES + 1)
    )
    model.put_group(GroupInfo(id=0, species=Species.BLOCK_4_2, vdisks=parts))
    return model


@dataclass(frozen=True, slots=True)
class Running:
    """Where it is, and what it has decided."""

    broker: Broker
    http_port: int
    grpc_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def decided(self) -> Ledger:
        """What must not change by a question that is refused: all but how often the ledger was written."""
        return replace(self.broker.ledger, time_high_water=0, revision=0)


@asynccontextmanager
async def over_a_small_cluster() -> AsyncIterator[Running]:
    clock = StandingClock()
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=Random(1))
    broker = Broker(store, small_cluster(), clock, holder="test")
    await broker.start()
    app = web.Application(client_max_size=MAX_BODY, middlewares=[explained])
    mount(app, broker, Access())
    http = await serve_http(app, Address("127.0.0.1", 0), None)
    rpc = await serve_grpc(broker, Access(), host="127.0.0.1", port=0)
    yield Running(broker, http.address.port, rpc.port)
    await http.close()
    await rpc.close()
    await broker.close()
    await store.close()


@asynccontextmanager
async def as_a_process_would(cluster: Path) -> AsyncIterator[Running]:
    address = Address("127.0.0.1", 0)
    async with serving(cluster, None, address, address, Security(), clock=SystemClock()) as served:
        yield Running(served.broker, served.http.port, served.grpc.port)


@contextmanager
def running(block: AbstractAsyncContextManager[Running]) -> Iterator[Running]:
    """The block, in a thread of its own."""
    started: list[Running] = []
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with block as found:
            started.append(found)
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            loop.close()
            ready.set()

    thread = threading.Thread(target=work, name="broker under test")
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield started[0]
    finally:
        if started:
            loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()
