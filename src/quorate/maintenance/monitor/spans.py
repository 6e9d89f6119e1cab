"""When something was away, is, or will be: spans of time, ordered, joined over small gaps.

A span of no length says nothing and is dropped. A gap that grows joins what is closer; one that shrinks splits nothing:
what was told as one absence stays one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.maintenance.moments import later


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start`` to ``end``, and why."""

    start: int
    end: int
    reason: str = ""


def joined(spans: Iterable[Span], gap: int) -> tuple[Span, ...]:
    """In order of their start; neighbours no further apart than the gap are one."""
    result: list[Span] = []
    for span in sorted((each for each in spans if each.end > each.start), key=lambda each: (each.start, each.end)):
        if result and span.start <= later(result[-1].end, gap):
            last = result[-1]
            result[-1] = Span(last.start, max(last.end, span.end), _both(last.reason, span.reason))
        else:
            result.append(span)
    return tuple(result)


def without_old(spans: Iterable[Span], now: int, gap: int) -> tuple[Span, ...]:
    """Without those that nothing new can join any more."""
    return tuple(span for span in spans if later(span.end, gap) >= now)


def upcoming(spans: Iterable[Span], now: int, *, within: int, lasting: int) -> Span | None:
    """The first that is not over, begins within that time, and lasts at least so long."""
    for span in spans:
        if span.start <= later(now, within) and span.end >= now and span.end - span.start >= lasting:
            return span
    return None


def _both(first: str, second: str) -> str:
    words = [word for word in (first, second) if word]
    return words[0] if len(set(words)) == 1 else ", ".join(words)
