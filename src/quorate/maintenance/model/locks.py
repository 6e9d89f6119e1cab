"""What may hold an item: a permission, an announcement, a place in the queue.

Whether a lock counts is asked at a moment and by somebody, so nothing here has a timer: a permission ends with its
deadline unless the item is away, an announcement counts for work that overlaps it, a place in the queue for whoever is
behind it. The fourth kind, the temporary one, lives in a ``Trial``.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import NamedTuple


class Rank(NamedTuple):
    """A place in the queue: less urgent is greater, and so is who came later."""

    priority: int
    order: int


@dataclass(frozen=True, slots=True)
class Held:
    """By a permission."""

    id: str
    owner: str
    deadline: int
    #: How long the work takes, which may begin at the deadline.
    duration: int


@dataclass(frozen=True, slots=True)
class Announced:
    """By a notification, for a while."""

    id: str
    owner: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Queued:
    """By a stored request."""

    id: str
    owner: str
    rank: Rank


Lock = Held | Announced | Queued


class Locks:
    """All locks on one item. Most items have none, and then no such object."""

    __slots__ = ("announced", "held", "queued")

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.announced: list[Announced] = []
        #: The first in the queue first.
        self.queued: list[Queued] = []

    def add(self, lock: Lock) -> None:
        """One more."""
        if isinstance(lock, Held):
            self.held.append(lock)
        elif isinstance(lock, Announced):
            self.announced.append(lock)
        else:
            insort(self.queued, lock, key=lambda queued: queued.rank)

    def remove(self, lock: Lock) -> None:
        """One less."""
        if isinstance(lock, Held):
            self.held.remove(lock)
        elif isinstance(lock, Announced):
            self.announced.remove(lock)
        else:
            self.queued.remove(lock)

    def __bool__(self) -> bool:
        return bool(self.held or self.announced or self.queued)
