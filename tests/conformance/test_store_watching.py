"""watch: everything once and in order, from any version that history still has."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, cast

import pytest

from quorate.engine.selectors import match
from quorate.engine.store import EventType, Store
from quorate.errors import Expired
from tests.conformance.making import PATIENCE, changes, gadget, told, version_now, widget
from tests.conformance.targets import Target
from tests.support.kinds import Gadget, Widget


async def test_every_change_is_told_in_order_with_the_object_as_it_was(store: Store) -> None:
    before = await version_now(store)
    made = await store.create(widget("a"))
    changed = await store.patch(Widget, "a", patch={"spec": {"low": 1}})
    reported = await store.patch_status(Widget, "a", patch={"phase": "x"})
    other = await store.create(widget("b"))
    await store.delete(Widget, "a")
    events = await changes(store, before, 5)
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert [event.object for event in events[:4]] == [made, changed, reported, other]
    last = events[4].object
    assert last is not None
    assert (last.spec, last.status) == (reported.spec, reported.status)
    versions = [int(event.resource_version) for event in events]
    assert versions == sorted(set(versions))
    assert all(event.object and event.resource_version == event.object.metadata.resource_version for event in events)


async def test_a_watch_goes_on_where_another_was_left(store: Store) -> None:
    start = await version_now(store)
    for name in "abcd":
        await store.create(widget(name))
    whole = await changes(store, start, 4)
    for seen in range(4):
        since = whole[seen - 1].resource_version if seen else start
        assert await changes(store, since, 4 - seen) == whole[seen:]


async def test_changes_are_told_as_they_happen(store: Store) -> None:
    start = await version_now(store)
    watch = store.watch(Widget, resource_version=start)
    async with asyncio.timeout(PATIENCE), aclosing(cast("Any", watch)):
        for number in range(5):
            made = await store.create(widget(f"w{number}"))
            event = await anext(watch)
            while event.type is EventType.BOOKMARK:
                event = await anext(watch)
            assert event.object == made


async def test_two_watches_see_the_same(store: Store) -> None:
    start = await version_now(store)
    first = asyncio.create_task(changes(store, start, 6))
    second = asyncio.create_task(changes(store, start, 6))
    await asyncio.gather(*(store.create(widget(name)) for name in "abc"))
    await asyncio.gather(*(store.patch(Widget, name, patch={"spec": {"low": 1}}) for name in "abc"))
    assert await first == await second


async def test_history_that_is_gone_is_expired(target: Target) -> None:
    start = await version_now(target.store)
    await target.store.create(widget("a"))
    await target.forget_history()
    with pytest.raises(Expired):
        await changes(target.store, start, 1)
    now = await version_now(target.store)
    await target.store.create(widget("b"))
    assert told(await changes(target.store, now, 1)) == [("ADDED", "b")]


async def test_a_selection_is_entered_and_left(store: Store) -> None:
    start = await version_now(store)
    await store.create(widget("a", labels={"x": "1"}))
    await store.create(widget("b"))
    await store.patch(Widget, "a", patch={"spec": {"low": 1}})
    left = await store.patch(Widget, "a", patch={"metadata": {"labels": {"x": "2"}}})
    await store.patch(Widget, "a", patch={"spec": {"low": 2}})
    await store.patch(Widget, "b", patch={"metadata": {"labels": {"x": "1"}}})
    await store.delete(Widget, "b")
    events = await changes(store, start, 5, labels=match({"x": "1"}))
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    assert events[2].resource_version == left.metadata.resource_version
    gone = events[2].object
    assert gone is not None
    assert gone.metadata.labels == {"x": "1"}, "as it was when it last belonged to the selection"


async def test_a_field_selects_too(store: Store) -> None:
    start = await version_now(store)
    await store.create(widget("a", node_name="n1"))
    await store.create(widget("b", node_name="n2"))
    await store.create(widget("c"))
    await store.patch(Widget, "c", patch={"spec": {"nodeName": "n1"}})
    events = await changes(store, start, 2, fields=match({"spec.nodeName": "n1"}))
    assert told(events) == [("ADDED", "a"), ("ADDED", "c")]


async def test_a_namespace_selects_too(store: Store) -> None:
    start = await version_now(store, Gadget)
    await store.create(gadget("elsewhere", "kube-system"))
    await store.create(gadget("here"))
    assert told(await changes(store, start, 1, Gadget, namespace="default")) == [("ADDED", "here")]
    assert told(await changes(store, start, 2, Gadget)) == [("ADDED", "elsewhere"), ("ADDED", "here")]


async def test_other_kinds_are_not_told(store: Store) -> None:
    start = await version_now(store)
    await store.create(gadget("g"))
    await store.create(widget("w"))
    assert told(await changes(store, start, 1)) == [("ADDED", "w")]


async def test_a_list_and_a_watch_from_it_miss_nothing_and_repeat_nothing(store: Store) -> None:
    async def write() -> None:
        for number in range(40):
            await store.create(widget(f"w{number:02}"))

    writing = asyncio.create_task(write())
    for _ in range(5):
        found = await store.list(Widget)
        listed = [each.name for each in found.items]
        missing = 40 - len(listed)
        followed = await changes(store, found.resource_version, missing) if missing else []
        told_of = [event.object.name for event in followed if event.object]
        assert listed + told_of == [f"w{number:02}" for number in range(40)]
        if writing.done():
            break
    await writing
