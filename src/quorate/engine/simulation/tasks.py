"""Tasks with a serial number, and how to tell a person where one waits."""

from __future__ import annotations

import asyncio
from types import CodeType, FrameType
from typing import Any

from quorate.engine.simulation.process import CURRENT, Process


class SimulatedTask(asyncio.Task[Any]):
    """A task whose hash is the order of its creation, so that sets of tasks iterate the same way in every run."""

    def __init__(self, coroutine: Any, *, serial: int, **options: Any) -> None:
        self._serial = serial
        self._process: Process | None = (
            CURRENT.get() if options.get("context") is None else options["context"].get(CURRENT)
        )
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._serial

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def process(self) -> Process | None:
        """The process it belongs to, if any."""
        return self._process

    @property
    def killed(self) -> bool:
        """Whether its process was killed."""
        return self._process is not None and self._process.killed


def describe(task: asyncio.Task[Any]) -> str:
    """Name, process and the innermost line of our code at which a task waits."""
    process = task.process if isinstance(task, SimulatedTask) else None
    owner = f" of {process!r}" if process is not None else ""
    return f"task {task.get_name()!r}{owner} waits at {_innermost(task.get_coro())}"


def _innermost(waiting: Any) -> str:
    """Follow what awaits what, down to the last Python frame."""
    place = "its first step"
    while waiting is not None:
        frame: FrameType | None = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
        if frame is not None:
            code: CodeType = frame.f_code
            place = f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)
    return place
