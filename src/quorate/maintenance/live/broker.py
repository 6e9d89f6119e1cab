"""The broker of a live cluster, put together: what its controllers are, and what happens when a term begins and ends.

    begin       the ledger is ours from now on, and read; nothing is answered yet
    caught up   the model is made like the caches, and the lock table says what permissions hold; then it is answered
    end         nothing is answered any more

So no volume's step can begin before the lock table knows every permission in force: workers come after ``caught up``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.meta import Resource
from quorate.engine import Controller, Key, Plan, Reader, Signal, Watch, no_keys
from quorate.engine.cache import Cache
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.errors import QuorateError
from quorate.locks import LockTable
from quorate.maintenance.broker import Broker, Identities, Metrics
from quorate.maintenance.live.allocation import Allocation
from quorate.maintenance.live.config import config_controller
from quorate.maintenance.live.locks import LiveLocks
from quorate.maintenance.live.notes import KINDS
from quorate.maintenance.live.objects import LedgerObjects
from quorate.maintenance.live.source import INDEXES, LiveSource
from quorate.maintenance.log import ObjectLog
from quorate.maintenance.messages import ChangeKind
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.monitor.watching import Monitor

log = get_logger(__name__)

THE_CLUSTER: Final = Key("", "cluster")


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Whether the model is behind the caches; and in how many seconds time alone will make it so."""

    now: bool
    due_in: float | None


class LiveBroker:
    """Implements :class:`quorate.engine.manager.Tenure`. ``broker`` is what every interface asks."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        table: LockTable,
        *,
        holder: str,
        metrics: Metrics | None = None,
        identities: Identities | None = None,
    ) -> None:
        self.model = ClusterModel(BrokerConfigSpec())
        self.source = LiveSource(self.model, table, clock)
        self.locks = LiveLocks(table, self.model, self.source.names)
        self._log = ObjectLog(store, clock, lambda: self.model.settings.log_config)
        self.broker = Broker(
            store,
            self.model,
            clock,
            holder=holder,
            log=self._log,
            metrics=metrics,
            identities=identities,
            locks=self.locks,
        )
        #: Told when somebody else has the ledger although this process leads.
        self.on_lost: Callable[[str], None] = _nobody_minds
        self._monitor = Monitor(self.broker, self.model, store, clock, self._log)
        self._table = table
        self._work: set[asyncio.Task[None]] = set()
        self._changed = Signal()
        #: Which version of the nodes permissions show.
        self._nodes_shown = 0
        self._numbers = Allocation(self.broker, self.source.names, self._start, clock)
        self._objects = LedgerObjects(self.broker, self.model, self.source.names, self._start, clock)
        self.source.on_change(partial(self._changed.wake, THE_CLUSTER))

    def controllers(self) -> tuple[Controller[Any], ...]:
        """For the manager that this goes along with."""
        return (
            Controller(
                name="broker-cluster",
                watches=tuple(Watch(cls, no_keys) for cls in KINDS),
                observe=self._observe,
                decide=self._decide,
                indexes=INDEXES,
                always=(THE_CLUSTER,),
                signals=(self._changed,),
                workers=1,
            ),
            self._numbers.controller(),
            *self._objects.controllers(),
            config_controller(lambda: self.model.settings, self.broker.configure),
        )

    def follow(self, caches: Mapping[type[Resource], Cache[Any]], reader: Reader) -> None:
        """Of the manager that runs the controllers."""
        self._objects.follow(reader)
        self.source.follow(caches, reader)

    # A term

    async def begin(self, epoch: int) -> None:
        """Take the ledger over."""
        self._table.forget_claims()
        self._numbers.begin()
        self._objects.begin()
        await self._log.open()
        await self.broker.start(epoch or None, serve=False)
        await self._monitor.start()

    async def caught_up(self) -> None:
        """The caches show the cluster as it is: so does the model, and questions are answered."""
        self.source.set_markers(self.broker.ledger.markers)
        await self.source.catch_up()
        self.locks.refresh()
        self.broker.serve()
        for work in (self._listen(), self._log.run(), self._monitor.run()):
            self._start(work)

    def end(self) -> None:
        """Somebody else leads, or nobody."""
        self.broker.step_down("this process does not lead (any more)")
        for task in tuple(self._work):
            task.cancel()

    async def close(self) -> None:
        """The process ends."""
        await self.broker.close()
        await asyncio.gather(*self._work, return_exceptions=True)
        try:
            await self._log.flush()
        except QuorateError as error:
            log.warning("the last records of the broker's log are lost", error=str(error))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("something that the broker does beside its passes failed", error=repr(error))

    # The model follows

    def _observe(self, _: Reader, __: Key) -> Unsettled:
        return Unsettled(self.source.unsettled, self.source.due_in())

    def _decide(self, seen: Unsettled, _: datetime, __: Random) -> Plan:
        return Plan(effects=(self._settle,) if seen.now else (), requeue_after=seen.due_in)

    def _settle(self) -> None:
        if self.source.settle():
            self.locks.refresh()
            self.broker.cluster_changed()
        if self.source.nodes_version != self._nodes_shown:
            self._nodes_shown = self.source.nodes_version
            self._objects.nodes_changed()
        if self.source.names.disputed:
            self._numbers.wake()
        self._changed.wake(THE_CLUSTER)  # to see when something is due next

    async def _listen(self) -> None:
        """Hear of everything that is decided, for as long as we lead."""
        changes = self.broker.changes(reasons=True)
        self._objects.wake_all()
        async for change in changes:
            if change.kind is ChangeKind.MARKER:
                self.source.set_markers(self.broker.ledger.markers)
            self._objects.tell(change)
            await asyncio.sleep(0)  # where the next one is there already, taking it lets nobody else through
        self.on_lost("the broker's ledger is somebody else's")


def _nobody_minds(why: str) -> None:
    log.error("the broker does not answer any more", why=why)
