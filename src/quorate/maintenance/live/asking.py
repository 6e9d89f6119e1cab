"""PermissionRequests and Notifications that somebody applied: asked of the broker, answered in their status.

A pass never waits for the broker. It looks at what was answered last, writes that, and has the broker asked beside the
passes (``Asking``) when there is reason to: the object is new or its mode was changed, the broker says that a stored
request would now be answered otherwise, or the last answer was that it cannot answer now. The answer wakes the object.

Asking twice is harmless: the ledger knows the object by its uid. So nothing here needs to survive a restart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from quorate.engine import Key, Signal
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger

A = TypeVar("A")

log = get_logger(__name__)

#: Seconds before something that did not work is tried again.
PAUSE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Answer(Generic[A]):
    """What the broker said last."""

    #: Of the object that asked.
    generation: int
    said: A
    at: datetime


class Asking(Generic[A]):
    """Questions under way, and their last answers, by the uid of the object that asks."""

    def __init__(self, signal: Signal, start: Callable[[Coroutine[Any, Any, None]], None], clock: Clock) -> None:
        """``start`` has something carried on beside the passes; ``signal`` wakes the object that asked."""
        self._signal = signal
        self._clock = clock
        self._start = start
        self._answers: dict[str, Answer[A]] = {}
        self._under_way: set[str] = set()
        #: The broker has reason to answer otherwise.
        self._stale: set[str] = set()
        self._over: set[str] = set()

    def begin(self) -> None:
        """A new term: nothing is known of what was answered in another."""
        for known in (self._answers, self._under_way, self._stale, self._over):
            known.clear()

    def answer(self, uid: str) -> Answer[A] | None:
        """The last one."""
        return self._answers.get(uid)

    def is_stale(self, uid: str) -> bool:
        """Whether asking again may be answered otherwise."""
        return uid in self._stale

    def is_over(self, uid: str) -> bool:
        """Whether what the object got is taken back."""
        return uid in self._over

    def expire(self, uid: str) -> None:
        """There is reason to ask again."""
        if uid in self._answers or uid in self._under_way:
            self._stale.add(uid)

    def amend(self, uid: str, amended: Callable[[A], A]) -> None:
        """The last answer is the same, but some of its words are not."""
        if (known := self._answers.get(uid)) is not None:
            self._answers[uid] = replace(known, said=amended(known.said))

    def forget(self, uid: str) -> None:
        """The object is gone."""
        for known in (self._under_way, self._stale, self._over):
            known.discard(uid)
        self._answers.pop(uid, None)

    def ask(self, key: Key, uid: str, generation: int, question: Callable[[], Awaitable[A]]) -> None:
        """Have it asked, unless it is being asked."""

        async def ask() -> None:
            self._stale.discard(uid)
            self._answers[uid] = Answer(generation, await question(), self._clock.now())

        self._carry_on(key, uid, ask)

    def take_back(self, key: Key, uid: str, question: Callable[[], Awaitable[bool]]) -> None:
        """Have what it got taken back, unless that is under way; ``question`` tells whether it was."""

        async def ask() -> None:
            if await question():
                self._over.add(uid)
            else:
                await self._clock.sleep(PAUSE)

        self._carry_on(key, uid, ask)

    def _carry_on(self, key: Key, uid: str, work: Callable[[], Awaitable[None]]) -> None:
        if uid in self._under_way:
            return
        self._under_way.add(uid)

        async def carry_on() -> None:
            try:
                await work()
            except Exception:
                log.exception("the broker could not be asked", name=key.name)
                await self._clock.sleep(PAUSE)
            finally:
                self._under_way.discard(uid)
                self._signal.wake(key)

        self._start(carry_on())
