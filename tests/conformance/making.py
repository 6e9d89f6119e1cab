"""Short ways to write objects and to follow them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, cast

from quorate.api.meta import ObjectMeta, Resource
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import EventType, Store, WatchEvent
from tests.support.kinds import Gadget, Widget, WidgetSpec

#: Longest time that an event is waited for.
PATIENCE = 10.0


def widget(name: str, *, labels: dict[str, str] | None = None, finalizers: tuple[str, ...] = (), **spec: Any) -> Widget:
    metadata = ObjectMeta(name=name, labels=labels or {}, finalizers=finalizers)
    return Widget(metadata=metadata, spec=WidgetSpec(owner="me", **spec))


def gadget(name: str, namespace: str = "default", **spec: Any) -> Gadget:
    return Gadget(metadata=ObjectMeta(name=name, namespace=namespace), spec=WidgetSpec(owner="me", **spec))


async def version_now(store: Store, cls: type[Resource] = Widget) -> str:
    return (await store.list(cls)).resource_version


async def changes(
    store: Store,
    since: str,
    count: int,
    cls: type[Resource] = Widget,
    *,
    namespace: str = "",
    labels: Selector = EVERYTHING,
    fields: Selector = EVERYTHING,
) -> list[WatchEvent[Any]]:
    """The first ``count`` events after a version, bookmarks left out."""
    watch = store.watch(cls, resource_version=since, namespace=namespace, labels=labels, fields=fields)
    found: list[WatchEvent[Any]] = []
    async with asyncio.timeout(PATIENCE), aclosing(cast("Any", watch)):
        async for event in watch:
            if event.type is not EventType.BOOKMARK:
                found.append(event)
            if len(found) == count:
                break
    return found


def told(events: list[WatchEvent[Any]]) -> list[tuple[str, str]]:
    """What happened to which object."""
    return [(event.type.value, event.object.name if event.object else "") for event in events]
