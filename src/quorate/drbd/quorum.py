"""The kernel's quorum rule (DRBD 9.2), as a pure function of what one member sees.

A member counts *voters*: itself and the peers that are meant to have a disk. It is quorate when enough of them are
here, and enough of those are up to date. What makes it more than counting:

- **Who is not counted.** A peer hidden by ``allow-remote-read no``; a peer with a disk that was never connected since
  this member's metadata was made (``join_hidden_1d``: naming one more peer costs nothing). A peer that left and was not
  forgotten is counted for ever, whatever the files say.
- **Who cannot be quorate elsewhere.** Absent peers that are known outdated, or that left while this member stayed
  quorate, are *powerless*. If all the absent are powerless, the present ones are all the voters there are. Unless the
  absent could be a quorum among themselves: then those that merely left are feared again.
- **The tie-breaker.** With an even number of voters, one vote short, a member that *had* quorum keeps it while it sees
  a majority of the diskless members. One that lost it does not get it back this way.
- **Members without a disk** also have quorum through any connected, UpToDate peer that has it itself.

A number in place of ``majority`` goes wrong with a tie-breaker because of the second point: first one vote short of
2 of 2, the tie-breaker helps; then the lost peer is powerless, and it is "1 of 1, need 2" (``matrix_2d_tb_q2_bm``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec
from msgspec.structs import replace

from quorate.api.storage.drbd import DiskState

#: From worst to best, as the kernel compares them.
_DISK_STATES: Final = tuple(DiskState)
_WITHOUT_DISK: Final = (DiskState.DISKLESS, DiskState.ATTACHING)
#: More than there can be members: how one is told not to have quorum by itself.
_NEVER: Final = 32
_USELESS: Final = frozenset(_DISK_STATES[: _DISK_STATES.index(DiskState.OUTDATED) + 1])


class Setting(Enum):
    """``quorum`` in a member's own file, where it is not a number."""

    OFF = "off"
    MAJORITY = "majority"


class PeerView(msgspec.Struct, frozen=True, gc=False):
    """What a member knows of one other member."""

    node_id: int
    #: Meant to have a disk. A member that is only heard of, through another's metadata, counts like a diskless one that
    #: is away: ``parity_naive_2dtb``.
    diskful: bool
    connected: bool
    #: While connected as the peer says; otherwise what is remembered.
    disk_state: str = DiskState.UNKNOWN
    #: This member sets allow-remote-read no toward it.
    hidden: bool = False
    #: Has been connected since this member's metadata was made, and not been forgotten since.
    remembered: bool = True
    #: It left, reachable through nobody, and this member had quorum all the while.
    departed: bool = False
    #: Whether the peer itself has quorum; only a member without a disk asks.
    quorate: bool = False


class MemberView(msgspec.Struct, frozen=True, gc=False):
    """What decides whether one member has quorum."""

    node_id: int
    #: Meant to have a disk.
    diskful: bool
    disk_state: str
    quorum: Setting | int
    minimum_redundancy: int
    peers: tuple[PeerView, ...]
    had_quorum: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a member has quorum, and why."""

    quorate: bool
    voters: int
    #: How many voters must be here.
    needed: int
    #: How many are, up to date or not.
    present: int
    by_tie_breaker: bool
    #: A sentence for a person.
    explanation: str


def verdict(view: MemberView) -> Verdict:
    """The kernel's decision."""
    if view.quorum is Setting.OFF:
        return Verdict(True, 0, 0, 0, False, "quorum is off")
    count = _count(view)
    voters, present = count.voters(view.quorum), count.up_to_date + count.behind
    needed = _needed(view.quorum, voters)
    here = f"{present} of {voters} voters here" + (f", {needed} needed" if needed < _NEVER else "")
    if count.quorate_peer is not None:
        told = f"without a disk, and its UpToDate peer {count.quorate_peer} has quorum"
        return Verdict(True, voters, needed, present, False, told)
    if present >= needed and count.up_to_date >= view.minimum_redundancy:
        return Verdict(True, voters, needed, present, False, here)
    tie = voters > 0 and voters % 2 == 0 and present == needed - 1
    seen, all_diskless = count.diskless, count.diskless + count.diskless_away
    if tie and seen >= all_diskless // 2 + 1 and view.had_quorum:
        kept = f"{here}; kept through {seen} of {all_diskless} members without a disk"
        return Verdict(True, voters, needed, present, True, kept)
    return Verdict(False, voters, needed, present, False, f"{here}; {_objection(view, count, present, needed, tie)}")


def after_losing(view: MemberView, lost: Collection[int]) -> Verdict:
    """What becomes of a member whose links to these peers break, once everybody has noticed.

    Twice: when the links break nothing is known of those behind them; then, if quorum was kept, they count as departed.
    """
    broken = replace(view, peers=tuple(_broken(peer) if peer.node_id in lost else peer for peer in view.peers))
    at_first = verdict(broken)
    if not at_first.quorate:
        return at_first
    settled = tuple(replace(peer, departed=True) if peer.node_id in lost else peer for peer in broken.peers)
    later = verdict(replace(broken, peers=settled, had_quorum=True))
    # The first reason is the telling one: later the lost are simply not counted any more.
    return at_first if later.quorate else later


def _broken(peer: PeerView) -> PeerView:
    if not peer.connected:
        return peer
    return replace(peer, connected=False, disk_state=DiskState.UNKNOWN, quorate=False, departed=False)


@dataclass(frozen=True, slots=True)
class _Count:
    up_to_date: int = 0
    #: Here, with a disk that is not up to date.
    behind: int = 0
    outdated: int = 0
    departed: int = 0
    unknown: int = 0
    diskless: int = 0
    diskless_away: int = 0
    quorate_peer: int | None = None

    def voters(self, quorum: Setting | int) -> int:
        """All, or without the absent ones if none of them can be quorate elsewhere."""
        present = self.up_to_date + self.behind
        absent = self.outdated + self.departed + self.unknown
        feared = self.unknown
        if absent >= _needed(quorum, present + absent):
            feared += self.departed
        return present + absent if feared else present


def _count(view: MemberView) -> _Count:
    tally = dict.fromkeys(("up_to_date", "behind", "outdated", "departed", "unknown", "diskless", "diskless_away"), 0)
    has_disk = view.disk_state not in _WITHOUT_DISK
    if has_disk:
        tally["up_to_date" if view.disk_state == DiskState.UP_TO_DATE else "behind"] += 1
    elif view.disk_state == DiskState.DISKLESS:
        # One that lost its disk is a voter that nobody can count on, itself included.
        tally["unknown" if view.diskful else "diskless"] += 1
    quorate_peer: int | None = None
    for peer in view.peers:
        if peer.hidden or (has_disk and peer.diskful and not peer.remembered):
            continue
        tally[_part(peer, departures_count=view.had_quorum)] += 1
        if not has_disk and peer.connected and peer.quorate and peer.disk_state == DiskState.UP_TO_DATE:
            quorate_peer = peer.node_id
    return _Count(**tally, quorate_peer=quorate_peer)


def _part(peer: PeerView, *, departures_count: bool) -> str:
    if peer.connected:
        if peer.disk_state == DiskState.DISKLESS and not peer.diskful:
            return "diskless"
        return "up_to_date" if peer.disk_state == DiskState.UP_TO_DATE else "behind"
    if not peer.diskful:
        return "diskless_away"
    if peer.disk_state in _USELESS:
        return "outdated"
    return "departed" if peer.departed and departures_count else "unknown"


def _needed(quorum: Setting | int, voters: int) -> int:
    return quorum if isinstance(quorum, int) else voters // 2 + 1


def _objection(view: MemberView, count: _Count, present: int, needed: int, tie: bool) -> str:
    """The first thing that would have to be different."""
    if present >= needed:
        return f"{count.up_to_date} of them up to date, {view.minimum_redundancy} needed"
    if view.disk_state in _WITHOUT_DISK and not view.diskful:
        return "without a disk, and no UpToDate peer in touch with it has quorum"
    if needed >= _NEVER:
        return "not counted yet, or no longer: it never has quorum by itself"
    all_diskless = count.diskless + count.diskless_away
    if not tie or not all_diskless:
        return "too few"
    if count.diskless < all_diskless // 2 + 1:
        return f"the tie is not broken: {count.diskless} of {all_diskless} members without a disk here"
    return "the tie is not broken for a member that had lost quorum before"
