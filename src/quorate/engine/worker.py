"""One controller at work: keys in, passes over them, and what becomes of each.

What a failure means:

| failure                                        | counted as | then                                                   |
|------------------------------------------------|------------|--------------------------------------------------------|
| Conflict, AlreadyExists, NotFound, StillThere  | conflict   | look again, with back-off: the cache is behind         |
| OutcomeUnknown, any server error               | requeue    | read the object again past the cache, then look again  |
| TooManyRequests                                | requeue    | look again when the server said, or later              |
| NotLeader                                      | requeue    | look again soon, if the term goes on after all         |
| the pass took too long                         | error      | read again if a write was under way, then look again   |
| StoreUnreachable                               | error      | look again soon, for as long as it lasts               |
| Invalid, Forbidden, …                          | error      | logged; look again, with back-off                      |
| exception in observe or decide, InvalidPlan    | error      | also a panic, logged with its traceback; as above      |

"Soon" is within seconds, also after hours: while nobody can be asked nothing is known against the key, and when the
outage is over what it has held up must not wait for the end of a long back-off. The same goes for server errors and
lost answers (``_AWAY``).

An exception in a function of a Watch is a panic too. ``keys`` that fails wakes nobody, ``when`` that fails means yes,
and everything else goes on: one bad object must not end a process that would meet it again at its next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from quorate.api.meta import Resource
from quorate.engine.apply import Doubt, StillThere, apply
from quorate.engine.cache import Cache
from quorate.engine.clock import Clock
from quorate.engine.controller import Controller, Watch, no_keys, own_key
from quorate.engine.keys import Key, key_of
from quorate.engine.logs import Logger, get_logger
from quorate.engine.metrics import ControllerMetrics
from quorate.engine.plan import NOTHING, Plan, PlanEvent
from quorate.engine.queue import RESYNC, QueueClosed, WorkQueue
from quorate.engine.reader import Reader
from quorate.engine.writer import Writer
from quorate.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    InvalidPlan,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    QuorateError,
    StoreUnreachable,
    TooManyRequests,
)

S = TypeVar("S")

log = get_logger(__name__)

#: A worker makes passes for so many seconds, or so many of them, before it lets others run. Going through the event
#: loop costs more than a pass that finds nothing to do; and while deciding lags behind, writers must not run ahead.
SLICE = 0.001
PASSES_IN_A_SLICE = 64

#: Conflicts in a row, over about a second, before a key is logged as a warning; and outages before it is no more.
QUIET_PASSES = 8

#: The store, or the right to write to it, is away for a while. Server errors are of this sort too.
_AWAY = (NotLeader, OutcomeUnknown, StoreUnreachable)


class _Job(NamedTuple):
    """A pass over a key."""

    key: Key
    priority: int
    #: Of all passes of this controller.
    number: int
    #: None if there is none yet.
    plan: Plan | None


class Worker(Generic[S]):
    """Runs one controller, with as many tasks as it has workers."""

    def __init__(
        self,
        controller: Controller[S],
        *,
        caches: dict[type[Resource], Cache[Any]],
        reader: Reader,
        writer: Writer,
        record: Callable[[PlanEvent], None],
        clock: Clock,
        random: Random,
        metrics: ControllerMetrics,
    ) -> None:
        self.controller = controller
        self.queue = WorkQueue(clock=clock, random=random, observer=metrics)
        self._caches = caches
        self._reader = reader
        self._writer = writer
        self._record = record
        self._clock = clock
        self._random = random
        self._metrics = metrics
        self._doubts: dict[Key, dict[Doubt, None]] = {}
        #: How to give back what is claimed for writes whose outcome is in doubt.
        self._claims: dict[Key, Callable[[], None]] = {}
        metrics.follow(self.queue.keys)

    @contextmanager
    def woken(self) -> Iterator[None]:
        """While inside, changes in the caches wake their keys."""
        ends = [self._follow(watch) for watch in self.controller.watches if watch.keys is not no_keys]
        ends += [signal.subscribe(self.queue.wake) for signal in self.controller.signals]
        try:
            yield
        finally:
            for end in ends:
                end()

    def resync(self) -> None:
        """Ask for a pass over every key there is, behind everything that has just happened."""
        for watch in self.controller.watches:
            for obj in self._caches[watch.cls].list():
                try:
                    for key in watch.keys(obj):
                        self.queue.add(key, priority=RESYNC)
                except Exception:
                    self._panicked(self._about_watch(watch, key_of(obj)))
        for key in self.controller.always:
            self.queue.add(key, priority=RESYNC)

    async def work(self) -> None:
        """Work on keys, one at a time, until the queue is closed."""
        while True:
            try:
                await self.queue.ready()
            except QueueClosed:
                return
            job = self._look()
            if job is not None:
                try:
                    await self._carry_out(job)
                finally:
                    self.queue.done(job.key)

    def _look(self) -> _Job | None:
        """Make passes for a while, up to the first that has something to wait for: then the worker holds its key.

        Of all that the engine does, this is done most often, so what can be counted once for all passes is.
        """
        observe, decide = self.controller.observe, self.controller.decide
        reader, random, keys, doubts = self._reader, self._random, self.queue.keys, self._doubts
        monotonic, now = self._clock.monotonic, self._clock.now()
        plain = self._is_plain()
        job = None
        more_than_nothing = 0
        begun = monotonic()
        stop_at = begun + SLICE
        #: Since when each key was ready; and when its pass began, with the end of the last one.
        ready: list[float] = []
        times = [begun]
        for key, priority, since in keys.turns(begun):
            ready.append(since)
            if doubts and key in doubts:
                job = _Job(key, priority, keys.passes, None)
                break
            try:
                snapshot = observe(reader, key)
                plan = NOTHING if snapshot is None else decide(snapshot, now, random)
                if plan is not NOTHING or not plain:
                    if plan.steps:
                        job = _Job(key, priority, keys.passes, plan)
                        break
                    more_than_nothing += 1
                    self._finish(key, plan, begun)
            except Exception as error:
                more_than_nothing += 1
                self._failed(_Job(key, priority, keys.passes, None), error)
                plain = False
            begun = monotonic()
            times.append(begun)
            if begun >= stop_at or len(ready) == PASSES_IN_A_SLICE:
                break
        if job is not None:
            self.queue.hold(job.key, begun)
        self._metrics.all_started(times, ready)
        self._metrics.all_finished(times[1:], times)
        self._metrics.success(len(times) - 1 - more_than_nothing)
        return job

    def _is_plain(self) -> bool:
        """Whether a pass that comes to nothing leaves nothing to be remembered or forgotten of its key."""
        return not (self.controller.rest or self.queue.failures or self.queue.outages)

    def _finish(self, key: Key, plan: Plan, begun: float) -> None:
        """The end of a pass that has nothing to wait for: effects never do."""
        for effect in plan.effects:
            effect()
        if self.controller.rest and not plan.effects:
            self.queue.keys.rest(key, begun, begun + self.controller.rest)
        self._succeeded(key, plan)

    async def _carry_out(self, job: _Job) -> None:
        plan = job.plan
        try:
            async with asyncio.timeout(self.controller.timeout):
                if plan is None:
                    plan = await self._decide_anew(job.key)
                await self._apply(job.key, plan)
            for effect in plan.effects:
                effect()
        except Exception as error:
            self._failed(job, error)
        else:
            self._succeeded(job.key, plan)

    async def _decide_anew(self, key: Key) -> Plan:
        """Clear up what is in doubt about a key, then observe and decide."""
        doubts = self._doubts[key]
        for cls, name in tuple(doubts):
            await self._writer.read_again(cls, name)
            del doubts[cls, name]
        del self._doubts[key]
        if (give_back := self._claims.pop(key, None)) is not None:
            give_back()
        snapshot = self.controller.observe(self._reader, key)
        return NOTHING if snapshot is None else self.controller.decide(snapshot, self._clock.now(), self._random)

    async def _apply(self, key: Key, plan: Plan) -> None:
        doubts: dict[Doubt, None] = {}
        give_back = plan.claim() if plan.claim is not None and plan.steps else None
        try:
            await apply(plan, self._writer, doubts)
        finally:
            if doubts:
                self._doubts[key] = doubts
            if give_back is not None and doubts:
                self._claims[key] = give_back
            elif give_back is not None:
                give_back()

    def _succeeded(self, key: Key, plan: Plan) -> None:
        if self.queue.failures or self.queue.outages:
            self.queue.succeeded(key)
        if plan.steps:
            for event in plan.events:
                self._record(event)
        if plan.requeue_after is None:
            self._metrics.success()
        else:
            self.queue.add(key, after=plan.requeue_after)
            self._metrics.results["requeue_after"]()

    def _failed(self, job: _Job, error: Exception) -> None:
        result, at_least = "error", 0.0
        said = log.bind(**self._about(job))
        match error:
            case NotLeader():
                # Usually the end of the term. But a renewal may still come through: then the key must not be lost.
                result = "requeue"
                said.info("not sent: not the leader at the moment")
            case Conflict() | AlreadyExists() | NotFound() | StillThere():
                result = "conflict"
                # The cache usually catches up within a few passes. If it does not, somebody should know.
                say = said.debug if self.queue.failures.get(job.key, 0) < QUIET_PASSES else said.warning
                say("looking again", error=str(error))
            case TooManyRequests():
                result, at_least = "requeue", error.retry_after or 0.0
                said.warning("store asks to slow down", error=str(error), after=at_least)
            case OutcomeUnknown():
                result = "requeue"
                said.warning("outcome of a write is unknown: reading again", error=str(error))
            case ApiError() if error.code >= 500:
                result, at_least = "requeue", error.retry_after or 0.0
                said.warning("store failed: reading again", error=str(error))
            case TimeoutError():
                self._metrics.timeout()
                said.error("pass took too long", limit=self.controller.timeout)
            case StoreUnreachable():
                say = said.error if self.queue.outages.get(job.key, 0) < QUIET_PASSES else said.debug
                say("store cannot be reached", error=str(error))
            case InvalidPlan():
                self._panicked(said)
            case QuorateError():
                said.error("pass failed", error=str(error))
            case _:
                self._panicked(said)
        if result == "error":
            self._metrics.error()
        self._metrics.results[result]()
        away = isinstance(error, _AWAY) or (isinstance(error, ApiError) and error.code >= 500)
        self.queue.retry(job.key, priority=job.priority, at_least=at_least, away=away)

    def _panicked(self, said: Logger) -> None:
        self._metrics.panic()
        said.exception("exception in our own code")

    def _about(self, job: _Job) -> dict[str, str]:
        controller = self.controller
        kind = controller.watches[0].cls.KIND.name
        reconcile_id = f"{controller.name}-{job.number}"
        return {"controller": controller.name, "kind": kind, "name": str(job.key), "reconcile_id": reconcile_id}

    def _follow(self, watch: Watch[Any]) -> Callable[[], None]:
        """Have changes wake their keys; returns what ends it."""
        cache, keys, when, patience = self._caches[watch.cls], watch.keys, watch.when, watch.patience
        if keys is own_key and when is None and patience is None:
            return cache.follow(self.queue.wake_all)

        def changed(key: Key, old: Any, new: Any) -> None:
            try:
                if when is not None and not when(old, new):
                    return
                wake = self.queue.wake
                if patience is not None and (seconds := patience(old, new)):
                    wake = partial(self.queue.add, after=seconds)
            except Exception:
                self._panicked(self._about_watch(watch, key))  # then rather once too often, and too early
                wake = self.queue.wake
            for obj in (old, new):
                if obj is not None:
                    try:
                        for other in keys(obj):
                            wake(other)
                    except Exception:
                        self._panicked(self._about_watch(watch, key))

        return cache.subscribe(changed)

    def _about_watch(self, watch: Watch[Any], key: Key) -> Logger:
        return log.bind(controller=self.controller.name, kind=watch.cls.KIND.name, name=str(key))
