"""When a drive is thought faulty or broken, and when it is trusted again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.maintenance.action import Marker
from quorate.api.maintenance.broker_config import MonitorConfig
from quorate.maintenance.moments import SECOND
from quorate.maintenance.monitor.opinions import Sample, Streak, opinion
from quorate.maintenance.monitor.spans import Span

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NOW = 1000 * HOUR
CONFIG = MonitorConfig()

BROKEN = Marker.DISK_BROKEN
FAULTY = Marker.DISK_FAULTY
UNSEEN = Streak()


def thought(spans: Sequence[Span] = (), streak: Streak = UNSEEN, held: Marker | None = None) -> Marker | None:
    return opinion(spans, streak, held, CONFIG, NOW).marker


@pytest.mark.parametrize(
    ("start", "end", "marker"),
    [
        (-2 * HOUR, 0, BROKEN),  # away for two hours
        (-2 * HOUR + 1, 0, None),  # not quite
        (10 * MINUTE, 130 * MINUTE, BROKEN),  # will be, soon
        (10 * MINUTE + 1, 131 * MINUTE, FAULTY),  # will be, later
        (60 * MINUTE, 180 * MINUTE, FAULTY),
        (60 * MINUTE + 1, 200 * MINUTE, None),  # much later
        (5 * MINUTE, 120 * MINUTE, None),  # soon, and short
        (-3 * HOUR, -1, None),  # it is back
    ],
)
def test_a_long_absence_now_or_to_come_speaks_against_a_drive(start: int, end: int, marker: Marker | None) -> None:
    assert thought([Span(NOW + start, NOW + end)]) is marker


def test_down_so_often_in_a_row_is_faulty() -> None:
    assert thought(streak=Streak(Sample.BAD, 59)) is None
    assert thought(streak=Streak(Sample.BAD, 60)) is FAULTY


@pytest.mark.parametrize("held", [BROKEN, FAULTY])
def test_an_opinion_goes_only_after_good_samples_in_a_row(held: Marker) -> None:
    assert thought(held=held) is held
    assert thought(held=held, streak=Streak(Sample.GOOD, 4)) is held
    assert thought(held=held, streak=Streak(Sample.GOOD, 5)) is None
    assert thought(held=held, streak=Streak(Sample.BAD, 5)) is held


@pytest.mark.parametrize("held", [BROKEN, FAULTY])
def test_after_an_unplanned_loss_it_takes_as_many_good_samples_as_bad_ones(held: Marker) -> None:
    assert thought(held=held, streak=Streak().seen(Sample.BAD).seen(Sample.GOOD, 59)) is held
    assert thought(held=held, streak=Streak().seen(Sample.BAD).seen(Sample.GOOD, 60)) is None
    assert thought(held=held, streak=Streak().seen(Sample.PLANNED, 9).seen(Sample.GOOD, 5)) is None


def test_a_broken_drive_does_not_become_faulty() -> None:
    assert thought(held=BROKEN, streak=Streak(Sample.BAD, 60)) is BROKEN
    assert thought([Span(NOW + 30 * MINUTE, NOW + 5 * HOUR)], held=BROKEN) is BROKEN


def test_a_faulty_one_becomes_broken() -> None:
    assert thought([Span(NOW - 2 * HOUR, NOW)], held=FAULTY) is BROKEN


@given(st.lists(st.sampled_from(Sample), max_size=30))
def test_samples_that_say_nothing_neither_count_nor_interrupt(samples: list[Sample]) -> None:
    telling = [each for each in samples if each in (Sample.GOOD, Sample.BAD)]
    streak = Streak()
    for each in samples:
        streak = streak.seen(each)
    expected = 0
    for each in reversed(telling):
        if each is not telling[-1]:
            break
        expected += 1
    assert streak.length == expected


def test_the_reason_says_what_and_for_how_long() -> None:
    told = opinion([Span(NOW - 2 * HOUR, NOW + HOUR, "alice-p-7")], Streak(), None, CONFIG, NOW)
    assert told.reason == "away for 3.0 h: alice-p-7"
    told = opinion([Span(NOW + 5 * MINUTE, NOW + 4 * HOUR)], Streak(), None, CONFIG, NOW)
    assert told.reason == "will be away in 5 min for 3.9 h"
