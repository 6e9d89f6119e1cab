"""Durations (``10m``, ``1h30m``, ``500ms``) as Kubernetes writes them.

Like a Quantity, a Duration keeps its text, so that what a person wrote is what they read back.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import total_ordering

#: The schema's pattern and the parser's. Nothing finer than a microsecond: it is the broker's unit of time.
DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h))+$"
DURATION_MAX_LENGTH = 32

_PARSER = re.compile(DURATION_PATTERN[:-1] + r"\Z")
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(us|ms|s|m|h)")
_MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}


@total_ordering
class Duration:
    """An exact, non-negative span of time, with the text it was written in."""

    __slots__ = ("microseconds", "text")

    text: str
    microseconds: int

    def __init__(self, text: str) -> None:
        """Parse; raises ValueError with the value and what is allowed."""
        if len(text) > DURATION_MAX_LENGTH or not _PARSER.match(text):
            raise ValueError(
                f"{text[:40]!r} is not a duration: expected numbers with units (us ms s m h), such as 1h30m"
            )
        self.text = text
        self.microseconds = sum(_span(*part) for part in _PART.findall(text))

    @property
    def seconds(self) -> float:
        """For timers; comparisons between durations are exact without it."""
        return self.microseconds / 1_000_000

    @property
    def timedelta(self) -> timedelta:
        """For arithmetic with timestamps."""
        return timedelta(microseconds=self.microseconds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.microseconds == other.microseconds

    def __lt__(self, other: Duration) -> bool:
        return self.microseconds < other.microseconds

    def __hash__(self) -> int:
        return hash(self.microseconds)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Duration({self.text!r})"


def _span(whole: str, fraction: str, unit: str) -> int:
    """One part, in microseconds; what is finer is cut off, as Go does with a nanosecond."""
    divisor: int = 10 ** len(fraction)
    return int(whole + fraction) * _MICROSECONDS[unit] // divisor
