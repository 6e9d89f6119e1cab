"""Small clusters and volumes, written in as few words as a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quorate.api.meta import Bytes, NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Configuration, Replication, Topology, VolumeAccess
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.api.struct import replace
from quorate.placement.layout import LEVELS, Layout
from quorate.placement.request import Placement, Replica, Request, Room

MIB = 1024**2
#: What a volume of 10 MiB takes of a disk: with metadata, in extents of 4 MiB.
SIZE, TAKEN = Bytes(10 * MIB), 12 * MIB

DISKFUL, ACCESS, TIE_BREAKER = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER
SHORT = {"D": DISKFUL, "A": ACCESS, "T": TIE_BREAKER}


def node(name: str, zone: str = "", disks: Sequence[str] | None = None, **said: Any) -> EligibleNode:
    """A node that is well, with one disk of its own name unless told otherwise."""
    groups = tuple(
        EligibleVolumeGroup(name=disk.partition("/")[0], thin_pool_name=disk.partition("/")[2] or None, ready=True)
        for disk in ([name] if disks is None else disks)
    )
    made = EligibleNode(
        node_name=NodeName(name), zone_name=zone, lvm_volume_groups=groups, node_ready=True, agent_ready=True
    )
    return replace(made, **said)


def nodes(names: str) -> tuple[EligibleNode, ...]:
    """``"a1 a2 b1"``: the first letter is the zone."""
    return tuple(node(name, name[0]) for name in names.split())


def rooms(listed: Sequence[EligibleNode], **free: int) -> dict[str, Room]:
    """100 MiB on every disk, or as said, in MiB."""
    names = [
        f"{g.name}/{g.thin_pool_name}" if g.thin_pool_name else g.name for n in listed for g in n.lvm_volume_groups
    ]
    return {name: Room(free.get(name.replace("/", "_"), 100) * MIB, 4 * MIB) for name in names}


def replica(number: int, sort: str = "D", where: str | None = None, **said: Any) -> Replica:
    """``v-<number>``; with a node, it is there on the disk of that name."""
    type_ = SHORT[sort]
    disk = where if where is not None and type_ is DISKFUL else ""
    place = None if where is None else NodeName(where)
    return Replica(ReplicaName(f"v-{number}"), type_, **{"node": place, "disk": disk, **said})


def replicas(sorts: str) -> tuple[Replica, ...]:
    """``"DDT"``: unplaced, numbered from 0."""
    return tuple(replica(number, sort) for number, sort in enumerate(sorts))


def configuration(layout: Layout, topology: Topology = Topology.IGNORED, **said: Any) -> Configuration:
    named = {known: name for name, known in LEVELS.items()}
    made = Configuration(
        replicated_storage_pool_name="pool",
        replication=named.get(layout, Replication.CONSISTENCY_AND_AVAILABILITY),
        topology=topology,
        volume_access=VolumeAccess.PREFERABLY_LOCAL,
        failures_to_tolerate=layout.failures_to_tolerate,
        guaranteed_minimum_data_redundancy=layout.data_redundancy,
    )
    return replace(made, **said)


#: The layouts by what they are called.
LAYOUT: Mapping[str, Layout] = {
    str(layout): layout for layout in (*LEVELS.values(), Layout(2, 1), Layout(1, 2), Layout(2, 2))
}


def request(
    layout: str,
    listed: str | Sequence[EligibleNode],
    wanted: str | Sequence[Replica] = "",
    *,
    topology: Topology = Topology.IGNORED,
    access: Sequence[str] = (),
    volume_access: VolumeAccess = VolumeAccess.PREFERABLY_LOCAL,
    zones: Sequence[str] = (),
    free: Mapping[str, int] | None = None,
    **said: Any,
) -> Request:
    """A volume of this layout among these nodes; by default the whole layout is to be placed."""
    shape = LAYOUT[layout]
    found = nodes(listed) if isinstance(listed, str) else tuple(listed)
    sorts = wanted or "D" * shape.diskful + "T" * shape.tie_breakers
    return Request(
        configuration=configuration(shape, topology, volume_access=volume_access, zones=tuple(zones)),
        size=said.pop("size", SIZE),
        replicas=replicas(sorts) if isinstance(sorts, str) else tuple(sorts),
        nodes=said.pop("nodes", found),
        rooms=said.pop("rooms", rooms(found, **(free or {}))),
        access=tuple(map(NodeName, access)),
        **said,
    )


def where(placement: Placement) -> dict[str, str]:
    """Replica to node."""
    return {name: choice.node for name, choice in placement.choices.items()}


def why(placement: Placement) -> dict[str, str]:
    """Replica to reason."""
    return {name: refusal.reason.code for name, refusal in placement.refusals.items()}
