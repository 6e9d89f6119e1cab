"""The engines under test, each with a typed store, and with raw HTTP where it has any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.store import Store
from tests.conformance.wire import Wire
from tests.support.apiserver import ApiServer
from tests.support.kinds import Gadget, Widget

KINDS = (Widget.KIND, Gadget.KIND)


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
    apiserver.install_crds(KINDS)
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
        apiserver.clear(*KINDS)
