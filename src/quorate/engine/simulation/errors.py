"""What can go wrong with a simulation itself.

No product code raises or catches these, so they are not in ``quorate.errors``.
"""

from __future__ import annotations


class SimulationError(Exception):
    """Base of what the simulation says about itself."""


class Deadlock(SimulationError):
    """Nothing can run, no timer is set, and the main coroutine is not done."""


class Stuck(SimulationError):
    """Virtual time ran past its limit, or stands still while callbacks run without end."""


class OutsideSimulation(SimulationError):
    """Something asked for a socket, a thread, a process or a signal, which a simulation does not have."""


class UnhandledError(SimulationError):
    """A background task or callback failed and nobody looked at its error."""
