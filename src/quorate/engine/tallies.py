"""Counting on the hot path.

Every pass of every controller counts five things. On prometheus-client's counters and histograms, which take a lock
each time, that made a pass that finds nothing to do twice as dear (measured: 13.5 against 7 µs). There is only one
thread here, so we count in plain Python and hand the totals over when somebody scrapes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import inf
from operator import sub

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric


class Tally:
    """Counts events."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, more: int = 1) -> None:
        """One more, or several."""
        self.count += more


class DurationTally:
    """Sorts durations into buckets."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """``bounds`` are the upper limits of the buckets, ascending; there is one more above the last."""
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def add_all(self, ends: Sequence[float], begins: Sequence[float]) -> None:
        """More: the differences of pairs, as far as there are pairs. Alike as they mostly are, they count together."""
        durations = list(map(sub, ends, begins))
        if not durations:
            return
        bucket = bisect_left(self._bounds, max(durations))
        if bucket and bucket != bisect_left(self._bounds, min(durations)):
            for seconds in durations:
                self.add(seconds)
        else:
            self._counts[bucket] += len(durations)
            self._total += sum(durations)

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str], bounds: Sequence[float]) -> None:
        """Hand over the totals, for some or all of our bounds; Prometheus wants each bucket to include those below."""
        running, buckets = 0, []
        for bound, count in zip((*self._bounds, inf), self._counts, strict=True):
            running += count
            if bound in bounds:
                buckets.append((str(bound), float(running)))
        family.add_metric(labels, [*buckets, ("+Inf", float(running))], self._total)


class CounterFamily:
    """A counter with labels, made of tallies. Register it as a collector."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._tallies: dict[tuple[str, ...], Tally] = {}

    def labels(self, *values: str) -> Tally:
        """The tally with these label values; always the same one."""
        return self._tallies.setdefault(values, Tally())

    def collect(self) -> Iterable[Metric]:
        """For Prometheus."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for values, tally in self._tallies.items():
            family.add_metric(values, tally.count)
        yield family


class HistogramFamily:
    """A histogram with labels, made of tallies. Register it as a collector."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        bounds: Sequence[float],
        *,
        shared_with: Sequence[float] = (),
    ) -> None:
        """``shared_with`` are the bounds of a histogram that shows the same tallies."""
        self._name, self._text, self._labels, self._bounds = name, text, labels, bounds
        self._tally_bounds = sorted({*bounds, *shared_with})
        self._tallies: dict[tuple[str, ...], DurationTally] = {}

    def labels(self, *values: str) -> DurationTally:
        """The tally with these label values; always the same one."""
        return self._tallies.setdefault(values, DurationTally(self._tally_bounds))

    def share(self, tally: DurationTally, *values: str) -> None:
        """Show a tally that another histogram shows too. Our bounds must be among its own."""
        self._tallies[values] = tally

    def collect(self) -> Iterable[Metric]:
        """For Prometheus."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for values, tally in self._tallies.items():
            tally.add_to(family, values, self._bounds)
        yield family
