"""Absences are joined over small gaps, and asked for what is still to come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.maintenance.moments import FOREVER
from quorate.maintenance.monitor.spans import Span, joined, upcoming, without_old

GAP = 10

spans = st.lists(
    st.builds(lambda start, length: Span(start, start + length), st.integers(0, 200), st.integers(0, 30)), max_size=12
)


@pytest.mark.parametrize(
    ("given_spans", "result"),
    [
        ([], ()),
        ([Span(5, 5)], ()),
        ([Span(0, 5), Span(15, 20)], (Span(0, 20),)),
        ([Span(0, 5), Span(16, 20)], (Span(0, 5), Span(16, 20))),
        ([Span(15, 20), Span(0, 5)], (Span(0, 20),)),
        ([Span(0, 50), Span(10, 20)], (Span(0, 50),)),
        ([Span(0, 5, "power"), Span(6, 9, "power")], (Span(0, 9, "power"),)),
        ([Span(0, 5, "power"), Span(6, 9)], (Span(0, 9, "power"),)),
        ([Span(0, 5), Span(6, 9, "link")], (Span(0, 9, "link"),)),
        ([Span(0, 5, "power"), Span(6, 9, "link")], (Span(0, 9, "power, link"),)),
        ([Span(0, FOREVER), Span(3, 9)], (Span(0, FOREVER),)),
    ],
)
def test_neighbours_no_further_apart_than_the_gap_are_one(given_spans: list[Span], result: tuple[Span, ...]) -> None:
    assert joined(given_spans, GAP) == result


@given(spans, st.integers(0, 20))
def test_joining_keeps_every_moment_of_absence_and_leaves_gaps_wider_than_the_gap(some: list[Span], gap: int) -> None:
    result = joined(some, gap)
    for span in some:
        assert span.start == span.end or any(one.start <= span.start and span.end <= one.end for one in result)
    assert all(one.end + gap < other.start for one, other in pairwise(result))


@given(spans, st.integers(0, 20), st.integers(0, 20))
def test_a_gap_that_shrinks_splits_nothing(some: list[Span], gap: int, smaller: int) -> None:
    assert joined(joined(some, max(gap, smaller)), min(gap, smaller)) == joined(some, max(gap, smaller))


def test_what_nothing_new_can_join_is_forgotten() -> None:
    assert without_old((Span(0, 89), Span(91, 95)), 100, GAP) == (Span(91, 95),)
    assert without_old((Span(0, 90),), 100, GAP) == (Span(0, 90),)


@pytest.mark.parametrize(
    ("span", "found"),
    [
        (Span(90, 120), True),  # goes on
        (Span(110, 130), True),  # begins just within the time
        (Span(111, 140), False),  # begins later
        (Span(60, 99), False),  # is over
        (Span(60, 100), True),  # ends now
        (Span(101, 120), False),  # too short
    ],
)
def test_upcoming_is_not_over_begins_soon_and_lasts(span: Span, found: bool) -> None:
    assert (upcoming([span], 100, within=10, lasting=20) == span) is found
