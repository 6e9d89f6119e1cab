"""The time of a described cluster: the real one, and however much further somebody has moved it.

Both the calendar and the stopwatch move, so for everybody who looks at them that time has passed; who sleeps wakes.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from quorate.engine.clock import Clock, SystemClock

#: As far as a calendar of ours goes, with room for what is added to it.
_LAST: Final = datetime(9000, 1, 1, tzinfo=UTC)


class DescribedClock:
    """Implements :class:`quorate.engine.clock.Clock`."""

    def __init__(self, beneath: Clock | None = None) -> None:
        self._beneath = beneath or SystemClock()
        self._ahead = timedelta()
        self._sleepers: set[asyncio.Task[None]] = set()

    def now(self) -> datetime:
        return self._beneath.now() + self._ahead

    def monotonic(self) -> float:
        return self._beneath.monotonic() + self._ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        while True:
            await self._doze(max(0.0, until - self.monotonic()))
            if self.monotonic() >= until:
                return

    def advance(self, by: timedelta) -> None:
        """Let time pass. It never goes back."""
        if by < timedelta():
            raise ValueError(f"time does not go back: {by.total_seconds():g} s is less than nothing")
        if by > _LAST - self.now():
            raise ValueError(f"time ends in the year {_LAST.year}: {by.days} days are too many")
        self._ahead += by
        for sleeper in self._sleepers:
            sleeper.cancel()

    async def _doze(self, seconds: float) -> None:
        """Until then, or until time is moved."""
        sleeper = asyncio.ensure_future(self._beneath.sleep(seconds))
        self._sleepers.add(sleeper)
        try:
            await asyncio.wait({sleeper})
        finally:
            self._sleepers.discard(sleeper)
            sleeper.cancel()
