"""What two ends decide when they meet: whether to talk at all, and who copies what to whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorate.lab.kernel import uuids
from quorate.lab.kernel.metadata import JUST_CREATED, usable
from quorate.lab.kernel.options import KNOWN_ALGORITHMS, OFF, votes
from quorate.lab.kernel.resource import Connection, Device, PeerDevice
from quorate.lab.kernel.states import Disk, Repl, Role
from quorate.lab.kernel.uuids import Verdict

_MUST_MATCH = (
    "protocol",
    "allow-two-primaries",
    "data-integrity-alg",
    "after-sb-0pri",
    "after-sb-1pri",
    "after-sb-2pri",
)


class Outcome(Enum):
    """How a meeting ends for one side."""

    CONNECT = "connect"
    RETRY = "try again later"
    STAND_ALONE = "give up"
    FORCE_SECONDARY = "a suspended primary whose data is old: demote, then try again"


@dataclass(slots=True)
class Meeting:
    """The decision of both sides."""

    mine: Outcome = Outcome.CONNECT
    theirs: Outcome = Outcome.CONNECT
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    """By volume, as the first side sees it."""
    both_sources: set[int] = field(default_factory=set)
    """Volumes where each side takes itself for the source: see ``_joins_during_sync``."""

    @property
    def agreed(self) -> bool:
        """Whether both sides connect."""
        return self.mine is self.theirs is Outcome.CONNECT


def _end(mine: Outcome, theirs: Outcome) -> Meeting:
    return Meeting(mine, theirs)


def known_algorithm(name: str) -> bool:
    """Whether the kernel has a hash of that name."""
    return not name or name in KNOWN_ALGORITHMS


def decide(mine: Connection, theirs: Connection) -> Meeting:
    """What the two ends make of each other."""
    first, second = mine.options, theirs.options
    if any(first[name] != second[name] for name in ("cram-hmac-alg", "shared-secret")):
        return _end(Outcome.STAND_ALONE, Outcome.STAND_ALONE)
    if any(first[name] != second[name] for name in _MUST_MATCH):
        return _end(Outcome.STAND_ALONE, Outcome.STAND_ALONE)
    if mine.discard_my_data and theirs.discard_my_data:
        return _end(Outcome.STAND_ALONE, Outcome.STAND_ALONE)
    meeting = Meeting()
    for volume, peer in mine.peer_devices.items():
        other = theirs.peer_devices.get(volume)
        if other is None:
            continue
        # A peer that was said to be diskless shows a disk: there is no bitmap for it.
        if other.device.now.disk > Disk.DISKLESS and not peer.wants_bitmap:
            return _end(Outcome.STAND_ALONE, Outcome.RETRY)
        if peer.device.now.disk > Disk.DISKLESS and not other.wants_bitmap:
            return _end(Outcome.RETRY, Outcome.STAND_ALONE)
        if not _sizes_fit(peer.device, other.device):
            return _end(Outcome.STAND_ALONE, Outcome.STAND_ALONE)
        _compare(meeting, peer, other)
        if not meeting.agreed:
            return meeting
    return meeting


def _sizes_fit(first: Device, second: Device) -> bool:
    """A replica that holds data, or a diskless primary, must not shrink because of a smaller peer."""
    for device, other in ((first, second), (second, first)):
        if device.backing is None or other.size == 0:
            continue
        holds_data = other.metadata is not None and other.metadata.current_uuid != JUST_CREATED
        in_use = other.resource.now.role is Role.PRIMARY
        room = usable(device.backing.device.size, device.backing.metadata.max_peers)
        if (holds_data or in_use) and room < other.size:
            return False
    return True


def _compare(meeting: Meeting, peer: PeerDevice, other: PeerDevice) -> None:
    volume = peer.device.volume
    mine, theirs = peer.device.metadata, other.device.metadata
    if mine is None or theirs is None:
        meeting.verdicts[volume] = Verdict.NONE
        _meet_diskless(meeting, peer, other)
        return
    if Disk.NEGOTIATING in (peer.device.now.disk, other.device.now.disk):
        meeting.verdicts[volume] = Verdict.NONE  # it waits for the word of somebody else
        return
    verdict, mirror = _who_copies(peer, other), _who_copies(other, peer)
    if not (verdict is Verdict.NONE or verdict.copies):
        meeting.mine = meeting.theirs = Outcome.STAND_ALONE
        return
    if _both_went_on(peer, other) and verdict in (Verdict.SOURCE_ALL, Verdict.TARGET_ALL):
        meeting.mine = meeting.theirs = Outcome.RETRY
        return
    meeting.mine, meeting.theirs = _take_old_data(peer, verdict), _take_old_data(other, mirror)
    if Outcome.FORCE_SECONDARY in (meeting.mine, meeting.theirs) and Outcome.CONNECT in (meeting.mine, meeting.theirs):
        meeting.mine = Outcome.RETRY if meeting.mine is Outcome.CONNECT else meeting.mine
        meeting.theirs = Outcome.RETRY if meeting.theirs is Outcome.CONNECT else meeting.theirs
    elif not meeting.agreed:
        _spread_failure(meeting)
    meeting.verdicts[volume] = verdict
    if _joins_during_sync(peer, verdict) or _joins_during_sync(other, mirror):
        meeting.both_sources.add(volume)


def _both_went_on(peer: PeerDevice, other: PeerDevice) -> bool:
    """Whether each has written since they parted, in touch with a third that told one of them of the other.

    That one remembers the other's generation, and would be taken for the newer. The link stays down, marks set on both
    sides, also when one of them is no longer primary.
    """
    mine, theirs = peer.slot, other.slot
    if mine is None or theirs is None or peer.connection.discard_my_data or other.connection.discard_my_data:
        return False
    parted = mine.bitmap_uuid and uuids.same(mine.bitmap_uuid, theirs.bitmap_uuid)
    return bool(parted and mine.bitmap and theirs.bitmap)


def _who_copies(peer: PeerDevice, other: PeerDevice) -> Verdict:
    """What one end makes of the other's data; both ends come to the same by the same rules."""
    mine, theirs = peer.device.metadata, other.device.metadata
    assert mine is not None
    assert theirs is not None
    verdict = uuids.compare(mine, peer.device.resource.node_id, theirs, other.device.resource.node_id)
    if verdict is Verdict.NONE:
        verdict = _same_generation(peer, other)
    if verdict is Verdict.SPLIT_BRAIN and votes(peer.device.resource.options["quorum"]) != OFF:
        # Whoever is quorate was entitled to go on alone.
        quorate, other_quorate = peer.device.now.quorum, other.device.now.quorum
        if quorate != other_quorate:
            verdict = Verdict.SOURCE if quorate else Verdict.TARGET
    if peer.connection.discard_my_data != other.connection.discard_my_data:
        verdict = _discard(peer, other, verdict)
    return verdict


def _discard(peer: PeerDevice, other: PeerDevice, verdict: Verdict) -> Verdict:
    """One end was told to give up its own data, and does so even if they are the newer ones."""
    gives_up = peer.connection.discard_my_data
    if verdict.is_split:
        return Verdict.TARGET if gives_up else Verdict.SOURCE
    source = other if gives_up else peer
    if verdict.copies and verdict.takes != gives_up and source.device.now.disk > Disk.INCONSISTENT:
        return verdict.mirrored
    return verdict


def _spread_failure(meeting: Meeting) -> None:
    """If one side gives up or waits, the other cannot connect either."""
    if meeting.mine is Outcome.CONNECT:
        meeting.mine = Outcome.RETRY
    if meeting.theirs is Outcome.CONNECT:
        meeting.theirs = Outcome.RETRY


def _same_generation(peer: PeerDevice, other: PeerDevice) -> Verdict:
    """Equal UUIDs do not mean equal data after a crash in the middle of writing, or of a copy."""
    mine, theirs = peer.device, other.device
    crashed = mine.crashed_primary or theirs.crashed_primary
    if crashed and _sees_primary(mine) != _sees_primary(theirs):
        # The crashed one may hold writes that nobody else has, but they do not count once there is a primary again.
        return Verdict.SOURCE if _sees_primary(mine) else Verdict.TARGET
    if mine.crashed_primary != theirs.crashed_primary:
        came_back = mine if mine.crashed_primary else theirs
        gives = came_back.resource.now.role is Role.PRIMARY or not _sees_primary(mine)
        return Verdict.SOURCE if gives == mine.crashed_primary else Verdict.TARGET
    if mine.crashed_primary and theirs.crashed_primary:
        return Verdict.SOURCE if mine.resource.node_id > theirs.resource.node_id else Verdict.TARGET
    fresh = mine.metadata is not None and mine.metadata.current_uuid == JUST_CREATED
    if not fresh and (mine.now.disk is Disk.INCONSISTENT) != (theirs.now.disk is Disk.INCONSISTENT):
        return Verdict.TARGET if mine.now.disk is Disk.INCONSISTENT else Verdict.SOURCE
    return Verdict.NONE


def _sees_primary(device: Device) -> bool:
    resource = device.resource
    return resource.now.role is Role.PRIMARY or any(
        connection.now.peer_role is Role.PRIMARY for connection in resource.connections.values()
    )


def _take_old_data(peer: PeerDevice, verdict: Verdict) -> Outcome:
    """A primary cannot become target of a copy; a suspended one may be demoted for it."""
    resource = peer.device.resource
    if not verdict.takes or resource.now.role is not Role.PRIMARY:
        return Outcome.CONNECT
    if peer.device.now.disk < Disk.CONSISTENT:
        return Outcome.CONNECT
    if resource.now.overtakable and resource.options["on-suspended-primary-outdated"] == "force-secondary":
        return Outcome.FORCE_SECONDARY
    return Outcome.RETRY if peer.connection.options["rr-conflict"] == "retry-connect" else Outcome.STAND_ALONE


def _meet_diskless(meeting: Meeting, peer: PeerDevice, other: PeerDevice) -> None:
    """A suspended diskless primary that meets newer data than it exposed has been overtaken."""
    for one, two, is_mine in ((peer, other, True), (other, peer, False)):
        device, metadata = one.device, two.device.metadata
        resource = device.resource
        if (
            device.metadata is None
            and metadata is not None
            and resource.now.role is Role.PRIMARY
            and resource.now.overtakable
            and two.device.now.disk is Disk.UP_TO_DATE
            and device.exposed_uuid
            and not uuids.same(device.exposed_uuid, metadata.current_uuid)
            and resource.options["on-suspended-primary-outdated"] == "force-secondary"
        ):
            meeting.mine = Outcome.FORCE_SECONDARY if is_mine else Outcome.RETRY
            meeting.theirs = Outcome.RETRY if is_mine else Outcome.FORCE_SECONDARY


def _joins_during_sync(peer: PeerDevice, verdict: Verdict) -> bool:
    """A member that is being filled by one peer meets a second.

    The real kernel then has both ends take themselves for the source, paused until the first copy is done
    (``replace_member``); the pair settles afterwards, with nothing to copy.
    """
    if verdict is not Verdict.TARGET_ALL:
        return False
    return any(p is not peer and p.now.repl in (Repl.SYNC_TARGET, Repl.PAUSED_SYNC_T) for p in peer.device.peer_devices)
