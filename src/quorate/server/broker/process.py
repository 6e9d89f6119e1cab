"""``quorate broker``: the whole broker over a described cluster, in one process."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from quorate.api import all_kinds
from quorate.engine.clock import Clock, SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.logs import get_logger
from quorate.errors import ConfigError
from quorate.maintenance.broker import Broker
from quorate.maintenance.broker.metrics import BrokerMetrics
from quorate.maintenance.described import DescribedCluster, load
from quorate.maintenance.log import ObjectLog
from quorate.maintenance.monitor.watching import Monitor
from quorate.server.broker import cluster_routes
from quorate.server.broker.answering import MAX_BODY, explained
from quorate.server.broker.keeping import DescribedChange, Kept
from quorate.server.broker.listening import Address, Security, serve_http
from quorate.server.broker.mounting import mount
from quorate.server.broker.rpc import serve_grpc
from quorate.server.kubernetes.health import report

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """Where it listens."""

    http: Address
    grpc: Address
    broker: Broker


async def run(
    cluster: Path,
    state: Path | None,
    http: Address,
    grpc: Address,
    security: Security,
    *,
    announce: Callable[[str], None],
    accept_loss: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` gets the lines for a person."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop.set)
    async with serving(cluster, state, http, grpc, security, clock=SystemClock(), accept_loss=accept_loss) as served:
        gc.collect()
        gc.freeze()  # the model stays: looking through it again and again would stop everybody for a second
        scheme = "https" if security.certificates else "http"
        announce(f"quorate broker is ready: HTTP on {scheme}://{served.http}, gRPC on {served.grpc}")
        if security.access.open:
            announce("open: every user and program of this machine may ask for anything, in anybody's name")
        if state is None:
            announce("nothing is kept: give --state FILE to find everything again after a restart")
        await stop.wait()
        _log.info("stopping")


@asynccontextmanager
async def serving(
    cluster: Path,
    state: Path | None,
    http: Address,
    grpc: Address,
    security: Security,
    *,
    clock: Clock,
    accept_loss: bool = False,
) -> AsyncIterator[Served]:
    """Everything running, for as long as the block lasts; ended in reverse: interfaces, broker, store."""
    described = DescribedCluster(load(cluster), clock)
    tls = security.tls()
    registry = CollectorRegistry()
    async with AsyncExitStack() as ending:
        kinds = (*all_kinds(), DescribedChange.KIND)
        store = await EmbeddedStore.open(
            _ready(state), kinds=kinds, clock=clock, random=random.SystemRandom(), accept_loss=accept_loss
        )
        ending.push_async_callback(store.close)
        kept = Kept(described, store)
        await kept.restore()
        log = ObjectLog(store, described.clock, lambda: described.model.settings.log_config)
        await log.open()
        ending.push_async_callback(log.flush)
        ending.push_async_callback(_ended, asyncio.create_task(log.run(), name="broker: log"))
        broker = Broker(
            store,
            described.model,
            described.clock,
            holder=socket.gethostname(),
            log=log,
            metrics=BrokerMetrics(registry),
            identities=None if security.access.open else security.access,
        )
        ending.push_async_callback(broker.close)
        await broker.start()
        monitor = Monitor(broker, described.model, store, described.clock, log)
        await monitor.start()
        ending.push_async_callback(_ended, asyncio.create_task(monitor.run(), name="broker: disk monitor"))
        listener = await serve_http(_application(kept, broker, monitor, security, registry, store), http, tls)
        ending.push_async_callback(listener.close)
        rpc = await serve_grpc(
            broker, security.access, host=grpc.host, port=grpc.port, credentials=security.grpc_credentials()
        )
        ending.push_async_callback(rpc.close)
        yield Served(listener.address, Address(rpc.host, rpc.port), broker)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _ready(state: Path | None) -> Path | None:
    """The file's directory is there."""
    if state is None:
        return None
    path = state.expanduser()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the directory of the state file {path} cannot be made: {error.strerror}") from None
    if path.is_dir():
        raise ConfigError(f"the state file {path} is a directory")
    return path


def _application(
    kept: Kept,
    broker: Broker,
    monitor: Monitor,
    security: Security,
    registry: CollectorRegistry,
    store: EmbeddedStore,
) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY, middlewares=[explained])
    mount(app, broker, security.access, described=cluster_routes.described())
    app.add_routes(cluster_routes.routes(kept, broker, monitor, security.access))

    async def live(_: web.Request) -> web.Response:
        return report((), verbose=False)

    async def ready(request: web.Request) -> web.Response:
        problems = () if broker.leading else ("the broker does not have the ledger",)
        return report((*problems, *store.problems()), verbose="verbose" in request.query)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.add_routes(
        [
            web.get("/livez", live),
            web.get("/readyz", ready),
            web.get("/healthz", ready),
            web.get("/metrics", metrics),
        ]
    )
    return app
