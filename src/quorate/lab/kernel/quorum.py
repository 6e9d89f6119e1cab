"""Who may go on: counting the members that are in sight against those that may be elsewhere.

Only diskful members vote. A member with a disk goes by its metadata, so a peer that was once known votes until it is
forgotten; a member without one goes by its configuration, or follows an UpToDate peer that is quorate itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.lab.kernel.metadata import PeerFlag
from quorate.lab.kernel.options import ALL, MAJORITY, votes
from quorate.lab.kernel.resource import Device, PeerDevice
from quorate.lab.kernel.states import Disk, Repl

_KNOWN = PeerFlag.HAVE_BITMAP | PeerFlag.NODE_EXISTS | PeerFlag.DEVICE_SEEN


@dataclass(slots=True)
class Tally:
    """How many members are in which condition, the counting node included."""

    up_to_date: int = 0
    present: int = 0
    """In sight, but not up to date."""
    outdated: int = 0
    """Away, and known to be outdated: they cannot form a quorum."""
    quorumless: int = 0
    """Away, and not among the members of the last agreement: whoever they are with, it was less than we were."""
    unknown: int = 0
    diskless: int = 0
    missing_diskless: int = 0
    quorate_peers: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a count, with the numbers that the kernel names when it refuses."""

    quorate: bool
    by_tie_breaker: bool
    visible: int
    up_to_date: int
    voters: int
    needed: int
    needed_up_to_date: int

    def complaint(self) -> str:
        """What the kernel says of a missing quorum."""
        if self.visible < self.needed:
            return f"{self.visible} of {self.voters} nodes visible, need {self.needed} for quorum"
        if self.up_to_date < self.needed_up_to_date:
            return (
                f"{self.up_to_date} of {self.voters} nodes up_to_date, "
                f"need {self.needed_up_to_date} for quorum-minimum-redundancy"
            )
        return ""


def threshold(setting: int, voters: int) -> int:
    """How many of the voters a setting asks for."""
    if setting == MAJORITY:
        return voters // 2 + 1
    return voters if setting == ALL else setting


def _count_peer(tally: Tally, peer: PeerDevice | None, *, client: bool, outdated: bool, elsewhere: bool) -> None:
    repl = peer.new.repl if peer else Repl.OFF
    disk = peer.new.disk if peer else Disk.UNKNOWN
    if repl is Repl.OFF:
        if client:
            tally.missing_diskless += 1
        elif disk <= Disk.OUTDATED or outdated:
            tally.outdated += 1
        elif elsewhere:
            tally.quorumless += 1
        else:
            tally.unknown += 1
    elif disk is Disk.DISKLESS and client:
        tally.diskless += 1
    elif disk is Disk.UP_TO_DATE:
        tally.up_to_date += 1
    else:
        tally.present += 1


def _with_disk(device: Device) -> Tally:
    tally = Tally()
    if device.new.disk is Disk.UP_TO_DATE:
        tally.up_to_date += 1
    else:
        tally.present += 1
    resource = device.resource
    assert device.backing is not None
    for node_id, slot in device.backing.metadata.peers.items():
        if node_id == resource.node_id or not slot.flags & _KNOWN:
            continue
        connection = resource.connections.get(node_id)
        peer = connection.peer_devices.get(device.volume) if connection else None
        if peer is not None and not peer.connection.options.yes("allow-remote-read"):
            continue
        _count_peer(
            tally,
            peer,
            client=not peer.wants_bitmap if peer else not slot.flags & PeerFlag.DEVICE_SEEN,
            outdated=bool(slot.flags & PeerFlag.OUTDATED),
            elsewhere=device.now.quorum and node_id not in resource.members,
        )
    return tally


def _without_disk(device: Device) -> Tally:
    tally = Tally()
    if device.intended_diskless:
        tally.diskless += 1
    else:
        # Somebody lost its disk. It has no vote, and must not be taken for a tie-breaker either.
        tally.unknown += 1
    for peer in device.peer_devices:
        if not peer.connection.options.yes("allow-remote-read"):
            continue
        elsewhere = device.now.quorum and peer.connection.peer_id not in device.resource.members
        client = not peer.wants_bitmap or (peer.new.repl is not Repl.OFF and peer.new.disk is Disk.DISKLESS)
        _count_peer(tally, peer, client=client, outdated=False, elsewhere=elsewhere)
        if peer.new.disk is Disk.UP_TO_DATE and peer.peer_quorate:
            tally.quorate_peers += 1
    return tally


def count(device: Device) -> Verdict:
    """Whether the device is quorate in the state that is being prepared."""
    options = device.resource.options
    attached = device.backing is not None and device.new.disk > Disk.ATTACHING
    tally = _with_disk(device) if attached else _without_disk(device)
    quorum, redundancy = votes(options["quorum"]), votes(options["quorum-minimum-redundancy"])

    visible = tally.up_to_date + tally.present
    away = tally.outdated + tally.quorumless + tally.unknown
    if away >= threshold(quorum, visible + away):
        # Those who are away may be quorate together, whatever we believed of them one by one.
        tally.unknown += tally.quorumless
        tally.quorumless = 0
    # If nobody who is away can be quorate, they do not count: what is left may go on.
    voters = visible + away if tally.unknown else visible
    needed, needed_up_to_date = threshold(quorum, voters), threshold(redundancy, voters)

    quorate = bool(tally.quorate_peers) or (visible >= needed and tally.up_to_date >= needed_up_to_date)
    by_tie_breaker = (
        not quorate
        and voters != 0
        and voters % 2 == 0
        and visible == needed - 1
        and tally.diskless >= threshold(MAJORITY, tally.diskless + tally.missing_diskless)
        and device.now.quorum
    )
    return Verdict(
        quorate or by_tie_breaker, by_tie_breaker, visible, tally.up_to_date, voters, needed, needed_up_to_date
    )
