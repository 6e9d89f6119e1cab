"""Keeps one cache like the store: list once, then watch, resuming where the last watch ended.

A watch that ends or breaks is started again from the version the cache has reached. Everything is listed again only
when that history is gone (Expired), when an event could not be decoded, or when a watch came to its end without a word:
it may be waiting for a version that the store will reach in a year, because a backup was restored. Whatever goes wrong,
it goes on trying, with pauses that grow: a store that is down is a reason to wait, not to end.
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
from quorate.errors import Expired, QuorateError, UndecodableObject

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
        #: When the store was last heard of.
        self.heard_at = clock.monotonic()
        self._watching: asyncio.Timeout | None = None
        self._failures = 0
        self._kind = cache.cls.KIND.name
        self._restarted = metrics.restarts
        metrics.cached.labels(self._kind).set_function(lambda: len(cache))
        metrics.undecodable.labels(self._kind).set_function(lambda: len(cache.undecodable))
        metrics.cache_age.labels(self._kind).set_function(self.age)

    def age(self) -> float:
        """Seconds since the store was last heard of; bookmarks keep it low while nothing happens."""
        return self._clock.monotonic() - self.heard_at

    async def refresh(self) -> None:
        """Bring the cache up to this moment: when this returns, it shows everything written before the call."""
        async with self._listing:
            # Lists are made one at a time, and this one begins now: an answer from before is one of an older store.
            had = int(self.cache.version)
            listing = await self._list()
            if int(listing.resource_version) < had:
                log.warning("history was set back", kind=self._kind, had=had, found=listing.resource_version)
                self.cache.start_over(listing)
                self._end_watch()
            else:
                self._replace(listing)

    async def keep_hearing(self, interval: float) -> None:
        """List whenever nothing was heard for so many seconds: silence alone does not tell quiet from deaf."""
        while True:
            await self._clock.sleep(interval)
            if self.age() >= interval:
                try:
                    await self.refresh()
                except QuorateError as error:
                    log.warning("store not heard of", kind=self._kind, seconds=self.age(), error=str(error))

    async def run(self) -> None:
        """List and watch for ever."""
        listed = False
        while True:
            try:
                if not listed:
                    await self.refresh()
                    listed = True
                started = self._clock.monotonic()
                listed = await self._watch()
                reason = "ended"
                if self._clock.monotonic() - started > RESTART.longest:
                    self._failures = 0  # servers end long watches as a matter of course
            except (Expired, UndecodableObject) as error:
                listed = False
                reason = type(error).__name__
                log.warning("watch lost its place", kind=self._kind, error=str(error))
            except QuorateError as error:
                reason = type(error).__name__
                log.warning("watch failed", kind=self._kind, error=str(error))
            self._restarted.labels(self._kind, reason).inc()
            self._failures += 1
            await self._clock.sleep(RESTART.delay(self._failures, self._random))

    async def _watch(self) -> bool:
        """Follow the store until the watch ends; returns whether it said anything."""
        selection = self.cache.selection
        events = self._store.watch(
            self.cache.cls,
            resource_version=self.cache.version,
            namespace=selection.namespace,
            labels=selection.labels,
        )
        said_anything = False
        try:
            async with asyncio.timeout(None) as limit, aclosing(cast("Any", events)):
                self._watching = limit
                async for event in events:
                    if limit.when() is not None:
                        break  # it is of the old history, and was already on its way
                    said_anything = True
                    self.heard_at = self._clock.monotonic()
                    self._failures = 0
                    self.cache.observe(event)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._watching = None
        return said_anything

    def _end_watch(self) -> None:
        """End a watch of a history that is no more."""
        if self._watching is not None and self._watching.when() is None:
            self._watching.reschedule(asyncio.get_running_loop().time())

    async def _list(self) -> ObjectList[R]:
        selection = self.cache.selection
        listing = await self._store.list(self.cache.cls, namespace=selection.namespace, labels=selection.labels)
        self.heard_at = self._clock.monotonic()
        return listing

    def _replace(self, listing: ObjectList[R]) -> None:
        before = self.cache.undecodable
        self.cache.replace(listing)
        for key in self.cache.undecodable:
            if key not in before:
                log.error("object does not fit its type; keeping what was known of it", kind=self._kind, name=str(key))
