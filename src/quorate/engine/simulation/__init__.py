"""The whole engine in virtual time, on one seed.

``run(main, seed=…)`` runs a coroutine on an event loop of our own: no sockets, no threads, no waiting. Time stands
still while anything can run and jumps to the next timer when nothing can; which of the runnable tasks goes next is
drawn from the seed. So a day passes in milliseconds, every interleaving that asyncio permits can come up, and the
same seed gives the same history on every machine, under any PYTHONHASHSEED.

- ``Simulation`` is what ``main`` gets: the clock, random streams, processes that can be paused or killed.
- ``for_each_seed`` is for tests: many seeds, and a failing one says how to replay it alone.
- A simulation that can make no progress ends with ``Deadlock`` or ``Stuck``, which list who waits and where.

What it needs in return: all time from ``Clock``, all randomness from an injected ``random.Random``, no order taken
from a set of strings, and async generators closed by ``contextlib.aclosing`` rather than by the garbage collector.
"""

from quorate.engine.simulation.clock import SimulatedClock
from quorate.engine.simulation.errors import (
    Deadlock,
    OutsideSimulation,
    SimulationError,
    Stuck,
    UnhandledError,
)
from quorate.engine.simulation.loop import SimulationLoop
from quorate.engine.simulation.process import Process
from quorate.engine.simulation.run import Simulation, for_each_seed, run

__all__ = [
    "Deadlock",
    "OutsideSimulation",
    "Process",
    "SimulatedClock",
    "Simulation",
    "SimulationError",
    "SimulationLoop",
    "Stuck",
    "UnhandledError",
    "for_each_seed",
    "run",
]
