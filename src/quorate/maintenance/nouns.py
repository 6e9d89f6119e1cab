"""The cluster as the broker sees it: nodes, drives (PDisks), replicas (VDisks), groups and rings.

All are frozen: a change is a new value, given to the model as an event. A group is either an erasure group or a
ReplicatedVolume; then ``volume`` says what is known of its quorum.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from quorate.api.maintenance.action import HostState, Marker

STORAGE: Final = "storage"
DYNAMIC: Final = "dynnode"


class DriveId(NamedTuple):
    """A PDisk: ``pdisk-<node>-<drive>``."""

    node: int
    drive: int

    def __str__(self) -> str:
        return f"pdisk-{self.node}-{self.drive}"


class VDiskId(NamedTuple):
    """A VDisk: ``vdisk-<group>-<generation>-<realm>-<domain>-<vdisk>``."""

    group: int
    generation: int
    realm: int
    domain: int
    vdisk: int

    def __str__(self) -> str:
        return f"vdisk-{self.group}-{self.generation}-{self.realm}-{self.domain}-{self.vdisk}"


_NUMBER = "(0|[1-9][0-9]{0,18})"
_DRIVE: Final = re.compile(f"pdisk-{_NUMBER}-{_NUMBER}")
_VDISK: Final = re.compile("vdisk-" + "-".join([_NUMBER] * 5))


def parse_device(name: str) -> DriveId | VDiskId | None:
    """What a device's name says, strictly; None for any other text (which may be a path on the action's host)."""
    if (found := _DRIVE.fullmatch(name)) is not None:
        return DriveId(*map(int, found.groups()))
    if (found := _VDISK.fullmatch(name)) is not None:
        return VDiskId(*map(int, found.groups()))
    return None


class Species(Enum):
    """How an erasure group keeps its data, and how many of its parts it can do without."""

    NONE = ("none", 0)
    MIRROR_3 = ("mirror-3", 2)
    MIRROR_3_OF_4 = ("mirror-3of4", 2)
    #: Three realms; what it can do without is a rule, not a number.
    MIRROR_3_DC = ("mirror-3-dc", 2)
    STRIPE_3_1 = ("stripe-3-1", 1)
    BLOCK_3_1 = ("block-3-1", 1)
    BLOCK_2_2 = ("block-2-2", 2)
    BLOCK_3_2 = ("block-3-2", 2)
    BLOCK_4_2 = ("block-4-2", 2)
    BLOCK_2_3 = ("block-2-3", 3)
    BLOCK_3_3 = ("block-3-3", 3)
    BLOCK_4_3 = ("block-4-3", 3)

    def __init__(self, word: str, parity_parts: int) -> None:
        self.word = word
        self.parity_parts = parity_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node. Several may share a host name."""

    id: int
    host: str
    tenant: str = ""
    data_center: str = ""
    room: str = ""
    rack: str = ""
    state: HostState = HostState.UP
    #: When it was last started.
    start_time: int = 0
    services: tuple[str, ...] = (STORAGE,)
    interconnect_port: int = 0
    #: It may be worked on whatever the limits say: described, it is DOWN; live, its silence is past its grace and no
    #: fresh peer is in touch with a replica on it.
    surely_down: bool = False
    #: Commands hang in its kernel: nothing but a reboot ends them.
    stuck: bool = False
    markers: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveInfo:
    """A drive of a node."""

    id: DriveId
    state: HostState = HostState.UP
    #: Such as /dev/sdb; a device may be named by it.
    path: str = ""
    #: What people call it, such as node-3/1; empty: nothing but its number.
    title: str = ""
    markers: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VDiskInfo:
    """A part of a group. A replica in a volume group of several drives lies on all of them; a diskless one on none."""

    id: VDiskId
    node: int
    drives: tuple[DriveId, ...] = ()
    state: HostState = HostState.UP
    #: What people call it: a replica's own name; empty: nothing but its numbers.
    title: str = ""
    markers: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """What the rules need of one member of a volume: a diskful one, or the shown diskless one."""

    vdisk: VDiskId
    node: int
    #: Counts for quorum: a shown diskful member.
    voter: bool
    #: Has the data, as fresh reports say.
    up_to_date: bool
    #: On the side that serves: seen connected by fresh peers, or itself fresh.
    connected: bool
    tie_breaker: bool = False
    #: Its own agent is silent, a peer whose word counts is out of touch with it, and none is in touch.
    missed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFacts:
    """What is known of a ReplicatedVolume's live quorum."""

    name: str
    members: tuple[MemberFacts, ...]
    #: The claim that it was made for, with its namespace: what people know it by, if there is one.
    claim: str = ""
    #: Ids of the nodes that it is attached on.
    attached_on: frozenset[int] = frozenset()
    #: Of these, where its I/O stands still: such a machine may not end by itself.
    suspended_on: frozenset[int] = frozenset()
    #: How many voters, and how many up-to-date copies, a write needs.
    quorum: int
    quorum_minimum_redundancy: int
    #: Whether it could be written to without these nodes, by the kernel's rule on live reports
    #: (``quorate.volumes.effective.after_losing``). None: judged by the members above alone, which is never laxer.
    survives: Callable[[frozenset[int]], bool] | None = field(default=None, compare=False)
    #: Up-to-date copies that stay while it is not attached: two for ConsistencyAndAvailability.
    copies_kept: int = 1
    #: How many losses its layout promises to survive.
    failures_to_tolerate: int = 0
    #: A step that changes votes, copies needed or size is not confirmed by all: nothing of it may be disturbed. What.
    unconfirmed_step: str = ""
    #: A hidden member's first copy is being made: counts as one locked. Which.
    synchronizing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInfo:
    """A storage group."""

    id: int
    generation: int = 1
    #: None: a volume.
    species: Species | None
    volume: VolumeFacts | None = None
    vdisks: tuple[VDiskInfo, ...]


@dataclass(frozen=True, slots=True)
class Ring:
    """Nodes that hold one copy of the state storage's table."""

    nodes: tuple[int, ...]
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Rings:
    """The state storage."""

    to_select: int
    rings: tuple[Ring, ...]
