"""The only way in which controllers write: leadership is checked first, and the answer is in the cache at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from quorate.api.meta import Resource
from quorate.engine.cache import Cache
from quorate.engine.clock import Clock
from quorate.engine.keys import Key, key_of
from quorate.engine.metrics import EngineMetrics
from quorate.engine.plan import NoneLeft
from quorate.engine.store import MergePatch, Store
from quorate.errors import (
    ApiError,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    QuorateError,
    StorageFull,
    StoreUnreachable,
)

R = TypeVar("R", bound=Resource)
T = TypeVar("T")

#: Seconds after which a write is given up. engine.leader relies on it: see the inequality there.
REQUEST_TIMEOUT = 4.0


class Writer:
    """Writes for one process. ``check`` raises NotLeader when it may not write (any more)."""

    def __init__(
        self,
        store: Store,
        caches: Iterable[Cache[Any]],
        *,
        check: Callable[[], None],
        clock: Clock,
        metrics: EngineMetrics,
    ) -> None:
        #: Until then, by the monotonic clock, a write that got no answer may still reach the store.
        self.unsettled_until = clock.monotonic()
        self._clock = clock
        self._store = store
        self._caches: dict[type[Resource], Cache[Any]] = {cache.cls: cache for cache in caches}
        self._check = check
        self._writes = metrics.writes

    async def create(self, obj: R) -> R:
        """Store a new object."""
        return self._wrote(await self._send("create", type(obj), lambda: self._store.create(obj)))

    async def patch(self, obj: R, patch: MergePatch, *, if_unchanged: bool) -> R:
        """Merge into everything but status."""
        answer = await self._send(
            "patch",
            type(obj),
            lambda: self._store.patch(
                type(obj), obj.name, obj.namespace, patch=patch, resource_version=_precondition(obj, if_unchanged)
            ),
        )
        if answer.deleting and not answer.metadata.finalizers and "finalizers" in patch.get("metadata", ()):
            # That was the last finalizer: the answer is the object's last state, and it is gone.
            self._gone(answer)
            return answer
        return self._wrote(answer)

    async def patch_status(self, obj: R, patch: MergePatch, *, if_unchanged: bool) -> R:
        """Merge into status."""
        return self._wrote(
            await self._send(
                "patch_status",
                type(obj),
                lambda: self._store.patch_status(
                    type(obj), obj.name, obj.namespace, patch=patch, resource_version=_precondition(obj, if_unchanged)
                ),
            )
        )

    async def delete(self, obj: R, *, if_unchanged: bool) -> None:
        """Ask for the deletion of exactly this object."""
        left = await self._send(
            "delete",
            type(obj),
            lambda: self._store.delete(
                type(obj),
                obj.name,
                obj.namespace,
                uid=obj.metadata.uid,
                resource_version=_precondition(obj, if_unchanged),
            ),
        )
        if left is not None:
            self._wrote(left)
        else:
            self._gone(obj)

    async def count(self, wanted: NoneLeft) -> int:
        """How many objects there are, asked of the store itself. Those that we cannot decode exist as well."""
        read = self._store.list(wanted.cls, namespace=wanted.namespace, labels=wanted.labels, fields=wanted.fields)
        listing = await self._read(wanted.cls, read)
        return len(listing.items) + len(listing.undecodable)

    async def read_again(self, cls: type[Resource], key: Key) -> None:
        """Bring one object in the cache up to this moment, without waiting for the watch."""
        cache = self._caches.get(cls)
        if cache is None:
            return
        known = cache.get(key)
        try:
            cache.wrote(await self._read(cls, self._store.get(cls, key.name, key.namespace)))
        except NotFound:
            if known is not None:
                cache.deleted(key, known.metadata.uid)

    async def _send(self, verb: str, cls: type[Resource], send: Callable[[], Awaitable[T]]) -> T:
        self._check()
        result, settled = "OutcomeUnknown", False
        over_at = self._clock.monotonic() + REQUEST_TIMEOUT
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                answer = await send()
            result, settled = "ok", True
        except TimeoutError:
            raise OutcomeUnknown(f"{verb} of {cls.KIND.name}: no answer within {REQUEST_TIMEOUT:g} s") from None
        except QuorateError as error:
            result = error.reason if isinstance(error, ApiError) else type(error).__name__
            settled = surely_not_done(error)
            raise
        finally:
            if not settled:
                self.unsettled_until = max(self.unsettled_until, over_at)
            self._writes.labels(cls.KIND.name, verb, result).add()
        return answer

    async def _read(self, cls: type[Resource], read: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                return await read
        except TimeoutError:
            raise StoreUnreachable(f"read of {cls.KIND.name}: no answer within {REQUEST_TIMEOUT:g} s") from None

    def _wrote(self, obj: R) -> R:
        cache = self._caches.get(type(obj))
        if cache is not None:
            cache.wrote(obj)
        return obj

    def _gone(self, obj: Resource) -> None:
        cache = self._caches.get(type(obj))
        if cache is not None:
            cache.deleted(key_of(obj), obj.metadata.uid)


def surely_not_done(error: BaseException) -> bool:
    """Whether a failed write certainly changed nothing. A server error leaves it open, as does no answer at all."""
    if isinstance(error, ApiError):
        return error.code < 500
    return isinstance(error, StoreUnreachable | NotLeader | StorageFull)


def _precondition(obj: Resource, if_unchanged: bool) -> str | None:
    return obj.metadata.resource_version if if_unchanged else None
