"""``quorate up``: the embedded engine, its Kubernetes API, the controllers and simulated nodes, in one process."""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from quorate.api import all_kinds
from quorate.config import Config
from quorate.engine.clock import Clock, SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.logs import get_logger
from quorate.engine.manager import Manager
from quorate.errors import ConfigError
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.keeping import kept, restore
from quorate.lab.layout import Layout
from quorate.server import lab
from quorate.server.controllers import cluster_wide, resync_interval
from quorate.server.kubeconfig import kubeconfig, write_kubeconfig
from quorate.server.kubernetes import Access, AgentTokens, Facade, Listener, is_loopback, listen
from quorate.server.kubernetes.tls import Certificates, ensure_certificates, write_private

_log = get_logger(__name__)

#: Simulated hardware is the same in every run; only people differ.
_SEED = 0


async def run(config: Config, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` gets the lines for a person."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop.set)
    # Decisions make secrets from it, so it must be one that nobody can guess.
    async with standalone(config, clock=SystemClock(), chance=random.SystemRandom()) as server:
        path = config_path(config) / "kubeconfig"
        announce(f"quorate is ready at {server.url}")
        if config.nodes:
            announce(f"simulated: {config.nodes} nodes in {config.zones} zones with {config.drives} drives each")
        announce(f"try: kubectl --kubeconfig {path} get nodes,lvg,drives")
        await stop.wait()
        _log.info("stopping")


@asynccontextmanager
async def standalone(config: Config, *, clock: Clock, chance: random.Random) -> AsyncIterator[Listener]:
    """Everything running, for as long as the block lasts; ended in reverse: controllers, server, store."""
    data = _prepared(config_path(config))
    access, certificates = _security(config, data, clock)
    tls = certificates.context() if certificates else None
    registry = CollectorRegistry()
    store = await EmbeddedStore.open(data / "quorate.db", kinds=all_kinds(), clock=clock, random=chance)
    try:
        manager = Manager(
            store,
            cluster_wide(),
            clock=clock,
            random=chance,
            identity=socket.gethostname(),
            component="quorate",
            registry=registry,
            resync_interval=resync_interval,
            freeze_gc=True,
        )
        cluster = Cluster(Layout(config.nodes, config.zones, config.drives), clock=clock, seed=_SEED)
        hardware = data / "lab" / "hardware.json"
        restore(cluster, hardware)
        facade = Facade(
            store,
            kinds=all_kinds(),
            clock=clock,
            chance=chance,
            access=access,
            registry=registry,
            health=manager.health,
            routes=lab.routes(cluster),
        )
        server = await listen(facade, host=config.listen, port=config.port, tls=tls)
        try:
            authority = certificates.authority.read_bytes() if certificates and certificates.authority else None
            write_kubeconfig(data / "kubeconfig", kubeconfig(server.url, authority=authority, token=access.token))
            async with asyncio.TaskGroup() as running:
                running.create_task(manager.run())
                await deliver(store, cluster.plans)
                async with kept(cluster, hardware), cluster.running(lambda _: store):
                    yield server
                manager.stop()
        finally:
            await server.close()
    finally:
        await store.close()


def config_path(config: Config) -> Path:
    """The data directory."""
    return Path(config.data).expanduser()


def _prepared(data: Path) -> Path:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the data directory {data} cannot be made: {error.strerror}") from None
    return data


def _security(config: Config, data: Path, clock: Clock) -> tuple[Access, Certificates | None]:
    """Open on loopback; anywhere else, or when a token or a certificate is given, by token and over TLS."""
    agents = AgentTokens(data / "agents")
    given = config.token_file or config.tls_certificate or config.tls_key
    if is_loopback(config.listen) and not given:
        _log.warning("open: every user and program of this machine may do everything", listen=config.listen)
        return Access(None, agents.node_of), None
    return Access(_token(config, data), agents.node_of), _certificates(config, data, clock)


def _token(config: Config, data: Path) -> str:
    path = Path(config.token_file).expanduser() if config.token_file else data / "token"
    if not config.token_file and not path.exists():
        write_private(path, secrets.token_urlsafe(32).encode())
    try:
        token = path.read_text("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"the token file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the token file {path} is not text") from None
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"the token in {path} must be at least 16 printable ASCII characters on one line")
    return token


def _certificates(config: Config, data: Path, clock: Clock) -> Certificates:
    if bool(config.tls_certificate) != bool(config.tls_key):
        raise ConfigError("tlsCertificate and tlsKey must be given together")
    if config.tls_certificate:
        return Certificates(Path(config.tls_certificate).expanduser(), Path(config.tls_key).expanduser())
    names = ("localhost", "127.0.0.1", "::1", socket.gethostname())
    own = () if config.listen in ("0.0.0.0", "::", *names) else (config.listen,)  # noqa: S104
    return ensure_certificates(data / "tls", names + own, clock.now())
