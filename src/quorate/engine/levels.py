"""How many objects there are of each sort, for Prometheus: counted in the caches when somebody scrapes.

Between scrapes that costs nothing. Every process has the caches, but only the one that leads shows the levels, so that
a sum over processes is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from quorate.api.conditions import ConditionType
from quorate.api.meta import Condition


class Levels:
    """A collector of levels. ``count`` is asked at every scrape, if ``leads`` says so."""

    def __init__(self, count: Callable[[], Iterable[Metric]], leads: Callable[[], bool]) -> None:
        self._count = count
        self._leads = leads

    def collect(self) -> Iterable[Metric]:
        """For Prometheus."""
        return self._count() if self._leads() else ()


def level(name: str, text: str, labels: Sequence[str], counted: Mapping[tuple[str, ...], int]) -> Metric:
    """A gauge of what was counted, by the values of its labels. A series that is to stay at none is counted as 0."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in counted.items():
        family.add_metric(values, number)
    return family


def by_condition(
    name: str, text: str, known: Iterable[type[ConditionType]], objects: Iterable[Iterable[Condition]]
) -> Metric:
    """Objects by their conditions of some types: the status, and the reason for it. Every declared reason is there."""
    types = tuple(known)
    counted: dict[tuple[str, ...], int] = {
        (reason.condition, reason.status, reason.code): 0 for each in types for reason in each.reasons()
    }
    names = {each.__name__ for each in types}
    for conditions in objects:
        for condition in conditions:
            if condition.type in names:
                key = (condition.type, condition.status, condition.reason)
                counted[key] = counted.get(key, 0) + 1
    return level(name, text, ("condition", "status", "reason"), counted)
