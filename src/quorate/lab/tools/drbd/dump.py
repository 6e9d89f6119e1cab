"""The text of ``drbdmeta dump-md``."""

from __future__ import annotations

import time
from collections.abc import Iterator

from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.extents import BlockSet
from quorate.lab.kernel.metadata import HISTORY, MAX_NODES, Metadata, PeerFlag

_ACTIVITY_LOG = 32 << 10
_NAMED = {PeerFlag.CONNECTED: "connected", PeerFlag.OUTDATED: "outdated", PeerFlag.FULL_SYNC: "full-sync"}
_NAMED |= {PeerFlag.DEVICE_SEEN: "seen", PeerFlag.NODE_EXISTS: "exists"}
_FRESH_ACTIVITY_LOG_EXTENTS, _ACTIVITY_LOG_EXTENTS = 257, 1237


def offsets(metadata: Metadata) -> tuple[int, int, int]:
    """Where superblock, activity log and bitmaps lie, in bytes."""
    superblock = metadata.device_size - BLOCK
    log = superblock - _ACTIVITY_LOG
    return superblock, log, metadata.device_size - metadata.size_sectors * 512


def bitmap_bytes(metadata: Metadata) -> int:
    """The room that all bitmaps take."""
    _, log, bitmap = offsets(metadata)
    return log - bitmap


def text(metadata: Metadata, *, host: str, now: float, command: str) -> str:
    """The whole dump."""
    return "".join(f"{line}\n" for line in _lines(metadata, host, now, command))


def _lines(metadata: Metadata, host: str, now: float, command: str) -> Iterator[str]:
    superblock, log, bitmap = offsets(metadata)
    attached_once = metadata.effective_size > 0
    yield "# DRBD meta data dump"
    yield f"# {time.strftime('%Y-%m-%d %H:%M:%S +0000', time.gmtime(now))} [{int(now)}]"
    yield f"# {host}> {command}"
    yield from ("#", "", 'version "v09";', "")
    if not metadata.clean:
        yield "This_is_an_unclean_meta_data_dump._Don't_trust_the_bitmap."
        yield from ('# You should "apply-al" first, if you plan to restore this.', "")
    yield f"max-peers {metadata.max_peers};"
    yield f"# md_size_sect {metadata.size_sectors}"
    yield f"# md_offset {superblock}"
    yield f"# al_offset {log}"
    yield f"# bm_offset {bitmap}"
    yield ""
    yield f"node-id {metadata.node_id};"
    yield f"current-uuid 0x{metadata.current_uuid:016X};"
    yield f"flags 0x{metadata.flags:08X};"
    for number in range(MAX_NODES):
        yield from _peer(metadata, number)
    yield "history-uuids {"
    history = [*metadata.history, *[0] * HISTORY][:HISTORY]
    for at in range(0, HISTORY, 4):
        yield "        " + " ".join(f"0x{uuid:016X};" for uuid in history[at : at + 4])
    yield "}"
    yield f"# al-extents {_ACTIVITY_LOG_EXTENTS if attached_once else _FRESH_ACTIVITY_LOG_EXTENTS};"
    yield f"la-size-sect {metadata.effective_size // 512};"
    yield "bm-byte-per-bit 4096;"
    yield f"device-uuid 0x{metadata.device_uuid:016X};"
    yield f"la-peer-max-bio-size {(1 << 20) if attached_once else 0};"
    yield "al-stripes 1;"
    yield "al-stripe-size-4k 8;"
    yield f"# bm-bytes {bitmap_bytes(metadata) if attached_once else 0};"
    bits = 0
    for index in range(metadata.max_peers):
        slot = next((peer.bitmap for peer in metadata.peers.values() if peer.bitmap_index == index), BlockSet())
        bits += slot.count
        yield f"bitmap[{index}] {{"
        if attached_once:
            yield from _bitmap(slot, bitmap_bytes(metadata) // 8 // metadata.max_peers)
        yield "}"
    yield f"# bits-set {bits};"


def _peer(metadata: Metadata, number: int) -> Iterator[str]:
    peer = metadata.peers.get(number)
    flags = peer.flags & ~PeerFlag.HAVE_BITMAP if peer else PeerFlag(0)
    if number == metadata.node_id:
        flags |= PeerFlag.NODE_EXISTS
    names = " ".join(name for flag, name in _NAMED.items() if flags & flag)
    yield f"peer[{number}] {{"
    yield f"    bitmap-index {peer.bitmap_index if peer else -1};"
    yield f"    bitmap-uuid 0x{peer.bitmap_uuid if peer else 0:016X};"
    yield "    bitmap-dagtag 0x0000000000000000;"
    yield f"    flags 0x{flags:08X};" + (f" # {names}" if names else "")
    yield "}"


def _bitmap(blocks: BlockSet, words: int) -> Iterator[str]:
    yield "   # at 0kB"
    values = [0] * words
    for start, end in blocks:
        for block in range(start, min(end, words * 64)):
            values[block // 64] |= 1 << (block % 64)
    at = 0
    while at < words:
        length = 1
        while at + length < words and values[at + length] == values[at]:
            length += 1
        value = f"0x{values[at]:016X};"
        yield f"    {length} times {value}" if length > 3 else "    " + " ".join([value] * length)
        at += length
