"""Why a node, or a disk of it, cannot take a replica: one list of objections, the first that fits is the one given.

The same functions filter candidates and explain the filtering, so that an explanation cannot differ from the choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final

from quorate.api.meta import NodeName
from quorate.api.storage.configuration import Topology
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.placement.request import Room


class Objection(IntEnum):
    """What stands against a candidate; the higher, the further it came."""

    NOT_LISTED = 1
    NOT_ITS_NODE = 2
    NOT_ASKED_FOR = 3
    HOLDS_REPLICA = 4
    OUTSIDE_ZONES = 5
    NODE_NOT_READY = 6
    AGENT_NOT_READY = 7
    CORDONED = 8
    KERNEL_STUCK = 9
    KEPT_FOR_ACCESS = 10
    NO_VOLUME_GROUP = 11
    GROUP_NOT_READY = 12
    GROUP_UNSCHEDULABLE = 13
    # Here the node is there and has a disk, and what lacks is space.
    NO_LEDGER = 14
    CLOSED = 15
    SAID_NO = 16
    NO_ROOM = 17
    # Here everything is there but the rule of the topology.
    NO_ZONE = 18
    ZONE_NOT_ALLOWED = 19

    @property
    def words(self) -> str:
        """For a person, after the name of the node or disk."""
        return _WORDS[self]


_WORDS: Final[Mapping[Objection, str]] = {
    Objection.NOT_LISTED: "not among the pool's eligible nodes",
    Objection.NOT_ITS_NODE: "not the node that the replica is bound to",
    Objection.NOT_ASKED_FOR: "not a node that is to use the volume",
    Objection.HOLDS_REPLICA: "taken by a replica of this volume",
    Objection.OUTSIDE_ZONES: "outside the zones of the class",
    Objection.NODE_NOT_READY: "not ready",
    Objection.AGENT_NOT_READY: "its agent is silent",
    Objection.CORDONED: "cordoned or to be evacuated",
    Objection.KERNEL_STUCK: "commands hang in its kernel: drain and reboot it",
    Objection.KEPT_FOR_ACCESS: "kept for an access replica",
    Objection.NO_VOLUME_GROUP: "no volume group of the pool (add one to the pool's spec.lvmVolumeGroups)",
    Objection.GROUP_NOT_READY: "volume group not ready",
    Objection.GROUP_UNSCHEDULABLE: "volume group takes nothing new",
    Objection.NO_LEDGER: "disk has no DiskSchedule yet",
    Objection.CLOSED: "disk takes nothing new",
    Objection.SAID_NO: "disk said no",
    Objection.NO_ROOM: "no room",
    Objection.NO_ZONE: "in no zone",
    Objection.ZONE_NOT_ALLOWED: "the topology rules its zone out",
}


def to_node(node: EligibleNode, zones: Collection[str], taken: Collection[NodeName]) -> Objection | None:
    """Against a node, whatever it is to hold: a voter or the tie-breaker."""
    if node.node_name in taken:
        return Objection.HOLDS_REPLICA
    if zones and node.zone_name not in zones:
        return Objection.OUTSIDE_ZONES
    if not node.node_ready:
        return Objection.NODE_NOT_READY
    if not node.agent_ready:
        return Objection.AGENT_NOT_READY
    if node.unschedulable:
        return Objection.CORDONED
    return Objection.KERNEL_STUCK if node.kernel_stuck else None


def to_access(node: EligibleNode | None, taken: Collection[NodeName]) -> Objection | None:
    """Against a node that is to use the volume. Zones and cordon do not matter: somebody asked for just this node."""
    if node is None:
        return Objection.NOT_LISTED
    if node.node_name in taken:
        return Objection.HOLDS_REPLICA
    if not node.node_ready:
        return Objection.NODE_NOT_READY
    return None if node.agent_ready else Objection.AGENT_NOT_READY


def to_group(group: EligibleVolumeGroup) -> Objection | None:
    """Against a volume group, whatever room it has."""
    if not group.ready:
        return Objection.GROUP_NOT_READY
    return Objection.GROUP_UNSCHEDULABLE if group.unschedulable else None


def to_room(room: Room | None, said_no: bool, size: int) -> Objection | None:
    """Against a disk, by its ledger; ``size`` is in whole extents."""
    if room is None:
        return Objection.NO_LEDGER
    if room.closed:
        return Objection.CLOSED
    if said_no:
        return Objection.SAID_NO
    return Objection.NO_ROOM if room.free < size else None


def to_zone(topology: Topology, zone: str) -> Objection | None:
    """Against a zone, whoever is there already."""
    return Objection.NO_ZONE if not zone and not topology.ignores_zones else None
