"""Keys that wait for a worker.

- A key waits at most once; while a worker has it, adding it again means exactly one more pass afterwards.
- A key that nothing was to be done about may rest: what happens to it meanwhile waits for the end of that.
- A key may be added for later. Of several requests the earliest time and the highest priority count.
- Higher priorities go first, and within one priority who came first. A waiting key that is asked for with a higher
  priority leaves its place and joins the end of that one.
- Failures of a key in a row make it wait longer and longer; a success forgets them. That the store was away is no
  failure of the key's: it is counted apart, and makes nobody wait for more than a few seconds (``AWAY``). Otherwise
  what an outage has held up would be written minutes after its end.

Priorities keep a resync of ten thousand objects from delaying what just happened. So that the reverse cannot happen
either, every ``FAIRNESS``-th pass is given to whichever of the keys that are next in their priority has been ready
longest: however busy the rest is, a resync gets that share of the passes, and a fresh event loses no more to it.

``KeyQueue`` is the data structure and takes the time as an argument; ``WorkQueue`` adds waiting for a key. Most passes
find nothing to do and are over before anybody else runs, so a worker first pops a key, and holds it only for as long
as something has to be waited for: a key that is popped is in nobody's way.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from quorate.engine.backoff import Backoff
from quorate.engine.clock import Clock
from quorate.engine.keys import Key

#: Something happened, or a decision asked to be called again.
FRESH = 0
#: Nothing happened; we look whether everything is still right.
RESYNC = -100

FAIRNESS = 8

RETRY = Backoff(first=0.005, longest=300.0)
AWAY = Backoff(first=0.005, longest=10.0)


@dataclass(slots=True)
class _Request:
    """A key that waits for its time, or for the worker that has it."""

    priority: int
    due: float
    #: Which entry of the schedule is its; nothing while a worker has the key.
    turn: int = 0


class _Level:
    """The ready keys of one priority, first come first served, and since when each is ready.

    A dict of the keys and a queue of their turns: an OrderedDict, which is both, takes four times as long.
    """

    __slots__ = ("left", "priority", "since", "turns")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.since: dict[Key, float] = {}
        self.turns: deque[Key] = deque()
        #: Keys that left before their turn, and how many turns of theirs are to be passed over.
        self.left: dict[Key, int] = {}

    def add(self, key: Key, since: float) -> None:
        """A key that is not here yet."""
        self.since[key] = since
        self.turns.append(key)

    def add_all(self, keys: Collection[Key], since: float) -> int:
        """Those of these distinct keys that are not here yet; returns how many."""
        new = [key for key in keys if key not in self.since] if self.since else keys
        self.since.update(dict.fromkeys(new, since))
        self.turns.extend(new)
        return len(new)

    def take(self) -> tuple[Key, float]:
        """The key whose turn it is, and since when it was ready. There must be one."""
        key = self.turns.popleft()
        while self.left and self._passed_over(key):
            key = self.turns.popleft()
        return key, self.since.pop(key)

    def leave(self, key: Key) -> float:
        """Take a key out before its turn; returns since when it was ready."""
        self.left[key] = self.left.get(key, 0) + 1
        return self.since.pop(key)

    @property
    def next_since(self) -> float:
        """Since when the key that is next has been ready."""
        while self.left and self._passed_over(self.turns[0]):
            self.turns.popleft()
        return self.since[self.turns[0]]

    def _passed_over(self, key: Key) -> bool:
        turns = self.left.pop(key, 0)
        if turns > 1:
            self.left[key] = turns - 1
        return turns > 0


class KeyQueue:
    """The rules of the module's docstring, without a clock and without waiting.

    Every event passes through here once per controller, so a key that is simply ready costs one dict entry and no
    object of its own.
    """

    #: The schedule may have so many entries beside twice those that count, before it is made anew.
    slack = 64

    def __init__(self) -> None:
        #: How many keys have been popped.
        self.passes = 0
        self._fresh = _Level(FRESH)
        #: Highest priority first: the usual one always, others while they have keys.
        self._levels: list[_Level] = [self._fresh]
        self._later: dict[Key, _Request] = {}
        #: A heap of when the keys for later are due, and of what such keys left behind: see _is_current.
        self._schedule: list[tuple[float, int, Key]] = []
        self._taken: dict[Key, float] = {}
        #: Keys added while a worker has them.
        self._again: dict[Key, _Request] = {}
        #: Keys that nothing was to be done about, and until when they rest: the soonest first.
        self._resting: dict[Key, float] = {}
        self._turns = 0

    def add(self, key: Key, now: float, *, priority: int = FRESH, due: float | None = None) -> bool:
        """Ask for a pass over this key, now or at ``due``; returns whether nobody had yet."""
        if due is None:
            due = now
        for level in self._levels:
            if key in level.since:
                if priority > level.priority:
                    self._make_ready(key, priority, level.leave(key))
                    self._drop_if_empty(level)
                return False
        held = self._again if key in self._taken else self._later
        request = held.get(key)
        if request is not None:
            request.priority = priority = max(priority, request.priority)
            if due >= request.due:
                return False
            request.due = due
        if held is self._again:
            if request is None:
                held[key] = _Request(priority, due)
        else:
            self._place(key, priority, due, now)
        return request is None

    def wake(self, keys: Collection[Key], now: float) -> int:
        """:meth:`add` for what happens most: something happened to these distinct keys; returns how many are new.

        Usually nothing is known of any key but that some are ready, and then there is only one place to look.
        """
        if self._later or self._taken or self._resting or len(self._levels) > 1:
            return sum([self.add(key, now, due=max(now, self._resting.get(key, now))) for key in keys])
        return self._fresh.add_all(keys, now)

    def pop(self, now: float) -> tuple[Key, int, float] | None:
        """The key whose turn it is, its priority and since when it has been ready; None if no key is ready."""
        return next(self.turns(now), None)

    def turns(self, now: float) -> Iterator[tuple[Key, int, float]]:
        """:meth:`pop`, again and again, of what is ready now or comes meanwhile; each key when it is asked for."""
        if self._schedule:
            self._promote(now)
        levels, fresh = self._levels, self._fresh
        since, next_turn, left = fresh.since, fresh.turns.popleft, fresh.left
        while True:
            if len(levels) == 1 and not left:
                if not since:
                    return
                key = next_turn()
                self.passes += 1
                yield key, FRESH, since.pop(key)
            else:
                level = self._next_level()
                if level is None:
                    return
                self.passes += 1
                key, ready = level.take()
                self._drop_if_empty(level)
                yield key, level.priority, ready

    def _next_level(self) -> _Level | None:
        """Whose turn it is when keys of several priorities are ready, or of another than the usual one."""
        waiting = [level for level in self._levels if level.since]
        if not waiting:
            return None
        if self.passes % FAIRNESS == FAIRNESS - 1:
            # Of two that have been ready for equally long, the one that would not have its turn otherwise.
            return min(reversed(waiting), key=lambda level: level.next_since)
        return waiting[0]

    def rest(self, key: Key, now: float, until: float) -> None:
        """Nothing was to be done about a popped key: what happens to it until then is looked at then."""
        self._resting.pop(key, None)
        self._resting[key] = until
        while (first := next(iter(self._resting))) != key and self._resting[first] <= now:
            del self._resting[first]

    def hold(self, key: Key, since: float) -> None:
        """A popped key stays with its worker, who has had it since then, until :meth:`done`."""
        self._taken[key] = since

    def done(self, key: Key, now: float) -> float:
        """The pass over a key that was held is over; returns how long it took."""
        took = now - self._taken.pop(key)
        if self._again and (request := self._again.pop(key, None)) is not None:
            self._place(key, request.priority, request.due, now)
        return took

    def next_due(self) -> float | None:
        """When the next key for later becomes ready."""
        while self._schedule:
            due, turn, key = self._schedule[0]
            if self._is_current(key, turn):
                return due
            heapq.heappop(self._schedule)
        return None

    def ready(self, now: float) -> int:
        """How many keys a worker could take."""
        if self._schedule:
            self._promote(now)
        return len(self._fresh.since) if len(self._levels) == 1 else sum(self.depth().values())

    def depth(self) -> dict[int, int]:
        """How many keys are ready, by priority."""
        return {level.priority: len(level.since) for level in self._levels}

    def taken(self) -> dict[Key, float]:
        """Keys that workers have, and since when."""
        return self._taken

    def _place(self, key: Key, priority: int, due: float, now: float) -> None:
        if due <= now:
            self._later.pop(key, None)
            self._make_ready(key, priority, due)
        else:
            self._turns += 1
            self._later[key] = _Request(priority, due, self._turns)
            heapq.heappush(self._schedule, (due, self._turns, key))
            if len(self._schedule) > 2 * len(self._later) + self.slack:
                self._schedule = [(request.due, request.turn, key) for key, request in self._later.items()]
                heapq.heapify(self._schedule)

    def _make_ready(self, key: Key, priority: int, since: float) -> None:
        for level in self._levels:
            if level.priority == priority:
                break
        else:
            level = _Level(priority)
            self._levels.append(level)
            self._levels.sort(key=lambda each: -each.priority)
        level.add(key, since)

    def _drop_if_empty(self, level: _Level) -> None:
        if not level.since and level is not self._fresh:
            self._levels.remove(level)

    def _promote(self, now: float) -> None:
        while self._schedule and self._schedule[0][0] <= now:
            due, turn, key = heapq.heappop(self._schedule)
            if self._is_current(key, turn):
                request = self._later.pop(key)
                self._make_ready(key, request.priority, due)

    def _is_current(self, key: Key, turn: int) -> bool:
        """A key that was asked for at an earlier time, or at once, left its old entry in the schedule behind."""
        request = self._later.get(key)
        return request is not None and request.turn == turn


class QueueObserver(Protocol):
    """Hears what happens in a queue; ``engine.metrics`` makes numbers of it."""

    def added(self, keys: int = 1, /) -> None: ...
    def retried(self) -> None: ...
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
        #: How often in a row passes over a key have failed.
        self.failures: dict[Key, int] = {}
        #: How often in a row the store was away when a key needed it.
        self.outages: dict[Key, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        #: A worker was woken and has not run since. It will find everything that becomes ready until then.
        self._waking = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = 0.0
        self._closed = False

    def add(self, key: Key, *, priority: int = FRESH, after: float = 0.0) -> None:
        """Ask for a pass over this key, now or ``after`` so many seconds."""
        now = self._clock.monotonic()
        if self.keys.add(key, now, priority=priority, due=now + after):
            self._observer.added()
        if self._idle:
            self._wake(now)

    def wake(self, key: Key) -> None:
        """Ask for a pass over this key now, because something happened; one that rests waits for the end of that."""
        self.wake_all((key,))

    def wake_all(self, keys: Collection[Key]) -> None:
        """:meth:`wake` for each of these keys, which cost far less together."""
        now = self._clock.monotonic()
        if woken := self.keys.wake(keys, now):
            self._observer.added(woken)
        if self._idle and not self._waking:
            self._wake(now)

    def retry(self, key: Key, *, priority: int, at_least: float = 0.0, away: bool = False) -> float:
        """Ask for another pass after a failure, the later the more there were; returns the delay.

        ``away``: the store could not be asked, so nothing is known against the key.
        """
        counted, backoff = (self.outages, AWAY) if away else (self.failures, self._retry)
        failures = counted[key] = counted.get(key, 0) + 1
        delay = max(at_least, backoff.delay(failures, self._random))
        self._observer.retried()
        self.add(key, priority=priority, after=delay)
        return delay

    def succeeded(self, key: Key) -> None:
        """Forget what went wrong with a key. Most have nothing to forget: whoever makes many passes asks before."""
        self.failures.pop(key, None)
        self.outages.pop(key, None)

    async def ready(self) -> None:
        """Let others run, then wait until there is a key to pop; QueueClosed when there will be none.

        Several may be told of the same key, so there may be none left.
        """
        if not self._closed:
            now = self._clock.monotonic()
            if self.keys.ready(now):
                # A pass that does nothing never waits: ten thousand of them would hold up everybody else.
                await asyncio.sleep(0)
            else:
                await self._wait(now)
        if self._closed:
            raise QueueClosed

    def hold(self, key: Key, since: float) -> None:
        """Keep a popped key for as long as something has to be waited for; what else is ready is for somebody else."""
        self.keys.hold(key, since)
        if self._idle:
            self._wake(self._clock.monotonic())

    def done(self, key: Key) -> None:
        """Hand back a key that was held."""
        now = self._clock.monotonic()
        self._observer.finished(self.keys.done(key, now))
        if self._idle:
            self._wake(now)

    def close(self) -> None:
        """Hand out no more keys. Workers finish what they have."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._idle:
            _release(self._idle.popleft())

    async def _wait(self, now: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        self._set_alarm(now)
        try:
            await waiter
            self._waking = False
        except asyncio.CancelledError:
            if waiter in self._idle:
                self._idle.remove(waiter)
            else:
                # We were woken for a key and cannot take it: somebody else must.
                self._waking = False
                self._wake(self._clock.monotonic())
            raise

    def _wake(self, now: float) -> None:
        """Wake an idle worker if a key is ready. One: most passes are over before another worker could begin its own.

        A worker that has to wait for something wakes the next (:meth:`hold`). A busy one needs no alarm: it looks for
        itself when it is done.
        """
        if self._waking or not self._idle:
            return
        if self.keys.ready(now):
            self._waking = True
            _release(self._idle.popleft())
        else:
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
