"""Sets of blocks and maps from blocks to contents, kept as runs: a volume of terabytes costs what was written to it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator


class BlockSet:
    """A set of block numbers, as sorted runs [start, end) that neither touch nor overlap."""

    __slots__ = ("_ends", "_starts", "count")

    def __init__(self, runs: Iterator[tuple[int, int]] | tuple[tuple[int, int], ...] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.count = 0
        for start, end in runs:
            self.add(start, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._starts, self._ends, strict=True)))

    def __bool__(self) -> bool:
        return bool(self._starts)

    def copy(self) -> BlockSet:
        """A set of its own with the same blocks."""
        twin = BlockSet()
        twin._starts, twin._ends, twin.count = self._starts[:], self._ends[:], self.count
        return twin

    def clear(self) -> None:
        """Forget every block."""
        self._starts, self._ends, self.count = [], [], 0

    def add(self, start: int, end: int) -> None:
        """Put the blocks of [start, end) in."""
        if start >= end:
            return
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
            self.count -= sum(self._ends[i] - self._starts[i] for i in range(first, last))
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        self.count += end - start

    def remove(self, start: int, end: int) -> None:
        """Take the blocks of [start, end) out."""
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        if start >= end or first >= last:
            return
        kept = [
            (self._starts[first], min(start, self._ends[first])),
            (max(end, self._starts[last - 1]), self._ends[last - 1]),
        ]
        kept = [(a, b) for a, b in kept if a < b]
        self.count -= sum(self._ends[i] - self._starts[i] for i in range(first, last))
        self.count += sum(b - a for a, b in kept)
        self._starts[first:last] = [a for a, _ in kept]
        self._ends[first:last] = [b for _, b in kept]

    def count_within(self, start: int, end: int) -> int:
        """How many blocks of [start, end) are in."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        return sum(min(self._ends[i], end) - max(self._starts[i], start) for i in range(first, last))

    def update(self, other: BlockSet) -> None:
        """Put all blocks of the other set in."""
        for start, end in other:
            self.add(start, end)


class BlockMap:
    """What each block holds: a tag per run of blocks. Blocks never written hold None."""

    __slots__ = ("_ends", "_starts", "_tags")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._tags: list[Hashable] = []

    def runs(self, start: int, end: int) -> Iterator[tuple[int, int, Hashable]]:
        """The contents of [start, end) as runs in order, unwritten gaps included."""
        at = start
        index = bisect_right(self._ends, start)
        while index < len(self._starts) and self._starts[index] < end:
            begin, stop = max(self._starts[index], start), min(self._ends[index], end)
            if at < begin:
                yield at, begin, None
            yield begin, stop, self._tags[index]
            at = stop
            index += 1
        if at < end:
            yield at, end, None

    def write(self, start: int, end: int, tag: Hashable) -> None:
        """Let every block of [start, end) hold the tag; None is what an unwritten block holds."""
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        pieces: list[tuple[int, int, Hashable]] = []
        if first < last:
            if self._starts[first] < start:
                pieces.append((self._starts[first], start, self._tags[first]))
            tail = (end, self._ends[last - 1], self._tags[last - 1])
        else:
            tail = (end, end, None)
        if tag is not None:
            pieces.append((start, end, tag))
        if tail[0] < tail[1]:
            pieces.append(tail)
        self._starts[first:last] = [piece[0] for piece in pieces]
        self._ends[first:last] = [piece[1] for piece in pieces]
        self._tags[first:last] = [piece[2] for piece in pieces]

    def copy_from(self, other: BlockMap, start: int, end: int) -> None:
        """Let [start, end) hold what it holds in the other map."""
        for begin, stop, tag in list(other.runs(start, end)):
            self.write(begin, stop, tag)

    def differing(self, other: BlockMap, start: int, end: int) -> BlockSet:
        """The blocks of [start, end) that hold different things in the two maps."""
        found = BlockSet()
        mine, theirs = list(self.runs(start, end)), list(other.runs(start, end))
        i = j = 0
        while i < len(mine) and j < len(theirs):
            begin, stop = max(mine[i][0], theirs[j][0]), min(mine[i][1], theirs[j][1])
            if begin < stop and mine[i][2] != theirs[j][2]:
                found.add(begin, stop)
            if mine[i][1] <= theirs[j][1]:
                i += 1
            else:
                j += 1
        return found
