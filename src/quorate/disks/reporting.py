"""What a ledger tells people: its three conditions, and events for what they should hear of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.api import conditions
from quorate.api.conditions import Verdict
from quorate.api.conditions.disks import LowSpace, OverCommitted, Schedulable
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import DiskScheduleStatus, EntryState
from quorate.api.meta import ConditionStatus
from quorate.disks.entries import all_answers, all_requests, amount
from quorate.disks.place import Place
from quorate.engine import PlanEvent

#: How many names a message lists.
_NAMED: Final = 5


def schedulable(schedule: DiskSchedule, place: Place | None, places: tuple[Place, ...]) -> Verdict:
    """Whether the disk takes new entries: what its inventory says, unless the ledger knows better."""
    if schedule.deleting:
        return Schedulable.DELETING(f"the ledger is being deleted; {_holders(schedule)}")
    if place is None:
        named = f"disk {schedule.spec.name} of node {schedule.spec.node_id}"
        where = named if schedule.spec.name else f"the disk with UUID {schedule.name}"
        return Schedulable.DISK_NOT_FOUND(f"{where} is in no inventory; {_holders(schedule)}")
    found = conditions.find(place.disk.conditions, Schedulable)
    if found is None:
        return Schedulable.DISK_NOT_READY(f"nothing is known of {place} yet")
    others = [str(other) for other in places if other is not place and other.ready is ConditionStatus.TRUE]
    if others and found.status is ConditionStatus.TRUE:
        return Schedulable.SCHEDULABLE(f"{place} is used; {', '.join(others)} with the same UUID is not")
    return Schedulable.mirror(found)


def over_committed(over: int, available: int) -> Verdict:
    """Whether more is granted than may be, and by how much."""
    if over > 0:
        return OverCommitted.OVER_COMMITTED(f"{amount(over)} more is granted than the {amount(available)} that may be")
    return OverCommitted.WITHIN_LIMIT()


def low_space(before: DiskScheduleStatus, place: Place | None) -> Verdict:
    """Whether the disk is nearly full, as its inventory says."""
    found = None if place is None else conditions.find(place.disk.conditions, LowSpace)
    # What was last known stays known.
    found = found or conditions.find(before.conditions, LowSpace)
    return LowSpace.ENOUGH_SPACE() if found is None else LowSpace.mirror(found)


def _holders(schedule: DiskSchedule) -> str:
    entries = sorted({entry.name for entry, _ in (*all_requests(schedule), *all_answers(schedule))})
    return f"it still has {_listed(entries)}" if entries else "nothing is on it"


def events(schedule: DiskSchedule, status: DiskScheduleStatus) -> Iterable[PlanEvent]:
    """What a person should hear of: rejections, and conditions that flip. (Told only if this status is written.)"""
    before = schedule.status
    rejected = [
        name
        for answers, known in ((status.replicas, before.replicas), (status.backing_images, before.backing_images))
        if answers is not known
        for name, answer in answers.items()
        if answer.state is EntryState.REJECTED and answer != known.get(name)
    ]
    if rejected:
        message = f"not granted on disk {schedule.spec.name}: {_listed(sorted(rejected))}"
        yield PlanEvent(schedule, "Rejected", message, warning=True)
    for cls, bad in ((Schedulable, ConditionStatus.FALSE), (OverCommitted, ConditionStatus.TRUE)):
        yield from _flipped(schedule, status, cls, bad)
    if status.storage_scheduled:  # Otherwise nobody's writes can fail.
        yield from _flipped(schedule, status, LowSpace, ConditionStatus.TRUE)


def _flipped(
    schedule: DiskSchedule, status: DiskScheduleStatus, cls: type[conditions.ConditionType], bad: ConditionStatus
) -> Iterable[PlanEvent]:
    old, new = conditions.find(schedule.status.conditions, cls), conditions.find(status.conditions, cls)
    if new is not None and (new.status is bad if old is None else old.status is not new.status):
        yield PlanEvent(schedule, new.reason, new.message, warning=new.status is bad)


def _listed(found: list[str]) -> str:
    rest = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
