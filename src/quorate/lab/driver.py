"""Moves a world of simulated kernels along with a clock: the machine's, or a simulation's.

The world has no loop and no threads: it does what is due when it is told how late it is. The driver tells it whenever
something is due, and before anybody looks at it or does anything to it. It sets one alarm, for what is due first.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from typing import NoReturn

from quorate.engine.clock import Clock
from quorate.lab.kernel import World


class Driver:
    """The passing of time in one world."""

    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self.clock = clock
        self._beginning = clock.monotonic() - world.now
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        #: While it runs: how :meth:`run` ends, and whose doing the world's events are.
        self._failure: asyncio.Future[NoReturn] | None = None
        self._context: Context | None = None

    def catch_up(self) -> None:
        """Let everything happen that is due by now."""
        self.world.advance(max(self.world.now, self.clock.monotonic() - self._beginning))

    def touch(self) -> None:
        """Something was done to the world: something may be due earlier than was known."""
        due = self.world.next_event_at()
        if self._failure is None or due is None or (self._alarm is not None and self._alarm_at <= due):
            return
        self._silence()
        pause = max(0.0, due - (self.clock.monotonic() - self._beginning))
        self._alarm_at = due
        self._alarm = self._failure.get_loop().call_later(pause, self._ring, context=self._context)

    async def run(self) -> NoReturn:
        """Keep the world in time, for ever."""
        self._failure = asyncio.get_running_loop().create_future()
        self._context = copy_context()
        try:
            self._ring()
            await self._failure
        finally:
            self._silence()
            self._failure = None

    def _ring(self) -> None:
        """Do what is due, or find that it was done or put off; and wait for what is next."""
        self._alarm = None
        try:
            self.catch_up()
        except BaseException as error:
            assert self._failure is not None
            self._failure.set_exception(error)
            return
        self.touch()

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
