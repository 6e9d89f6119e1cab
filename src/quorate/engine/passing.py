"""A store in front of another one, to which it passes everything on, or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, TypeVar, cast

from quorate.api.meta import Resource
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import MergePatch, ObjectList, Store, WatchEvent

R = TypeVar("R", bound=Resource)


class PassingStore:
    """Implements :class:`quorate.engine.store.Store` over another one, which stays its owner's to close."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _admit(self, verb: str, cls: type[Resource], name: str = "") -> None:
        """Called before anything is passed on, and for each event of a watch; raises what keeps it from being."""

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        self._admit("read", cls, name)
        return await self._store.get(cls, name, namespace)

    async def list(
        self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
    ) -> ObjectList[R]:
        self._admit("read", cls)
        return await self._store.list(cls, namespace=namespace, labels=labels, fields=fields)

    async def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> AsyncIterator[WatchEvent[R]]:
        self._admit("read", cls)
        events = self._store.watch(
            cls, resource_version=resource_version, namespace=namespace, labels=labels, fields=fields
        )
        async with aclosing(cast("Any", events)):
            async for event in events:
                self._admit("read", cls)
                yield event

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        self._admit("create", type(obj), obj.name)
        return await self._store.create(obj, dry_run=dry_run)

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
        self._admit("patch", cls, name)
        return await self._store.patch(
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
        self._admit("patch the status of", cls, name)
        return await self._store.patch_status(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
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
        self._admit("delete", cls, name)
        return await self._store.delete(
            cls, name, namespace, uid=uid, resource_version=resource_version, dry_run=dry_run
        )

    async def close(self) -> None:
        """Nothing: the other one is its owner's to close."""
