from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.duration import Duration

UNITS = ["us", "ms", "s", "m", "h"]


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0s", 0),
        ("10us", 10),
        ("500ms", 500_000),
        ("300s", 300_000_000),
        ("10m", 600_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5h", 5_400_000_000),
        ("0.0000001s", 0),
        ("336h", 14 * 24 * 3_600_000_000),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, microseconds: int) -> None:
    duration = Duration(text)
    assert duration.microseconds == microseconds
    assert duration.timedelta == timedelta(microseconds=microseconds)
    assert duration.seconds == microseconds / 1e6


@pytest.mark.parametrize("text", ["", "10", "10 m", "-1s", "1d", "m", "1m\n", "1.h", "1" * 40 + "s"])
def test_what_is_not_a_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration: expected .* such as 1h30m"):
        Duration(text)


def test_durations_of_one_length_are_equal_and_keep_their_texts() -> None:
    assert Duration("60s") == Duration("1m")
    assert hash(Duration("60s")) == hash(Duration("1m"))
    assert str(Duration("60s")) == "60s"
    assert Duration("59s") < Duration("1m")
    assert Duration("60s") != "60s"


@given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(UNITS)), min_size=1, max_size=3))
def test_parts_add_up_in_any_order(parts: list[tuple[int, str]]) -> None:
    forward = Duration("".join(f"{number}{unit}" for number, unit in parts))
    backward = Duration("".join(f"{number}{unit}" for number, unit in reversed(parts)))
    assert forward == backward
    assert forward.microseconds == sum(Duration(f"{number}{unit}").microseconds for number, unit in parts)
