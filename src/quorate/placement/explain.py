"""Why a replica is where it is, or nowhere: the fate of every candidate; whole for ``explain``, short in conditions.

Everything is judged with the other replicas where they are, and where they would be.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from quorate.api.meta import NodeName
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.placement import objections
from quorate.placement.candidates import best_disk, kept_for_access, spread_of, taken_nodes
from quorate.placement.layout import layout_of
from quorate.placement.objections import Objection
from quorate.placement.request import Placement, Replica, Request, disk_name, in_extents
from quorate.placement.topology import Rule, Spread

#: How many nodes the short text names per objection.
_NAMED: Final = 3
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one candidate: a disk, or for a diskless replica a node."""

    node: NodeName
    zone: str
    #: As ``names.disk`` calls it; empty where no disk is looked at.
    disk: str
    #: None: it could take the replica.
    objection: Objection | None
    #: For a person.
    message: str


def fates(request: Request, placement: Placement, replica: Replica) -> tuple[Fate, ...]:
    """The rejection table of one replica: every node and disk of the pool, in order, and why it fell out."""
    others = [choice for name, choice in placement.choices.items() if name != replica.name]
    spread, taken = spread_of(request), set(taken_nodes(request)) | {choice.node for choice in others}
    types = {known.name: known.type for known in request.replicas}
    for choice in others:
        if types[choice.replica] is ReplicaType.DISKFUL:
            spread = spread.with_diskful(choice.zone)
        elif types[choice.replica] is ReplicaType.TIE_BREAKER:
            spread = spread.with_tie_breaker(choice.zone)
    judge = _Judge(request, replica, spread, taken)
    chosen = placement.choices.get(replica.name)
    found: list[Fate] = []
    for node in request.nodes or ():
        against = judge.node(node)
        groups = node.lvm_volume_groups if replica.type is ReplicaType.DISKFUL and against is None else ()
        if not groups:
            here = chosen is not None and chosen.node == node.node_name
            found.append(Fate(node.node_name, node.zone_name, "", against, _told(against, here)))
        for group in groups:
            disk = disk_name(group)
            against = judge.disk(group) or judge.zone(node)
            here = chosen is not None and chosen.node == node.node_name and chosen.disk == disk
            found.append(Fate(node.node_name, node.zone_name, disk, against, judge.words(against, disk, here)))
    return tuple(found)


def summary(
    request: Request,
    replica: Replica,
    spread: Spread,
    taken: Collection[NodeName],
    only: Collection[NodeName] | None = None,
) -> str:
    """The table in one line: which nodes, the first few by name, fell out for what. ``only``: of these."""
    judge = _Judge(request, replica, spread, taken)
    if only is None:
        only = judge.bound_to()
    listed = {node.node_name: node for node in request.nodes or ()}
    fallen: dict[Objection, list[NodeName]] = {}
    for name in listed if only is None else only:
        against = judge.whole_node(listed[name]) if name in listed else Objection.NOT_LISTED
        fallen.setdefault(against or Objection.ZONE_NOT_ALLOWED, []).append(name)
    if not fallen:
        return "there are none" if only is not None else "the pool has no eligible nodes"
    return "; ".join(f"{_names(fallen[against])}: {against.words}" for against in sorted(fallen))


def amount(size: int, *, up: bool = False) -> str:
    """Bytes for a person, to one decimal: what is free rounded down, what is needed rounded up."""
    power = max(0, min((size.bit_length() - 1) // 10, len(_UNITS) - 1))
    tenths = -(-size * 10 // 1024**power) if up else size * 10 // 1024**power
    return f"{tenths / 10:.1f}".removesuffix(".0") + _UNITS[power]


class _Judge:
    """All objections to candidates for one replica."""

    def __init__(self, request: Request, replica: Replica, spread: Spread, taken: Collection[NodeName]) -> None:
        self._request = request
        self._replica = replica
        self._spread = spread
        self._taken = taken
        self._rule = Rule(request.configuration.topology, layout_of(request.configuration))
        self._zones = frozenset(request.configuration.zones)
        self._kept = kept_for_access(request)
        self._lower = request.lower()
        self._by_zone: dict[str, Objection | None] = {}

    def bound_to(self) -> tuple[NodeName, ...] | None:
        """The only nodes that the replica could be on; None: any."""
        if self._replica.node is not None:
            return (self._replica.node,)
        return self._request.access if self._replica.type is ReplicaType.ACCESS else None

    def whole_node(self, node: EligibleNode) -> Objection | None:
        """Against a node and all its disks: of these, the one that came furthest."""
        against = self.node(node)
        if against is not None or self._replica.type is not ReplicaType.DISKFUL:
            return against
        if best_disk(node, self._request, self._lower) is not None:
            return self.zone(node)
        found = (self.disk(group) for group in node.lvm_volume_groups)
        return max(known for known in found if known is not None)

    def node(self, node: EligibleNode) -> Objection | None:
        """Against a node, with its zone for a replica that needs no disk."""
        replica, name = self._replica, node.node_name
        if replica.type is ReplicaType.ACCESS:
            return objections.to_access(node, self._taken) if name in self._request.access else Objection.NOT_ASKED_FOR
        if replica.node is not None:
            against = objections.to_node(node, (), ()) if name == replica.node else Objection.NOT_ITS_NODE
        else:
            against = objections.to_node(node, self._zones, self._taken)
        if against is not None:
            return against
        if replica.type is ReplicaType.DISKFUL:
            return None if node.lvm_volume_groups else Objection.NO_VOLUME_GROUP
        return Objection.KEPT_FOR_ACCESS if name in self._kept else self.zone(node)

    def disk(self, group: EligibleVolumeGroup) -> Objection | None:
        """Against a disk."""
        against = objections.to_group(group)
        if against is not None:
            return against
        disk = disk_name(group)
        room = self._request.rooms.get(disk)
        size = in_extents(self._lower, room.extent if room is not None else 0)
        return objections.to_room(room, disk in self._request.refused, size)

    def zone(self, node: EligibleNode) -> Objection | None:
        """Against a zone, with the others where they are."""
        zone = node.zone_name
        if self._replica.node is not None:
            return None
        if zone not in self._by_zone:
            diskful = self._replica.type is ReplicaType.DISKFUL
            after = self._spread.with_diskful(zone) if diskful else self._spread.with_tie_breaker(zone)
            broken = self._rule.violation(after) is not None
            against = objections.to_zone(self._rule.topology, zone)
            self._by_zone[zone] = against or (Objection.ZONE_NOT_ALLOWED if broken else None)
        return self._by_zone[zone]

    def words(self, against: Objection | None, disk: str, chosen: bool) -> str:
        """The objection to a disk, with its figures."""
        room = self._request.rooms.get(disk)
        if room is None or against in (None, Objection.NO_ROOM):
            size = in_extents(self._lower, room.extent if room is not None else 0)
            free = room.free if room is not None else 0
            if against is Objection.NO_ROOM:
                return f"{against.words}: {amount(free)} free, {amount(size, up=True)} needed"
            return _told(against, chosen) if against else f"{_told(None, chosen)}: {amount(free - size)} would be left"
        if against is Objection.CLOSED:
            return f"{against.words}: {room.closed}"
        if against is Objection.SAID_NO:
            return f"{against.words}: {self._request.refused[disk]}"
        return _told(against, chosen)


def _told(against: Objection | None, chosen: bool) -> str:
    if against is not None:
        return against.words
    return "chosen" if chosen else "possible"


def _names(nodes: list[NodeName]) -> str:
    named = ", ".join(sorted(nodes)[:_NAMED])
    return f"{named} and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else named
