"""The clock of a simulation, and of each simulated machine: wall clocks may disagree, durations do not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

#: When every simulation begins, by its own calendar.
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class SimulatedClock:
    """Implements :class:`quorate.engine.clock.Clock` on a loop's virtual time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, skew: float = 0.0) -> None:
        self._loop = loop
        #: Seconds by which this machine's wall clock is ahead.
        self.skew = skew

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time() + self.skew)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, seconds: float) -> None:
        """Step the wall clock, as a person or a time server would. Durations are not touched."""
        self.skew += seconds
