"""The monitor's memory as Downtime objects: one for each item that was away lately."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from quorate.api.codec import to_builtins
from quorate.api.maintenance import Downtime
from quorate.api.maintenance.downtime import DowntimeObject, DowntimeSpec, Segment
from quorate.api.meta import ObjectMeta
from quorate.engine.store import Store
from quorate.errors import AlreadyExists, NotFound
from quorate.maintenance.moments import from_datetime, to_datetime
from quorate.maintenance.monitor.absences import History
from quorate.maintenance.monitor.spans import Span

#: The newest are kept: the kind's own limit.
MAX_SEGMENTS: Final = 1000


async def read(store: Store) -> dict[str, History]:
    """Every history."""
    return {item.spec.name: _history(item) for item in (await store.list(Downtime)).items}


async def write(store: Store, item: str, history: History | None) -> None:
    """As it is now; None: nothing is left to remember."""
    if history is None:
        with suppress(NotFound):
            await store.delete(Downtime, item)
        return
    kind = DowntimeObject.NODE if item.startswith("node-") else DowntimeObject.DRIVE
    with suppress(AlreadyExists):
        await store.create(Downtime(metadata=ObjectMeta(name=item), spec=DowntimeSpec(kind=kind, name=item)))
    await store.patch_status(Downtime, item, patch=_patch(history))


def _history(item: Downtime) -> History:
    segments = item.status.segments
    over = tuple(Span(from_datetime(each.start), from_datetime(each.end), each.reason) for each in segments if each.end)
    open_ones = [each for each in segments if each.end is None]
    if not open_ones:
        return History(over)
    return History(over, from_datetime(open_ones[-1].start), open_ones[-1].reason)


def _patch(history: History) -> Mapping[str, Any]:
    spans = [(each.start, each.end, each.reason) for each in history.over]
    segments = [Segment(start=_moment(start), end=_moment(end), reason=reason) for start, end, reason in spans]
    if history.since is not None:
        segments.append(Segment(start=_moment(history.since), reason=history.reason))
    return {"segments": to_builtins(segments[-MAX_SEGMENTS:])}


def _moment(moment: int) -> datetime:
    found = to_datetime(moment)
    assert found is not None  # it was seen, so it is in the past
    return found
