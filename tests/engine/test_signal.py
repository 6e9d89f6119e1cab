"""Wake-ups from outside the store, and the effects that a plan has there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random

from quorate.engine import Controller, Key, Plan, Reader, Signal, Watch, no_keys
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from tests.support.kinds import Widget
from tests.support.widgets import open_store

KEY = Key("", "here")


def test_a_signal_reaches_everybody_who_listens_and_nobody_who_has_stopped() -> None:
    signal, first, second = Signal(), list[Key](), list[Key]()
    end = signal.subscribe(first.append)
    signal.subscribe(second.append)
    signal.wake(KEY)
    end()
    signal.wake(KEY)
    assert (first, second) == ([KEY], [KEY, KEY])


async def _passes(sim: Simulation, signal: Signal, effects: tuple[Callable[[], None], ...]) -> int:
    """How many passes a controller made over a key that only signals wake, five seconds after one did."""
    seen: list[Key] = []

    def observe(_: Reader, key: Key) -> Key:
        return key

    def decide(key: Key, _: datetime, __: Random) -> Plan:
        seen.append(key)
        return Plan(effects=effects if len(seen) < 3 else ())

    controller = Controller(
        name="hardware", watches=(Watch(Widget, no_keys),), observe=observe, decide=decide, signals=(signal,)
    )
    store = await open_store(sim)
    manager = Manager(store, [controller], clock=sim.clock, random=sim.random("manager"), identity="test")
    task = sim.process("agent").spawn(manager.run())
    await sim.clock.sleep(1.0)
    assert seen == []
    signal.wake(KEY)
    await sim.clock.sleep(5.0)
    manager.stop()
    await task
    return len(seen)


def test_a_signal_wakes_a_key_that_no_object_wakes() -> None:
    async def story(sim: Simulation) -> None:
        assert await _passes(sim, Signal(), ()) == 1

    run(story, seed=1)


def test_effects_happen_after_the_pass_and_may_wake_it_again() -> None:
    async def story(sim: Simulation) -> None:
        signal = Signal()
        assert await _passes(sim, signal, (lambda: signal.wake(KEY),)) == 3

    run(story, seed=1)


def test_an_effect_that_fails_is_tried_again_with_the_pass() -> None:
    async def story(sim: Simulation) -> None:
        def fail() -> None:
            raise RuntimeError("no hands")

        assert await _passes(sim, Signal(), (fail,)) == 3

    run(story, seed=1)


def test_who_is_concerned_with_some_keys_hears_of_no_others() -> None:
    signal, heard = Signal(), list[Key]()
    end = signal.only(lambda key: key != KEY).subscribe(heard.append)
    signal.wake(KEY)
    signal.wake(other := Key("", "there"))
    end()
    signal.wake(other)
    assert heard == [other]
