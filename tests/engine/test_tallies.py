"""Counting many at once comes to the same as counting one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.core import HistogramMetricFamily

from quorate.engine.tallies import DurationTally

BOUNDS = (0.001, 0.01, 0.1, 1.0)


def shown(tally: DurationTally) -> list[tuple[str, float]]:
    family = HistogramMetricFamily("seconds", "of something", labels=["of"])
    tally.add_to(family, ["it"], BOUNDS)
    return [(str(sample.labels), round(sample.value, 9)) for sample in family.samples]


@settings(deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.0005, 0.001, 0.0011, 0.01, 0.05, 0.1, 0.9, 1.0, 1.1, 500.0]), max_size=30))
def test_many_durations_fall_into_the_same_buckets_as_one_by_one(durations: list[float]) -> None:
    one_by_one, at_once = DurationTally(BOUNDS), DurationTally(BOUNDS)
    for duration in durations:
        one_by_one.add(duration)
    at_once.add_all(durations, [0.0] * len(durations))
    assert shown(at_once) == shown(one_by_one)
