"""``quorate controller``: the cluster-wide controllers as a process, one leader among as many as there are."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random, SystemRandom

from aiohttp import web
from prometheus_client import CollectorRegistry

from quorate.config import Config
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.kubernetes.metrics import ClientMetrics
from quorate.engine.logs import get_logger
from quorate.engine.manager import Election
from quorate.maintenance.broker import Broker
from quorate.server.broker import mount, serve_grpc
from quorate.server.broker.answering import MAX_BODY, explained
from quorate.server.broker.listening import Address, Security, secured, serve_http
from quorate.server.controllers import LEASE
from quorate.server.leading import leading
from quorate.server.probes import Probes

_log = get_logger(__name__)


async def run(config: Config, *, environ: Mapping[str, str], announce: Callable[[str], None]) -> None:
    """Work until SIGTERM or SIGINT; ``announce`` gets the line for a person. Ended in reverse: controllers, store."""
    # Decisions make secrets from it, so it must be one that nobody can guess.
    clock, chance, registry = SystemClock(), SystemRandom(), CollectorRegistry()
    async with AsyncExitStack() as ending:
        connection = load_connection(environ=environ, clock=clock, kubeconfig=_kubeconfig(config))
        store = KubernetesStore(connection, clock=clock, random=chance, observe=ClientMetrics(registry))
        ending.push_async_callback(store.close)
        security = _security(config)
        led = leading(
            store,
            clock=clock,
            random=chance,
            identity=_identity(chance),
            election=Election(LEASE),
            registry=registry,
            identities=None if security.access.open else security.access,
        )
        probes = Probes(led.manager.health, registry)
        ending.push_async_callback(probes.close)
        port = await probes.listen(config.metrics_listen, config.metrics_port)
        served = await _serve(config, led.broker, security, ending)
        loop = asyncio.get_running_loop()
        for signal_ in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_, led.manager.stop)
        announce(f"quorate controller starts on {connection.server}; {served}health and metrics are on port {port}")
        await led.run()
        _log.info("controller has stopped")


async def _serve(config: Config, broker: Broker, security: Security, ending: AsyncExitStack) -> str:
    """Serve the broker where that is asked for; returns what to say of it."""
    served = []
    if config.broker_http:
        app = web.Application(client_max_size=MAX_BODY, middlewares=[explained])
        mount(app, broker, security.access)
        listener = await serve_http(app, Address.parse(config.broker_http), security.tls())
        ending.push_async_callback(listener.close)
        served.append(f"the broker's HTTP is on {listener.address}; ")
    if config.broker_grpc:
        address = Address.parse(config.broker_grpc)
        rpc = await serve_grpc(
            broker, security.access, host=address.host, port=address.port, credentials=security.grpc_credentials()
        )
        ending.push_async_callback(rpc.close)
        served.append(f"its gRPC is on {Address(rpc.host, rpc.port)}; ")
    if served and security.access.open:
        _log.warning("open: every user and program of this machine may ask the broker for anything")
    return "".join(served)


def _security(config: Config) -> Security:
    """Open on loopback; anywhere else over TLS, to users that are known."""

    def path(text: str) -> Path | None:
        return Path(text).expanduser() if text else None

    return secured(
        [Address.parse(text) for text in (config.broker_http, config.broker_grpc) if text],
        users=path(config.broker_users),
        certificate=path(config.tls_certificate),
        key=path(config.tls_key),
        client_authority=path(config.broker_client_authority),
    )


def _kubeconfig(config: Config) -> Path | None:
    return Path(config.kubeconfig).expanduser() if config.kubeconfig else None


def _identity(chance: Random) -> str:
    """A restarted process is another contender: its predecessor's last write may still be under way."""
    return f"{socket.gethostname()}_{chance.getrandbits(32):08x}"
