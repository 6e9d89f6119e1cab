"""The state machine of a drive on its way out, computed from everything that is known now (M15).

| from                     | when                                                              | to                    |
|--------------------------|-------------------------------------------------------------------|-----------------------|
| OPERATIVE                | SUSPECT or BAD, and the node does not run from it                 | RELEASING             |
| RELEASING                | GOOD again before anything has left                               | OPERATIVE             |
| RELEASED, FAILED         | a person says ``restart``, and it is GOOD                         | OPERATIVE             |
| RELEASING, RELEASED,     | something still works on its release                              | RELEASING             |
| FAILED                   | nothing does, and something has failed                            | FAILED                |
|                          | everything is released; a person has not said ``ready``           | RELEASED              |
|                          | … and has                                                         | REMOVING              |
| FAILED in the middle     | the step works after all, and the person still says ``ready``     | REMOVING              |
| of a removal             | otherwise: what has begun is not taken for what has not           | FAILED                |
| REMOVING                 | the device is out of its group, wiped, its light on if it has one | REMOVED               |
|                          | and the broker allows it                                          |                       |
|                          | a step has failed                                                 | FAILED                |
|                          | the person takes ``ready`` back before anything was removed       | as before             |
|                          | … in the middle of it                                             | FAILED                |

RELEASING, RELEASED and FAILED remember nothing: whichever a drive is in, the next follows from the full set of what is
on it. So it does not matter who finished first, which pass saw it, or whether one was missed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final

from quorate.api.annotation_keys import Replacement
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
from quorate.drives.health import NOT_TRUSTED

_DRAINING: Final = (OperationalStatus.RELEASING, OperationalStatus.RELEASED, OperationalStatus.FAILED)
_MAY_RESTART: Final = (OperationalStatus.RELEASED, OperationalStatus.FAILED)


class Release(Enum):
    """How far something on a drive is from being needed there no more."""

    WORKING = "Working"
    RELEASED = "Released"
    FAILED = "Failed"


class Removal(Enum):
    """How far the removal of an empty drive is."""

    #: Nothing has been taken away yet.
    NOT_BEGUN = "NotBegun"
    UNDER_WAY = "UnderWay"
    FAILED = "Failed"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the phase depends on, beside the phase before."""

    health: DriveHealth
    system: bool = False
    #: Of everything that is on the drive.
    contents: tuple[Release, ...] = ()
    replacement: Replacement | None = None
    removal: Removal = Removal.NOT_BEGUN
    #: The broker allows the removal.
    permitted: bool = False
    #: Objects of a procedure that is over are still about: a new one waits for their end.
    leftovers: bool = False


def next_phase(phase: OperationalStatus, facts: Facts) -> OperationalStatus:
    """The phase that follows, possibly the same."""
    if phase is OperationalStatus.OPERATIVE:
        leaves = facts.health in NOT_TRUSTED and not facts.system and not facts.leftovers
        return OperationalStatus.RELEASING if leaves else phase
    if phase is OperationalStatus.REMOVED:
        return phase
    if phase in _DRAINING and _returns(phase, facts):
        return OperationalStatus.OPERATIVE
    if phase is OperationalStatus.REMOVING:
        return _removing(facts)
    ready = facts.replacement is Replacement.READY
    if phase is OperationalStatus.FAILED and facts.removal is not Removal.NOT_BEGUN:
        goes_on = ready and facts.removal is not Removal.FAILED
        return OperationalStatus.REMOVING if goes_on else phase
    drained = _drained(facts.contents)
    return OperationalStatus.REMOVING if ready and drained is phase is OperationalStatus.RELEASED else drained


def _returns(phase: OperationalStatus, facts: Facts) -> bool:
    if facts.health is not DriveHealth.GOOD:
        return False
    if phase in _MAY_RESTART:
        return facts.replacement is Replacement.RESTART
    return Release.RELEASED not in facts.contents


def _drained(contents: Collection[Release]) -> OperationalStatus:
    if Release.WORKING in contents:
        return OperationalStatus.RELEASING
    return OperationalStatus.FAILED if Release.FAILED in contents else OperationalStatus.RELEASED


def _removing(facts: Facts) -> OperationalStatus:
    match facts.removal:
        case Removal.DONE if facts.permitted:
            return OperationalStatus.REMOVED
        case Removal.FAILED:
            return OperationalStatus.FAILED
        case _ if facts.replacement is Replacement.READY:
            return OperationalStatus.REMOVING
        case Removal.NOT_BEGUN:
            return _drained(facts.contents)
    return OperationalStatus.FAILED
