"""A manager says how it is; what fails in it is not silent."""

from __future__ import annotations

import asyncio

import pytest

from quorate.engine.controller import Controller, Watch
from quorate.engine.keys import Key
from quorate.engine.simulation import Simulation, for_each_seed
from tests.engine.managers import SlowStore, finish, manager, observe
from tests.support.kinds import Widget
from tests.support.widgets import open_store, widget


def test_a_component_that_crashes_stops_the_manager_with_its_error() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        this = manager(sim, store)

        def explode(*_: object) -> None:
            raise ZeroDivisionError("a bug in the engine")

        this.caches[Widget].subscribe(explode)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(1)
        assert not running.done()
        await store.create(widget("w", 1))
        with pytest.raises(ExceptionGroup) as caught:
            await running
        assert caught.value.subgroup(ZeroDivisionError) is not None

    for_each_seed(main, range(3))


def test_a_component_that_ends_when_it_should_not_stops_the_manager() -> None:
    async def main(sim: Simulation) -> None:
        this = manager(sim, await open_store(sim))

        async def gives_up() -> None:
            await sim.clock.sleep(1)

        this._recorder.run = gives_up  # type: ignore[method-assign]
        with pytest.raises(ExceptionGroup) as caught:
            await this.run()
        assert "the recorder ended, which it never should" in str(caught.value.exceptions[0])

    for_each_seed(main, range(3))


def test_it_is_ready_when_every_cache_is_filled_and_says_which_is_not() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        this = manager(sim, store)
        assert this.health().not_ready == ("Widget has not been listed yet",)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(1)
        assert this.health().ready
        assert this.health().live
        assert this.leading
        this.stop()
        assert this.health().not_ready == ("stopping",)
        await running

    for_each_seed(main, range(3))


def test_it_is_not_live_when_the_loop_is_blocked_or_a_pass_never_ends() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, SlowStore)
        store.seconds = 1e6
        await store.create(widget("w", 1))
        slow = Controller(name="slow", watches=(Watch(Widget),), observe=observe, decide=finish, timeout=60.0)
        this = manager(sim, store, slow)
        process = sim.process("manager")
        process.spawn(this.run())
        await sim.clock.sleep(100)
        assert this.health().live, "each attempt is given up in time"
        for worker in this._workers:
            worker.queue.keys.taken()[Key("", "w")] = sim.clock.monotonic() - 121
        assert this.health().not_live == ("slow has been working on w for 121 s, allowed are 120 s",)
        process.pause()
        await sim.clock.sleep(60)
        assert any("event loop has been blocked" in reason for reason in this.health().not_live)

    for_each_seed(main, range(2))
