"""What the monitor thinks of one drive: nothing, FAULTY or BROKEN, and why.

Two things speak against a drive. It is away, or will be, for so long that its data should live elsewhere: BROKEN when
that begins soon, FAULTY when later. Or it has been down, unplanned, in so many samples in a row that it will not come
back by itself: FAULTY. An opinion once formed goes only after good samples in a row: a few if the drive was never away
without leave, because then nothing was wrong with it; as many as it takes to be thought faulty if it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from quorate.api.maintenance.action import Marker
from quorate.api.maintenance.broker_config import MonitorConfig
from quorate.maintenance.moments import SECOND
from quorate.maintenance.monitor.spans import Span, upcoming


class Sample(Enum):
    """How a drive was seen once."""

    GOOD = "good"
    BAD = "bad"
    #: It is away, and somebody may do that: says nothing about the drive.
    PLANNED = "planned"
    #: Nobody knows.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Streak:
    """How often in a row it was seen so. What says nothing about the drive neither counts nor interrupts."""

    sample: Sample = Sample.UNKNOWN
    length: int = 0
    #: It was away without leave since it was last trusted.
    unplanned: bool = False

    def seen(self, sample: Sample, times: int = 1) -> Streak:
        """So many samples more."""
        if sample in (Sample.PLANNED, Sample.UNKNOWN) or not times:
            return self
        length = self.length + times if sample is self.sample else times
        return Streak(sample, length, self.unplanned or sample is Sample.BAD)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the monitor would mark a drive as; None: nothing."""

    marker: Marker | None
    reason: str = ""


NOTHING: Final = Opinion(None)


def opinion(spans: Sequence[Span], streak: Streak, held: Marker | None, config: MonitorConfig, now: int) -> Opinion:
    """``spans``: all its absences, past and to come, joined; ``held``: what the monitor has marked it as so far."""
    lasting = _microseconds(config.broken_timeout.seconds)
    span = upcoming(spans, now, within=_microseconds(config.broken_prep_timeout.seconds), lasting=lasting)
    if span is not None:
        return Opinion(Marker.DISK_BROKEN, _absence(span, now))
    span = upcoming(spans, now, within=_microseconds(config.faulty_prep_timeout.seconds), lasting=lasting)
    if span is not None:
        return _at_least(held, Opinion(Marker.DISK_FAULTY, _absence(span, now)))
    if streak.sample is Sample.BAD and streak.length >= config.default_state_limit:
        return _at_least(held, Opinion(Marker.DISK_FAULTY, f"down in {streak.length} samples in a row"))
    enough = config.default_state_limit if streak.unplanned else config.good_state_limit
    if held is not None and not (streak.sample is Sample.GOOD and streak.length >= enough):
        return Opinion(held, f"not yet seen well in {enough} samples in a row")
    return NOTHING


def _at_least(held: Marker | None, new: Opinion) -> Opinion:
    """A broken drive does not become less so by coming back for a moment."""
    return Opinion(held, new.reason) if held is Marker.DISK_BROKEN else new


def _absence(span: Span, now: int) -> str:
    hours = (span.end - span.start) / (3600 * SECOND)
    begins = "away" if span.start <= now else f"will be away in {(span.start - now) // (60 * SECOND)} min"
    return f"{begins} for {hours:.1f} h" + (f": {span.reason}" if span.reason else "")


def _microseconds(seconds: float) -> int:
    return int(seconds * SECOND)
