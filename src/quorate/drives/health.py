"""How a drive is. Who speaks first wins:

| who                                                         | says                                              |
|-------------------------------------------------------------|---------------------------------------------------|
| the broker's marker on the drive, then on its node          | BROKEN: BAD, FAULTY: SUSPECT, ACTIVE: GOOD;       |
|                                                             | INACTIVE says nothing of health                   |
| a person, by the annotation ``health``                      | any of the four                                   |
| the agent: the device is gone for too long, its node is up  | BAD                                               |
| the worse of what the drive says of itself and what the     | the same words as a marker, or SMART's            |
| broker's monitor thinks                                     |                                                   |

That a device is gone says nothing while its node is down: then all of them are. What a drive last said of itself stays
while it is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from quorate.api import core
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveHealth, Presence
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Healthy
from quorate.api.maintenance.action import Marker
from quorate.drives import asked

NOT_TRUSTED: Final = (DriveHealth.SUSPECT, DriveHealth.BAD)

_OF_MARKER: Final[Mapping[Marker, DriveHealth]] = {
    Marker.DISK_BROKEN: DriveHealth.BAD,
    Marker.DISK_FAULTY: DriveHealth.SUSPECT,
    Marker.DISK_ACTIVE: DriveHealth.GOOD,
}
_MARKED: Final = {
    DriveHealth.BAD: Healthy.MARKED_BROKEN,
    DriveHealth.SUSPECT: Healthy.MARKED_FAULTY,
    DriveHealth.GOOD: Healthy.MARKED_ACTIVE,
}
_FROM_SMART: Final = {DriveHealth.BAD: Healthy.SMART_FAILED, DriveHealth.SUSPECT: Healthy.SMART_WARNING}
_FROM_MONITOR: Final = {DriveHealth.BAD: Healthy.MONITOR_BROKEN, DriveHealth.SUSPECT: Healthy.MONITOR_FAULTY}
#: From the best to the worst; nothing known is better than anything known against it, and worse than nothing.
_WORSE: Final = (DriveHealth.UNKNOWN, DriveHealth.GOOD, DriveHealth.SUSPECT, DriveHealth.BAD)


@dataclass(frozen=True, slots=True)
class Opinion:
    """How a drive is, and who says so."""

    health: DriveHealth
    verdict: Verdict
    #: A person, or the broker in a person's name, has the last word.
    overridden: bool = False

    @property
    def trusted(self) -> bool:
        """Whether nothing is known against it."""
        return self.health not in NOT_TRUSTED


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What bears on a drive's health beside the drive."""

    #: Its core Node; None: there is none.
    node: core.Node | None
    #: Its agent reports: what it does not see is not there.
    node_up: bool
    #: How long a device may be away, in seconds.
    grace: float
    #: Since when its agent reports: what it said before the node was down, it has yet to look at again.
    since: datetime | None = None


def judge(drive: Drive, around: Surroundings, now: datetime) -> Opinion:
    """The first opinion that there is."""
    return _marked(drive, around.node) or _overridden(drive) or _missing(drive, around, now) or _measured(drive)


def missing_in(drive: Drive, around: Surroundings, now: datetime) -> float | None:
    """Seconds until a device that is away counts as missing; None: it is here, it counts already, or nobody looks."""
    left = _left(drive, around, now)
    return left if left is not None and left > 0 else None


def _marked(drive: Drive, node: core.Node | None) -> Opinion | None:
    for obj, what in ((drive, "drive"), (node, "node")):
        marker = asked.marker(obj) if obj is not None else None
        found = _OF_MARKER.get(marker) if marker is not None else None
        if obj is not None and found is not None:
            return Opinion(found, _MARKED[found](f"The broker's marker on {what} {obj.name} is {marker}."), True)
    return None


def _overridden(drive: Drive) -> Opinion | None:
    found = asked.health(drive)
    if found is None:
        return None
    message = f"A person set the drive's health to {found} by annotation."
    if found is DriveHealth.UNKNOWN:
        return Opinion(found, Healthy.NOT_REPORTED(message), overridden=True)
    reason = Healthy.OVERRIDDEN_GOOD if found is DriveHealth.GOOD else Healthy.OVERRIDDEN
    return Opinion(found, reason(message), overridden=True)


def _missing(drive: Drive, around: Surroundings, now: datetime) -> Opinion | None:
    left = _left(drive, around, now)
    if left is None or left > 0:
        return None
    since = drive.status.missing_since
    return Opinion(DriveHealth.BAD, Healthy.MISSING(f"The device is gone since {since:%Y-%m-%d %H:%M:%S} UTC."))


def _left(drive: Drive, around: Surroundings, now: datetime) -> float | None:
    """Seconds until a device that is away counts as missing; 0 or less: it does. None: it is here, or nobody looks."""
    status = drive.status
    if status.presence is not Presence.OFFLINE or status.missing_since is None or not around.node_up:
        return None
    since = max(status.missing_since, around.since or status.missing_since)
    return around.grace - (now - since) / timedelta(seconds=1)


def _measured(drive: Drive) -> Opinion:
    smart, thought = drive.status.smart, asked.monitor(drive)
    said = smart.health if smart is not None else DriveHealth.UNKNOWN
    seen = _OF_MARKER.get(thought, DriveHealth.UNKNOWN) if thought is not None else DriveHealth.UNKNOWN
    if _WORSE.index(seen) > _WORSE.index(said) and seen in _FROM_MONITOR:
        return Opinion(seen, _FROM_MONITOR[seen](f"The disk monitor says {thought}."))
    health = max(said, seen, key=_WORSE.index)
    message = smart.message if smart is not None else ""
    if health in _FROM_SMART:
        return Opinion(health, _FROM_SMART[health](message))
    if health is DriveHealth.GOOD:
        return Opinion(health, Healthy.GOOD())
    return Opinion(health, Healthy.NOT_REPORTED(message))
