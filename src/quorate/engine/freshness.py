"""How long ago we last saw an object change, on our own clock.

An agent shows that it lives by renewing its Lease. The time it writes there is its clock's; whether it is late can only
be judged by ours, from when we saw the change. What we have only just learned of counts as changed just now. Should we
lose sight of the store for long ourselves, leadership goes too, and the next term begins with a list that shows which
leases were renewed meanwhile: nobody is taken for dead because we were deaf.
"""

from __future__ import annotations

from typing import Any

from quorate.engine.cache import Cache
from quorate.engine.clock import Clock
from quorate.engine.keys import Key


class Freshness:
    """Follows one cache for as long as both live."""

    def __init__(self, cache: Cache[Any], clock: Clock) -> None:
        self._clock = clock
        self._changed_at: dict[Key, float] = {}
        cache.subscribe(self._changed)

    def silent_for(self, key: Key) -> float | None:
        """Seconds since we saw the object change; None if there is no such object."""
        changed_at = self._changed_at.get(key)
        return None if changed_at is None else self._clock.monotonic() - changed_at

    def _changed(self, key: Key, _old: object, new: object) -> None:
        if new is None:
            del self._changed_at[key]
        else:
            self._changed_at[key] = self._clock.monotonic()
