"""The simulation keeps asyncio's promises, draws lots for the rest, and always ends with a reason."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from quorate.engine.simulation import (
    Deadlock,
    OutsideSimulation,
    Simulation,
    Stuck,
    UnhandledError,
    for_each_seed,
    run,
)


def test_a_year_of_sleep_takes_no_time_and_moves_both_clocks() -> None:
    async def main(sim: Simulation) -> tuple[float, float]:
        before = sim.clock.now()
        await sim.clock.sleep(86_400 * 365)
        return sim.clock.monotonic(), (sim.clock.now() - before).total_seconds()

    assert run(main, seed=1, limit=1e9) == (86_400 * 365, 86_400 * 365)


def test_a_wall_clock_jumps_without_moving_durations() -> None:
    async def main(sim: Simulation) -> tuple[float, float]:
        wall, mono = sim.clock.now(), sim.clock.monotonic()
        sim.clock.jump(-3600)
        return (sim.clock.now() - wall).total_seconds(), sim.clock.monotonic() - mono

    assert run(main, seed=1) == (-3600, 0)


def test_callbacks_of_call_soon_run_in_the_order_of_registration_under_every_seed() -> None:
    async def main(sim: Simulation) -> None:
        seen: list[int] = []
        for number in range(20):
            sim.loop.call_soon(seen.append, number)
        others = [asyncio.create_task(asyncio.sleep(0)) for _ in range(20)]
        await asyncio.gather(*others)
        await sim.clock.sleep(1)
        assert seen == list(range(20))

    for_each_seed(main)


def test_the_order_of_tasks_differs_between_seeds_and_is_the_same_for_one() -> None:
    async def main(_: Simulation) -> str:
        order: list[str] = []

        async def say(word: str) -> None:
            for _ in range(3):
                order.append(word)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for word in "abc":
                group.create_task(say(word))
        return "".join(order)

    histories = [run(main, seed=seed) for seed in range(30)]
    assert histories == [run(main, seed=seed) for seed in range(30)]
    assert len(set(histories)) > 20


def test_a_lost_update_that_needs_an_unlucky_interleaving_is_found_within_a_few_seeds() -> None:
    async def main(_: Simulation) -> None:
        counter = 0

        async def add() -> None:
            nonlocal counter
            seen = counter
            await asyncio.sleep(0)
            counter = seen + 1

        async def later() -> None:
            for _ in range(4):
                await asyncio.sleep(0)
            await add()

        await asyncio.gather(add(), later())
        assert counter == 2

    with pytest.raises(AssertionError) as caught:
        for_each_seed(main, range(100))
    notes = "\n".join(caught.value.__notes__)
    assert "QUORATE_SEED=" in notes
    assert "test_simulation.py::test_a_lost_update" in notes


def test_a_replayed_seed_is_the_only_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def main(sim: Simulation) -> None:
        seen.append(sim.seed)

    monkeypatch.setenv("QUORATE_SEED", "77")
    for_each_seed(main)
    assert seen == [77]


def test_timers_fire_in_the_order_of_their_time_and_cancelled_ones_never() -> None:
    async def main(sim: Simulation) -> list[tuple[float, str]]:
        seen: list[tuple[float, str]] = []

        def fire(delay: float) -> None:
            seen.append((sim.loop.time(), f"{delay:g}"))

        for delay in (3.0, 1.0, 2.0):
            sim.loop.call_later(delay, fire, delay)
        cancelled = [sim.loop.call_later(1.5, seen.append, (0.0, "cancelled")) for _ in range(300)]
        for handle in cancelled:
            handle.cancel()
        await asyncio.sleep(10)
        return seen

    assert run(main, seed=3) == [(1.0, "1"), (2.0, "2"), (3.0, "3")]


def test_a_deadlock_is_reported_with_the_line_at_which_each_task_waits() -> None:
    async def main(_: Simulation) -> None:
        async def wait_for_godot() -> None:
            await asyncio.Event().wait()

        await asyncio.create_task(wait_for_godot(), name="vladimir")

    with pytest.raises(Deadlock, match=r"task 'vladimir' waits at .*locks\.py:\d+ in Event\.wait"):
        run(main, seed=1)


def test_virtual_time_without_end_and_a_busy_loop_are_both_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever(sim: Simulation) -> None:
        while True:
            await sim.clock.sleep(60)

    with pytest.raises(Stuck, match="3600 s of virtual time"):
        run(forever, seed=1, limit=3600)

    async def busy(_: Simulation) -> None:
        while True:  # noqa: ASYNC110 - the busy loop is the point
            await asyncio.sleep(0)

    monkeypatch.setattr("quorate.engine.simulation.loop.MAX_STEPS_PER_INSTANT", 1000)
    with pytest.raises(Stuck, match="the clock stood"):
        run(busy, seed=1)


@pytest.mark.parametrize(
    "leave",
    [
        lambda: asyncio.to_thread(print),
        lambda: asyncio.open_connection("localhost", 80),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.start_server(print, "localhost", 80),
    ],
    ids=["thread", "connection", "subprocess", "server"],
)
def test_the_world_outside_is_refused_with_a_clear_error(leave: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async def main(_: Simulation) -> None:
        await leave()

    with pytest.raises(OutsideSimulation, match="inject a simulated one"):
        run(main, seed=1)


def test_a_background_task_that_fails_unseen_fails_the_simulation() -> None:
    async def main(_: Simulation) -> None:
        async def fail() -> None:
            raise KeyError("lost")

        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        assert task.done()

    with pytest.raises(UnhandledError, match=r"never retrieved|nobody looked") as caught:
        run(main, seed=1)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_async_generator_left_open_fails_the_simulation() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def main(_: Simulation) -> None:
        async for _number in numbers():
            break
        await asyncio.sleep(1)

    with pytest.raises(UnhandledError, match="aclosing"):
        run(main, seed=1)


def test_a_paused_process_misses_its_timers_and_first_sees_that_time_has_passed() -> None:
    async def main(sim: Simulation) -> None:
        beats: list[float] = []

        async def child() -> None:
            while True:
                beats.append(sim.clock.monotonic())
                await sim.clock.sleep(1)

        async def parent() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(child())

        process = sim.process("beating")
        process.spawn(parent())
        await sim.clock.sleep(2.5)
        process.pause()
        await sim.clock.sleep(100)
        assert beats == [0, 1, 2]
        process.resume()
        await sim.clock.sleep(0.5)
        assert beats == [0, 1, 2, 102.5]

    for_each_seed(main)


def test_a_killed_process_runs_no_cleanup_before_the_simulation_is_over() -> None:
    cleaned: list[str] = []

    async def main(sim: Simulation) -> list[str]:
        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append("finally")

        process = sim.process("victim")
        task = process.spawn(work())
        await sim.clock.sleep(1)
        process.kill()
        task.cancel()
        await sim.clock.sleep(1000)
        with pytest.raises(ValueError, match="killed"):
            process.resume()
        return list(cleaned)

    assert run(main, seed=1) == []
    assert cleaned == ["finally"]


CANCELLATIONS = """
import asyncio
from quorate.engine.simulation import run

async def main(sim):
    # TaskGroup keeps its children in a set: the order of their cancellation must not come from addresses.
    ballast = [object() for _ in range(id(sim) % 977)]
    order = []
    async def child(word):
        try:
            await asyncio.sleep(100)
        finally:
            order.append(word)
    async def boom():
        await asyncio.sleep(1)
        raise ValueError
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(child(f"c{number}"))
            group.create_task(boom())
    except* ValueError:
        pass
    done, _ = await asyncio.wait([asyncio.create_task(asyncio.sleep(1, n)) for n in range(20)])
    return [*order, *(task.result() for task in done), sim.fingerprint()]

print(run(main, seed=5))
"""


def test_the_order_in_which_asyncio_walks_its_sets_of_tasks_does_not_depend_on_hashing_or_addresses() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", CANCELLATIONS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "random")
    }
    assert len(outputs) == 1
    assert "c49" in outputs.pop()
