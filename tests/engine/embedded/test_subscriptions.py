"""Watching: order, resuming, selectors, bookmarks, and being too slow."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from quorate.engine.embedded import EmbeddedStore, HistoryLimits
from quorate.engine.selectors import parse_fields, parse_labels
from quorate.engine.store import EventType
from quorate.errors import BadRequest, Expired
from tests.engine.embedded.support import GADGET, WIDGET, ManualClock, gadget, open_store, read, widget
from tests.support.kinds import Widget


async def busy_store(path: Path | None = None, limits: HistoryLimits | None = None) -> tuple[EmbeddedStore, int]:
    """A store with a history, and the version at which it begins."""
    store = await open_store(path, limits=limits)
    begin = store.resource_version
    await store.create_raw(WIDGET, widget("a"))
    await store.create_raw(WIDGET, widget("b", metadata={"finalizers": ["x.io/y"]}))
    await store.patch(Widget, "a", patch={"spec": {"low": 1}})
    await store.delete(Widget, "b")
    await store.delete(Widget, "a")
    await store.patch(Widget, "b", patch={"metadata": {"finalizers": None}})
    return store, begin


HISTORY = ["ADDED a", "ADDED b", "MODIFIED a", "MODIFIED b", "DELETED a", "DELETED b"]


async def replayed(store: EmbeddedStore, begin: int, count: int) -> list[str]:
    async with aclosing(store.subscribe(WIDGET, resource_version=begin)) as subscription:
        return [f"{event} {name}" for event, name, _ in await read(subscription, count)]


async def test_history_is_replayed_in_order_from_any_version() -> None:
    store, begin = await busy_store()
    for skipped in range(len(HISTORY)):
        assert await replayed(store, begin + skipped, len(HISTORY) - skipped) == HISTORY[skipped:]


async def test_history_is_replayed_after_a_restart(tmp_path: Path) -> None:
    store, begin = await busy_store(tmp_path / "db")
    await store.close()
    store = await open_store(tmp_path / "db")
    assert await replayed(store, begin, len(HISTORY)) == HISTORY
    await store.close()


async def test_live_events_follow_the_replayed_ones_without_gap_or_repetition() -> None:
    store, begin = await busy_store()
    async with aclosing(store.subscribe(WIDGET, resource_version=begin + 4)) as subscription:
        await store.create_raw(WIDGET, widget("c"))
        events = await read(subscription, 3)
        assert [(event, name) for event, name, _ in events] == [("DELETED", "a"), ("DELETED", "b"), ("ADDED", "c")]
        assert [version for _, _, version in events] == [begin + 5, begin + 6, begin + 7]


async def test_a_deleted_object_is_shown_as_it_last_was_at_the_version_of_its_deletion() -> None:
    store, begin = await busy_store()
    async with aclosing(store.subscribe(WIDGET, resource_version=begin + 4)) as replay:
        change = await anext(replay)
    assert change.record is not None
    assert isinstance(change.record.typed, Widget)
    assert (change.record.typed.spec.low, change.record.version, change.version) == (1, begin + 5, begin + 5)
    assert change.record.tree["metadata"]["resourceVersion"] == str(begin + 5)


async def test_without_a_version_the_state_comes_first() -> None:
    store = await open_store()
    for name in "ba":
        await store.create_raw(WIDGET, widget(name))
    versions = {record.name: record.version for record in store.read_page(WIDGET).records}
    for begin in (None, 0):
        async with aclosing(store.subscribe(WIDGET, resource_version=begin)) as subscription:
            await store.patch(Widget, "a", patch={"metadata": {"annotations": {"for": str(begin)}}})
            events = await read(subscription, 3)
        assert events == [
            ("ADDED", "a", versions["a"]),
            ("ADDED", "b", versions["b"]),
            ("MODIFIED", "a", store.resource_version),
        ]
        versions["a"] = store.resource_version


async def test_the_end_of_the_state_is_marked_when_asked() -> None:
    store = await open_store()
    await store.create_raw(WIDGET, widget("a"))
    async with aclosing(store.subscribe(WIDGET, resource_version=1, initial_events=True)) as subscription:
        changes = [await anext(subscription), await anext(subscription)]
    assert [(change.type, change.initial_events_end) for change in changes] == [
        (EventType.ADDED, False),
        (EventType.BOOKMARK, True),
    ]
    assert changes[1].version == store.resource_version


async def test_only_the_kind_and_namespace_that_were_asked_for_are_told_of() -> None:
    store = await open_store()
    async with aclosing(store.subscribe(GADGET, resource_version=None, namespace="default")) as subscription:
        await store.create_raw(WIDGET, widget("x"))
        await store.create_raw(GADGET, gadget("x"), namespace="kube-system")
        await store.create_raw(GADGET, gadget("y"), namespace="default")
        assert (await read(subscription, 1))[0][:2] == ("ADDED", "y")


@pytest.mark.parametrize("live", [True, False], ids=["live", "replayed"])
async def test_an_object_enters_and_leaves_a_selection(live: bool) -> None:
    store = await open_store()
    begin = store.resource_version
    selector = parse_labels("team=red")
    early = store.subscribe(WIDGET, resource_version=begin, labels=selector)
    await store.create_raw(WIDGET, widget("a", metadata={"labels": {"team": "blue"}}))
    for team, low in (("red", None), ("red", 1), ("blue", 2), ("blue", 3), ("red", 3)):
        await store.patch(Widget, "a", patch={"metadata": {"labels": {"team": team}}, "spec": {"low": low}})
    await store.delete(Widget, "a")
    late = store.subscribe(WIDGET, resource_version=begin, labels=selector)
    changes = [await anext(early if live else late) for _ in range(5)]
    shown = [
        (change.type.value, change.record.typed.spec.low, change.version - begin)
        for change in changes
        if change.record is not None and isinstance(change.record.typed, Widget)
    ]
    assert shown == [("ADDED", None, 2), ("MODIFIED", 1, 3), ("DELETED", 1, 4), ("ADDED", 3, 6), ("DELETED", 3, 7)]
    assert all(change.record is not None and change.record.version == change.version for change in changes)
    await early.aclose()
    await late.aclose()


async def test_a_field_selector_watches_too() -> None:
    store = await open_store()
    fields = parse_fields("spec.nodeName=n1")
    async with aclosing(store.subscribe(WIDGET, resource_version=None, fields=fields)) as subscription:
        await store.create_raw(WIDGET, widget("a"))
        await store.patch(Widget, "a", patch={"spec": {"nodeName": "n1"}})
        assert (await read(subscription, 1))[0][:2] == ("ADDED", "a")


async def test_a_version_below_the_floor_is_expired() -> None:
    store, begin = await busy_store(limits=HistoryLimits(events=3))
    for version in (1, begin, begin + 2):
        with pytest.raises(Expired, match="too old resource version"):
            await anext(store.subscribe(WIDGET, resource_version=version))
    assert await replayed(store, begin + 3, 3) == HISTORY[3:]


async def test_history_expires_with_age() -> None:
    clock = ManualClock()
    store = await open_store(clock=clock, limits=HistoryLimits(age=60))
    await store.create_raw(WIDGET, widget("a"))
    begin = store.resource_version - 1
    clock.advance(61)
    assert await replayed(store, begin, 1) == ["ADDED a"], "until the next write, or compact(), nothing is forgotten"
    await store.create_raw(WIDGET, widget("b"))
    with pytest.raises(Expired):
        await replayed(store, begin, 1)
    assert await replayed(store, begin + 1, 1) == ["ADDED b"]
    clock.advance(61)
    await store.compact()
    with pytest.raises(Expired):
        await replayed(store, begin + 1, 1)


async def test_who_reads_too_slowly_is_cut_off() -> None:
    store = await open_store(limits=HistoryLimits(buffer=3))
    subscription = store.subscribe(WIDGET, resource_version=None)
    for name in "abcd":
        await store.create_raw(WIDGET, widget(name))
    with pytest.raises(Expired, match="3 events behind"):
        await anext(subscription)
    with pytest.raises(Expired):
        await anext(subscription)


async def test_a_replay_that_is_overtaken_by_forgetting_is_expired_for_good() -> None:
    store, begin = await busy_store(limits=HistoryLimits(events=8))
    subscription = store.subscribe(WIDGET, resource_version=begin)
    assert (await read(subscription, 1))[0][1] == "a"
    for low in range(8):
        name = f"c{low}"
        await store.create_raw(WIDGET, widget(name))
    await store.compact()
    for _ in range(2):
        with pytest.raises(Expired):
            await read(subscription, 8)


async def test_a_quiet_subscription_gets_bookmarks() -> None:
    clock = ManualClock()
    store = await open_store(clock=clock, limits=HistoryLimits(bookmarks=60))
    async with aclosing(store.subscribe(GADGET, resource_version=None)) as quiet:
        await store.create_raw(WIDGET, widget("a"))
        clock.advance(61)
        await store.create_raw(WIDGET, widget("b"))
        assert await read(quiet, 1) == [("BOOKMARK", "", store.resource_version)]
    assert await replayed(store, store.resource_version - 1, 1) == ["ADDED b"]


async def test_a_reader_waits_until_something_happens_and_can_be_cancelled() -> None:
    store = await open_store()
    subscription = store.subscribe(WIDGET, resource_version=None)
    waiting = asyncio.create_task(read(subscription, 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await store.create_raw(WIDGET, widget("a"))
    assert (await read(subscription, 1))[0][:2] == ("ADDED", "a")
    await subscription.aclose()
    await store.create_raw(WIDGET, widget("b"))
    with pytest.raises(StopAsyncIteration):
        await anext(subscription)


async def test_closing_the_store_ends_a_stream_after_what_it_has() -> None:
    store = await open_store()
    subscription = store.subscribe(WIDGET, resource_version=None)
    await store.create_raw(WIDGET, widget("a"))
    await store.close()
    assert [change.record.name async for change in subscription if change.record] == ["a"]


async def test_a_typed_watch_tells_the_same() -> None:
    store = await open_store()
    listed = await store.list(Widget)
    async with aclosing(store.watch(Widget, resource_version=listed.resource_version)) as events:
        made = await store.create_raw(WIDGET, widget("a"))
        event = await anext(events)
        assert (event.type, event.object) == (EventType.ADDED, made.record.typed)
        assert event.resource_version == str(made.record.version)
    with pytest.raises(BadRequest, match="invalid resource version"):
        store.watch(Widget, resource_version="yesterday")


async def test_a_version_that_the_store_has_not_come_to_is_of_another_history() -> None:
    """A store that was put back, and soon overtakes it: what it wrote until then would never be told."""
    store, begin = await busy_store()
    ahead = begin + len(HISTORY) + 1
    subscription = store.subscribe(WIDGET, resource_version=ahead)
    await store.create_raw(WIDGET, widget("c"))
    await store.create_raw(WIDGET, widget("d"))
    with pytest.raises(Expired, match="too large resource version"):
        await asyncio.wait_for(anext(subscription), 1)
    await subscription.aclose()
