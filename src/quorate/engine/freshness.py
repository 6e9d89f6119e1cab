"""How long ago we last saw an object change, on our own clock.

An agent shows that it lives by renewing its Lease. The time it writes there is its clock's; whether it is late can only
be judged by ours, from when we saw the change. What we have only just learned of counts as changed just now.

Only time in which we could have heard counts: up to the last word of the store about this kind, an event, a bookmark or
a list. Nobody is taken for dead because we were deaf. So that a store in which nothing happens does not look like one
that we cannot hear, the manager has it asked every few seconds (``Reflector.keep_hearing``).
"""

from __future__ import annotations

from typing import Any

from quorate.engine.clock import Clock
from quorate.engine.keys import Key
from quorate.engine.reflector import Reflector


class Freshness:
    """Follows one cache for as long as both live."""

    def __init__(self, reflector: Reflector[Any], clock: Clock) -> None:
        self._reflector = reflector
        self._clock = clock
        self._changed_at: dict[Key, float] = {}
        reflector.cache.subscribe(self._changed)

    def silent_for(self, key: Key) -> float | None:
        """Seconds, of those in which we could hear, since we saw the object change; None if there is no such object."""
        changed_at = self._changed_at.get(key)
        return None if changed_at is None else max(0.0, self._reflector.heard_at - changed_at)

    def _changed(self, key: Key, _old: object, new: object) -> None:
        if new is None:
            del self._changed_at[key]
        else:
            self._changed_at[key] = self._clock.monotonic()
