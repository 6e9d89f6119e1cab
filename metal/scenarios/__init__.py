"""All scenarios, in the order in which they are played."""

from __future__ import annotations

from fnmatch import fnmatch

from metal.scenarios import growth, isolation, mishaps, storage, volumes
from metal.stage import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *storage.SCENARIOS,
    *volumes.SCENARIOS,
    *mishaps.SCENARIOS,
    *isolation.SCENARIOS,
    *growth.SCENARIOS,
)


def chosen(patterns: str) -> tuple[Scenario, ...]:
    """Those whose name matches one of the patterns; all when there are none."""
    wanted = patterns.split()
    return tuple(each for each in SCENARIOS if not wanted or any(fnmatch(each.name, one) for one in wanted))
