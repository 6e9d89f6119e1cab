"""How long a stored request counts when nobody asks about it.

CheckRequest, GET, a poll of Wall-E and a watch renew it. Silent for three times DefaultRetryTime after the last moment
that its owner was told to wait for, it is kept but blocks nobody; silent for a day longer, it is deleted. A Kubernetes
object is its own sign of life and never silent; a request of Wall-E is never deleted.

Every renewal is written: a restart makes no difference to who blocks whom.
"""

from __future__ import annotations

from typing import Final

from quorate.api.struct import replace
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.model.claims import silent_from
from quorate.maintenance.moments import FOREVER, SECOND, later

#: Whose requests are never deleted; see ``walle``.
WALLE: Final = "Wall-E"
DAY: Final = 24 * 3600 * SECOND


def deleted_from(entry: RequestEntry, retry: int) -> int:
    """From then on it is gone."""
    return FOREVER if entry.owner == WALLE else later(silent_from(entry, retry), DAY)


def renewed(entry: RequestEntry, now: int, deadline: int | None = None) -> RequestEntry:
    """After somebody asked, and was told (or not) to wait until ``deadline``."""
    return replace(entry, renewed_at=now, last_deadline=entry.last_deadline if deadline is None else deadline)
