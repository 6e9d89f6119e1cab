"""Every layout of one to eight members, as the config of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from quorate.api.meta import NodeName, VolumeName
from quorate.api.scalars import MAX_MEMBERS, ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import Address, DrbdConfig, Peer, ReplicaType, SharedSecretAlgorithm

VOLUME = VolumeName("pvc-1")
DISKFUL, ACCESS, TIE_BREAKER = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER


@dataclass(frozen=True)
class Member:
    type: ReplicaType
    hidden: bool = False

    def __str__(self) -> str:
        return {DISKFUL: "D", ACCESS: "A", TIE_BREAKER: "TB"}[self.type] + ("?" if self.hidden else "")


Layout = tuple[Member, ...]


def layouts() -> Iterator[Layout]:
    """All counts of shown and hidden diskful members, with at most one shown diskless one, a TB or an A, and others."""
    kinds = (Member(DISKFUL), Member(DISKFUL, hidden=True), Member(ACCESS, hidden=True))
    one_diskless = ((), (Member(TIE_BREAKER),), (Member(TIE_BREAKER, hidden=True),), (Member(ACCESS),))
    for counts in product(range(1, MAX_MEMBERS + 1), range(3), range(4)):
        for diskless in one_diskless:
            rest = tuple(kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count))
            if len(rest) + len(diskless) <= MAX_MEMBERS:
                yield rest + diskless


def config_of(layout: Layout, node_id: int, /, **changes: object) -> DrbdConfig:
    """What the member with this node id is told."""
    own = layout[node_id]
    fields: dict[str, object] = {
        "node_id": node_id,
        "type": own.type,
        "address": address(node_id),
        "peers": tuple(
            Peer(
                name=ReplicaName(f"{VOLUME}-{other}"),
                node_name=node(other),
                node_id=other,
                type=member.type,
                address=address(other),
                hidden=member.hidden,
            )
            for other, member in enumerate(layout)
            if other != node_id
        ),
        "peers_initialized": True,
        "device_minor": 1000,
        "disk": f"/dev/vg0/pvc-1-{node_id}" if own.type is DISKFUL else None,
        "shared_secret": Secret("s3cret"),
        "shared_secret_alg": SharedSecretAlgorithm.SHA256,
        "quorum_minimum_redundancy": 1,
        "hidden": own.hidden,
    }
    return DrbdConfig(**{**fields, **changes})  # type: ignore[arg-type]


def node(node_id: int) -> NodeName:
    return NodeName(f"node-{node_id}.example")


def address(node_id: int) -> Address:
    return Address(ipv4=f"10.0.0.{node_id + 1}", port=7000 + node_id)
