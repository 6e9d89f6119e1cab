"""Where bytes go when nobody has them: extents remember, and the next volume on them finds what was left.

While a logical volume exists its device holds the contents. When it goes, or shrinks, they return to the extents of the
physical volumes; when one is made or grows, it takes what lies on the extents it gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel.extents import BlockMap

if TYPE_CHECKING:
    from quorate.lab.kernel.metadata import Metadata

BLOCK = 4096
EXTENT = 4 << 20
_PER_EXTENT = EXTENT // BLOCK


@dataclass(eq=False)
class Ground:
    """The extents of one physical volume, as they were last left."""

    contents: BlockMap = field(default_factory=BlockMap)
    #: DRBD metadata, by the block that holds its magic number.
    metadata: dict[int, Metadata] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive extents of one physical volume."""

    ground: Ground
    first: int
    count: int


def take(device: BlockDevice, runs: tuple[Run, ...], skip: int) -> None:
    """Let the device hold what lies on its extents, save the first ``skip`` of them that it has already."""
    for at, start, blocks, run in _pieces(runs, skip):
        for begin, end, tag in list(run.ground.contents.runs(start, start + blocks)):
            device.contents.write(at + begin - start, at + end - start, tag)
        for block, metadata in list(run.ground.metadata.items()):
            if start <= block < start + blocks:
                device.metadata[(at + block - start + 1) * BLOCK] = metadata
                del run.ground.metadata[block]


def leave(device: BlockDevice, runs: tuple[Run, ...], keep: int) -> None:
    """Put what the device holds back on its extents, save the first ``keep`` of them that it goes on having."""
    for at, start, blocks, run in _pieces(runs, keep):
        for begin, end, tag in list(device.contents.runs(at, at + blocks)):
            run.ground.contents.write(start + begin - at, start + end - at, tag)
        for position, metadata in list(device.metadata.items()):
            block = position // BLOCK - 1
            if at <= block < at + blocks:
                run.ground.metadata[start + block - at] = metadata
                del device.metadata[position]


def _pieces(runs: tuple[Run, ...], skip: int) -> Iterator[tuple[int, int, int, Run]]:
    """Block in the device, block on the physical volume, how many, and where."""
    at = 0
    for run in runs:
        passed = min(max(skip - at, 0), run.count)
        if passed < run.count:
            yield (
                (at + passed) * _PER_EXTENT,
                (run.first + passed) * _PER_EXTENT,
                (run.count - passed) * _PER_EXTENT,
                run,
            )
        at += run.count
