"""Events go an hour after their last change, and everybody who watches is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorate.api.core import Event
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.embedded.expiry import EVENT_TTL
from tests.engine.embedded.support import NAMESPACE, WIDGET, ManualClock, Tree, open_store, read, widget

EVENT = Event.KIND
KINDS = (NAMESPACE, EVENT, WIDGET)
SWEEP = 60.0


def event(name: str, **metadata: object) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "involvedObject": {"kind": "Widget", "name": "w", "namespace": "default"},
    }


async def make(store: EmbeddedStore, *names: str) -> None:
    await asyncio.gather(*(store.create_raw(EVENT, event(name), namespace="default") for name in names))


def names(store: EmbeddedStore) -> list[str]:
    return [record.name for record in store.read_page(EVENT).records]


async def write_something(store: EmbeddedStore) -> None:
    await store.create_raw(WIDGET, {**widget(), "metadata": {"generateName": "w"}})
    # A sweep follows its commit.
    for _ in range(2):
        await asyncio.sleep(0)
    await store._queue.drain()


@pytest.mark.parametrize("inline", [True, False])
async def test_an_event_goes_an_hour_after_its_last_change(inline: bool) -> None:
    clock = ManualClock()
    store = await open_store(kinds=KINDS, clock=clock, inline=inline)
    await make(store, "idle", "busy")
    clock.advance(EVENT_TTL - 1)
    await store.patch(Event, "busy", "default", patch={"count": 2})
    await write_something(store)
    assert names(store) == ["busy", "idle"]
    begin = store.resource_version
    clock.advance(SWEEP)
    await write_something(store)
    assert names(store) == ["busy"]
    subscription = store.subscribe(EVENT, resource_version=begin)
    assert await read(subscription, 1) == [("DELETED", "idle", begin + 2)]
    clock.advance(EVENT_TTL)
    await write_something(store)
    assert names(store) == []
    await store.close()


async def test_sweeps_are_a_minute_apart() -> None:
    clock = ManualClock()
    store = await open_store(kinds=KINDS, clock=clock)
    await make(store, "e")
    clock.advance(EVENT_TTL - SWEEP / 2)
    await write_something(store)
    clock.advance(SWEEP / 2)
    await write_something(store)
    assert names(store) == ["e"]
    clock.advance(SWEEP / 2)
    await write_something(store)
    assert names(store) == []
    await store.close()


async def test_an_event_that_is_about_to_change_stays() -> None:
    clock = ManualClock()
    store = await open_store(kinds=KINDS, clock=clock, inline=False)
    await make(store, "e")
    clock.advance(EVENT_TTL)
    change = asyncio.create_task(store.patch(Event, "e", "default", patch={"count": 2}))
    await asyncio.sleep(0)
    store._expire()
    await change
    assert names(store) == ["e"]
    await store.close()


async def test_a_finalizer_keeps_no_event() -> None:
    clock = ManualClock()
    store = await open_store(kinds=KINDS, clock=clock)
    await store.create_raw(EVENT, event("e", finalizers=["x.io/a"]), namespace="default")
    clock.advance(EVENT_TTL)
    await write_something(store)
    assert names(store) == []
    await store.close()


async def test_the_age_survives_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    store = await open_store(tmp_path / "db", kinds=KINDS, clock=clock)
    await make(store, "old")
    clock.advance(EVENT_TTL / 2)
    await make(store, "young")
    await store.close()
    clock.advance(EVENT_TTL / 2)
    store = await open_store(tmp_path / "db", kinds=KINDS, clock=clock)
    assert names(store) == ["young"]
    await store.close()


@pytest.mark.parametrize("inline", [True, False])
async def test_many_go_a_batch_at_a_time(tmp_path: Path, inline: bool) -> None:
    clock = ManualClock()
    store = await open_store(tmp_path / "db", kinds=KINDS, clock=clock)
    await make(store, *(f"e{number}" for number in range(600)))
    await store.close()
    clock.advance(EVENT_TTL)
    store = await open_store(tmp_path / "db", kinds=KINDS, clock=clock, inline=inline)
    subscription = store.subscribe(EVENT, resource_version=store.resource_version)
    left = len(names(store))
    assert left >= 600 - 256
    await read(subscription, left)
    assert names(store) == []
    await store.close()


async def test_a_store_that_was_closed_sweeps_no_more() -> None:
    clock = ManualClock()
    store = await open_store(kinds=KINDS, clock=clock)
    await make(store, "e")
    clock.advance(EVENT_TTL)
    await store.create_raw(WIDGET, widget())
    await store.close()
    assert names(store) == ["e"]
    assert len(asyncio.all_tasks()) == 1
