"""``quorate agent``: one node's agent as a process, and ``--check``, which says whether it could be one."""

from __future__ import annotations

import asyncio
import shlex
import signal
import socket
from asyncio import sslproto
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry

from quorate.agent.inventory.registration import Registration
from quorate.agent.lease import Identity
from quorate.agent.linux import LinuxMachine, Roots
from quorate.agent.lock import AgentLock, look
from quorate.agent.machine import CommandHung, CommandNotFound, Machine
from quorate.agent.parts import PARTS
from quorate.agent.process import Agent, Part
from quorate.agent.settings import Settings
from quorate.api.labels import ZONE
from quorate.api.meta import NodeName
from quorate.config import Config
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.kubernetes.metrics import ClientMetrics
from quorate.engine.logs import get_logger
from quorate.errors import ConfigError
from quorate.server.addresses import is_loopback
from quorate.server.probes import Probes

if TYPE_CHECKING:  # only --check examines
    from quorate.agent import check

_log = get_logger(__name__)

#: Bytes that each TLS connection reads at once: one record of TLS. An agent has one connection for each kind that it
#: watches, on which little comes; with asyncio's 256 KiB for each they took 4 MB of its 40.
_TLS_BUFFER: Final = 16 * 1024
_MACHINE_ID = "/etc/machine-id"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


async def run(config: Config, *, environ: Mapping[str, str], announce: Callable[[str], None]) -> None:
    """Work until SIGTERM or SIGINT; ``announce`` gets the line for a person. Ended in reverse: agent, store, lock."""
    sslproto.SSLProtocol.max_size = _TLS_BUFFER
    clock, chance, registry = SystemClock(), SystemRandom(), CollectorRegistry()
    node_name = _node_name(config)
    async with AsyncExitStack() as ending:
        lock = AgentLock(_state_directory(config), random=chance)
        ending.callback(lock.release)
        machine = make_machine(config)
        ending.push_async_callback(machine.close)
        await _refuse_a_dead_end(config, machine)
        _make_config_directory(config)
        store = _store(config, environ, chance, ClientMetrics(registry))
        ending.push_async_callback(store.close)
        agent = Agent(
            store,
            machine,
            node_name=node_name,
            identity=Identity.new(await _place(machine, lock.id), chance),
            clock=clock,
            random=chance,
            parts=await parts_of(config, machine),
            settings=settings_of(config),
            registry=registry,
            freeze_gc=True,
        )
        probes = Probes(agent.health, registry)
        ending.push_async_callback(probes.close)
        port = await probes.listen(config.metrics_listen, config.metrics_port)
        loop = asyncio.get_running_loop()
        for signal_ in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_, agent.stop)
        announce(f"quorate agent of node {node_name} starts; health and metrics are on port {port}")
        await agent.run()
        _log.info("agent has stopped", node=node_name)


async def examine(config: Config, *, environ: Mapping[str, str]) -> tuple[check.Item, ...]:
    """Look at this machine, and at the API server when one is named, and judge."""
    from quorate.agent import check

    node_name = _node_name(config)
    machine = make_machine(config)
    lock_id, lock_holder = look(_state_directory(config))
    cluster = None
    try:
        if config.kubeconfig or environ.get("KUBECONFIG") or environ.get("KUBERNETES_SERVICE_HOST"):
            cluster = await _look_at_cluster(config, environ, node_name)
        facts = await check.gather(
            machine,
            node_name=node_name,
            settings=settings_of(config),
            drbd=cluster.drbd if cluster is not None else None,
            internal_addresses=cluster.internal_addresses if cluster is not None else (),
            lock_holder=lock_holder,
        )
        return check.judge(facts, cluster, place=await _place(machine, lock_id) if lock_id else "")
    finally:
        await machine.close()


def make_machine(config: Config) -> LinuxMachine:
    """The machine that the configuration describes."""
    try:
        prefix = shlex.split(config.host_prefix)
    except ValueError as error:
        raise ConfigError(f"hostPrefix {config.host_prefix!r} cannot be split into words: {error}") from None
    return LinuxMachine(prefix=prefix, roots=roots_of(config))


def roots_of(config: Config) -> Roots:
    """Where the node's files are for us."""
    places = {"/": config.host_root, "/sys": config.sys, "/dev": config.dev, "/proc": config.proc}
    try:
        return Roots({path: place for path, place in places.items() if place})
    except ValueError as error:
        raise ConfigError(f"hostRoot, sys, dev or proc: {error}") from None


def settings_of(config: Config) -> Settings:
    """What the agent itself needs to know of its configuration."""
    return Settings(
        config_directory=config.drbd_config_dir,
        drbd_state_directory=config.drbd_state_dir,
        image_directory=config.image_dir,
    )


async def parts_of(config: Config, machine: Machine) -> tuple[Part, ...]:
    """What the agent does; it keeps its core Node too, where it was asked to."""
    if not config.register_node:
        return PARTS
    labels = {ZONE: config.zone} if config.zone else {}
    return (*PARTS, Registration(address=await _own_address(config, machine), labels=labels))


async def _own_address(config: Config, machine: Machine) -> str:
    """The address that others reach the node by: the one that was given, or what its name stands for."""
    if config.address:
        candidates = [config.address]
    else:
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(config.node_name, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
        except OSError:
            found = []
        candidates = [str(address[0]) for *_, address in found if not is_loopback(str(address[0]))]
    for candidate in candidates:
        if await machine.port_is_free(candidate, 0):
            return candidate
    shown = ", ".join(candidates) or "nothing"
    raise ConfigError(f"{config.node_name} stands for {shown}, which is no address of this machine: give --address")


def _node_name(config: Config) -> NodeName:
    if not config.node_name:
        raise ConfigError("the node's name is not known: give --node-name, or set NODE_NAME")
    return NodeName(config.node_name)


def _state_directory(config: Config) -> Path:
    return Path(config.state_dir).expanduser()


async def _refuse_a_dead_end(config: Config, machine: Machine) -> None:
    """A prefix that fails would answer in place of every command, and be believed."""
    try:
        done = await machine.run("true", silence=30.0)
    except (CommandNotFound, CommandHung) as error:
        raise ConfigError(f"hostPrefix {config.host_prefix!r}: no command can be run: {error}") from None
    if done.exit_code != 0:
        raise ConfigError(f"hostPrefix {config.host_prefix!r} does not work: {done.output or done.exit_code}")


def _make_config_directory(config: Config) -> None:
    path = roots_of(config).locate(config.drbd_config_dir)
    try:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the directory {path} for DRBD's configuration cannot be made: {error.strerror}") from None


def _store(
    config: Config, environ: Mapping[str, str], chance: Random, metrics: ClientMetrics | None
) -> KubernetesStore:
    clock = SystemClock()
    kubeconfig = Path(config.kubeconfig).expanduser() if config.kubeconfig else None
    connection = load_connection(environ=environ, clock=clock, kubeconfig=kubeconfig)
    return KubernetesStore(connection, clock=clock, random=chance, observe=metrics)


async def _place(machine: LinuxMachine, lock_id: str) -> str:
    """The machine and the state directory: what no two agents that live can share."""
    for path in (_MACHINE_ID, _BOOT_ID):
        try:
            found = (await machine.read_file(path)).decode(errors="replace").strip()
        except OSError:
            continue
        if found:
            return f"{found}.{lock_id}"
    return f"unknown.{lock_id}"


async def _look_at_cluster(config: Config, environ: Mapping[str, str], node: NodeName) -> check.ClusterFacts:
    from quorate.agent import check

    try:
        store = _store(config, environ, SystemRandom(), None)
    except ConfigError as error:
        return check.ClusterFacts(problem=str(error))
    try:
        return await check.gather_cluster(store, node)
    finally:
        await store.close()
