"""Ages are as short as kubectl prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.server.kubernetes.ages import age

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (48 * HOUR, "2d"),
        (50 * HOUR, "2d2h"),
        (8 * DAY + 3 * HOUR, "8d"),
        (729 * DAY, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 3 * DAY, "2y3d"),
        (8 * YEAR + 3 * DAY, "8y"),
    ],
)
def test_precision_falls_with_age(seconds: int, shown: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == shown


@given(st.integers(0, 50 * YEAR))
def test_an_age_is_at_most_seven_characters(seconds: int) -> None:
    assert 2 <= len(age(NOW - timedelta(seconds=seconds), NOW)) <= 7
