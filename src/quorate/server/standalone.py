"""``quorate up``: the embedded engine, its Kubernetes API, the controllers and simulated nodes, in one process."""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from quorate.api import all_kinds
from quorate.config import Config
from quorate.engine.clock import Clock, SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.health import Health
from quorate.engine.logs import get_logger
from quorate.errors import ConfigError
from quorate.lab.cluster import Cluster
from quorate.lab.delivery import deliver
from quorate.lab.keeping import Hardware, SavedFirst, kept
from quorate.lab.layout import Layout
from quorate.server import join, lab
from quorate.server.addresses import is_loopback, is_wildcard, own_addresses, url
from quorate.server.broker import Streams, routes, serve_grpc
from quorate.server.broker.access import Access as BrokerAccess
from quorate.server.broker.access import OneToken
from quorate.server.broker.listening import Address, Security
from quorate.server.fingerprint import certificates_in
from quorate.server.kubeconfig import kubeconfig, write_kubeconfig
from quorate.server.kubernetes import Access, AgentTokens, Facade, Listener, listen
from quorate.server.kubernetes.callers import TokenFile
from quorate.server.kubernetes.tls import Certificates, ensure_certificates, given_certificates
from quorate.server.leading import leading
from quorate.server.private_file import write_private

_log = get_logger(__name__)

#: Simulated hardware is the same in every run; only people differ.
_SEED = 0


async def run(config: Config, *, announce: Callable[[str], None], accept_loss: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` gets the lines for a person.

    ``accept_loss``: also where acknowledged changes are missing in the store.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop.set)
    # Decisions make secrets from it, so it must be one that nobody can guess.
    async with standalone(config, clock=SystemClock(), chance=random.SystemRandom(), accept_loss=accept_loss) as server:
        path = config_path(config) / "kubeconfig"
        announce(f"quorate is ready at {server.url}")
        announce(f"the maintenance broker: HTTP and Wall-E at {server.url}/cms/api, gRPC on {server.grpc}")
        if config.nodes:
            zones = min(config.zones, config.nodes)
            announce(f"simulated: {config.nodes} nodes in {zones} zones with {config.drives} drives each")
        announce(f"try: kubectl --kubeconfig {path} get nodes,lvg,drives")
        await stop.wait()
        _log.info("stopping")


@dataclass(frozen=True, slots=True)
class Up:
    """Where it listens."""

    url: str
    grpc: Address


@asynccontextmanager
async def standalone(
    config: Config, *, clock: Clock, chance: random.Random, accept_loss: bool = False
) -> AsyncIterator[Up]:
    """Everything running, for as long as the block lasts; ended in reverse: controllers, servers, store."""
    data = _prepared(config_path(config))
    agents = AgentTokens(data / "agents", monotonic=clock.monotonic)
    access, certificates = _security(config, data, clock, agents)
    # Everybody is given it. A file of somebody's own may have more in it, its key for one.
    authority = (
        certificates_in(certificates.authority.read_bytes()) if certificates and certificates.authority else None
    )
    security = Security(_broker_access(access), certificates)
    registry = CollectorRegistry()
    async with AsyncExitStack() as ending:
        store = await EmbeddedStore.open(
            data / "quorate.db", kinds=all_kinds(), clock=clock, random=chance, accept_loss=accept_loss
        )
        ending.push_async_callback(store.close)
        led = leading(
            store,
            clock=clock,
            random=chance,
            identity=socket.gethostname(),
            component="quorate",
            registry=registry,
            identities=None if security.access.open else security.access,
        )
        streams = Streams(led.broker)
        cluster = Cluster(Layout(config.nodes, config.zones, config.drives), clock=clock, seed=_SEED)
        hardware = Hardware(cluster, data / "lab" / "hardware.journal")
        hardware.restore()
        listening: list[Listener] = []
        invitations = join.Invitations(store, agents, clock)
        facade = Facade(
            store,
            kinds=all_kinds(),
            clock=clock,
            chance=chance,
            access=access,
            registry=registry,
            health=lambda: _health(led.manager.health(), store),
            routes=(
                *lab.routes(cluster, hardware.saved),
                *routes(led.broker, security.access, streams),
                *join.routes(invitations, authority=authority, urls=lambda: _urls(config, listening[0])),
            ),
        )
        server = await listen(facade, host=config.listen, port=config.port, tls=security.tls())
        listening.append(server)
        ending.push_async_callback(server.close)
        ending.callback(streams.stop)
        grpc = _grpc_address(config, certificates)
        rpc = await serve_grpc(
            led.broker, security.access, host=grpc.host, port=grpc.port, credentials=security.grpc_credentials()
        )
        ending.push_async_callback(rpc.close)
        write_kubeconfig(data / "kubeconfig", kubeconfig(server.url, authority=authority, token=access.token))
        async with asyncio.TaskGroup() as running:
            running.create_task(led.run())
            await deliver(store, cluster.plans)
            async with kept(hardware), cluster.running(lambda _: SavedFirst(store, hardware)):
                yield Up(server.url, Address(rpc.host, rpc.port))
            led.manager.stop()


def _health(found: Health, store: EmbeddedStore) -> Health:
    """Whoever can write nothing is not ready, whatever the controllers know."""
    return Health(found.not_live, found.not_ready + store.problems())


def _grpc_address(config: Config, certificates: Certificates | None) -> Address:
    """What was asked for; otherwise the port after ours, on loopback."""
    if config.broker_grpc:
        found = Address.parse(config.broker_grpc)
        if certificates is None and not is_loopback(found.host):
            raise ConfigError(f"brokerGrpc {found} can be reached from other machines: give a token file, or listen so")
        return found
    return Address("127.0.0.1", config.port + 1 if 0 < config.port < 65535 else 0)


def _broker_access(access: Access) -> BrokerAccess:
    """As open as everything else; whoever has the token is an admin of the broker too. Agents ask it nothing."""
    return BrokerAccess(OneToken(access.token_now) if access.token_now is not None else None)


def config_path(config: Config) -> Path:
    """The data directory."""
    return Path(config.data).expanduser()


def _prepared(data: Path) -> Path:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the data directory {data} cannot be made: {error.strerror}") from None
    return data


def _security(config: Config, data: Path, clock: Clock, agents: AgentTokens) -> tuple[Access, Certificates | None]:
    """Open on loopback; anywhere else, or when a token or a certificate is given, by token and over TLS."""
    given = config.token_file or config.tls_certificate or config.tls_key
    if is_loopback(config.listen) and not given:
        _log.warning("open: every user and program of this machine may do everything", listen=config.listen)
        return Access(None, agents.node_of), None
    token = _token(config, data)
    access = Access(token.read(), agents.node_of, token.now)
    return access, _certificates(config, data, clock)


def _token(config: Config, data: Path) -> TokenFile:
    path = Path(config.token_file).expanduser() if config.token_file else data / "token"
    if not config.token_file and not path.exists():
        write_private(path, secrets.token_urlsafe(32).encode())
    return TokenFile(path)


def _certificates(config: Config, data: Path, clock: Clock) -> Certificates:
    if bool(config.tls_certificate) != bool(config.tls_key):
        raise ConfigError("tlsCertificate and tlsKey must be given together")
    if config.tls_certificate:
        authority = Path(config.tls_authority).expanduser() if config.tls_authority else None
        given = given_certificates(
            Path(config.tls_certificate).expanduser(), Path(config.tls_key).expanduser(), authority
        )
        if given.authority is None:
            _log.warning(
                "the kubeconfig names no authority: clients must trust the certificate's by themselves, or give"
                " --tls-authority",
                certificate=config.tls_certificate,
            )
        return given
    if config.tls_authority:
        raise ConfigError("tlsAuthority goes with tlsCertificate and tlsKey, which are not given")
    names = ("localhost", "127.0.0.1", "::1", socket.gethostname(), *_reached_by(config))
    return ensure_certificates(data / "tls", tuple(dict.fromkeys(names)), clock.now())


def _reached_by(config: Config) -> tuple[str, ...]:
    """The names and addresses by which other machines find the server, the likeliest first."""
    said = tuple(name.strip() for name in config.advertise.split(",") if name.strip())
    return said + (own_addresses(config.listen) if is_wildcard(config.listen) else (config.listen,))


def _urls(config: Config, listener: Listener) -> tuple[str, ...]:
    """Where a node that joins finds the server."""
    return tuple(url(host, listener.port, secure=listener.secure) for host in _reached_by(config)) or (listener.url,)
