"""Keys that wait for a worker.

- A key waits at most once; while a worker has it, adding it again means exactly one more pass afterwards.
- A key may be added for later. Of several requests the earliest time and the highest priority count.
- Higher priorities go first, and within one priority the key that has waited longest.
- Failures of a key in a row make it wait longer and longer; a success forgets them.

Priorities keep a resync of ten thousand objects from delaying what just happened. So that the reverse cannot happen
either, every ``FAIRNESS``-th pass is given to the key that has waited longest, whatever its priority: however busy the
rest is, a resync gets that share of the passes, and a fresh event loses no more than that share to it.

``KeyQueue`` is the data structure and takes the time as an argument; ``WorkQueue`` adds waiting for a key.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict, deque
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol

from quorate.engine.backoff import Backoff
from quorate.engine.clock import Clock
from quorate.engine.keys import Key

#: Something happened, or a decision asked to be called again.
FRESH = 0
#: Nothing happened; we look whether everything is still right.
RESYNC = -100

FAIRNESS = 8

RETRY = Backoff(first=0.005, longest=300.0)


@dataclass(slots=True)
class _Request:
    """A key that waits: ready since some time, or due at some time."""

    priority: int
    due: float
    #: Position among all that became ready, or -1 while it is not.
    turn: int = -1


class Job(NamedTuple):
    """A key handed to a worker."""

    key: Key
    priority: int
    #: Seconds for which it had been ready.
    waited: float


class KeyQueue:
    """The rules of the module's docstring, without a clock and without waiting."""

    def __init__(self) -> None:
        self._waiting: dict[Key, _Request] = {}
        self._ready: dict[int, OrderedDict[Key, _Request]] = {}
        self._later: list[tuple[float, int, Key]] = []
        self._taken: dict[Key, float] = {}
        #: Keys added while a worker has them.
        self._again: dict[Key, _Request] = {}
        self._turns = 0
        self._passes = 0

    def add(self, key: Key, now: float, *, priority: int = FRESH, due: float | None = None) -> None:
        """Ask for a pass over this key, now or at ``due``."""
        due = now if due is None else due
        held = self._again if key in self._taken else self._waiting
        request = held.get(key)
        if request is None:
            held[key] = request = _Request(priority, due)
        else:
            if priority > request.priority:
                self._raise(key, request, priority)
            if request.turn >= 0 or due >= request.due:
                return
            request.due = due
        if held is self._waiting:
            self._place(key, request, now)

    def take(self, now: float) -> Job | None:
        """The key whose turn it is, if any is ready. It stays with the caller until :meth:`done`."""
        self._promote(now)
        chosen = self._choose()
        if chosen is None:
            return None
        key, request = chosen
        self._passes += 1
        del self._ready[request.priority][key]
        del self._waiting[key]
        self._taken[key] = now
        return Job(key, request.priority, now - request.due)

    def done(self, key: Key, now: float) -> float:
        """The pass over a key is over; returns how long it took."""
        took = now - self._taken.pop(key)
        request = self._again.pop(key, None)
        if request is not None:
            self._waiting[key] = request
            self._place(key, request, now)
        return took

    def next_due(self) -> float | None:
        """When the next key for later becomes ready."""
        while self._later:
            due, _, key = self._later[0]
            request = self._waiting.get(key)
            if request is not None and request.turn < 0 and request.due == due:
                return due
            heapq.heappop(self._later)
        return None

    def ready(self, now: float) -> int:
        """How many keys a worker could take."""
        self._promote(now)
        return sum(map(len, self._ready.values()))

    def depth(self) -> dict[int, int]:
        """How many keys are ready, by priority."""
        return {priority: len(keys) for priority, keys in self._ready.items()}

    def taken(self) -> dict[Key, float]:
        """Keys that workers have, and since when."""
        return self._taken

    def _place(self, key: Key, request: _Request, now: float) -> None:
        if request.due <= now:
            self._make_ready(key, request)
        else:
            self._turns += 1
            heapq.heappush(self._later, (request.due, self._turns, key))

    def _make_ready(self, key: Key, request: _Request) -> None:
        self._turns += 1
        request.turn = self._turns
        self._level(request.priority)[key] = request

    def _raise(self, key: Key, request: _Request, priority: int) -> None:
        if request.turn >= 0:
            del self._ready[request.priority][key]
            self._level(priority)[key] = request
        request.priority = priority

    def _level(self, priority: int) -> OrderedDict[Key, _Request]:
        level = self._ready.get(priority)
        if level is None:
            self._ready[priority] = level = OrderedDict()
            self._ready = dict(sorted(self._ready.items(), reverse=True))
        return level

    def _promote(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            request = self._waiting.get(key)
            # A key that was asked for again at an earlier time left its old entry behind.
            if request is not None and request.turn < 0 and request.due == due:
                self._make_ready(key, request)

    def _choose(self) -> tuple[Key, _Request] | None:
        heads = [next(iter(level.items())) for level in self._ready.values() if level]
        if not heads:
            return None
        if self._passes % FAIRNESS == FAIRNESS - 1:
            return min(heads, key=lambda head: head[1].turn)
        return heads[0]


class QueueObserver(Protocol):
    """Hears what happens in a queue; ``engine.metrics`` makes numbers of it."""

    def added(self) -> None: ...
    def retried(self) -> None: ...
    def started(self, waited: float) -> None: ...
    def finished(self, took: float) -> None: ...


class QueueClosed(Exception):
    """No more keys will be handed out."""


class WorkQueue:
    """A KeyQueue that workers can wait on."""

    def __init__(self, *, clock: Clock, random: Random, observer: QueueObserver, retry: Backoff = RETRY) -> None:
        self.keys = KeyQueue()
        self._clock = clock
        self._random = random
        self._observer = observer
        self._retry = retry
        self._failures: dict[Key, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = 0.0
        self._closed = False

    def add(self, key: Key, *, priority: int = FRESH, after: float = 0.0) -> None:
        """Ask for a pass over this key, now or ``after`` so many seconds."""
        now = self._clock.monotonic()
        self.keys.add(key, now, priority=priority, due=now + after)
        self._observer.added()
        self._wake(now)

    def retry(self, key: Key, *, priority: int, at_least: float = 0.0) -> float:
        """Ask for another pass after a failure, the later the more there were; returns the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._retry.delay(failures, self._random))
        self._observer.retried()
        self.add(key, priority=priority, after=delay)
        return delay

    def forget(self, key: Key) -> None:
        """The pass went well: earlier failures do not count any more."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """How often in a row passes over this key have failed."""
        return self._failures.get(key, 0)

    async def get(self) -> Job:
        """The next key, when there is one; QueueClosed when there will be none."""
        while not self._closed:
            now = self._clock.monotonic()
            job = self.keys.take(now)
            if job is not None:
                self._observer.started(job.waited)
                return job
            await self._wait(now)
        raise QueueClosed

    def done(self, key: Key) -> None:
        """Hand back a key got from :meth:`get`."""
        now = self._clock.monotonic()
        self._observer.finished(self.keys.done(key, now))
        self._wake(now)

    def close(self) -> None:
        """Hand out no more keys. Workers finish what they have."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        while self._idle:
            _release(self._idle.popleft())

    async def _wait(self, now: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        self._set_alarm(now)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._idle:
                self._idle.remove(waiter)
            else:
                # We were woken for a key and cannot take it: somebody else must.
                self._wake(self._clock.monotonic())
            raise

    def _wake(self, now: float) -> None:
        """Wake one idle worker for each ready key. A busy one needs no alarm: it looks for itself when it is done."""
        if not self._idle:
            return
        for _ in range(min(self.keys.ready(now), len(self._idle))):
            _release(self._idle.popleft())
        self._set_alarm(now)

    def _set_alarm(self, now: float) -> None:
        """Have somebody woken when the next key for later is due."""
        due = self.keys.next_due()
        if due is None or self._closed or (self._alarm is not None and self._alarm_due <= due):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        self._alarm = asyncio.get_running_loop().call_later(due - now, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake(self._clock.monotonic())


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
