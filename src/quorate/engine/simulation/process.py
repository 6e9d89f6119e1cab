"""A part of a simulation that can be stopped like a process: paused (SIGSTOP, a frozen VM) or killed (SIGKILL).

A process is a mark in the context that its tasks inherit: every task started by a task of a process belongs to it,
and so do the callbacks that they register. While a process is paused its callbacks are parked, also those of timers
that run out meanwhile; the clock goes on. When it resumes they all become runnable, and the first thing it can
notice is that time has passed. A killed process stays parked: no ``finally`` of it runs before the simulation ends.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from quorate.engine.simulation.loop import SimulationLoop

T = TypeVar("T")

#: The process that the running code belongs to.
CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("quorate-simulated-process", default=None)


class Process:
    """Tasks that live and stop together."""

    def __init__(self, loop: SimulationLoop, name: str) -> None:
        self.name = name
        self.running = True
        self.killed = False
        self.parked: list[asyncio.Handle] = []
        self._loop = loop

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start a task of this process."""
        context = contextvars.copy_context()
        context.run(CURRENT.set, self)
        return self._loop.create_task(coroutine, name=name or self.name, context=context)

    def pause(self) -> None:
        """Stop at once, wherever its tasks are. Its timers go on running out."""
        self.running = False
        self._loop.park()

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        if self.killed:
            raise ValueError(f"process {self.name} was killed")
        self._unpark()

    def kill(self) -> None:
        """Never run again. Nothing of it is cleaned up: that is the point."""
        self.killed = True
        self.pause()

    def bury(self) -> None:
        """Let the dead unwind, once the simulation is over and nothing they do can matter."""
        self._unpark()

    def _unpark(self) -> None:
        self.running = True
        parked, self.parked = self.parked, []
        self._loop.unpark(parked)

    def __repr__(self) -> str:
        state = "killed" if self.killed else "running" if self.running else "paused"
        return f"<Process {self.name} {state}>"
