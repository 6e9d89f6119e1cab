"""Changes that can wait: more of their sort is likely to follow, and one pass is for all of it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from random import Random

import pytest

from quorate.engine import NOTHING, Controller, Key, Plan, Reader, Watch
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from tests.support.kinds import Widget
from tests.support.widgets import open_store, widget


def patience(before: Widget | None, after: Widget | None) -> float:
    """A change of the annotations can wait for two seconds, and one to nothing is a mistake in this function."""
    if before is None or after is None or before.spec != after.spec:
        return 0.0
    return 2.0 if after.metadata.annotations else 1.0 / len(after.metadata.annotations)


async def passes(sim: Simulation, *changes: tuple[float, dict[str, object]]) -> list[float]:
    """When passes are made, if these patches are sent at these times; the first is for what is there at the start."""
    made: list[float] = []

    def observe(reader: Reader, key: Key) -> Widget | None:
        return reader.get(Widget, key.name)

    def decide(_: Widget, __: datetime, ___: Random) -> Plan:
        made.append(sim.clock.monotonic())
        return NOTHING

    store = await open_store(sim)
    await store.create(widget("w", 1))
    watched = Controller(name="patient", watches=(Watch(Widget, patience=patience),), observe=observe, decide=decide)
    manager = Manager(store, [watched], clock=sim.clock, random=sim.random("manager"), identity="test")
    running = asyncio.create_task(manager.run())
    for at, patch in changes:
        await sim.clock.sleep(at - sim.clock.monotonic())
        await store.patch(Widget, "w", patch=patch)
    await sim.clock.sleep(20)
    manager.stop()
    await running
    return made[1:]


def said(word: str) -> dict[str, object]:
    return {"metadata": {"annotations": {"said": word}}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # What follows within the patience is looked at together, counted from the first.
        ([(10.0, said("a")), (11.0, said("b")), (11.9, said("c"))], [12.0]),
        ([(10.0, said("a")), (13.0, said("b"))], [12.0, 15.0]),
        # What cannot wait takes the rest along.
        ([(10.0, said("a")), (10.5, {"spec": {"low": 0}})], [10.5]),
        # A function that fails makes nobody wait.
        ([(10.0, said("a")), (20.0, {"metadata": {"annotations": None}})], [12.0, 20.0]),
    ],
)
def test_one_pass_is_for_all_that_comes_within_the_patience(
    changes: list[tuple[float, dict[str, object]]], expected: list[float]
) -> None:
    async def main(sim: Simulation) -> None:
        assert await passes(sim, *changes) == [pytest.approx(each, abs=0.1) for each in expected]

    run(main, seed=1)
