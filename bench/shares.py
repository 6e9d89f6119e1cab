"""Who uses the CPU of one process: every turn of the event loop is booked to whoever owns it.

A context variable says whose turn it is, and is inherited by tasks; within controllers, the name of a worker's task
says which controller's it is. What other threads use is the store's: nothing else here has any. Of controllers it is
told apart what they use to look and decide (the rest is writing, and being told of what was written).
"""

from __future__ import annotations

import asyncio
import functools
import time
from asyncio import events
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from quorate.engine import Controller
from quorate.lab.driver import Driver
from quorate.lab.machine import LabMachine

OWNER: ContextVar[str] = ContextVar("owner", default="event loop")
CONTROLLERS, AGENTS, HARDWARE, STORE = "controllers", "agents", "simulated hardware", "store's threads"
#: At the end of a controller's name: its looking and deciding.
DECIDING = ", deciding"
#: The event loop between two turns; and who only looks on.
LOOP, ONLOOKER = "event loop", "benchmark itself"


class Shares:
    """CPU seconds by owner, from a first look to a second."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = defaultdict(float)
        self._owner = LOOP
        self._mark = time.thread_time()
        self._process = time.process_time()

    def switch(self, owner: str) -> str:
        """From here on it is this owner's turn; returns whose it was."""
        now = time.thread_time()
        self._spent[self._owner] += now - self._mark
        self._mark = now
        before, self._owner = self._owner, owner
        return before

    def taken(self) -> dict[str, float]:
        """All that was used since the last look."""
        self.switch(self._owner)
        now = time.process_time()
        found, self._spent = self._spent, defaultdict(float)
        found[STORE] += max(0.0, now - self._process - sum(found.values()))
        self._process = now
        return found


@contextmanager
def booked() -> Iterator[Shares]:
    """Book everything that this thread's loop runs, for as long as the block lasts."""
    shares = Shares()
    kept = events.Handle._run, LabMachine.run, Driver.run
    events.Handle._run = _turn(shares, events.Handle._run)  # type: ignore[method-assign,assignment]
    LabMachine.run = _hardware(shares, LabMachine.run)  # type: ignore[method-assign]
    Driver.run = _hardware(shares, Driver.run)  # type: ignore[method-assign]
    try:
        yield shares
    finally:
        events.Handle._run, LabMachine.run, Driver.run = kept  # type: ignore[method-assign]


def deciding(shares: Shares, controller: Controller[Any]) -> Controller[Any]:
    """The same controller, with its looking and deciding booked apart."""
    owner = f"{CONTROLLERS}: {controller.name}{DECIDING}"

    def apart(function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            before = shares.switch(owner)
            try:
                return function(*arguments)
            finally:
                shares.switch(before)

        return timed

    return replace(controller, observe=apart(controller.observe), decide=apart(controller.decide))


def _turn(shares: Shares, run: Callable[[Any], None]) -> Callable[[Any], None]:
    switch = shares.switch

    def turn(handle: Any) -> None:
        owner = handle._context.get(OWNER, LOOP)
        if owner is CONTROLLERS:
            task = getattr(handle._callback, "__self__", None)
            owner = _controller(task.get_name() if isinstance(task, asyncio.Task) else "")
        before = switch(owner)
        run(handle)  # never raises: it tells the loop of what does
        switch(before)

    return turn


@functools.cache
def _controller(task: str) -> str:
    worker, found, _ = task.partition(" worker ")
    return f"{CONTROLLERS}: {worker}" if found else f"{CONTROLLERS}: caches and writes"


def _hardware(shares: Shares, run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    async def wrapped(*arguments: Any, **options: Any) -> Any:
        token = OWNER.set(HARDWARE)
        before = shares.switch(HARDWARE)
        try:
            return await run(*arguments, **options)
        finally:
            OWNER.reset(token)
            shares.switch(before)

    return wrapped
