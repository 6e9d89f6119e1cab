"""Moves a world of simulated kernels along with a clock: the machine's, or a simulation's.

The world has no loop and no threads: it does what is due when it is told how late it is. The driver tells it whenever
something is due, and before anybody looks at it or does anything to it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NoReturn

from quorate.engine.clock import Clock
from quorate.lab.kernel import World


class Driver:
    """The passing of time in one world."""

    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self.clock = clock
        self._beginning = clock.monotonic() - world.now
        self._touched = asyncio.Event()

    def catch_up(self) -> None:
        """Let everything happen that is due by now."""
        self.world.advance(max(self.world.now, self.clock.monotonic() - self._beginning))

    def touch(self) -> None:
        """Something was done to the world: what is due next may have changed."""
        self._touched.set()

    async def run(self) -> NoReturn:
        """Keep the world in time, for ever."""
        while True:
            self._touched.clear()
            self.catch_up()
            due = self.world.next_event_at()
            pause = None if due is None else max(0.0, due - (self.clock.monotonic() - self._beginning))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._touched.wait()
