"""Keeps one cache like the store: list once, then watch, resuming where the last watch ended.

A watch that ends or breaks is started again from the version the cache has reached. Only when that history is gone
(Expired), or an event could not be decoded, is everything listed again. Whatever goes wrong, it goes on trying, with
pauses that grow: a store that is down is a reason to wait, not to end.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from random import Random
from typing import Any, Generic, TypeVar, cast

from quorate.api.meta import Resource
from quorate.engine.backoff import Backoff
from quorate.engine.cache import Cache
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.metrics import EngineMetrics
from quorate.engine.store import ObjectList, Store
from quorate.errors import ApiError, Expired, OutcomeUnknown, StoreUnreachable, UndecodableObject

R = TypeVar("R", bound=Resource)

log = get_logger(__name__)

RESTART = Backoff(first=0.05, longest=30.0)


class Reflector(Generic[R]):
    """Feeds one cache from the store, until cancelled."""

    def __init__(self, store: Store, cache: Cache[R], *, clock: Clock, random: Random, metrics: EngineMetrics) -> None:
        self.cache = cache
        self._store = store
        self._clock = clock
        self._random = random
        self._listing = asyncio.Lock()
        self._heard = clock.monotonic()
        self._failures = 0
        self._kind = cache.cls.KIND.name
        self._restarted = metrics.restarts
        metrics.cached.labels(self._kind).set_function(lambda: len(cache))
        metrics.undecodable.labels(self._kind).set_function(lambda: len(cache.undecodable))
        metrics.cache_age.labels(self._kind).set_function(self.age)

    def age(self) -> float:
        """Seconds since the store was last heard of; bookmarks keep it low while nothing happens."""
        return self._clock.monotonic() - self._heard

    async def refresh(self) -> None:
        """Bring the cache up to this moment: when this returns, it shows everything written before the call."""
        async with self._listing:
            self._replace(await self._list())

    async def run(self) -> None:
        """List and watch for ever."""
        listed = False
        while True:
            try:
                if not listed:
                    await self._relist()
                    listed = True
                started = self._clock.monotonic()
                await self._watch()
                reason = "ended"
                if self._clock.monotonic() - started > RESTART.longest:
                    self._failures = 0  # servers end long watches as a matter of course
            except (Expired, UndecodableObject) as error:
                listed = False
                reason = type(error).__name__
                log.warning("watch lost its place", kind=self._kind, error=str(error))
            except (ApiError, OutcomeUnknown, StoreUnreachable) as error:
                reason = type(error).__name__
                log.warning("watch failed", kind=self._kind, error=str(error))
            self._restarted.labels(self._kind, reason).inc()
            self._failures += 1
            await self._clock.sleep(RESTART.delay(self._failures, self._random))

    async def _relist(self) -> None:
        async with self._listing:
            listing = await self._list()
            # Lists are made one at a time and the watch stands still, so an older answer means an older store.
            if self.cache.synced.is_set() and int(listing.resource_version) < int(self.cache.version):
                log.warning(
                    "history was set back", kind=self._kind, had=self.cache.version, found=listing.resource_version
                )
                self.cache.start_over(listing)
            else:
                self._replace(listing)

    async def _watch(self) -> None:
        selection = self.cache.selection
        events = self._store.watch(
            self.cache.cls,
            resource_version=self.cache.version,
            namespace=selection.namespace,
            labels=selection.labels,
        )
        async with aclosing(cast("Any", events)):
            async for event in events:
                self._heard = self._clock.monotonic()
                self._failures = 0
                self.cache.observe(event)

    async def _list(self) -> ObjectList[R]:
        selection = self.cache.selection
        listing = await self._store.list(self.cache.cls, namespace=selection.namespace, labels=selection.labels)
        self._heard = self._clock.monotonic()
        return listing

    def _replace(self, listing: ObjectList[R]) -> None:
        before = self.cache.undecodable
        self.cache.replace(listing)
        for key in self.cache.undecodable:
            if key not in before:
                log.error("object does not fit its type; keeping what was known of it", kind=self._kind, name=str(key))
