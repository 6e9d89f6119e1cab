"""How long ago we last saw an object change, on our own clock.

An agent shows that it lives by renewing its Lease. The time it writes there is its clock's; whether it is late can only
be judged by ours, from when we saw the change. What we have only just learned of counts as changed just now.

Only time in which we could have heard counts: up to the last word of the store about this kind, an event, a bookmark or
a list. Nobody is taken for dead because we were deaf. So that a store in which nothing happens does not look like one
that we cannot hear, the manager has it asked every few seconds (``Reflector.keep_hearing``).

Whoever waits for somebody to have been silent for too long therefore asks again and again towards the end
(``look_again``): by our clock the time may be over, and yet the last word of the store be from before. So all who wait
for the same notice it together, and what follows from it is looked at once.
"""

from __future__ import annotations

from typing import Any, Final

from quorate.engine.clock import Clock
from quorate.engine.keys import Key
from quorate.engine.reflector import Reflector

#: When nothing was heard for so many seconds of a kind whose freshness somebody judges by, we ask.
HEARING: Final = 5.0
#: How often whoever waits asks again, in seconds, when the time may be over before we hear of it.
_OFTEN: Final = 0.5


def look_again(left: float) -> float:
    """Seconds after which to ask again about an object that, unless it changes, is silent for too long in so many."""
    return max(left - HEARING, _OFTEN)


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
