"""A cache is kept like the store, whatever happens to lists and watches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from quorate.api.meta import ObjectMeta
from quorate.engine.cache import Cache, Selection
from quorate.engine.keys import Key
from quorate.engine.metrics import EngineMetrics
from quorate.engine.reflector import RESTART, Reflector
from quorate.engine.selectors import equals
from quorate.engine.simulation import Simulation, run
from quorate.engine.store import EventType, ObjectList, Store, WatchEvent
from quorate.errors import Expired, ServerTimeout, StoreUnreachable, UndecodableObject
from tests.support.kinds import Widget, WidgetSpec
from tests.support.widgets import open_store, widget


def thing(name: str, version: int) -> Widget:
    metadata = ObjectMeta(name=name, uid=f"uid-{name}", resource_version=str(version))
    return Widget(metadata=metadata, spec=WidgetSpec(owner="me"))


def listing(version: int, *items: Widget, undecodable: tuple[tuple[str, str], ...] = ()) -> ObjectList[Widget]:
    return ObjectList(items, str(version), undecodable)


def changed(name: str, version: int) -> WatchEvent[Widget]:
    return WatchEvent(EventType.MODIFIED, str(version), thing(name, version))


class ScriptedStore:
    """Answers lists and watches from a script, in which a number is a pause. Notes what is asked, and when."""

    def __init__(self, sim: Simulation, lists: list[Any], watches: list[list[Any]]) -> None:
        self._clock = sim.clock
        self._lists = deque(lists)
        self._watches = deque(watches)
        self.asked: list[tuple[float, str]] = []

    async def list(self, cls: type[Widget], **_: object) -> ObjectList[Widget]:
        self.asked.append((self._clock.monotonic(), "list"))
        answer = self._lists.popleft()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, ObjectList)
        return answer

    async def watch(
        self, cls: type[Widget], *, resource_version: str, **_: object
    ) -> AsyncIterator[WatchEvent[Widget]]:
        self.asked.append((self._clock.monotonic(), f"watch from {resource_version}"))
        for item in self._watches.popleft() if self._watches else [1e9]:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, WatchEvent):
                yield item
            else:
                await self._clock.sleep(item)


async def reflect(
    sim: Simulation, store: ScriptedStore | Store, seconds: float, cache: Cache[Widget] | None = None
) -> tuple[Cache[Widget], Reflector[Widget], CollectorRegistry]:
    cache = cache if cache is not None else Cache(Widget)
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry, sim.clock)
    reflector = Reflector(store, cache, clock=sim.clock, random=sim.random("r"), metrics=metrics)  # type: ignore[arg-type]
    task = asyncio.create_task(reflector.run())
    await sim.clock.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled(), task
    return cache, reflector, registry


def test_a_broken_watch_goes_on_where_it_was_without_listing_again() -> None:
    async def main(sim: Simulation) -> None:
        bookmark: WatchEvent[Widget] = WatchEvent(EventType.BOOKMARK, "30")
        store = ScriptedStore(
            sim,
            [listing(10, thing("a", 5))],
            [[changed("a", 11), StoreUnreachable("reset")], [changed("b", 12), bookmark], [ServerTimeout("slow")]],
        )
        cache, _, registry = await reflect(sim, store, 5)
        assert [what for _, what in store.asked] == [
            "list",
            "watch from 10",
            "watch from 11",
            "watch from 30",
            "watch from 30",
        ]
        assert cache.list() == (thing("a", 11), thing("b", 12))
        for reason in ("StoreUnreachable", "ended", "ServerTimeout"):
            labels = {"kind": "Widget", "reason": reason}
            assert registry.get_sample_value("quorate_watch_restarts_total", labels) == 1

    run(main, seed=1)


@pytest.mark.parametrize(
    "error", [Expired("gone"), UndecodableObject(kind="Widget", namespace="", name="a", problem="colour")]
)
def test_a_watch_that_lost_its_place_is_followed_by_a_list(error: Exception) -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(10, thing("a", 5)), listing(20, thing("b", 15))], [[error]])
        cache, _, _ = await reflect(sim, store, 5)
        assert [what for _, what in store.asked] == ["list", "watch from 10", "list", "watch from 20"]
        assert cache.list() == (thing("b", 15),)

    run(main, seed=1)


def test_a_store_that_is_away_is_asked_less_and_less_often_and_found_again_when_it_returns() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [*[StoreUnreachable("away")] * 20, listing(10, thing("a", 5))], [])
        cache, reflector, _ = await reflect(sim, store, 2000)
        times = [at for at, what in store.asked if what == "list"]
        pauses = [after - before for before, after in pairwise(times)]
        for number, pause in enumerate(pauses):
            longest = min(RESTART.first * 2**number, RESTART.longest)
            assert longest / 2 <= pause <= longest
        assert cache.list() == (thing("a", 5),)
        assert reflector.age() == pytest.approx(2000 - times[-1])

    run(main, seed=1)


def test_a_watch_that_the_server_ends_after_a_long_time_is_resumed_at_once() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(10)], [[300.0]] * 10)
        await reflect(sim, store, 3500)
        starts = [at for at, what in store.asked if what.startswith("watch")]
        gaps = [after - before - 300 for before, after in pairwise(starts[:10])]
        assert max(gaps) <= RESTART.first

    run(main, seed=1)


def test_an_older_list_after_an_expiry_means_that_history_was_set_back() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(1000, thing("a", 900)), listing(20, thing("a", 7))], [[Expired("future")]])
        cache, _, _ = await reflect(sim, store, 5)
        assert cache.list() == (thing("a", 7),)
        assert store.asked[-1][1] == "watch from 20"

    run(main, seed=1)


def test_an_object_that_cannot_be_decoded_is_counted_and_not_taken_for_deleted() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(
            sim, [listing(10, thing("a", 5)), listing(20, undecodable=(("", "a"),))], [[Expired("gone")]]
        )
        cache, _, registry = await reflect(sim, store, 5)
        assert cache.get(Key("", "a")) == thing("a", 5)
        assert registry.get_sample_value("quorate_cache_undecodable_objects", {"kind": "Widget"}) == 1
        assert registry.get_sample_value("quorate_cache_objects", {"kind": "Widget"}) == 1

    run(main, seed=1)


def test_a_refresh_brings_in_what_the_watch_has_not_told_yet_and_an_overtaken_one_changes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(10), listing(20, thing("a", 15)), listing(25, thing("a", 15))], [])
        cache, reflector, _ = await reflect(sim, store, 5)
        await reflector.refresh()
        assert cache.list() == (thing("a", 15),)
        cache.observe(changed("a", 30))
        await reflector.refresh()
        assert cache.list() == (thing("a", 30),)

    run(main, seed=1)


def test_only_the_selected_objects_are_listed_and_watched() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        cache = Cache(Widget, selection=Selection(labels=equals(node="n1")))

        async def people() -> None:
            for name, node in (("a", "n1"), ("b", "n2"), ("c", "n1")):
                await store.create(widget(name, 1))
                await store.patch(Widget, name, patch={"metadata": {"labels": {"node": node}}})
            await store.patch(Widget, "c", patch={"metadata": {"labels": {"node": "n2"}}})

        await asyncio.gather(people(), reflect(sim, store, 5, cache))
        assert [obj.name for obj in cache.list()] == ["a"]

    run(main, seed=1)
