"""How long to wait after the n-th failure in a row."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from ``first`` to ``longest``. Up to half is taken off at random, so that many do not return at once."""

    first: float
    longest: float

    def delay(self, failures: int, random: Random) -> float:
        """Seconds to wait after this many failures in a row (at least one)."""
        doubled = self.first * 2.0 ** min(failures - 1, 60)
        return min(doubled, self.longest) * (1.0 - random.random() / 2.0)
