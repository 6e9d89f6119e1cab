"""What placement is asked and what it answers, in small structures of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from quorate.api import names
from quorate.api.conditions import Reason, Verdict
from quorate.api.meta import Bytes, NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Configuration
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup
from quorate.drbd.metadata import MAX_PEERS, lower_size

_NONE: Final = Bytes(0)


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that the volume has. One without a node is to be placed."""

    name: ReplicaName
    #: As it votes: an access replica that serves as the tie-breaker is one.
    type: ReplicaType
    #: Where it is. While a disk has been asked and has not refused, its node: it is not placed again meanwhile.
    node: NodeName | None = None
    #: The disk, as ``names.disk`` calls it. A diskful replica with a node and without a disk gets one there.
    disk: str = ""
    #: Of its node, for a node that the pool does not list any more.
    zone: str = ""
    #: Deleted, or about to be replaced: it still has its node to itself, and no say in where others go.
    leaving: bool = False

    @property
    def unplaced(self) -> bool:
        """Whether it needs a node or a disk."""
        if self.leaving:
            return False
        return self.node is None or (self.type is ReplicaType.DISKFUL and not self.disk)


@dataclass(frozen=True, slots=True)
class Room:
    """What a disk could still give, by its ledger."""

    #: Bytes that may still be granted.
    free: int
    #: Sizes are rounded up to this; 0: not known.
    extent: int = 0
    #: Why it takes nothing new, for a person; empty: it does.
    closed: str = ""
    #: Bytes that were asked for and not answered yet. They decide who is tried first, not who is possible: they may
    #: still be refused, and nobody would tell a volume that had waited for that.
    asked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One volume, and everything that bears on where its replicas go."""

    configuration: Configuration
    #: Usable bytes; what is reserved is more.
    size: Bytes
    replicas: tuple[Replica, ...]
    #: The pool's; None: there is no such pool, or nobody has looked at it yet.
    nodes: tuple[EligibleNode, ...] | None
    #: By disk, as ``names.disk`` calls it.
    rooms: Mapping[str, Room]
    #: Nodes that are to use the volume, first come first: of publishOn and attachments.
    access: tuple[NodeName, ...] = ()
    #: Disks that said no to a replica of this volume, with their words. All ask for the same, so it is said to all.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: All or none: while a volume forms, a part of it is of no use and would keep space from others.
    together: bool = False
    max_peers: int = MAX_PEERS

    def lower(self) -> Bytes:
        """What a replica takes of a disk: the usable size and DRBD's metadata."""
        return lower_size(self.size, self.max_peers)


@dataclass(frozen=True, slots=True)
class Choice:
    """A place for a replica."""

    replica: ReplicaName
    node: NodeName
    zone: str = ""
    #: None: the replica needs no disk.
    group: EligibleVolumeGroup | None = None
    #: Bytes to ask the disk for, in whole extents.
    size: Bytes = _NONE
    #: Bytes that are left on the disk then.
    left: Bytes = _NONE
    #: The node was chosen because it is to use the volume.
    preferred: bool = False

    @property
    def disk(self) -> str:
        """As ``names.disk`` calls it; empty without one."""
        return disk_name(self.group) if self.group is not None else ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """No place for a replica."""

    replica: ReplicaName
    #: One of the condition Scheduled.
    reason: Reason
    message: str

    def verdict(self) -> Verdict:
        """As the replica's condition."""
        return self.reason(self.message)


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer: every replica that was to be placed is in one of the two, in order of names."""

    choices: Mapping[ReplicaName, Choice]
    refusals: Mapping[ReplicaName, Refusal]


def disk_name(group: EligibleVolumeGroup) -> str:
    """The disk that a volume group of the pool, or its thin pool, is."""
    return group.name if group.thin_pool_name is None else names.disk(group.name, group.thin_pool_name)


def in_extents(size: int, extent: int) -> int:
    """A size as LVM makes it."""
    return -(-size // extent) * extent if extent else size
