"""Whose turn it is to be formed: so many volumes at once, the oldest first.

Thousands that are asked for at once would otherwise advance together, each step of one waiting for the same step of all
others. Each would take minutes instead of seconds, run into the timeouts of its phases, start again, and tell of it
all: twice the work for the same volumes.

A formation counts only while its phase is young: one that waits, for space say or for a node, keeps nobody from his
turn. The limit is a soft one, for several workers may find the last place free.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from quorate.api.storage import ReplicatedVolume
from quorate.engine import Index, Reader
from quorate.volumes.settling import forming_since

FORMING: Final = "volumes that are being formed"
UNBORN: Final = "volumes whose formation has not begun"
#: The one value of both.
_THERE: Final = "there"

AT_ONCE: Final = 30
#: The next are called when so many places are free: who is the oldest is asked of all that wait.
TOGETHER: Final = 6
#: So long a phase counts, in seconds. A wait that is older is not for us to end.
BUSY: Final = 10.0
#: Whoever waits looks for himself so often, in seconds: that a formation has begun to wait wakes nobody.
LOOK: Final = 15.0
#: That a volume waits for its turn goes without saying for so many seconds.
PATIENCE: Final = 30.0

_LAST: Final = datetime.max.replace(tzinfo=UTC)


def _if_forming(volume: ReplicatedVolume) -> Iterable[str]:
    return (_THERE,) if is_forming(volume) else ()


def _if_unborn(volume: ReplicatedVolume) -> Iterable[str]:
    return (_THERE,) if is_unborn(volume) and not volume.deleting else ()


INDEXES: Final[tuple[Index[Any], ...]] = (
    Index(ReplicatedVolume, FORMING, _if_forming),
    Index(ReplicatedVolume, UNBORN, _if_unborn),
)


def is_unborn(volume: ReplicatedVolume) -> bool:
    """Whether its formation has not begun."""
    return not volume.status.datamesh_revision and not volume.status.datamesh_transitions


def is_forming(volume: ReplicatedVolume) -> bool:
    """Whether its formation has begun, and is not over."""
    return forming_since(volume.status) is not None


def under_way(reader: Reader) -> tuple[datetime, ...]:
    """Since when the phases of all formations have lasted."""
    found = (forming_since(volume.status) for volume in reader.find(ReplicatedVolume, FORMING, _THERE))
    return tuple(since for since in found if since is not None)


def is_full(phases: Iterable[datetime], now: datetime) -> bool:
    """Whether so many volumes are being formed that the next one waits."""
    latest = now - timedelta(seconds=BUSY)
    return sum(since > latest for since in phases) >= AT_ONCE


def ended(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> bool:
    """Whether a place has become free."""
    forming = before is not None and forming_since(before.status) is not None
    return forming and (after is None or forming_since(after.status) is None)


def called(reader: Reader) -> tuple[str, ...]:
    """Whose turn it is now: as many as there are places, if there are enough to be worth asking."""
    free = AT_ONCE - len(reader.find(ReplicatedVolume, FORMING, _THERE))
    if free < TOGETHER:
        return ()
    waiting = reader.find(ReplicatedVolume, UNBORN, _THERE)
    return tuple(volume.name for volume in heapq.nsmallest(free, waiting, key=_age))


def _age(volume: ReplicatedVolume) -> tuple[datetime, str]:
    return volume.metadata.creation_timestamp or _LAST, volume.name
