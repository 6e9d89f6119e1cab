"""Time passes in a world as it does on the clock."""

from __future__ import annotations

import asyncio

import pytest

from quorate.engine.simulation import Simulation, run
from quorate.lab.driver import Driver
from quorate.lab.kernel import World


def test_what_is_due_happens_when_it_is_due_and_not_before() -> None:
    async def main(sim: Simulation) -> None:
        await sim.clock.sleep(100)
        driver = Driver(World(1), sim.clock)
        running = asyncio.create_task(driver.run())
        happened: list[tuple[str, float]] = []
        for delay in (5.0, 2.0, 0.0):
            driver.world.later(delay, lambda delay=delay: happened.append((f"{delay}", sim.clock.monotonic())))  # type: ignore[misc]
        driver.touch()
        await sim.clock.sleep(10)
        assert happened == [("0.0", 100.0), ("2.0", 102.0), ("5.0", 105.0)]
        running.cancel()

    run(main, seed=1)


def test_what_becomes_due_at_this_very_moment_happens_at_once() -> None:
    async def main(sim: Simulation) -> None:
        driver = Driver(World(1), sim.clock)
        running = asyncio.create_task(driver.run())
        await sim.clock.sleep(3)
        driver.catch_up()
        happened: list[float] = []
        driver.world.later(0.0, lambda: happened.append(sim.clock.monotonic()))
        driver.touch()
        await sim.clock.sleep(1)
        assert happened == [3.0]
        running.cancel()

    run(main, seed=1)


def test_what_is_put_before_the_rest_is_not_late_and_the_rest_still_happens() -> None:
    async def main(sim: Simulation) -> None:
        driver = Driver(World(1), sim.clock)
        running = asyncio.create_task(driver.run())
        happened: list[float] = []
        for delay in (5.0, 1.0, 3.0):
            await sim.clock.sleep(0)
            driver.world.later(delay, lambda: happened.append(sim.clock.monotonic()))
            driver.touch()
        await sim.clock.sleep(10)
        assert happened == [1.0, 3.0, 5.0]
        running.cancel()

    run(main, seed=1)


def test_a_mistake_in_the_model_ends_the_driver_with_its_error() -> None:
    async def main(sim: Simulation) -> None:
        driver = Driver(World(1), sim.clock)
        running = asyncio.create_task(driver.run())
        driver.world.later(1.0, lambda: 1 // 0)  # type: ignore[arg-type]
        driver.touch()
        await sim.clock.sleep(2)
        with pytest.raises(ZeroDivisionError):
            await running

    run(main, seed=1)
