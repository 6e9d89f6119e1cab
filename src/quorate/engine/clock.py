"""Time as an input. Nothing outside this file reads a clock.

``monotonic`` measures durations and never jumps; ``now`` is what people call the time and may jump. Under the
virtual-time loop (``engine.simulation``) both follow the loop.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from functools import partial
from typing import Protocol


class Clock(Protocol):
    """What the engine needs to know about time."""

    def now(self) -> datetime:
        """Wall-clock time, UTC, for timestamps that people read."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, counting the time a suspended machine slept."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock. CLOCK_BOOTTIME, because a lease must expire also for a laptop lid or a paused VM."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    #: Asked several times in every pass: without a function of ours around it.
    monotonic = staticmethod(partial(time.clock_gettime, time.CLOCK_BOOTTIME))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
