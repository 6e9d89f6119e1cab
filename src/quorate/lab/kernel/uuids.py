"""Data generations: who has seen which writes.

Each replica has a current UUID and, per peer, the UUID at which that peer fell behind (with the bitmap of what it
lacks), and remembers older ones. A new generation begins with the first write that some peer does not get.
"""

from __future__ import annotations

from enum import Enum

from quorate.lab.kernel import links
from quorate.lab.kernel.metadata import JUST_CREATED, Metadata
from quorate.lab.kernel.races import Wrong
from quorate.lab.kernel.resource import Device, PeerDevice, Resource
from quorate.lab.kernel.states import Conn, Disk

_WHOLE = (Disk.UP_TO_DATE, Disk.CONSISTENT)


class Verdict(Enum):
    """What two replicas have to do when they meet, as the first of them sees it."""

    NONE = "nothing to copy"
    SOURCE = "give the peer what the bitmaps say"
    SOURCE_ALL = "give the peer everything"
    TARGET = "take from the peer what the bitmaps say"
    TARGET_ALL = "take everything from the peer"
    SPLIT_BRAIN = "both wrote alone since they parted"
    SPLIT_LONG_AGO = "both wrote alone, and bitmaps do not say since when"
    UNRELATED = "no common past"

    @property
    def mirrored(self) -> Verdict:
        """The same as the second of them sees it."""
        return _MIRROR.get(self, self)

    @property
    def copies(self) -> bool:
        """Whether one of them is to be made like the other."""
        return self in _MIRROR

    @property
    def takes(self) -> bool:
        """Whether the first of them takes the other's data."""
        return self in (Verdict.TARGET, Verdict.TARGET_ALL)

    @property
    def is_split(self) -> bool:
        """Whether both went on alone."""
        return self in (Verdict.SPLIT_BRAIN, Verdict.SPLIT_LONG_AGO)


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
    """Which of two replicas is newer, as the owner of the first sees it.

    Bitmaps tell more than memories do: a replica may remember a generation whose writes it does not have, because it
    heard of it from a third (`begin_generation`). So memories are asked last, and only if they agree.
    """
    current, theirs = mine.current_uuid & ~1, peers.current_uuid & ~1
    if current == JUST_CREATED or theirs == JUST_CREATED:
        if current == theirs:
            return Verdict.NONE
        return Verdict.TARGET_ALL if current == JUST_CREATED else Verdict.SOURCE_ALL
    if current == theirs:
        return Verdict.NONE
    toward_me, toward_peer = peers.peer(my_id).bitmap_uuid & ~1, mine.peer(peer_id).bitmap_uuid & ~1
    if toward_me == current:
        return Verdict.TARGET
    if current in _bitmaps(peers):
        return Verdict.TARGET_ALL
    if toward_peer == theirs:
        return Verdict.SOURCE
    if theirs in _bitmaps(mine):
        return Verdict.SOURCE_ALL
    peer_remembers_mine, i_remember_theirs = current in _past(peers), theirs in _past(mine)
    if peer_remembers_mine != i_remember_theirs:
        return Verdict.TARGET_ALL if peer_remembers_mine else Verdict.SOURCE_ALL
    if toward_me and toward_me == toward_peer:
        return Verdict.SPLIT_BRAIN
    return Verdict.SPLIT_LONG_AGO if _past(mine) & _past(peers) else Verdict.UNRELATED


def _bitmaps(metadata: Metadata) -> set[int]:
    return {slot.bitmap_uuid & ~1 for slot in metadata.peers.values() if slot.bitmap_uuid}


def _past(metadata: Metadata) -> set[int]:
    return _bitmaps(metadata) | {uuid & ~1 for uuid in metadata.history}


def fresh(resource: Resource, *, primary: bool) -> int:
    """A UUID that nobody had before."""
    return (resource.world.random.getrandbits(63) << 1 | 0x10) & ~1 | int(primary)


def begin_generation(device: Device) -> None:
    """The primary starts a new generation and tells every peer that will have the coming write.

    A peer that takes it over tells those whom it is in touch with and who will not have the write. They learn of it,
    and of what else that peer has in its bitmaps, but have none of the data: they only remember it. Of two primaries
    that have lost touch with each other, and not with a third, the first to write thus remembers the generation that
    the second began, and `compare` takes it for the newer one although both wrote.
    """
    device.new_uuid_due = device.asking = False
    uuid = fresh(device.resource, primary=True)
    adopt(device, uuid, away=set())
    reached = {peer.connection.peer_id for peer in device.peer_devices if peer.connection.now.conn is Conn.CONNECTED}
    whole = {peer.connection.peer_id for peer in device.peer_devices if peer.now.disk in _WHOLE} & reached
    for peer in device.peer_devices:
        other = peer.peer
        takes_part = other is not None and (other.device.metadata is None or other.device.now.disk > Disk.UNKNOWN)
        if peer.connection.now.conn is Conn.CONNECTED and other is not None and takes_part:
            behind = adopt(other.device, uuid, away=_slots(other.device) - reached - {device.resource.node_id})
            _same_as(other.device, uuid, whole | {device.resource.node_id})
            other.peer_uuid = peer.peer_uuid = uuid
            _spread(other.device, behind)


def _slots(device: Device) -> set[int]:
    return set(device.metadata.peers) if device.metadata else set()


def adopt(device: Device, uuid: int, *, away: set[int]) -> set[int]:
    """Take over a new generation; whoever does not get it fell behind with the old one. Returns who did just now."""
    device.exposed_uuid = uuid
    metadata = device.metadata
    if metadata is None or same(metadata.current_uuid, uuid):
        return set()
    in_sight = {
        peer.connection.peer_id
        for peer in device.peer_devices
        if peer.now.disk in _WHOLE and peer.connection.peer_id not in away
    }
    behind = set()
    for node_id, slot in metadata.peers.items():
        if slot.bitmap_index != -1 and node_id not in in_sight and not slot.bitmap_uuid:
            slot.bitmap_uuid = metadata.current_uuid
            behind.add(node_id)
    if not behind:
        metadata.push_history(metadata.current_uuid)
    metadata.current_uuid = uuid
    return behind


def _same_as(device: Device, uuid: int, whole: set[int]) -> None:
    """Members that this one is not in touch with, but the primary is: they have this generation too."""
    metadata = device.metadata
    if metadata is None:
        return
    for node_id in whole & set(metadata.peers):
        slot = metadata.peers[node_id]
        if slot.bitmap_uuid and not same(slot.bitmap_uuid, uuid):
            metadata.push_history(slot.bitmap_uuid)
            slot.bitmap_uuid = uuid


def _spread(device: Device, behind: set[int]) -> None:
    """Those who will not have the write, and are in touch with this member, hear what it has in its bitmaps."""
    if device.metadata is None:
        return
    for peer in device.peer_devices:
        other = peer.peer
        if peer.connection.peer_id not in behind or other is None or not links.alive(peer.connection):
            continue
        for node_id, slot in device.metadata.peers.items():
            if other.device.metadata is not None and node_id != peer.connection.peer_id:
                other.device.metadata.push_history(slot.bitmap_uuid)


def in_sync(first: PeerDevice, second: PeerDevice) -> None:
    """Two replicas have the same data: neither lacks anything of the other."""
    for peer in (first, second):
        slot, metadata = peer.slot, peer.device.metadata
        if slot is not None and metadata is not None:
            metadata.push_history(slot.bitmap_uuid)
            slot.bitmap_uuid = 0
            slot.bitmap.clear()


def met_without_resync(first: PeerDevice, second: PeerDevice) -> None:
    """Equal generations: the real kernel takes marks that say otherwise for leftovers, and drops them.

    Right after a crash, or for who missed the end of a resync by somebody else. Wrong if a write went out in the old
    generation (`after`), or if an online verify found a difference: the only trace of it is gone.
    """
    mine, theirs = first.device.backing, second.device.backing
    if mine is None or theirs is None:
        return
    for peer in (first, second):
        if peer.slot is not None and peer.slot.bitmap:
            lost = [
                run
                for start, end in peer.slot.bitmap
                for run in mine.device.contents.differing(theirs.device.contents, start, end)
            ]
            if lost:
                other = peer.connection.peer_id
                peer.device.resource.world.note(Wrong.MARK_ERASED, peer.device.resource, other, tuple(lost))
    in_sync(first, second)
