"""Backing devices: what is left of a node when its power goes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from quorate.lab.kernel.extents import BlockMap

if TYPE_CHECKING:
    from quorate.lab.kernel.metadata import Metadata

BLOCK = 4096


class BlockDevice:
    """A block device with tagged contents, and DRBD's metadata at its end.

    The metadata of a device is found only where its present size says it is. Growing hides it, shrinking back to the
    old size brings it back: ``metadata`` is kept by the size for which it was written.
    """

    __slots__ = ("contents", "failed", "holder", "metadata", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.contents = BlockMap()
        self.metadata: dict[int, Metadata] = {}
        self.holder: str | None = None
        """Who has it open exclusively; DRBD takes an attached device."""
        self.failed = False

    def resize(self, size: int) -> None:
        """Grow or shrink; what lies in the common part stays, as it does in LVM."""
        if size < self.size:
            self.contents.write(size // BLOCK, self.size // BLOCK, None)
            self.metadata = {at: kept for at, kept in self.metadata.items() if at <= size}
        self.size = size

    def write(self, offset: int, length: int, tag: Hashable) -> None:
        """Write one tag to the range, past any metadata that lay there."""
        end = min(offset + length, self.size)
        self.contents.write(offset // BLOCK, -(-end // BLOCK), tag)
        self._forget_superblocks(offset, end)

    def copy_from(self, other: BlockDevice, start: int, end: int) -> None:
        """Let the blocks of [start, end) hold what they hold on the other device."""
        self.contents.copy_from(other.contents, start, end)
        self._forget_superblocks(start * BLOCK, end * BLOCK)

    def _forget_superblocks(self, start: int, end: int) -> None:
        for at in [at for at in self.metadata if start < at and at - BLOCK < end]:
            del self.metadata[at]

    def read(self, offset: int) -> Hashable:
        """The tag of the block at the offset."""
        return next(iter(self.contents.runs(offset // BLOCK, offset // BLOCK + 1)))[2]
