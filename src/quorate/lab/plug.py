"""The API as a simulated node reaches it: not at all while it is cut off, and never again from a boot that is over."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar, cast

from quorate.api.meta import Resource
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import MergePatch, ObjectList, Store, WatchEvent
from quorate.errors import StoreUnreachable

R = TypeVar("R", bound=Resource)


class Plug:
    """A store behind a cable (see :class:`quorate.engine.store.Store`)."""

    def __init__(self, store: Store, node: str) -> None:
        self._store = store
        self._node = node
        #: Whether requests arrive.
        self.connected = True
        self._pulled = False

    def pull(self) -> None:
        """Disconnect for good: whoever still holds this store has no business with it any more."""
        self._pulled = True

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        return await self._reached().get(cls, name, namespace)

    async def list(
        self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
    ) -> ObjectList[R]:
        return await self._reached().list(cls, namespace=namespace, labels=labels, fields=fields)

    async def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """As the store's own. It breaks at the first event that cannot arrive; a short cut may pass unnoticed."""
        events = self._reached().watch(
            cls, resource_version=resource_version, namespace=namespace, labels=labels, fields=fields
        )
        async with aclosing(cast("AsyncGenerator[WatchEvent[R], None]", events)) as open_events:
            async for event in open_events:
                self._reached()
                yield event

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        return await self._reached().create(obj, dry_run=dry_run)

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
        return await self._reached().patch(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
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
        return await self._reached().patch_status(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
        )

    async def delete(self, cls: type[R], name: str, namespace: str = "", **options: Any) -> R | None:
        return await self._reached().delete(cls, name, namespace, **options)

    async def close(self) -> None:
        """The store is not ours to close: other nodes use it."""

    def _reached(self) -> Store:
        if self._pulled or not self.connected:
            raise StoreUnreachable(f"node {self._node} cannot reach the API")
        return self._store
