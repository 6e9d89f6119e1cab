"""How long ago, in the few characters that ``kubectl get`` shows in a column of type ``date``.

The precision falls with the age: seconds up to two minutes, then minutes and seconds, … at last only years.
"""

from __future__ import annotations

from datetime import datetime

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

#: Below this age, in seconds: the larger unit, and the smaller one that is shown beside it (0: none).
_SCALE = (
    (10 * _MINUTE, _MINUTE, 1),
    (3 * _HOUR, _MINUTE, 0),
    (8 * _HOUR, _HOUR, _MINUTE),
    (2 * _DAY, _HOUR, 0),
    (8 * _DAY, _DAY, _HOUR),
    (2 * _YEAR, _DAY, 0),
    (8 * _YEAR, _YEAR, _DAY),
)
_NAMES = {1: "s", _MINUTE: "m", _HOUR: "h", _DAY: "d", _YEAR: "y"}


def age(since: datetime, now: datetime) -> str:
    """The age of something that happened at ``since``."""
    seconds = int((now - since).total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    for limit, unit, smaller in _SCALE:
        if seconds < limit:
            return _in_units(seconds, unit, smaller)
    return f"{seconds // _YEAR}y"


def _in_units(seconds: int, unit: int, smaller: int) -> str:
    whole, rest = divmod(seconds, unit)
    beside = rest // smaller if smaller else 0
    return f"{whole}{_NAMES[unit]}" + (f"{beside}{_NAMES[smaller]}" if beside else "")
