"""``quorate controller``: the cluster-wide controllers as a process, one leader among as many as there are."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random, SystemRandom

from prometheus_client import CollectorRegistry

from quorate.config import Config
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.kubernetes.metrics import ClientMetrics
from quorate.engine.logs import get_logger
from quorate.engine.manager import Election, Manager
from quorate.server.controllers import LEASE, cluster_wide, resync_interval
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
        manager = Manager(
            store,
            cluster_wide(),
            clock=clock,
            random=chance,
            identity=_identity(chance),
            election=Election(LEASE),
            registry=registry,
            resync_interval=resync_interval,
            freeze_gc=True,
        )
        probes = Probes(manager.health, registry)
        ending.push_async_callback(probes.close)
        port = await probes.listen(config.metrics_listen, config.metrics_port)
        loop = asyncio.get_running_loop()
        for signal_ in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_, manager.stop)
        announce(f"quorate controller starts on {connection.server}; health and metrics are on port {port}")
        await manager.run()
        _log.info("controller has stopped")


def _kubeconfig(config: Config) -> Path | None:
    return Path(config.kubeconfig).expanduser() if config.kubeconfig else None


def _identity(chance: Random) -> str:
    """A restarted process is another contender: its predecessor's last write may still be under way."""
    return f"{socket.gethostname()}_{chance.getrandbits(32):08x}"
