"""Moments and spans as whole microseconds, as the broker's wire has them. Additions never pass the end of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

#: The largest uint64: a permission until then never ends.
FOREVER: Final = 2**64 - 1
SECOND: Final = 1_000_000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def later(moment: int, *spans: int) -> int:
    """That much after a moment; ``FOREVER`` at most."""
    return min(moment + sum(spans), FOREVER)


def from_datetime(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def to_datetime(moment: int) -> datetime | None:
    """As objects have it; None for what a datetime cannot say, which is as good as never."""
    try:
        return _EPOCH + timedelta(microseconds=moment)
    except OverflowError:
        return None
