"""Where a replica listens: the node's InternalIP (IPv4), and the lowest port of the range that nobody has.

Kept once chosen, with three exceptions: of two replicas with one port the younger chooses again; an address that is
not the node's any more is replaced by one that is, with the same port; and a replica none of whose links the kernel
even tries to connect, while another program listens on its port, gets another port. One worker gives the ports out,
from a cache that has its own writes, so no two replicas get one. Whether a port can really be listened on is tried
before it is given: as many as are needed, and the more at once the more of them were found to be taken.

Until there is an address the replica's ``errors.lastConfigError`` is ours: its reason says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, takewhile
from random import Random
from typing import Any, Final

from quorate.agent import looks
from quorate.agent.backoff import Patience
from quorate.agent.node import Node
from quorate.agent.replica.standstill import Sign
from quorate.agent.steps import PORT, Look
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.conditions.rvr import AddressConfigured, DRBDMoving
from quorate.api.core.node import Node as CoreNode
from quorate.api.meta import Resource
from quorate.api.names import CLUSTER
from quorate.api.storage.drbd import Address, CommandError, ConnectionState
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, PlanEvent, Reader, Signal, Watch

#: Seconds after which ports that somebody else has, or that could not be tried, are tried again.
LATER = 60.0
RETRY = Patience(first=LATER, longest=LATER)
#: Seconds for which a replica that listens nowhere is left alone: ``adjust`` may help.
SUSPICIOUS: Final = 15.0
#: Ports tried in one piece of work.
AT_ONCE: Final = 8
INTERNAL_IP: Final = "InternalIP"
THE_NODE: Final = Key("", "addresses")
WORK: Final = "ports"
_OURS: Final = frozenset({AddressConfigured.NO_FREE_PORT_AVAILABLE.code, AddressConfigured.NO_INTERNAL_IP.code})


@dataclass(frozen=True, slots=True)
class Addresses:
    """What decides who gets which port."""

    replicas: tuple[ReplicatedVolumeReplica, ...]
    #: The node's own; the first is given.
    ips: tuple[str, ...]
    min_port: int
    max_port: int
    #: By port: whether it was found free, of those that were tried lately.
    tried: Mapping[int, bool] = field(default_factory=dict)
    #: Ports could not even be tried, a moment ago.
    failing: bool = False
    #: Names of replicas that do not listen, though they should, for long enough that their port is worth a look.
    silent: frozenset[str] = frozenset()

    @property
    def ip(self) -> str:
        """Where new ones listen; "" while the node has no address."""
        return self.ips[0] if self.ips else ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to write, and which ports to try."""

    writes: tuple[PatchStatus, ...] = ()
    events: tuple[PlanEvent, ...] = ()
    to_try: tuple[int, ...] = ()
    again: float | None = None


def choose(view: Addresses) -> Choice:
    """Addresses for those without, as far as free ports are known."""
    if stale := [replica for replica in view.replicas if _is_stale(view, replica)]:
        return Choice(writes=tuple(_moved(replica, view.ip) for replica in stale))
    unsure = [each for each in view.replicas if each.name in view.silent and _port(each) not in view.tried]
    if unsure and view.ip and not view.failing:
        return Choice(to_try=tuple(port for each in unsure[:AT_ONCE] if (port := _port(each)) is not None))
    displaced = [each for each in view.replicas if _is_displaced(view, each)]
    homeless = [*_without_address(view.replicas), *displaced]
    if not homeless:
        return Choice(again=SUSPICIOUS if any(map(_listens_nowhere, view.replicas)) else None)
    if not view.ip:
        return _refused(homeless, AddressConfigured.NO_INTERNAL_IP.code, "the node has no InternalIP address (IPv4)")
    used = {address.port for replica in view.replicas if (address := _address(replica)) and replica not in homeless}
    every = range(view.min_port, view.max_port + 1)
    needed = min(AT_ONCE, len(homeless) + sum(not free for free in view.tried.values()))
    left = list(islice((port for port in every if port not in used and view.tried.get(port, True)), needed))
    if not left:
        message = f"no port from {view.min_port} to {view.max_port} is free on the node"
        return _refused(homeless, AddressConfigured.NO_FREE_PORT_AVAILABLE.code, message, again=LATER)
    # The lowest that may be free decides. While it has not been tried, it and the next ones are.
    if left[0] not in view.tried:
        if view.failing:
            return Choice(again=LATER)
        return Choice(to_try=tuple(port for port in left if port not in view.tried))
    given = tuple(zip(homeless, takewhile(view.tried.__contains__, left), strict=False))
    return Choice(
        writes=tuple(_given(replica, Address(ipv4=view.ip, port=port)) for replica, port in given),
        events=tuple(_told(replica, port) for replica, port in given if replica in displaced),
    )


def _without_address(replicas: Iterable[ReplicatedVolumeReplica]) -> list[ReplicatedVolumeReplica]:
    """Those that have none, and those whose port an older one has; the oldest first."""
    ports: set[int] = set()
    found = []
    for replica in sorted(replicas, key=lambda each: (str(each.metadata.creation_timestamp or ""), each.name)):
        address = _address(replica)
        if address is None or address.port in ports:
            found.append(replica)
        else:
            ports.add(address.port)
    return [replica for replica in found if not replica.deleting]


def _is_displaced(view: Addresses, replica: ReplicatedVolumeReplica) -> bool:
    """Whether another program has its port."""
    port = _port(replica)
    return replica.name in view.silent and port is not None and view.tried.get(port) is False


def _port(replica: ReplicatedVolumeReplica) -> int | None:
    address = _address(replica)
    return None if address is None else address.port


def _listens_nowhere(replica: ReplicatedVolumeReplica) -> bool:
    """Whether the kernel tries to connect none of its links, as was last reported."""
    status = replica.status.drbd.status
    links = status.connections if status is not None and not replica.deleting else ()
    return bool(links) and all(link.connection_state == ConnectionState.STAND_ALONE for link in links)


def _silent(node: Node, replicas: Iterable[ReplicatedVolumeReplica]) -> frozenset[str]:
    """Those for which that has been so for a while: a link is StandAlone for a moment whenever it is made anew."""
    now, found = node.clock.now(), set()
    for replica in replicas:
        signs = node.memory.signs.get(replica.spec.replicated_volume_name, {})
        since = [noted.since for (sign, _), noted in signs.items() if sign is Sign.ALONE]
        if _listens_nowhere(replica) and since and (now - max(since)).total_seconds() >= SUSPICIOUS:
            found.add(replica.name)
    return frozenset(found)


def _address(replica: ReplicatedVolumeReplica) -> Address | None:
    return replica.status.drbd.config.address


def _is_stale(view: Addresses, replica: ReplicatedVolumeReplica) -> bool:
    """Whether it listens where the node is no more. A node that says no address at all says nothing of that either."""
    address = _address(replica)
    return bool(view.ips) and address is not None and address.ipv4 not in view.ips and not replica.deleting


def _moved(replica: ReplicatedVolumeReplica, ip: str) -> PatchStatus:
    before = _address(replica)
    assert before is not None
    return _given(replica, replace(before, ipv4=ip))


def _given(replica: ReplicatedVolumeReplica, address: Address) -> PatchStatus:
    drbd = replica.status.drbd
    errors = drbd.errors
    if errors.last_config_error is not None and errors.last_config_error.reason in _OURS:
        errors = replace(errors, last_config_error=None)
    drbd = replace(drbd, config=replace(drbd.config, address=address), errors=errors)
    return PatchStatus(replica, replace(replica, status=replace(replica.status, drbd=drbd)))


def _told(replica: ReplicatedVolumeReplica, port: int) -> PlanEvent:
    said = f"another program listens on port {_port(replica)}: {replica.name} listens on {port} from now on"
    return PlanEvent(replica, DRBDMoving.PORT_TAKEN.code, said, warning=True)


def _refused(
    replicas: Iterable[ReplicatedVolumeReplica], reason: str, message: str, again: float | None = None
) -> Choice:
    error = CommandError(output=message, reason=reason)
    writes = []
    for replica in replicas:
        drbd = replica.status.drbd
        if _address(replica) is None and drbd.errors.last_config_error != error:
            drbd = replace(drbd, errors=replace(drbd.errors, last_config_error=error))
            writes.append(PatchStatus(replica, replace(replica, status=replace(replica.status, drbd=drbd))))
    return Choice(writes=tuple(writes), again=again)


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """One key: all the node's addresses."""
    looks.register(node)
    signal = Signal()

    def observe(reader: Reader, _: Key) -> Addresses:
        cluster = reader.get(ClusterConfig, CLUSTER)
        drbd = (cluster.spec if cluster is not None else ClusterConfigSpec()).drbd
        ips = _internal_ips(reader.get(CoreNode, node.name))
        here = tuple(each for each in reader.list(ReplicatedVolumeReplica) if each.spec.node_name == node.name)
        looked = node.memory.last(WORK, "look")
        failing = looked is not None and not looked.succeeded and RETRY.left(looked, looked.about, node.clock.now()) > 0
        tried = _tried(node, ips[0] if ips else "")
        return Addresses(here, ips, drbd.min_port, drbd.max_port, tried, failing, _silent(node, here))

    def decide(view: Addresses, now: datetime, _: Random) -> Plan:
        choice = choose(view)
        effects: tuple[Callable[[], None], ...] = ()
        if choice.to_try:
            steps = tuple(Look(PORT, f"{view.ip}:{port}") for port in choice.to_try)
            effects = (node.work(WORK, steps, signal, THE_NODE),)
        elif view.tried:
            # What was free a moment ago may not be so for the next one that asks, nor the other way round.
            effects = (node.memory.ports.clear,)
        if not choice.writes and not effects and choice.again is None:
            return NOTHING
        return Plan(writes=choice.writes, events=choice.events, effects=effects, requeue_after=choice.again)

    return (
        Controller(
            name="address",
            watches=(
                Watch(ReplicatedVolumeReplica, _the_node, when=_address_matters),
                Watch(ClusterConfig, _the_node),
                Watch(CoreNode, _the_node, when=_addresses_differ),
            ),
            observe=observe,
            decide=decide,
            signals=(signal,),
            workers=1,
        ),
    )


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """None."""
    return ()


def _tried(node: Node, ip: str) -> dict[int, bool]:
    found = {}
    for subject, sighting in node.memory.ports.items():
        address, _, port = subject.rpartition(":")
        if address == ip and sighting.known:
            found[int(port)] = bool(sighting.value)
    return found


def _internal_ips(node: CoreNode | None) -> tuple[str, ...]:
    """DRBD's peers meet over IPv4. On a node with both, the first that is listed may well be the other."""
    addresses = node.status.addresses if node is not None else ()
    return tuple(each.address for each in addresses if each.type == INTERNAL_IP and ":" not in each.address)


def _the_node(_: Resource) -> Iterable[Key]:
    return (THE_NODE,)


def _address_matters(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    if before is None or after is None or _address(before) != _address(after):
        return True
    return _listens_nowhere(before) != _listens_nowhere(after)


def _addresses_differ(before: CoreNode | None, after: CoreNode | None) -> bool:
    return _internal_ips(before) != _internal_ips(after)
