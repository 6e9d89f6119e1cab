"""A store behind a bad network: late, lost, doubled and reordered, as a seed decides.

A request travels on a process of its own, "the network": it arrives even if its sender is paused, killed or has given
up on it, as a packet would. Whether the answer comes back is another matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar, cast

from quorate.api.meta import Resource
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.simulation import Process, Simulation
from quorate.engine.store import MergePatch, ObjectList, Store, WatchEvent
from quorate.errors import ApiError, Conflict, Expired, OutcomeUnknown, ServerTimeout, StoreUnreachable

R = TypeVar("R", bound=Resource)
T = TypeVar("T")


@dataclass
class Faults:
    """How bad the network is. Rates are per request, or per event of a watch."""

    #: Longest delay of a request and of an answer, each, in seconds.
    latency: float = 0.0
    #: The same for the events of a watch.
    watch_latency: float = 0.0
    conflict: float = 0.0
    unreachable: float = 0.0
    #: The write happens, its answer is lost.
    lost_answer: float = 0.0
    #: The write does not happen, and the sender cannot know.
    lost_request: float = 0.0
    watch_break: float = 0.0
    watch_expire: float = 0.0

    def end(self) -> None:
        """From now on everything works, at the same speed."""
        self.conflict = self.unreachable = self.lost_answer = self.lost_request = 0.0
        self.watch_break = self.watch_expire = 0.0


def bad() -> Faults:
    """All of it, often."""
    return Faults(
        latency=0.5,
        watch_latency=0.5,
        conflict=0.1,
        unreachable=0.05,
        lost_answer=0.1,
        lost_request=0.1,
        watch_break=0.05,
        watch_expire=0.03,
    )


@dataclass(frozen=True)
class Sent:
    """A write that reached the store."""

    at: float
    sender: str
    verb: str
    kind: str
    name: str
    result: str


class FaultyStore:
    """A Store that passes everything on to another one, more or less."""

    def __init__(
        self,
        store: Store,
        sim: Simulation,
        *,
        sender: str,
        faults: Faults,
        network: Process,
        reached: Callable[[Sent], None] = lambda _: None,
    ) -> None:
        #: Whom writes are ascribed to; may change over time.
        self.sender = sender
        self._store = store
        self._clock = sim.clock
        self._random: Random = sim.random(f"network of {sender}")
        self._faults = faults
        self._network = network
        self._reached = reached

    def redirect(self, store: Store) -> None:
        """From now on everything is passed on to this one."""
        self._store = store

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        return await self._read(lambda: self._store.get(cls, name, namespace))

    async def list(
        self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
    ) -> ObjectList[R]:
        return await self._read(lambda: self._store.list(cls, namespace=namespace, labels=labels, fields=fields))

    async def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> AsyncIterator[WatchEvent[R]]:
        events = self._store.watch(
            cls, resource_version=resource_version, namespace=namespace, labels=labels, fields=fields
        )
        async with aclosing(cast("Any", events)):
            async for event in events:
                await self._delay(self._faults.watch_latency)
                if self._happens(self._faults.watch_expire):
                    raise Expired("the network says: too old")
                if self._happens(self._faults.watch_break):
                    if self._happens(0.5):
                        return
                    raise StoreUnreachable("the network says: connection reset")
                yield event

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        return await self._write("create", obj.KIND.name, obj.name, lambda: self._store.create(obj, dry_run=dry_run))

    async def patch(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        return await self._write(
            "patch",
            cls.KIND.name,
            name,
            lambda: self._store.patch(
                cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
            ),
        )

    async def patch_status(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        return await self._write(
            "patch_status",
            cls.KIND.name,
            name,
            lambda: self._store.patch_status(
                cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
            ),
        )

    async def delete(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R | None:
        return await self._write(
            "delete",
            cls.KIND.name,
            name,
            lambda: self._store.delete(
                cls, name, namespace, uid=uid, resource_version=resource_version, dry_run=dry_run
            ),
        )

    async def close(self) -> None:
        await self._store.close()

    def _happens(self, rate: float) -> bool:
        return self._random.random() < rate

    async def _delay(self, longest: float) -> None:
        if longest:
            await self._clock.sleep(self._random.random() * longest)

    async def _read(self, request: Callable[[], Awaitable[T]]) -> T:
        if self._happens(self._faults.unreachable):
            raise StoreUnreachable("the network says: no route")

        async def travel() -> T:
            await self._delay(self._faults.latency)
            answer = await request()
            await self._delay(self._faults.latency)
            return answer

        return await self._over_the_network(travel())

    async def _write(self, verb: str, kind: str, name: str, request: Callable[[], Awaitable[T]]) -> T:
        if self._happens(self._faults.unreachable):
            raise StoreUnreachable("the network says: no route")

        sender = self.sender

        def reached(result: str) -> None:
            self._reached(Sent(self._clock.monotonic(), sender, verb, kind, name, result))

        async def travel() -> T:
            await self._delay(self._faults.latency)
            if self._happens(self._faults.conflict):
                raise Conflict("the network says: somebody else was here")
            if self._happens(self._faults.lost_request):
                raise self._random.choice([OutcomeUnknown, ServerTimeout])("the network says: request lost")
            try:
                answer = await request()
            except ApiError as error:
                reached(error.reason)
                raise
            reached("ok")
            await self._delay(self._faults.latency)
            if self._happens(self._faults.lost_answer):
                raise self._random.choice([OutcomeUnknown, ServerTimeout])("the network says: answer lost")
            return answer

        return await self._over_the_network(travel())

    async def _over_the_network(self, travel: Coroutine[Any, Any, T]) -> T:
        delivery = self._network.spawn(travel, name=f"request of {self.sender}")
        # A sender that gave up, or is dead, does not look at the answer any more.
        delivery.add_done_callback(lambda task: task.cancelled() or task.exception(), context=Context())
        return await asyncio.shield(delivery)
