"""Blocking calls beside the event loop, so that one that never returns stops nobody but its caller.

It takes threads: Linux has no other way to wait for a file, and an fsync on a disk that does not answer, or a read of
a dead device's attribute in sysfs, waits in the kernel where nothing can interrupt it. A thread for each call rather
than a pool: a pool's threads are joined when Python exits, and one that hangs would keep the process from ending.

A file whose last call has not returned is not touched again until it has: asked once a minute, it would otherwise take
one thread after the other, and with them everybody's.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds after which a call is given up, its thread left behind.
PATIENCE = 30.0
#: Calls at a time; those that hang count until they end.
_MOST = 16


class Aside:
    """Runs calls in threads of their own."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._free = asyncio.Semaphore(_MOST)
        #: How many calls about a path were given up and have not returned yet.
        self._hanging: Counter[str] = Counter()

    async def call(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """The function's result or error; TimeoutError, an OSError, when it does not come to an end."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        paths = [arg for arg in args if isinstance(arg, str)]
        if stuck := [path for path in paths if self._hanging[path]]:
            raise TimeoutError(errno.ETIMEDOUT, "the last call about it has not returned yet", *stuck)
        begun = given_up = False

        def settle(resolve: Callable[[Any], None], value: object) -> None:
            self._free.release()
            if given_up:
                self._hanging.subtract(paths)
            if not outcome.done():
                resolve(value)

        def work() -> None:
            settled: tuple[Callable[[Any], None], object]
            try:
                settled = (outcome.set_result, function(*args, **options))
            except Exception as error:
                settled = (outcome.set_exception, error)
            with suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(settle, *settled)

        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
                self._begin(work, f"aside {function.__name__}")
                begun = True
                return await outcome
        except TimeoutError as error:
            if outcome.done() and not outcome.cancelled():
                raise  # the call's own
            if begun:
                given_up = True
                self._hanging.update(paths)
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {self._patience:g} s", *paths) from error

    def _begin(self, work: Callable[[], None], name: str) -> None:
        try:
            threading.Thread(target=work, name=name, daemon=True).start()
        except RuntimeError as error:
            self._free.release()
            raise OSError(errno.EAGAIN, f"no thread can be started: {error}") from None
