"""The engines under test, each with a typed store, and with raw HTTP where it has any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from prometheus_client import CollectorRegistry

from quorate.api.core import Event, Lease, Namespace, Node, PersistentVolumeClaim
from quorate.api.kind import Kind
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.kubernetes import Connection, KubernetesStore, load_connection
from quorate.engine.kubernetes.credentials import FixedCredentials
from quorate.engine.store import Store
from quorate.server.kubernetes import Access, Facade, listen
from tests.conformance.wire import Wire
from tests.support.apiserver import ApiServer
from tests.support.kinds import Gadget, Widget

CUSTOM = (Widget.KIND, Gadget.KIND)
CORE = tuple(each.KIND for each in (Event, Lease, Namespace, Node, PersistentVolumeClaim))


@dataclass(frozen=True)
class Target:
    name: str
    store: Store
    #: Makes every resourceVersion that was handed out before too old to watch from.
    forget_history: Callable[[], Awaitable[None]]
    wire: Wire | None = None


@asynccontextmanager
async def real(apiserver: ApiServer) -> AsyncIterator[Target]:
    """The oracle. It is shared by the whole run, so it is cleared after every test."""
    apiserver.install_crds(CUSTOM)
    clock = SystemClock()
    connection = load_connection(environ={}, clock=clock, kubeconfig=apiserver.kubeconfig)
    store = KubernetesStore(connection, clock=clock, random=Random(1))
    wire = Wire(apiserver.url, token=apiserver.token, ca_file=str(apiserver.ca_file))

    async def forget_history() -> None:
        apiserver.compact()
        apiserver.restart()

    try:
        yield Target("apiserver", store, forget_history, wire)
    finally:
        await store.close()
        await wire.close()
        apiserver.clear(*CUSTOM)


class _Future(SystemClock):
    """The machine's clock, which a test can put forward."""

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


@asynccontextmanager
async def embedded(directory: Path, kinds: tuple[Kind, ...] = CUSTOM) -> AsyncIterator[Target]:
    """A new file, in this process."""
    clock = _Future()
    store = await EmbeddedStore.open(directory / "store.db", kinds=kinds + CORE, clock=clock, random=Random(1))

    async def forget_history() -> None:
        clock.ahead += timedelta(days=1)
        await store.compact()

    try:
        yield Target("embedded", store, forget_history)
    finally:
        await store.close()


@asynccontextmanager
async def facade(directory: Path, kinds: tuple[Kind, ...] = CUSTOM) -> AsyncIterator[Target]:
    """The same over HTTP, through the client that is used for a real server."""
    async with embedded(directory, kinds) as inner:
        assert isinstance(inner.store, EmbeddedStore)
        clock = SystemClock()
        served = Facade(
            inner.store,
            kinds=kinds + CORE,
            clock=clock,
            chance=Random(1),
            access=Access(),
            registry=CollectorRegistry(),
        )
        listener = await listen(served, host="127.0.0.1", port=0)
        connection = Connection(server=listener.url, credentials=FixedCredentials(clock=clock), origin="facade")
        store = KubernetesStore(connection, clock=clock, random=Random(1))
        wire = Wire(listener.url)
        try:
            yield Target("facade", store, inner.forget_history, wire)
        finally:
            await wire.close()
            await store.close()
            await listener.close()
