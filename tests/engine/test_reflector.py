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
from quorate.engine.freshness import Freshness
from quorate.engine.keys import Key
from quorate.engine.metrics import EngineMetrics
from quorate.engine.reflector import RESTART, Reflector
from quorate.engine.selectors import equals
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.engine.store import EventType, ObjectList, Store, WatchEvent
from quorate.errors import (
    ConfigError,
    Expired,
    NotLeader,
    OutcomeUnknown,
    ServerTimeout,
    StoreUnreachable,
    UndecodableObject,
)
from tests.support.kinds import Widget, WidgetSpec
from tests.support.widgets import open_store, widget


def thing(name: str, version: int) -> Widget:
    metadata = ObjectMeta(name=name, uid=f"uid-{name}", resource_version=str(version))
    return Widget(metadata=metadata, spec=WidgetSpec(owner="me"))


def listing(version: int, *items: Widget, undecodable: tuple[tuple[str, str], ...] = ()) -> ObjectList[Widget]:
    return ObjectList(items, str(version), undecodable)


def changed(name: str, version: int) -> WatchEvent[Widget]:
    return WatchEvent(EventType.MODIFIED, str(version), thing(name, version))


def bookmark(version: int) -> WatchEvent[Widget]:
    return WatchEvent(EventType.BOOKMARK, str(version))


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
        found: ObjectList[Widget] = answer() if callable(answer) else answer
        return found

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
        store = ScriptedStore(
            sim,
            [listing(10, thing("a", 5))],
            [[changed("a", 11), StoreUnreachable("reset")], [changed("b", 12), bookmark(30)], [ServerTimeout("slow")]],
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
        store = ScriptedStore(sim, [listing(10)], [[bookmark(10 + number), 300.0] for number in range(10)])
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


def test_a_watch_that_ends_without_a_word_is_followed_by_a_list_because_it_may_wait_for_the_future() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(1000, thing("a", 900)), listing(20, thing("a", 7))], [[300.0]])
        cache, _, _ = await reflect(sim, store, 400)
        assert [what for _, what in store.asked] == ["list", "watch from 1000", "list", "watch from 20"]
        assert cache.list() == (thing("a", 7),)

    run(main, seed=1)


def test_a_refresh_that_finds_history_set_back_believes_it_and_ends_the_watch_of_the_old_one() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(
            sim,
            [listing(1000, thing("a", 900)), listing(20, thing("a", 7)), listing(20, thing("a", 7))],
            [[60.0, changed("a", 1001)], [changed("b", 21), 1e9]],
        )
        cache = Cache(Widget)

        async def elected() -> None:
            await sim.clock.sleep(30)
            await reflector.refresh()
            assert cache.list() == (thing("a", 7),)

        metrics = EngineMetrics(CollectorRegistry(), sim.clock)
        reflector = Reflector(store, cache, clock=sim.clock, random=sim.random("r"), metrics=metrics)  # type: ignore[arg-type]
        task = asyncio.create_task(reflector.run())
        await elected()
        await sim.clock.sleep(100)
        assert cache.list() == (thing("a", 7), thing("b", 21))
        task.cancel()

    run(main, seed=1)


def test_an_event_of_the_old_history_that_is_already_on_its_way_is_not_believed() -> None:
    async def main(sim: Simulation) -> None:
        arrived = asyncio.Event()

        class Eager(ScriptedStore):
            async def watch(self, *args: Any, **options: Any) -> AsyncIterator[WatchEvent[Widget]]:
                if options["resource_version"] == "1000":
                    await arrived.wait()
                    yield changed("a", 1001)
                await self._clock.sleep(1e9)

            async def list(self, *args: Any, **options: Any) -> ObjectList[Widget]:
                answer = await super().list(*args, **options)
                if answer.resource_version == "20":
                    arrived.set()
                return answer

        store = Eager(sim, [listing(1000), listing(20, thing("a", 7)), listing(20, thing("a", 7))], [])
        cache = Cache(Widget)
        metrics = EngineMetrics(CollectorRegistry(), sim.clock)
        reflector = Reflector(store, cache, clock=sim.clock, random=sim.random("r"), metrics=metrics)  # type: ignore[arg-type]
        task = asyncio.create_task(reflector.run())
        await sim.clock.sleep(10)
        await reflector.refresh()
        await sim.clock.sleep(10)
        assert cache.list() == (thing("a", 7),)
        task.cancel()

    for_each_seed(main, range(10))


@pytest.mark.parametrize("error", [ConfigError("the exec plugin printed nothing"), OutcomeUnknown("?"), NotLeader("?")])
def test_whatever_a_store_raises_on_purpose_it_goes_on_trying(error: Exception) -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [error, listing(10, thing("a", 5))], [[error], [changed("a", 11)]])
        cache, _, _ = await reflect(sim, store, 5)
        assert cache.list() == (thing("a", 11),)

    run(main, seed=1)


def test_a_programming_error_is_not_taken_for_a_failure_of_the_store() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(10)], [[ZeroDivisionError("a bug")]])
        metrics = EngineMetrics(CollectorRegistry(), sim.clock)
        with pytest.raises(ZeroDivisionError):
            await Reflector(
                store,  # type: ignore[arg-type]
                Cache(Widget),
                clock=sim.clock,
                random=sim.random("r"),
                metrics=metrics,
            ).run()

    run(main, seed=1)


def test_nobody_is_silent_while_we_are_deaf() -> None:
    async def main(sim: Simulation) -> None:
        lists = [listing(10, thing("a", 5)), *[StoreUnreachable("no route")] * 100]
        store = ScriptedStore(
            sim, lists, [[20.0, bookmark(11), *[StoreUnreachable("reset")]], *[[StoreUnreachable("reset")]] * 500]
        )
        cache = Cache(Widget)
        metrics = EngineMetrics(CollectorRegistry(), sim.clock)
        reflector = Reflector(store, cache, clock=sim.clock, random=sim.random("r"), metrics=metrics)  # type: ignore[arg-type]
        freshness = Freshness(reflector, sim.clock)
        tasks = [asyncio.create_task(reflector.run()), asyncio.create_task(reflector.keep_hearing(30.0))]
        await sim.clock.sleep(600)
        assert freshness.silent_for(Key("", "a")) == pytest.approx(20, abs=0.1)
        for task in tasks:
            task.cancel()

    run(main, seed=1)


def test_a_store_in_which_nothing_happens_is_asked_so_that_silence_counts() -> None:
    async def main(sim: Simulation) -> None:
        store = ScriptedStore(sim, [listing(10, thing("a", 5))] * 100, [])
        cache = Cache(Widget)
        metrics = EngineMetrics(CollectorRegistry(), sim.clock)
        reflector = Reflector(store, cache, clock=sim.clock, random=sim.random("r"), metrics=metrics)  # type: ignore[arg-type]
        freshness = Freshness(reflector, sim.clock)
        tasks = [asyncio.create_task(reflector.run()), asyncio.create_task(reflector.keep_hearing(5.0))]
        await sim.clock.sleep(101)
        silent = freshness.silent_for(Key("", "a"))
        assert silent is not None
        assert 95 <= silent <= 101
        for task in tasks:
            task.cancel()

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
        def overtaken() -> ObjectList[Widget]:
            cache.observe(changed("a", 30))
            return listing(25, thing("a", 15))

        store = ScriptedStore(sim, [listing(10), listing(20, thing("a", 15)), overtaken], [])
        cache, reflector, _ = await reflect(sim, store, 5)
        await reflector.refresh()
        assert cache.list() == (thing("a", 15),)
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
