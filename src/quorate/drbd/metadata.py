"""DRBD's internal metadata: how much room it takes, and what ``dump-md`` says of it.

At the end of the backing device lie 4 KiB of superblock, 32 KiB of activity log and, before them, a bitmap with one
bit per 4 KiB and peer. The numbers that the formula must give are tabled in the tests, from a real cluster.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final

from quorate.api.meta import Bytes

#: What ``create-md`` reserves bitmaps for: every other member that a volume can have.
MAX_PEERS: Final = 7

_SUPERBLOCK: Final = 4096
_ACTIVITY_LOG: Final = 32 * 1024
#: What a bit of the bitmap stands for, and what everything is aligned to.
BLOCK: Final = 4096


class MetadataState(StrEnum):
    """What is on a backing device."""

    #: Metadata, cleanly left.
    CLEAN = "Clean"
    #: Metadata of a member that lost its power, or is attached: ``up`` applies the log by itself.
    UNCLEAN = "Unclean"
    #: No metadata. On a device that had some it may still be there, at the end of its former size.
    NONE = "None"
    #: The device could not be opened because somebody holds it.
    IN_USE = "InUse"
    #: There is no such device.
    DEVICE_MISSING = "DeviceMissing"
    #: None of the above could be made out.
    UNREADABLE = "Unreadable"


def metadata_state(exit_code: int, output: str) -> MetadataState:
    """What ``drbdadm dump-md`` found, by its exit code and everything it printed.

    Exit codes 1 and 255 mean all of "none", "unclean" and "device grew": only the text tells. NONE needs the tool's own
    words and nothing that contradicts them, because what follows from it may be ``create-md``.
    """
    dumped = "# DRBD meta data dump" in output and "max-peers" in output
    if 'Found meta data is "unclean"' in output:
        return MetadataState.UNCLEAN
    if exit_code == 0:
        return MetadataState.CLEAN if dumped else MetadataState.UNREADABLE
    if "No such file or directory" in output or "No such device" in output:
        return MetadataState.DEVICE_MISSING
    if "Device or resource busy" in output or "is configured!" in output:
        return MetadataState.IN_USE
    if "No valid meta data found" in output and not dumped and exit_code in (1, 255):
        return MetadataState.NONE
    return MetadataState.UNREADABLE


def usable_size(lower: Bytes, max_peers: int = MAX_PEERS) -> Bytes:
    """What is left for data on a device of this size."""
    whole_blocks = lower // BLOCK * BLOCK
    return Bytes(max(0, whole_blocks - _metadata_size(whole_blocks, max_peers)))


@lru_cache(maxsize=1024)
def lower_size(usable: Bytes, max_peers: int = MAX_PEERS) -> Bytes:
    """The smallest backing device that has this much room for data.

    The metadata covers itself too, so the size is a fixed point; counting up from below finds the smallest one.
    """
    wanted = _aligned(usable, BLOCK)
    lower = wanted
    while (grown := wanted + _metadata_size(lower, max_peers)) != lower:
        lower = grown
    return Bytes(lower)


def log_blocks(lower: Bytes) -> tuple[int, int]:
    """Where the activity log is on a device of this size: its first block, and how many there are."""
    count = _ACTIVITY_LOG // BLOCK
    return (lower - _SUPERBLOCK) // BLOCK - count, count


def _metadata_size(lower: int, max_peers: int) -> int:
    bits = _aligned(lower // BLOCK, 64)
    return _aligned(bits // 8 * max_peers, BLOCK) + _ACTIVITY_LOG + _SUPERBLOCK


def _aligned(size: int, to: int) -> int:
    return -(-size // to) * to
