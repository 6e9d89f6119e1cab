"""How long an agent waits before it tries the same thing again: the only rule for it, with two ways to count.

A replica counts tries (``Patience.left``): DRBD may not do at once what it said it would. Disks and drives count what
failed (``wait_before_retry``), and what was done in vain (``wait_before_trying``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quorate.agent.memory import Outcome


@dataclass(frozen=True, slots=True)
class Patience:
    """The pause doubles from ``first`` to ``longest`` seconds."""

    first: float = 1.0
    longest: float = 60.0

    def left(self, last: Outcome | None, about: str, now: datetime) -> float:
        """Seconds still to wait after a try, whatever came of it; 0: it may be tried now."""
        return 0.0 if last is None or last.about != about else self.after(last, last.times, now)

    def after(self, last: Outcome, times: int, now: datetime) -> float:
        """Seconds still to wait after the last of so many tries."""
        pause = min(self.first * 2.0 ** min(times - 1, 30), self.longest)
        # A wall clock that was set back must not make us wait for longer than that.
        return max(0.0, pause - max(0.0, (now - last.at).total_seconds()))


#: What is done to disks takes long, and rarely helps itself.
WITH_DISKS: Final = Patience(first=2.0, longest=300.0)


def wait_before_retry(outcome: Outcome | None, now: datetime, about: str = "") -> float:
    """Seconds until a step that failed may be tried again; 0 at once, also when something else would be tried now."""
    if outcome is None or outcome.succeeded or (about and outcome.about != about):
        return 0.0
    return WITH_DISKS.after(outcome, outcome.failures, now)


def wait_before_trying(outcome: Outcome | None, now: datetime, about: str = "") -> float:
    """The same for work. What succeeded and is to be done once more did not help: that too is done ever more rarely."""
    if outcome is None or not outcome.succeeded or outcome.about != about or outcome.times == 1:
        return wait_before_retry(outcome, now, about)
    return WITH_DISKS.after(outcome, outcome.times - 1, now)
