"""The nodes that could take a replica of a volume, each with its best disk, in the order in which they are tried.

Before the others come nodes that are to use the volume; then by most free bytes on the disk after placement, among
equals by most free bytes on all disks of the node, then by name. What others have asked for counts as gone, so that
volumes made at the same time spread. A node holds at most one replica of a volume, so only its best disk matters. This
is the one loop over every disk of a pool; what the four phases of ``choose`` do with its outcome no longer depends on
how many disks there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorate.api.meta import NodeName
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.placement import objections
from quorate.placement.request import Request, disk_name, in_extents
from quorate.placement.topology import Rule, Spread, Vacancies


class Best(NamedTuple):
    """The best disk of a node."""

    group: EligibleVolumeGroup
    #: Bytes that the replica takes of it, and bytes that are left then.
    size: int
    left: int
    #: Bytes that are left if everybody gets what they ask for: less than none when they cannot.
    spare: int
    #: The same of all disks of the node that take something new, before placement.
    node_spare: int


class Candidate(NamedTuple):
    """A node that is free for a voter or for the tie-breaker."""

    node: NodeName
    zone: str
    #: It is to use the volume.
    preferred: bool
    #: It may take the tie-breaker.
    for_tie_breaker: bool
    #: None: it has none with room.
    disk: Best | None

    def order(self) -> tuple[bool, bool, int, int, NodeName]:
        """Who is tried first."""
        disk = self.disk
        if disk is None:
            return not self.preferred, True, 0, 0, self.node
        return not self.preferred, False, -disk.spare, -disk.node_spare, self.node


def spread_of(request: Request) -> Spread:
    """Where the members are that stay."""
    listed = {node.node_name: node.zone_name for node in request.nodes or ()}
    diskful: dict[str, int] = {}
    tie_breaker = None
    for replica in request.replicas:
        if replica.node is None or replica.leaving:
            continue
        zone = listed.get(replica.node, replica.zone)
        if replica.type is ReplicaType.DISKFUL:
            diskful[zone] = diskful.get(zone, 0) + 1
        elif replica.type is ReplicaType.TIE_BREAKER:
            tie_breaker = zone
    return Spread(diskful, tie_breaker)


def taken_nodes(request: Request) -> frozenset[NodeName]:
    """Nodes with a replica of this volume, leaving ones included."""
    return frozenset(replica.node for replica in request.replicas if replica.node is not None)


def kept_for_access(request: Request) -> frozenset[NodeName]:
    """Nodes that the tie-breaker leaves to access replicas which are still to be placed."""
    waits = any(replica.unplaced and replica.type is ReplicaType.ACCESS for replica in request.replicas)
    return frozenset(request.access) if waits else frozenset()


def candidates(request: Request, *, with_room: bool = True) -> list[Candidate]:
    """All of them, in order. Without regard to room: as if every disk had enough, to see what is lacking."""
    zones, taken, kept = frozenset(request.configuration.zones), taken_nodes(request), kept_for_access(request)
    preferred, topology = frozenset(request.access), request.configuration.topology
    lower = request.lower()
    found: list[Candidate] = []
    for node in request.nodes or ():
        if objections.to_node(node, zones, taken) is not None:
            continue
        if with_room and objections.to_zone(topology, node.zone_name) is not None:
            continue
        name = node.node_name
        disk = best_disk(node, request, lower) if with_room else _any_disk(node)
        if disk is not None or name not in kept:
            found.append(Candidate(name, node.zone_name, name in preferred, name not in kept, disk))
    found.sort(key=Candidate.order)
    return found


def best_disk(node: EligibleNode, request: Request, lower: int) -> Best | None:
    """The disk of a node with most to spare after placement.

    Says what ``objections.to_group`` and ``to_room`` say, without asking them: three calls for each of 10,000 disks
    take longer than all the rest. A test holds the two to each other.
    """
    rooms, refused = request.rooms, request.refused
    best: EligibleVolumeGroup | None = None
    best_name, best_size, best_left, best_spare = "", 0, 0, 0
    extent, size, node_spare = 0, lower, 0
    for group in node.lvm_volume_groups:
        if not group.ready or group.unschedulable:
            continue
        name = group.name if group.thin_pool_name is None else disk_name(group)
        room = rooms.get(name)
        if room is None or room.closed or name in refused:
            continue
        if room.extent != extent:
            extent = room.extent
            size = in_extents(lower, extent)
        left = room.free - size
        spare = left - room.asked
        node_spare += spare + size
        if left >= 0 and (best is None or spare > best_spare or (spare == best_spare and name < best_name)):
            best, best_name, best_size, best_left, best_spare = group, name, size, left, spare
    return None if best is None else Best(best, best_size, best_left, best_spare, node_spare)


def _any_disk(node: EligibleNode) -> Best | None:
    for group in node.lvm_volume_groups:
        if objections.to_group(group) is None:
            return Best(group, 0, 0, 0, 0)
    return None


def vacancies(found: Iterable[Candidate], rule: Rule) -> dict[str, Vacancies]:
    """How many nodes each zone has for whom. A node in no zone is of no use where zones matter."""
    uses_zones = rule.uses_zones
    counts: dict[str, list[int]] = {}
    for candidate in found:
        zone = candidate.zone if uses_zones else ""
        count = counts.get(zone)
        if count is None:
            count = counts[zone] = [0, 0, 0]
        # As Vacancies has them: for a voter only, for either, for the tie-breaker only.
        count[2 if candidate.disk is None else candidate.for_tie_breaker] += 1
    if uses_zones:
        counts.pop("", None)
    return {zone: Vacancies(*count) for zone, count in counts.items()}
