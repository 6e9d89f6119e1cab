"""Events for people: what ``kubectl describe`` shows below an object.

Best effort by design. Recording never waits and never fails: events go through a bounded buffer to one task of their
own, and what does not fit is dropped and counted. The same (object, reason, message) is one Event with a count, under
a name that is a hash of it, so that a restarted process goes on counting where the last one stopped. An object that
produces more different events than a person would read has the rest dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from quorate.api.codec import to_builtins
from quorate.api.core.event import Event, EventSource, ObjectReference
from quorate.api.meta import ObjectMeta, Resource
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.metrics import EngineMetrics
from quorate.engine.plan import PlanEvent
from quorate.engine.store import Store
from quorate.errors import AlreadyExists, NotFound, QuorateError

T = TypeVar("T")

log = get_logger(__name__)

#: Events of cluster-scoped objects have a namespace all the same, and Kubernetes demands this one.
CLUSTER_EVENTS = "default"

#: What waits to be written, at most.
BUFFER = 1000
#: What is written at the same time, at most: when a node is lost all its volumes have something to tell, and those who
#: write together share a commit.
TOGETHER = 8
#: How many objects and events are remembered, for rates and counts.
MEMORY = 4096
#: An object may have so many events at once, and one more every so many seconds.
BURST, REFILL_SECONDS = 20, 15.0

_MESSAGE_LIMIT = 1024
_NAME_LIMIT = 253


@dataclass(slots=True)
class _Allowance:
    """How many events an object may still have."""

    left: float
    as_of: float


class Recorder:
    """Records events for one component of one process."""

    def __init__(
        self,
        store: Store,
        *,
        component: str,
        instance: str,
        clock: Clock,
        metrics: EngineMetrics,
    ) -> None:
        self._store = store
        self._component = component
        self._instance = instance
        self._clock = clock
        self._dropped = metrics.events_dropped
        self._buffer: asyncio.Queue[PlanEvent] = asyncio.Queue(BUFFER)
        self._allowances: OrderedDict[str, _Allowance] = OrderedDict()
        self._recorded: OrderedDict[str, Event] = OrderedDict()

    def record(self, event: PlanEvent) -> None:
        """Record an event some time soon, if possible. Never waits, never fails."""
        if not self._allowed(event.obj):
            self._dropped.labels("rate").inc()
            return
        try:
            self._buffer.put_nowait(event)
        except asyncio.QueueFull:
            self._dropped.labels("full").inc()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            events = [await self._buffer.get()]
            while len(events) < TOGETHER and not self._buffer.empty():
                events.append(self._buffer.get_nowait())
            alike: dict[str, list[Event]] = {}
            for event in map(self._make, events):
                alike.setdefault(event.name, []).append(event)
            try:
                await asyncio.gather(*map(self._write_all, alike.values()))
            finally:
                for _ in events:
                    self._buffer.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far is written."""
        await self._buffer.join()

    async def _write_all(self, alike: list[Event]) -> None:
        """The same event, as often as it happened: each is counted on top of the last."""
        for event in alike:
            try:
                await self._write(event)
            except QuorateError as error:
                self._dropped.labels("error").inc()
                about = event.involved_object
                said = log.bind(reason=event.reason, kind=about.kind, name=about.name)
                said.warning("event not recorded", error=str(error))

    async def _write(self, new: Event) -> None:
        known = self._recorded.get(new.name)
        try:
            written = await (self._store.create(new) if known is None else self._count(known, new))
        except AlreadyExists:
            # Recorded by an earlier process.
            written = await self._count(await self._store.get(Event, new.name, new.namespace), new)
        except NotFound:
            # The server forgets events after a while.
            written = await self._store.create(new)
        _remember(self._recorded, new.name, written)

    async def _count(self, known: Event, new: Event) -> Event:
        patch = {"count": (known.count or 1) + 1, "lastTimestamp": to_builtins(new.last_timestamp)}
        return await self._store.patch(Event, known.name, known.namespace, patch=patch)

    def _make(self, event: PlanEvent) -> Event:
        obj, kind = event.obj, event.obj.KIND
        message = event.message if len(event.message) <= _MESSAGE_LIMIT else event.message[: _MESSAGE_LIMIT - 1] + "…"
        severity = "Warning" if event.warning else "Normal"
        now = self._clock.now()
        return Event(
            metadata=ObjectMeta(
                name=_event_name(obj, severity, event.reason, message),
                namespace=obj.namespace or CLUSTER_EVENTS,
            ),
            involved_object=ObjectReference(
                api_version=kind.api_version,
                kind=kind.name,
                namespace=obj.namespace,
                name=obj.name,
                uid=obj.metadata.uid,
                resource_version=obj.metadata.resource_version,
            ),
            type=severity,
            reason=event.reason,
            message=message,
            count=1,
            first_timestamp=now,
            last_timestamp=now,
            source=EventSource(component=self._component),
            reporting_component=self._component,
            reporting_instance=self._instance,
        )

    def _allowed(self, obj: Resource) -> bool:
        """Spend one of the object's events, if it has any left."""
        uid, now = obj.metadata.uid, self._clock.monotonic()
        allowance = self._allowances.get(uid) or _Allowance(BURST, now)
        allowance.left = min(BURST, allowance.left + (now - allowance.as_of) / REFILL_SECONDS)
        allowance.as_of = now
        _remember(self._allowances, uid, allowance)
        if allowance.left < 1:
            return False
        allowance.left -= 1
        return True


def _event_name(obj: Resource, *parts: str) -> str:
    text = "\0".join((obj.KIND.qualified_resource, obj.metadata.uid, obj.namespace, obj.name, *parts))
    suffix = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{obj.name[: _NAME_LIMIT - len(suffix) - 1]}.{suffix}"


def _remember(memory: OrderedDict[str, T], key: str, value: T) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MEMORY:
        memory.popitem(last=False)
