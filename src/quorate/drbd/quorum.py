"""The kernel's quorum rule, as a pure function of what one member sees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quorate.api.storage.drbd import DiskState, DrbdConfig, DrbdStatus


class Setting(Enum):
    """``quorum`` in a member's own file, where it is not a number."""

    OFF = "off"
    MAJORITY = "majority"


@dataclass(frozen=True, slots=True)
class PeerView:
    """What a member knows of one other member."""

    node_id: int
    #: Meant to have a disk: this member keeps a bitmap for it.
    diskful: bool
    connected: bool
    #: While connected as the peer says; otherwise what is remembered.
    disk_state: str = DiskState.UNKNOWN
    #: This member sets allow-remote-read no toward it.
    hidden: bool = False
    #: Whether the peer itself has quorum; only a member without a disk asks.
    quorate: bool = False


@dataclass(frozen=True, slots=True)
class MemberView:
    """What decides whether one member has quorum."""

    node_id: int
    diskful: bool
    disk_state: str
    quorum: Setting | int
    minimum_redundancy: int
    peers: tuple[PeerView, ...]
    had_quorum: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a member has quorum, and why."""

    quorate: bool
    voters: int
    needed: int
    present: int
    by_tie_breaker: bool
    explanation: str


def verdict(view: MemberView) -> Verdict:
    """The kernel's decision."""
    raise NotImplementedError


def view_of(
    config: DrbdConfig, status: DrbdStatus, *, had_quorum: bool, quorate_peers: frozenset[int] = frozenset()
) -> MemberView:
    """What a member sees, from its config and its own report."""
    raise NotImplementedError
