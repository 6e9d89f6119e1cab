"""How an owner asks a disk for space, gives it back, and reads the answer. Pure functions over DiskSchedules.

Owners are the volume controller (an entry per replica) and the image controller (an entry per image). Each writes only
its own key of ``spec``, as a merge patch, so any number of them may ask one disk at once:

    refusal(schedule, entry, size)      why asking now would be in vain; None: worth asking
    ask(schedule, entry, size)          the write that asks, also for more or for less
    read(schedule, entry, size)         the answer: not asked, pending, granted, or rejected with the reason
    withdraw(schedule, entry)           the write that gives the space back; after the logical volume is gone (M31)

A rejection stands while the same size is asked for (M30): withdraw, and ask another disk. ``refusal`` then tells of the
first one, without any memory of ours, when it is worth another try. For growing on several disks at once see
``quorate.disks.expansion``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quorate.api import conditions
from quorate.api.conditions.disks import Rejection, Schedulable
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import MAX_ENTRIES, EntryState
from quorate.api.meta import Bytes, ConditionStatus
from quorate.api.struct import replace
from quorate.disks.entries import (
    Entry,
    all_requests,
    amount,
    answered,
    count_of_requests,
    requested,
    requests_of,
    with_request,
)
from quorate.disks.ledger import Refusal, Terms, refuse
from quorate.engine import Patch


class State(StrEnum):
    """What became of a request."""

    NOT_ASKED = "NotAsked"
    PENDING = "Pending"
    GRANTED = "Granted"
    REJECTED = "Rejected"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a disk says to one request."""

    state: State
    #: With REJECTED: why.
    refusal: Refusal | None = None


NOT_ASKED = Answer(State.NOT_ASKED)
PENDING = Answer(State.PENDING)
GRANTED = Answer(State.GRANTED)


def ask(schedule: DiskSchedule, entry: Entry, size: int) -> Patch:
    """Ask for so many bytes in all. Nothing is written if just that is asked for already."""
    if size <= 0:
        raise ValueError(f"{entry.name} asks disk {schedule.spec.name} for {size} bytes: it must be more than none")
    return _with(schedule, entry, Bytes(size))


def withdraw(schedule: DiskSchedule, entry: Entry) -> Patch:
    """Ask for nothing any more. What was granted is free as soon as no logical volume of the entry has it."""
    return _with(schedule, entry, None)


def read(schedule: DiskSchedule, entry: Entry, size: int) -> Answer:
    """The answer to a request of just this size; an answer to any other is none."""
    if requested(schedule, entry) != size:
        return NOT_ASKED
    told = answered(schedule, entry)
    if told is None or told.requested_size != size:
        return PENDING
    if told.state is EntryState.REJECTED:
        return Answer(State.REJECTED, Refusal(told.reason, told.message))
    return GRANTED


def granted_size(schedule: DiskSchedule, entry: Entry) -> Bytes:
    """How many bytes an entry has, whatever else it asks for."""
    told = answered(schedule, entry)
    return told.scheduled_size if told is not None else Bytes(0)


def holds(schedule: DiskSchedule, entry: Entry) -> bool:
    """Whether an entry asks for anything, or still has something."""
    return requested(schedule, entry) is not None or answered(schedule, entry) is not None


def refusal(schedule: DiskSchedule, entry: Entry, size: int) -> Refusal | None:
    """Why asking for so many bytes in all would be in vain, as the ledger stands; None if it would not.

    A hint, not an answer: others may be asking at the same time.
    """
    if requested(schedule, entry) is None and count_of_requests(schedule) >= MAX_ENTRIES:
        return Refusal(
            Rejection.TOO_MANY_ENTRIES.code,
            f"disk {schedule.spec.name} on {schedule.spec.node_id} has {MAX_ENTRIES} entries, the most it may have",
        )
    more = size - granted_size(schedule, entry)
    return refuse(_terms(schedule), schedule.status.storage_scheduled, more) if more > 0 else None


def room(schedule: DiskSchedule) -> Bytes:
    """How many bytes the disk could still grant: for choosing among disks."""
    status = schedule.status
    if _terms(schedule).closed is not None:
        return Bytes(0)
    return Bytes(max(0, status.storage_available - status.storage_scheduled))


def unanswered(schedule: DiskSchedule) -> Bytes:
    """How many bytes more were asked for than the disk has said anything to."""
    total = 0
    for entry, size in all_requests(schedule):
        told = answered(schedule, entry)
        if told is None or told.requested_size != size:
            total += max(0, size - (told.scheduled_size if told is not None else 0))
    return Bytes(total)


def describe(schedule: DiskSchedule, refused: Refusal) -> str:
    """Who says no, and why: for conditions and tables of candidates."""
    return f"{schedule.spec.node_id}/{schedule.spec.name}: {refused.reason}: {refused.message}"


def rounded_up(size: int, extent: int) -> Bytes:
    """A size as LVM will make it: in whole extents."""
    return Bytes(-(-size // extent) * extent) if extent else Bytes(size)


def _terms(schedule: DiskSchedule) -> Terms:
    condition = conditions.find(schedule.status.conditions, Schedulable)
    if schedule.deleting:
        return Terms(schedule.status.storage_available, Refusal(Rejection.DELETING.code, Rejection.DELETING.meaning))
    if condition is None:
        message = f"disk {schedule.spec.name} on {schedule.spec.node_id} has only just been found"
        return Terms(Bytes(0), Refusal(Rejection.DISK_NOT_READY.code, message))
    closed = None if condition.status is ConditionStatus.TRUE else Refusal(condition.reason, condition.message)
    return Terms(schedule.status.storage_available, closed)


def _with(schedule: DiskSchedule, entry: Entry, size: Bytes | None) -> Patch:
    intended = replace(schedule, spec=with_request(schedule.spec, entry, size))
    # An empty map is none at all on the wire. Removing the whole map must not remove a key that we have not seen.
    removes_the_map = not requests_of(intended, entry.sort)
    return Patch(schedule, intended, if_unchanged=removes_the_map)


__all__ = [
    "GRANTED",
    "NOT_ASKED",
    "PENDING",
    "Answer",
    "Refusal",
    "State",
    "amount",
    "ask",
    "describe",
    "granted_size",
    "holds",
    "read",
    "refusal",
    "room",
    "rounded_up",
    "withdraw",
]
