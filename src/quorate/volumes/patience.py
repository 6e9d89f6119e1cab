"""How much is left of a patience with something that began at a written time.

The time may have been written by a leader with another clock. A little ahead is as good as now; further ahead than the
patience itself it says nothing, and nobody waits until that clock is right: patience is a courtesy, not a safeguard.
"""

from __future__ import annotations

from datetime import datetime


def left_of(patience: float, since: datetime, now: datetime) -> float:
    """Seconds, at most all of them; zero: it is over."""
    passed = (now - since).total_seconds()
    return min(patience, patience - passed) if abs(passed) < patience else 0.0
