"""Broker time and the wall clock."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.maintenance.ledger.broker_time import TOLERANCE, BrokerTime
from quorate.maintenance.moments import SECOND
from tests.maintenance.broker.desk import BEGIN, StillClock


def begun(high_water: int = 0) -> tuple[StillClock, BrokerTime]:
    clock = StillClock()
    time = BrokerTime(clock)
    time.begin(high_water)
    return clock, time


def test_it_is_the_wall_clocks_time() -> None:
    clock, time = begun()
    clock.advance(3600)
    assert (time.now(), time.doubt) == (BEGIN + 3600 * SECOND, "")


@pytest.mark.parametrize("step", [-60, 60])
def test_a_step_of_up_to_a_minute_is_borne(step: int) -> None:
    clock, time = begun()
    clock.jump(step)
    assert (time.now(), time.doubt) == (BEGIN + max(step, 0) * SECOND, "")


@pytest.mark.parametrize("step", [-61, 61, 86400, -86400])
def test_after_a_larger_step_time_stands_still_and_says_why(step: int) -> None:
    clock, time = begun()
    clock.jump(step)
    assert time.now() == BEGIN
    assert f"{abs(step)} s" in time.doubt
    clock.advance(30)
    assert time.now() == BEGIN or step == -61


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_clock_that_is_put_right_is_believed_again(step: int) -> None:
    clock, time = begun()
    clock.jump(step)
    time.now()
    clock.advance(120)
    clock.jump(-step)
    assert (time.now(), time.doubt) == (BEGIN + 120 * SECOND, "")


def test_a_clock_that_was_put_back_is_believed_when_it_has_caught_up() -> None:
    clock, time = begun()
    clock.jump(-600)
    assert time.now() == BEGIN
    clock.advance(539)
    assert time.now() == BEGIN
    assert time.doubt
    clock.advance(1)
    assert (time.now(), time.doubt) == (BEGIN, "")
    clock.advance(70)
    assert time.now() == BEGIN + 10 * SECOND


def test_a_clock_that_was_put_forward_is_not_believed_by_waiting() -> None:
    clock, time = begun()
    clock.jump(600)
    for _ in range(100):
        clock.advance(600)
        assert time.now() == BEGIN
        assert time.doubt


@pytest.mark.parametrize("step", [-86400, 86400])
def test_a_person_may_say_that_the_clock_is_right(step: int) -> None:
    clock, time = begun()
    clock.jump(step)
    time.now()
    assert time.behind() == step * SECOND
    time.accept()
    assert (time.now(), time.doubt) == (BEGIN + step * SECOND, "")
    clock.advance(10)
    assert time.now() == BEGIN + (step + 10) * SECOND


def test_after_a_restart_it_is_not_earlier_than_the_ledger() -> None:
    clock, time = begun(high_water=BEGIN + 30 * SECOND)
    assert (time.now(), time.doubt) == (BEGIN + 30 * SECOND, "")
    clock.advance(31)
    assert time.now() == BEGIN + 31 * SECOND


def test_after_a_restart_a_clock_far_behind_the_ledger_is_not_believed_until_it_is_set_or_catches_up() -> None:
    clock, time = begun(high_water=BEGIN + 3600 * SECOND)
    assert (time.now(), bool(time.doubt)) == (BEGIN + 3600 * SECOND, True)
    clock.jump(2 * 3600)
    assert (time.now(), time.doubt) == (BEGIN + 7200 * SECOND, "")


def test_a_new_term_goes_by_the_ledger_and_not_by_what_was_seen_in_an_old_one() -> None:
    clock, time = begun()
    clock.advance(10)
    time.now()
    clock.jump(-86400)
    assert time.now() == BEGIN + 10 * SECOND
    time.begin(clock.wall - 5 * SECOND)
    assert (time.now(), time.doubt) == (clock.wall, "")


def test_while_no_broker_ran_any_time_may_have_passed() -> None:
    _, time = begun(high_water=BEGIN - 10**9 * SECOND)
    assert (time.now(), time.doubt) == (BEGIN, "")


STEPS = st.tuples(st.just(True), st.integers(-400, 400)) | st.tuples(st.just(False), st.integers(0, 400))


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_it_never_goes_back_nor_ahead_of_what_has_passed_by_more_than_a_minute_at_once(
    steps: list[tuple[bool, int]],
) -> None:
    clock, time = begun()
    last, trusted_at = time.now(), clock.elapsed
    for jumps, seconds in steps:
        if jumps:
            clock.jump(seconds)
        else:
            clock.advance(seconds)
        now = time.now()
        assert last <= now <= last + (clock.elapsed - trusted_at) + TOLERANCE
        if time.doubt:
            assert now == last
        else:
            last, trusted_at = now, clock.elapsed
