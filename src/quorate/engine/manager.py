"""One process's controllers: from their caches to their workers, and who keeps an eye on whom.

    run
    ├── reflectors          keep the caches like the store; also while somebody else leads
    ├── keep_hearing        asks after kinds whose silence matters, when nothing is heard of them
    ├── recorder            writes events
    ├── heartbeat           shows that the loop is responsive
    └── terms, one after the other
        ├── elector.hold    renews the lease; when it is lost, the term is cancelled
        └── lead            begin(epoch) → refresh every cache → caught up → workers → end

A new leader's caches may be warm and yet stale, so each takes in a consistent list made after the election before the
first decision. Every task is supervised: one that fails, or ends when it should not, stops the manager with its error.
``stop`` lets workers finish the pass they are in, within a limit, and hands leadership over once no write of ours can
be under way any more. It takes at most GRACE and twice REQUEST_TIMEOUT. Who finds out otherwise that somebody else
leads has it ``step_down``: the term ends, and the Lease is given up so that whoever should lead can.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, NoReturn, Protocol, TypeVar

from prometheus_client import CollectorRegistry

from quorate.api.meta import Resource
from quorate.api.names import NAMESPACE
from quorate.engine.backoff import Backoff
from quorate.engine.cache import Cache, Selection
from quorate.engine.clock import Clock
from quorate.engine.controller import Controller
from quorate.engine.freshness import HEARING, Freshness
from quorate.engine.health import Health
from quorate.engine.index import Index
from quorate.engine.leader import TIMINGS, Elector, Timings
from quorate.engine.logs import get_logger
from quorate.engine.metrics import EngineMetrics
from quorate.engine.reader import Reader
from quorate.engine.recorder import Recorder
from quorate.engine.reflector import Reflector
from quorate.engine.store import Store
from quorate.engine.worker import Worker
from quorate.engine.writer import REQUEST_TIMEOUT, Writer
from quorate.errors import EpochPassed, NotLeader, QuorateError

T = TypeVar("T")

log = get_logger(__name__)

#: Everything is looked at again so often, in seconds, although nothing should have been missed.
RESYNC_INTERVAL = 20 * 3600.0
#: How soon it is noticed, in seconds, that the interval has been changed.
RESYNC_CHECK = 60.0
#: Workers, and after them the last events, may take so many seconds together to finish when we stop.
GRACE = 16.0
#: The events no more than this of it.
FLUSH = 2.0

HEARTBEAT = 5.0
#: Seconds without a heartbeat after which the loop counts as blocked.
HEARTBEAT_LIMIT = 30.0

#: Seconds for which who has stepped down lets others try.
_AFTER_YOU = 5.0

_ELECTED_RETRY = Backoff(first=0.1, longest=2.0)

#: What is made here mostly stays, in caches and in the store's history, and has no cycles: after so many new objects,
#: instead of Python's 700, the garbage collector goes through as many in a third of the time.
_GC_THRESHOLDS = (10_000, 10, 10)


@dataclass(frozen=True, slots=True)
class Election:
    """The Lease by which processes agree on a leader."""

    lease: str
    namespace: str = NAMESPACE
    timings: Timings = TIMINGS


class Tenure(Protocol):
    """Something that works only while this process leads, beside the controllers."""

    async def begin(self, epoch: int) -> None:
        """A term begins, and nothing of it has happened yet. Called again if it fails.

        NotLeader: it must not begin, and we step down. The epoch is zero where nobody is elected.
        """
        ...

    async def caught_up(self) -> None:
        """Every cache has taken in a list made since; the workers come next."""
        ...

    def end(self) -> None:
        """The term is over, however far it has come. No worker is left."""
        ...


class Manager:
    """Runs controllers over a store. Without an ``election`` it always leads, as an agent does on its node."""

    def __init__(
        self,
        store: Store,
        controllers: Sequence[Controller[Any]],
        *,
        clock: Clock,
        random: Random,
        identity: str,
        component: str = "quorate-controller",
        election: Election | None = None,
        on_elected: Sequence[Callable[[int], Awaitable[None]]] = (),
        tenures: Sequence[Tenure] = (),
        selections: Mapping[type[Resource], Selection] | None = None,
        registry: CollectorRegistry | None = None,
        resync_interval: float | Callable[[Reader], float] = RESYNC_INTERVAL,
        freeze_gc: bool = False,
    ) -> None:
        """Set up; nothing runs before :meth:`run`.

        ``on_elected`` is called with the epoch of each term before anything else of it happens, again if it fails;
        ``tenures`` go along with each term.
        ``selections`` limits what is cached of a kind. ``resync_interval`` may be something to ask, which then may
        answer otherwise at any time. ``freeze_gc`` takes the filled caches out of the garbage collector's sight, and
        lets it look at the rest less often, for processes that do nothing else.
        """
        self.metrics = EngineMetrics(registry if registry is not None else CollectorRegistry(), clock)
        self.caches = _make_caches(controllers, selections or {}, self.metrics)
        self._reflectors = [
            Reflector(store, cache, clock=clock, random=random, metrics=self.metrics) for cache in self.caches.values()
        ]
        followed = {cls for controller in controllers for cls in controller.freshness}
        self._followed = [reflector for reflector in self._reflectors if reflector.cache.cls in followed]
        freshness = {reflector.cache.cls: Freshness(reflector, clock) for reflector in self._followed}
        self.reader = Reader(self.caches.values(), freshness)
        self._controllers = controllers
        self._clock = clock
        self._random = random
        self._on_elected = (*on_elected, *(tenure.begin for tenure in tenures))
        self._tenures = tenures
        #: While a term lasts: what ends it early.
        self._leading: asyncio.Task[None] | None = None
        self._stepping_down = False
        self._resync_interval = resync_interval
        self._freeze_gc = freeze_gc
        self._recorder = Recorder(store, component=component, instance=identity, clock=clock, metrics=self.metrics)
        self._elector: Elector | None = None
        if election is not None:
            self._elector = Elector(
                store,
                name=election.lease,
                namespace=election.namespace,
                identity=identity,
                clock=clock,
                random=random,
                metrics=self.metrics,
                timings=election.timings,
            )
        check = self._elector.check if self._elector is not None else _always
        self._writer = Writer(store, self.caches.values(), check=check, clock=clock, metrics=self.metrics)
        self._workers: list[Worker[Any]] = []
        self._stopping = asyncio.Event()
        self._beat = clock.monotonic()

    async def run(self) -> None:
        """Work until :meth:`stop`. Raises the error of whatever failed, as an ExceptionGroup."""
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(_endless(reflector.run(), f"reflector of {reflector.cache.cls.__name__}"))
                for reflector in self._reflectors
            ]
            background += [
                group.create_task(_endless(reflector.keep_hearing(HEARING), f"ear for {reflector.cache.cls.__name__}"))
                for reflector in self._followed
            ]
            background.append(group.create_task(_endless(self._recorder.run(), "recorder")))
            background.append(group.create_task(_endless(self._keep_beating(), "heartbeat")))
            await self._serve()
            for task in background:
                task.cancel()

    def stop(self) -> None:
        """Ask :meth:`run` to come to an end."""
        self._stopping.set()

    def step_down(self, why: str) -> None:
        """Somebody else leads, or must: end the term, and give the Lease up. Then we stand by like any other."""
        if self._leading is not None and not self._stepping_down:
            log.error("stepping down", why=why)
            self._stepping_down = True
            self._leading.cancel()

    @property
    def leading(self) -> bool:
        """Whether this process decides and writes at the moment."""
        return bool(self._workers) and (self._elector is None or self._elector.may_write())

    def health(self) -> Health:
        """How it is, for probes."""
        now = self._clock.monotonic()
        not_live = []
        if now - self._beat > HEARTBEAT_LIMIT:
            not_live.append(f"the event loop has been blocked for {now - self._beat:.0f} s")
        for worker in self._workers:
            limit = 2 * worker.controller.timeout
            for key, since in worker.queue.keys.taken().items():
                if now - since > limit:
                    name = worker.controller.name
                    not_live.append(
                        f"{name} has been working on {key} for {now - since:.0f} s, allowed are {limit:.0f} s"
                    )
        not_ready = [
            f"{cls.__name__} has not been listed yet" for cls, cache in self.caches.items() if not cache.synced.is_set()
        ]
        if self._stopping.is_set():
            not_ready.append("stopping")
        return Health(tuple(not_live), tuple(not_ready))

    async def _serve(self) -> None:
        """Terms, until stopped."""
        if not await self._unless_stopped(self._synced()):
            return
        if self._freeze_gc:
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)
        if self._elector is None:
            await self._lead(0)
            return
        while not self._stopping.is_set():
            epoch = await self._unless_stopped(self._elector.acquire())
            if epoch is not None:
                await self._serve_term(self._elector, epoch)
            if self._stepping_down and not self._stopping.is_set():
                await self._give_up(self._elector)
                self._stepping_down = False
                # Whoever else wants to lead comes first.
                await self._unless_stopped(self._clock.sleep(_AFTER_YOU))
        await self._give_up(self._elector)

    async def _give_up(self, elector: Elector) -> None:
        # A write that got no answer may still be on its way. It must not arrive after the next leader has decided.
        await self._clock.sleep(max(0.0, self._writer.unsettled_until - self._clock.monotonic()))
        await elector.release()

    async def _serve_term(self, elector: Elector, epoch: int) -> None:
        """Lead for as long as the lease is held."""
        async with asyncio.TaskGroup() as term:
            lead = self._leading = term.create_task(self._lead(epoch), name=f"term {epoch}")
            hold = term.create_task(elector.hold(), name=f"lease of term {epoch}")
            hold.add_done_callback(lambda _: lead.cancel())
            lead.add_done_callback(lambda _: hold.cancel())

    async def _lead(self, epoch: int) -> None:
        try:
            await self._lead_term(epoch)
        finally:
            self._leading = None
            for tenure in self._tenures:
                tenure.end()

    async def _lead_term(self, epoch: int) -> None:
        if not await self._unless_stopped(self._begin(epoch)):
            if self._on_elected:  # which may have been writing
                self._writer.unsettled_until = self._clock.monotonic() + REQUEST_TIMEOUT
            return
        workers = [self._make_worker(controller) for controller in self._controllers]
        with ExitStack() as woken:
            for worker in workers:
                woken.callback(worker.queue.close)
                woken.enter_context(worker.woken())
                worker.resync()
                await asyncio.sleep(0)
            self._workers = workers
            try:
                await self._work(workers)
            finally:
                self._workers = []

    async def _begin(self, epoch: int) -> bool:
        """What must be done before the first decision of a term."""
        for hook in self._on_elected:
            try:
                await self._insist(partial(hook, epoch), "could not start the term")
            except NotLeader as error:
                if self._elector is None:
                    raise
                if isinstance(error, EpochPassed):
                    self._elector.go_above(error.known)
                log.error("stepping down: the term cannot begin", epoch=epoch, why=str(error))
                self._stepping_down = True
                return False
        for reflector in self._reflectors:
            await self._insist(reflector.refresh, "could not refresh a cache")
        for tenure in self._tenures:
            await tenure.caught_up()
        return True

    async def _work(self, workers: Sequence[Worker[Any]]) -> None:
        """Work until stopped, then until every worker has finished its pass, or the grace period is over."""
        now = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(None) as limit:
                async with asyncio.TaskGroup() as group:
                    for worker in workers:
                        for number in range(worker.controller.workers):
                            group.create_task(worker.work(), name=f"{worker.controller.name} worker {number}")
                    resync = group.create_task(self._keep_resyncing(workers), name="resync")
                    await self._stopping.wait()
                    give_up_at = now() + GRACE
                    limit.reschedule(give_up_at)
                    resync.cancel()
                    for worker in workers:
                        worker.queue.close()
                limit.reschedule(min(give_up_at, now() + FLUSH))
                await self._recorder.flush()
        except TimeoutError:
            log.warning("not everything was finished in time", seconds=GRACE)

    def _make_worker(self, controller: Controller[Any]) -> Worker[Any]:
        return Worker(
            controller,
            caches=self.caches,
            reader=self.reader,
            writer=self._writer,
            record=self._recorder.record,
            clock=self._clock,
            random=self._random,
            metrics=self.metrics.controller(controller.name, controller.workers),
        )

    async def _keep_resyncing(self, workers: Sequence[Worker[Any]]) -> None:
        last = self._clock.monotonic()
        while True:
            remaining = last + self._resync_seconds() - self._clock.monotonic()
            if remaining > 0:
                await self._clock.sleep(min(remaining, RESYNC_CHECK))
                continue
            last = self._clock.monotonic()
            for worker in workers:
                worker.resync()
                await asyncio.sleep(0)

    def _resync_seconds(self) -> float:
        interval = self._resync_interval
        return interval(self.reader) if callable(interval) else interval

    async def _keep_beating(self) -> None:
        while True:
            self._beat = self._clock.monotonic()
            await self._clock.sleep(HEARTBEAT)

    async def _synced(self) -> bool:
        for cache in self.caches.values():
            await cache.synced.wait()
        return True

    async def _insist(self, action: Callable[[], Awaitable[None]], complaint: str) -> None:
        """Do something that the term cannot go on without, as often as it takes."""
        failures = 0
        while True:
            try:
                return await action()
            except NotLeader:
                raise
            except QuorateError as error:
                failures += 1
                log.warning(complaint, error=str(error))
                await self._clock.sleep(_ELECTED_RETRY.delay(failures, self._random))

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """The result, or None if we are stopped first."""
        task = asyncio.ensure_future(waiting)
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
            return None if self._stopping.is_set() else await task
        finally:
            task.cancel()
            stopped.cancel()
            await asyncio.gather(task, stopped, return_exceptions=True)


def _make_caches(
    controllers: Iterable[Controller[Any]], selections: Mapping[type[Resource], Selection], metrics: EngineMetrics
) -> dict[type[Resource], Cache[Any]]:
    """A cache for every kind that some controller watches, with every index that some controller reads."""
    indexes: dict[type[Resource], dict[str, Index[Any]]] = {}
    for controller in controllers:
        for cls in (*(watch.cls for watch in controller.watches), *controller.freshness):
            indexes.setdefault(cls, {})
        for index in controller.indexes:
            known = indexes.setdefault(index.cls, {}).setdefault(index.name, index)
            if known != index:
                raise ValueError(
                    f"two controllers mean different things by index {index.name!r} of {index.cls.__name__}"
                )
    return {
        cls: Cache(
            cls,
            selection=selections.get(cls),
            indexes=named.values(),
            panicked=metrics.panics.labels("cache").inc,
        )
        for cls, named in sorted(indexes.items(), key=lambda item: item[0].KIND.qualified_resource)
    }


async def _endless(work: Coroutine[Any, Any, None], name: str) -> NoReturn:
    """Work that must go on as long as the manager does."""
    await work
    raise RuntimeError(f"the {name} ended, which it never should")


def _always() -> None:
    """Without an election one may always write."""
