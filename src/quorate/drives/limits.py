"""How many replicas may be on the move at once: in the cluster, from and to a node, from and to a rack. Pure.

A move is **prepared** from its turn on: its replacement is made, finds a place and gets its space. It is **copied**
from when that one may join until its copy is good. Only copying costs anybody anything, so its limits are
strict: whatever is counted late or twice, no more are ever copied at once. Preparing is limited by the same numbers,
so that not all space is reserved and no thousand objects are made for what may be called off; but a move that waits for
something else (space, a member that is in use) takes nobody's turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from quorate.api.cluster_config import DrainLimits

#: A replacement that has found no place after so long takes nobody's turn.
PATIENCE: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Place:
    """A node, and the rack it stands in; one without a rack is alone in that."""

    node: str
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """A replica on its way from one node to another."""

    name: str
    source: Place
    #: Where it goes; None: that is not known yet.
    target: Place | None = None
    #: It has had its turn.
    begun: bool = False
    #: It is being prepared, or copied: it comes on by itself.
    busy: bool = False
    #: Its replacement may be copied to, and is not a good copy yet.
    copying: bool = False
    #: Since when its replacement has looked for a place in vain; None: it has one, or there is none yet.
    homeless_since: datetime | None = None
    #: Lower goes first.
    rank: tuple[object, ...] = ()


def to_prepare(moves: Sequence[Move], limits: DrainLimits, now: datetime) -> tuple[Move, ...]:
    """Those whose turn it is to be prepared, in order of rank."""
    count = _Count(limits)
    for move in moves:
        in_vain = move.homeless_since is not None and now - move.homeless_since > PATIENCE
        if move.begun and move.busy and not in_vain:
            count.add(move.source, None)
    return tuple(_admitted((move for move in moves if not move.begun), count, to=False))


def to_copy(moves: Sequence[Move], limits: DrainLimits) -> tuple[Move, ...]:
    """Those that may be copied now, of those that have found their place."""
    count = _Count(limits)
    for move in moves:
        if move.copying:
            count.add(move.source, move.target)
    waiting = (move for move in moves if move.begun and move.target is not None and not move.copying)
    return tuple(_admitted(waiting, count, to=True))


def _admitted(waiting: Iterable[Move], count: _Count, *, to: bool) -> Iterable[Move]:
    for move in sorted(waiting, key=lambda each: (each.rank, each.name)):
        if count.full:
            return
        target = move.target if to else None
        if count.has_room(move.source, target):
            count.add(move.source, target)
            yield move


class _Count:
    """How many are under way, by place."""

    def __init__(self, limits: DrainLimits) -> None:
        self._limits = limits
        self._all = 0
        self._places: Counter[tuple[str, str, str]] = Counter()

    @property
    def full(self) -> bool:
        return self._all >= self._limits.max_moves

    def has_room(self, source: Place, target: Place | None) -> bool:
        return not self.full and all(self._places[key] < limit for key, limit in self._keys(source, target))

    def add(self, source: Place, target: Place | None) -> None:
        self._all += 1
        self._places.update(key for key, _ in self._keys(source, target))

    def _keys(self, source: Place, target: Place | None) -> Iterable[tuple[tuple[str, str, str], int]]:
        for way, place in (("from", source), ("to", target)):
            if place is None:
                continue
            yield (way, "node", place.node), self._limits.max_moves_per_node
            if place.rack:
                yield (way, "rack", place.rack), self._limits.max_moves_per_rack
