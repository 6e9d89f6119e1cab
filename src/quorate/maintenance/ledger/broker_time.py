"""What time it is for the broker.

It is the wall clock's time, as long as that can be believed. It never goes back: not behind what was read before, nor,
after a restart, behind the ledger's high-water mark. A wall clock is believed while it is

    not more than a minute behind broker time, and
    not more than a minute ahead of where the monotonic clock says it should be.

Otherwise somebody has set it. Then broker time stands still: decisions are answered ERROR_TEMP, an alert is raised, and
nothing expires. There are three ways out:

- the clock is put right: it is believed again by itself;
- the clock was put back and time passes: it catches up with where broker time stands;
- a person says that the clock is right as it is (:meth:`BrokerTime.accept`): broker time goes there, and everything
  that was promised moves along, so that nothing expires by it.

While no broker runs nobody watches the clock: a restart, like another leader, takes all time since the last write as
passed.
"""

from __future__ import annotations

from typing import Final

from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.maintenance.moments import SECOND, from_datetime, to_datetime

log = get_logger(__name__)

#: A step of the wall clock up to this is borne.
TOLERANCE: Final = 60 * SECOND


class BrokerTime:
    """Broker time, in microseconds. Ask it often: a clock is compared with where it was when last asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: Why the wall clock is not believed; empty when it is.
        self.doubt = ""
        self._now = 0
        # Where the wall clock was, and the monotonic one, when it was last believed. None: never yet.
        self._wall: int | None = None
        self._monotonic = 0.0

    def begin(self, high_water: int) -> None:
        """A ledger has been read: it is at least this late. What was seen of the clock before counts no more."""
        self._now, self._wall = high_water, None
        self.now()

    def now(self) -> int:
        """Broker time; see :attr:`doubt` for whether it goes on."""
        wall, monotonic = from_datetime(self._clock.now()), self._clock.monotonic()
        doubt = self._doubt(wall, monotonic)
        if not doubt:
            self._now = max(self._now, wall)
            self._wall, self._monotonic = wall, monotonic
        if bool(doubt) != bool(self.doubt):
            if doubt:
                log.error("the wall clock jumped and is not believed: decisions wait", why=doubt)
            else:
                log.info("the wall clock is believed again", time=str(to_datetime(self._now)))
        self.doubt = doubt
        return self._now

    def behind(self) -> int:
        """By how much broker time would move if the wall clock were believed as it is."""
        return from_datetime(self._clock.now()) - self._now

    def accept(self) -> None:
        """Believe the wall clock as it is."""
        self._now = self._wall = from_datetime(self._clock.now())
        self._monotonic = self._clock.monotonic()
        self.doubt = ""
        log.warning("the wall clock is believed again, because a person said so", time=str(to_datetime(self._now)))

    def _doubt(self, wall: int, monotonic: float) -> str:
        if wall < self._now - TOLERANCE:
            return f"the wall clock is {_span(self._now - wall)} behind what the broker has seen"
        if self._wall is not None:
            should_be = self._wall + int((monotonic - self._monotonic) * SECOND)
            if wall > should_be + TOLERANCE:
                return f"the wall clock is {_span(wall - should_be)} ahead of where it should be"
        return ""


def _span(microseconds: int) -> str:
    return f"{microseconds / SECOND:.0f} s"
