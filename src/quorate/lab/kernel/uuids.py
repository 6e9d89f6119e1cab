"""Data generations: who has seen which writes.

Each replica has a current UUID and, per peer, the UUID at which that peer fell behind (with the bitmap of what it
lacks), and remembers older ones. A new generation begins with the first write that some peer does not get.
"""

from __future__ import annotations

from enum import Enum

from quorate.lab.kernel.metadata import JUST_CREATED, Metadata
from quorate.lab.kernel.resource import Device, PeerDevice, Resource
from quorate.lab.kernel.states import Conn, Disk, Role


class Verdict(Enum):
    """What two replicas have to do when they meet, as the first of them sees it."""

    NONE = "nothing to copy"
    SOURCE = "give the peer what the bitmaps say"
    SOURCE_ALL = "give the peer everything"
    TARGET = "take from the peer what the bitmaps say"
    TARGET_ALL = "take everything from the peer"
    SPLIT_BRAIN = "both wrote alone"
    UNRELATED = "no common past"

    @property
    def mirrored(self) -> Verdict:
        """The same as the second of them sees it."""
        return _MIRROR.get(self, self)


_MIRROR = {
    Verdict.SOURCE: Verdict.TARGET,
    Verdict.TARGET: Verdict.SOURCE,
    Verdict.SOURCE_ALL: Verdict.TARGET_ALL,
    Verdict.TARGET_ALL: Verdict.SOURCE_ALL,
}


def same(first: int, second: int) -> bool:
    """Whether two UUIDs are equal; the lowest bit only says that a primary made it."""
    return first & ~1 == second & ~1


def compare(mine: Metadata, my_id: int, peers: Metadata, peer_id: int) -> Verdict:
    """Which of two replicas is newer, as the owner of the first sees it."""
    current, theirs = mine.current_uuid & ~1, peers.current_uuid & ~1
    if current == JUST_CREATED or theirs == JUST_CREATED:
        if current == theirs:
            return Verdict.NONE
        return Verdict.TARGET_ALL if current == JUST_CREATED else Verdict.SOURCE_ALL
    if current == theirs:
        return Verdict.NONE
    if same(peers.peer(my_id).bitmap_uuid, current):
        return Verdict.TARGET
    if current in _past(peers):
        return Verdict.TARGET_ALL
    if same(mine.peer(peer_id).bitmap_uuid, theirs):
        return Verdict.SOURCE
    if theirs in _past(mine):
        return Verdict.SOURCE_ALL
    return Verdict.SPLIT_BRAIN if _past(mine) & _past(peers) else Verdict.UNRELATED


def _past(metadata: Metadata) -> set[int]:
    slots = {slot.bitmap_uuid & ~1 for slot in metadata.peers.values() if slot.bitmap_uuid}
    return slots | {uuid & ~1 for uuid in metadata.history}


def fresh(resource: Resource, *, primary: bool) -> int:
    """A UUID that nobody had before."""
    return (resource.world.random.getrandbits(63) << 1 | 0x10) & ~1 | int(primary)


def begin_generation(device: Device) -> None:
    """The primary starts a new generation and tells every peer that will have the coming write."""
    device.new_uuid_due = False
    uuid = fresh(device.resource, primary=True)
    adopt(device, uuid, away=set())
    reached = {peer.connection.peer_id for peer in device.peer_devices if peer.connection.now.conn is Conn.CONNECTED}
    for peer in device.peer_devices:
        other = peer.peer
        takes_part = other is not None and (other.device.metadata is None or other.device.now.disk > Disk.UNKNOWN)
        if peer.connection.now.conn is Conn.CONNECTED and other is not None and takes_part:
            away = {slot for slot in _slots(other.device) if slot not in reached} - {device.resource.node_id}
            adopt(other.device, uuid, away=away)
            other.peer_uuid = peer.peer_uuid = uuid
            _spread(other.device, uuid)


def _slots(device: Device) -> set[int]:
    return set(device.metadata.peers) if device.metadata else set()


def adopt(device: Device, uuid: int, *, away: set[int]) -> None:
    """Take over a new generation; whoever does not get it fell behind with the old one."""
    device.exposed_uuid = uuid
    metadata = device.metadata
    if metadata is None:
        return
    if same(metadata.current_uuid, uuid):
        return
    in_sight = {
        peer.connection.peer_id
        for peer in device.peer_devices
        if peer.now.disk in (Disk.UP_TO_DATE, Disk.CONSISTENT) and peer.connection.peer_id not in away
    }
    behind = False
    for node_id, slot in metadata.peers.items():
        if slot.bitmap_index != -1 and node_id not in in_sight and not slot.bitmap_uuid:
            slot.bitmap_uuid = metadata.current_uuid
            behind = True
    if not behind:
        metadata.push_history(metadata.current_uuid)
    metadata.current_uuid = uuid


def _spread(device: Device, uuid: int) -> None:
    """A diskful member passes the news on. Another primary keeps its own generation, and remembers that one."""
    if device.metadata is None:
        return
    for peer in device.peer_devices:
        other = peer.peer
        if (
            other is not None
            and peer.connection.now.peer_role is Role.PRIMARY
            and other.device.metadata is not None
            and not same(other.device.metadata.current_uuid, uuid)
        ):
            other.device.metadata.push_history(uuid)


def in_sync(first: PeerDevice, second: PeerDevice) -> None:
    """Two replicas have the same data: neither lacks anything of the other."""
    for peer in (first, second):
        slot, metadata = peer.slot, peer.device.metadata
        if slot is not None and metadata is not None:
            metadata.push_history(slot.bitmap_uuid)
            slot.bitmap_uuid = 0
            slot.bitmap.clear()
            slot.verified = False


def met_without_resync(first: PeerDevice, second: PeerDevice) -> None:
    """Equal generations: marks that say otherwise come from a crash, or missed the end of a resync by somebody else.

    Differences that an online verify found stay marked, and so does what a peer lacks whose disk is away just now.
    """
    if first.device.metadata is None or second.device.metadata is None:
        return
    if not any(peer.slot is not None and peer.slot.verified for peer in (first, second)):
        in_sync(first, second)
