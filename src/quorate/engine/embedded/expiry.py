"""Kubernetes' Events are forgotten an hour after their last change, as its API server does by default.

Nothing else ends them, and all that is current is in memory. No timer does it: a sweep follows a commit, at most
once a minute, because while nothing is written nothing grows. What is long overdue, after a pause, goes a batch at
a time, each after the commit of the one before, so that no sweep holds up the event loop.
"""

from __future__ import annotations

import math
from itertools import islice, takewhile

from quorate.api.kind import Kind
from quorate.engine.clock import Clock
from quorate.engine.embedded.database import MAX_BATCH
from quorate.engine.embedded.record import Record
from quorate.engine.embedded.state import Collection

#: Seconds that an Event is kept after its last change.
EVENT_TTL = 3600.0
_INTERVAL = 60.0


def expires(kind: Kind) -> bool:
    """Whether objects of this kind are forgotten by themselves."""
    return kind.qualified_resource == "events"


class Expiry:
    """Says when to sweep a collection, and what out of it."""

    def __init__(self, collection: Collection, clock: Clock) -> None:
        self._collection = collection
        self._clock = clock
        self._next = clock.monotonic()

    def due(self) -> bool:
        """Whether it is time for a sweep: said once, then not before that one is made."""
        if self._clock.monotonic() < self._next:
            return False
        self._next = math.inf
        return True

    def sweep(self) -> list[Record]:
        """What to delete now, longest unchanged first."""
        limit = self._clock.now().timestamp() - EVENT_TTL
        old = takewhile(lambda item: item[1] <= limit, self._collection.changed.items())
        found = [self._collection.objects[key] for key, _ in islice(old, MAX_BATCH)]
        self._next = self._clock.monotonic() + (_INTERVAL if len(found) < MAX_BATCH else 0)
        return found
