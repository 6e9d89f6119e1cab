"""A manager looks at everything again now and then, and at nothing later for it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from random import Random

import pytest

from quorate.engine.controller import Controller, Watch
from quorate.engine.keys import Key
from quorate.engine.manager import RESYNC_CHECK, RESYNC_INTERVAL
from quorate.engine.plan import Plan
from quorate.engine.reader import Reader
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.engine.worker import PASSES_IN_A_SLICE
from tests.engine.managers import manager, observe
from tests.support.kinds import Widget
from tests.support.widgets import open_store, widget


def test_everything_is_looked_at_again_every_twenty_hours() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))
        passes: list[float] = []

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            passes.append(sim.clock.monotonic())
            return Plan()

        always = Key("", "always")
        looked: list[Key] = []

        def look(reader: Reader, key: Key) -> Widget | None:
            looked.append(key)
            return observe(reader, key)

        this = Controller(
            name="looks", watches=(Watch(Widget),), observe=look, decide=decide, always=(always,), workers=1
        )
        running = manager(sim, store, this)
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(2.5 * RESYNC_INTERVAL)
        running.stop()
        await task
        assert passes == [pytest.approx(number * RESYNC_INTERVAL, abs=1) for number in range(3)]
        assert looked.count(always) == 3

    run(main, seed=1, limit=10 * RESYNC_INTERVAL)


def test_a_changed_interval_holds_within_a_minute() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))
        passes: list[float] = []
        interval = RESYNC_INTERVAL

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            passes.append(sim.clock.monotonic())
            return Plan()

        this = Controller(name="looks", watches=(Watch(Widget),), observe=observe, decide=decide, workers=1)
        running = manager(sim, store, this, resync_interval=lambda _: interval)
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(3600)
        assert len(passes) == 1
        interval = 1800.0
        await sim.clock.sleep(RESYNC_CHECK + 1)
        assert len(passes) == 2
        await sim.clock.sleep(1800)
        assert len(passes) == 3
        running.stop()
        await task

    run(main, seed=1, limit=RESYNC_INTERVAL)


def test_fresh_events_are_decided_promptly_while_a_resync_of_thousands_is_under_way() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        for number in range(2000):
            await store.create(widget(f"w{number:04}", 1))
        order: list[str] = []

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            order.append(this.name)
            if len(order) == 100:
                fresh.set()
            return Plan()

        fresh = asyncio.Event()
        this = Controller(name="slow", watches=(Watch(Widget),), observe=observe, decide=decide, workers=1)
        running = manager(sim, store, this)
        task = asyncio.create_task(running.run())
        await fresh.wait()
        await store.patch(Widget, "w1900", patch={"metadata": {"labels": {"touched": "yes"}}})
        await sim.clock.sleep(10)
        running.stop()
        await task
        # We and the reflector must each get a turn before the worker can know of it; then it goes first.
        assert 100 <= order.index("w1900") <= 100 + 10 * PASSES_IN_A_SLICE
        assert len(order) == 2000

    for_each_seed(main, range(5))
