"""DRBD's internal metadata: a superblock, an activity log and one bitmap per peer at the end of a device.

The numbers of the flags are those on disk, so that dump-md can print them. The bitmap of each peer is kept by its
node id; whether a slot in the bitmap area is given to the peer is ``bitmap_index``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Self

from quorate.lab.kernel.block import BLOCK, BlockDevice
from quorate.lab.kernel.extents import BlockSet

JUST_CREATED = 4
MAX_NODES = 32
HISTORY = 32
ACTIVITY_LOG_EXTENT = 4 * 1024 * 1024
_SECTOR = 512
_SUPERBLOCKS, _LOG_BLOCKS = 1, 8
LOG_MAGIC = bytes.fromhex("69cb65a2")
"""What every block of an activity log begins with."""


class LogBlock(bytes):
    """A block of a log as it was read: to whoever compares bytes one like any other."""

    extents: tuple[tuple[int, int], ...]

    def __new__(cls, noted: Iterable[tuple[int, int]]) -> Self:
        """With the extents that were noted as active."""
        made = super().__new__(cls, LOG_MAGIC)
        made.extents = tuple(noted)
        return made


class Flag(IntFlag):
    """Facts about this replica that must survive a power loss."""

    CONSISTENT = 1 << 0
    PRIMARY_IND = 1 << 1
    FULL_SYNC = 1 << 3
    WAS_UP_TO_DATE = 1 << 4
    CRASHED_PRIMARY = 1 << 6
    AL_CLEAN = 1 << 7
    AL_DISABLED = 1 << 8
    PRIMARY_LOST_QUORUM = 1 << 9
    HAVE_QUORUM = 1 << 10


class PeerFlag(IntFlag):
    """What this replica remembers of one peer."""

    CONNECTED = 1 << 0
    OUTDATED = 1 << 1
    FENCING = 1 << 2
    FULL_SYNC = 1 << 3
    DEVICE_SEEN = 1 << 4
    NODE_EXISTS = 1 << 16
    HAVE_BITMAP = 1 << 31


_NOTHING_KNOWN = PeerFlag(0)


@dataclass(slots=True)
class PeerMetadata:
    """One peer's slot."""

    bitmap_index: int = -1
    bitmap_uuid: int = 0
    flags: PeerFlag = _NOTHING_KNOWN
    bitmap: BlockSet = field(default_factory=BlockSet)


@dataclass(slots=True)
class Metadata:
    """The metadata of one replica."""

    max_peers: int
    device_size: int
    """The size of the backing device for which this was written, in bytes."""
    device_uuid: int = 0
    node_id: int = -1
    current_uuid: int = JUST_CREATED
    flags: Flag = Flag.AL_CLEAN
    peers: dict[int, PeerMetadata] = field(default_factory=dict)
    history: list[int] = field(default_factory=list)
    effective_size: int = 0
    """The size that the members last agreed on, in bytes; 0 before the first attach."""
    members: set[int] = field(default_factory=set)
    activity_log: BlockSet = field(default_factory=BlockSet)
    """Extents that may have been written to lately: out of date after a crash unless proven otherwise."""
    has_log: bool = True
    """Whether anything is where the log should be. The kernel takes superblock and bitmaps along to a new end of the
    device, and writes a log there only when an extent becomes active."""
    unassigned: BlockSet = field(default_factory=BlockSet)
    """What a peer that never had a slot lacks: everything written since the metadata was made."""

    def peer(self, node_id: int) -> PeerMetadata:
        """The slot of a node, made when first asked for."""
        found = self.peers.get(node_id)
        if found is None:
            found = self.peers[node_id] = PeerMetadata()
        return found

    def push_history(self, uuid: int) -> None:
        """Remember a generation that ended."""
        if uuid and uuid != JUST_CREATED and uuid & ~1 not in {old & ~1 for old in self.history}:
            self.history.insert(0, uuid)
            del self.history[HISTORY:]

    def give_bitmap(self, node_id: int) -> bool:
        """Reserve a bitmap slot for a peer; False if all are taken."""
        slot = self.peer(node_id)
        if slot.bitmap_index != -1:
            return True
        taken = {peer.bitmap_index for peer in self.peers.values()}
        free = next((index for index in range(self.max_peers) if index not in taken), None)
        if free is None:
            return False
        slot.bitmap_index = free
        slot.bitmap.update(self.unassigned)
        slot.flags |= PeerFlag.HAVE_BITMAP
        return True

    @property
    def clean(self) -> bool:
        """Whether the device was detached in an orderly way, or its activity log was applied since."""
        return bool(self.flags & Flag.AL_CLEAN)

    @property
    def is_without_log(self) -> bool:
        """Whether it cannot be attached: what was written last before the crash is known to nobody."""
        return not self.has_log and not self.clean and bool(self.flags & Flag.PRIMARY_IND)

    @property
    def size_sectors(self) -> int:
        """How much the metadata takes, in sectors of 512 bytes."""
        return overhead(self.device_size, self.max_peers) // _SECTOR


def _align(value: int, to: int) -> int:
    return -(-value // to) * to


def overhead(device_size: int, max_peers: int) -> int:
    """What internal metadata takes of a device, in bytes: superblock 4 KiB, activity log 32 KiB, bitmaps."""
    sectors = device_size // _SECTOR
    bits = _align(_align(sectors, 8) // 8, 64)
    bitmap_sectors = _align(bits // 8 * max_peers, 4096) // _SECTOR
    return (bitmap_sectors + 8 + 64) * _SECTOR


def usable(device_size: int, max_peers: int) -> int:
    """What is left for data, in bytes."""
    return max(0, device_size - overhead(device_size, max_peers)) // BLOCK * BLOCK


def create(device: BlockDevice, max_peers: int, device_uuid: int = 0) -> Metadata:
    """Write fresh metadata: data not consistent, no peer known."""
    made = Metadata(max_peers=max_peers, device_size=device.size, device_uuid=device_uuid)
    device.metadata[device.size] = made
    return made


def find(device: BlockDevice) -> Metadata | None:
    """The metadata, if it lies where the device's present size says."""
    return device.metadata.get(device.size)


def find_at(device: BlockDevice, size: int) -> Metadata | None:
    """The metadata where it lay when the device had another size: what the last-known-backing-device file is for."""
    return device.metadata.get(size)


def move(device: BlockDevice, from_size: int) -> None:
    """Move metadata from an old end of the device to its present end, as drbdmeta does: with a log, the old one wiped.

    What else there was stays behind, in what is now a part of the volume: no two members have the same bytes there.
    """
    found = device.metadata.pop(from_size)
    found.has_log = True
    _leave_behind(device, found)
    device.metadata[device.size] = found


def carry_along(device: BlockDevice, metadata: Metadata) -> None:
    """The same as the kernel does it, at a resize: no log is written, and the old superblock stays where it was.

    What lies where the log should be is the log from now on: somebody may have put a copy of the former one there.
    """
    device.metadata[metadata.device_size] = deepcopy(metadata)
    found = (tag for _, _, tag in device.contents.runs(*_log_of(device.size)))
    copy = next((tag for tag in found if isinstance(tag, bytes) and tag.startswith(LOG_MAGIC)), None)
    metadata.has_log = copy is not None
    # From here on the metadata say what lies there (``runs``).
    device.contents.write(*_log_of(device.size), None)
    metadata.activity_log.clear()
    for start, end in copy.extents if isinstance(copy, LogBlock) else ():
        metadata.activity_log.add(start, end)
    _leave_behind(device, metadata)
    device.metadata[device.size] = metadata


def _leave_behind(device: BlockDevice, metadata: Metadata) -> None:
    former = metadata.device_size
    left = ("former metadata", metadata.device_uuid, metadata.node_id, former)
    device.contents.write(usable(former, metadata.max_peers) // BLOCK, former // BLOCK, left)
    metadata.device_size = device.size


def runs(device: BlockDevice, start: int, end: int) -> Iterator[tuple[int, int, Hashable]]:
    """What whoever reads blocks of the device itself sees: contents, and the log of the metadata that are in use."""
    at = max((size for size in device.metadata if size <= device.size), default=device.size)
    found = device.metadata.get(at)
    first, last = _log_of(at)
    first = first if found is not None and found.has_log else last
    yield from device.contents.runs(start, min(end, max(start, first)))
    if found is not None and max(start, first) < min(end, last):
        yield max(start, first), min(end, last), LogBlock(found.activity_log)
    yield from device.contents.runs(max(start, last), max(end, last)) if end > last else ()


def _log_of(size: int) -> tuple[int, int]:
    """The blocks of the log on a device of this size."""
    last = size // BLOCK - _SUPERBLOCKS
    return last - _LOG_BLOCKS, last


def note_log(device: BlockDevice, offset: int, written: Hashable) -> None:
    """Somebody has written to the device itself: a block of a log, by hand, is one in which nothing is noted."""
    found = find(device)
    block = offset // BLOCK - (device.size // BLOCK - _SUPERBLOCKS - _LOG_BLOCKS)
    if found is not None and 0 <= block < _LOG_BLOCKS and isinstance(written, bytes) and written.startswith(LOG_MAGIC):
        found.has_log = True
        found.activity_log.clear()


def wipe(device: BlockDevice) -> bool:
    """Remove the signature at the present end (wipe-md, lvcreate --wipesignatures); False if there was none."""
    return device.metadata.pop(device.size, None) is not None


def apply_activity_log(metadata: Metadata) -> int | None:
    """Mark what may have been written before a crash as out of sync toward every peer; bytes newly marked.

    None if there was nothing to apply, or it cannot be: then it stays unclean. The count is drbdmeta's: it runs over
    all bitmap slots, those not given to a peer included, and over whole extents, the part past the end of the volume
    included.
    """
    if metadata.is_without_log:
        return None
    extents = metadata.activity_log
    applies = bool(metadata.flags & Flag.PRIMARY_IND) and bool(extents)
    marked = extents.count * metadata.max_peers
    if applies:
        end = metadata.effective_size // BLOCK
        for slot in metadata.peers.values():
            if slot.bitmap_index == -1:
                continue
            for start, stop in extents:
                marked -= slot.bitmap.count_within(start, stop)
                slot.bitmap.add(start, min(stop, end))
    extents.clear()
    metadata.flags |= Flag.AL_CLEAN
    return marked * BLOCK if applies else None


def forget_peer(metadata: Metadata, node_id: int) -> None:
    """Drop all memory of a peer, its vote included."""
    slot = metadata.peers.pop(node_id, None)
    if slot is not None:
        metadata.push_history(slot.bitmap_uuid)
