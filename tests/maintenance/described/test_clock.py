"""Time that can be moved forward, and wakes those who waited for it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from quorate.engine.simulation import Simulation, run
from quorate.maintenance.described import DescribedClock


def test_calendar_and_stopwatch_move_together() -> None:
    clock = DescribedClock()
    before, stopwatch = clock.now(), clock.monotonic()
    clock.advance(timedelta(hours=2))
    assert timedelta(hours=2) <= clock.now() - before < timedelta(hours=2, minutes=1)
    assert 7200 <= clock.monotonic() - stopwatch < 7260


@pytest.mark.parametrize("by", [timedelta(microseconds=-1), timedelta(days=365 * 9000)])
def test_time_goes_neither_back_nor_beyond_the_calendar(by: timedelta) -> None:
    clock = DescribedClock()
    before = clock.now()
    with pytest.raises(ValueError, match="time"):
        clock.advance(by)
    assert clock.now() - before < timedelta(minutes=1)


def test_who_sleeps_wakes_when_it_is_time_however_time_passes() -> None:
    async def main(simulation: Simulation) -> None:
        clock = DescribedClock(simulation.clock)
        woken: list[str] = []

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        tasks = [asyncio.ensure_future(sleeper(f"{seconds}", seconds)) for seconds in (10, 100, 1000)]
        await simulation.clock.sleep(20)
        assert woken == ["10"]
        clock.advance(timedelta(seconds=80))
        await simulation.clock.sleep(1)
        assert woken == ["10", "100"]
        clock.advance(timedelta(seconds=10))
        await simulation.clock.sleep(1)
        assert woken == ["10", "100"]
        await asyncio.gather(*tasks)
        # A thousand seconds in all: 910 by themselves, 90 given.
        assert simulation.clock.monotonic() == pytest.approx(910)

    run(main, seed=1)


def test_a_sleeper_that_is_cancelled_leaves_nothing_behind() -> None:
    async def main(simulation: Simulation) -> None:
        clock = DescribedClock(simulation.clock)
        task = asyncio.ensure_future(clock.sleep(100))
        await simulation.clock.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        clock.advance(timedelta(hours=1))
        assert simulation.clock.monotonic() == pytest.approx(1)

    run(main, seed=1)
