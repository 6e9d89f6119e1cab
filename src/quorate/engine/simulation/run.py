"""Running one seed, and many."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from random import Random
from typing import Any, TypeVar

from quorate.engine.simulation.clock import SimulatedClock
from quorate.engine.simulation.errors import SimulationError, UnhandledError
from quorate.engine.simulation.loop import SimulationLoop
from quorate.engine.simulation.process import Process

T = TypeVar("T")

#: How much virtual time a simulation may take unless told otherwise, in seconds.
ONE_DAY = 86_400.0

#: Set to a number, makes for_each_seed run that seed alone.
SEED_VARIABLE = "QUORATE_SEED"


class Simulation:
    """What the main coroutine of a simulation is given."""

    def __init__(self, loop: SimulationLoop, seed: int) -> None:
        self.seed = seed
        self.loop = loop
        self.clock = SimulatedClock(loop)
        #: For what must be closed when everything is over, whether it went well or not.
        self.cleanup = AsyncExitStack()
        self._processes: list[Process] = []

    def random(self, purpose: str) -> Random:
        """A random stream of its own for each purpose, so that drawing more for one does not shift the others."""
        return Random(f"{purpose}/{self.seed}")

    def process(self, name: str) -> Process:
        """A group of tasks that can be paused and killed."""
        process = Process(self.loop, name)
        self._processes.append(process)
        return process

    def fingerprint(self) -> str:
        """A digest of the history so far."""
        return self.loop.fingerprint()

    def wind_up(self) -> None:
        """After main is done: whatever is left is cancelled, the dead included, and may clean up."""
        for process in self._processes:
            process.bury()
        self.loop.allow_more(ONE_DAY)
        left = self.loop.unfinished()
        for task in left:
            task.cancel()
        try:
            self.loop.run_until_complete(_settle(left))
        except SimulationError:
            # A task that will not be cancelled. What main said of the simulation matters more.
            for task in self.loop.unfinished():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.loop.run_until_complete(self.cleanup.aclose())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())


def run(main: Callable[[Simulation], Coroutine[Any, Any, T]], *, seed: int, limit: float = ONE_DAY) -> T:
    """Run ``main(simulation)`` in virtual time and return its result.

    Whatever it raises carries a note with the seed. Raises Deadlock when nothing can run any more, Stuck after
    ``limit`` seconds of virtual time, UnhandledError when a background task failed unseen.
    """
    loop = SimulationLoop(seed=seed, limit=limit)
    simulation = Simulation(loop, seed)
    try:
        try:
            result = loop.run_until_complete(main(simulation))
            _raise_unhandled(loop)
        except BaseException as error:
            error.add_note(f"simulation: seed {seed}, at {loop.time():.6f} s")
            raise
        finally:
            simulation.wind_up()
    finally:
        loop.close()
    return result


def for_each_seed(
    main: Callable[[Simulation], Coroutine[Any, Any, object]],
    seeds: Iterable[int] = range(20),
    *,
    limit: float = ONE_DAY,
) -> None:
    """Run ``main`` once per seed, for tests. A failure says which seed it was and how to run that one alone."""
    chosen = os.environ.get(SEED_VARIABLE)
    for seed in seeds if chosen is None else (int(chosen),):
        try:
            run(main, seed=seed, limit=limit)
        except BaseException as error:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            error.add_note(f"replay: {SEED_VARIABLE}={seed} python -m pytest '{test or 'the failing test'}'")
            raise


async def _settle(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _raise_unhandled(loop: SimulationLoop) -> None:
    unhandled = loop.unhandled()
    if unhandled:
        message, error = unhandled[0]
        raise UnhandledError(f"{len(unhandled)} unseen, first: {message}") from error
