"""The rule by which a disk gives its space away. Pure: what is asked, what was answered, what the disk may give.

For every entry, the first row that fits:

| asked for            | answered before            | now                                                           |
|----------------------|----------------------------|---------------------------------------------------------------|
| nothing              | anything                   | forgotten, once its logical volume is gone (M31)              |
| no more than granted | granted                    | granted as asked; a cancelled growth is no rejection (M13)    |
| more than granted    | rejected at this very size | stays rejected (M30)                                          |
| more than granted    | anything else, or nothing  | pending: decided below                                        |

Pending ones are decided one after the other, the oldest owner first, then by name. Each is granted if the disk takes
new ones (M14) and the sum of all grants stays within what may be scheduled (M12); otherwise it is rejected with the
reason and keeps what it had. So the sum never passes the limit: it can only be above it when the limit fell, and then
nothing grows. A growth is as new as an entry is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from quorate.api.conditions.disks import Kept, Rejection
from quorate.api.longhorn.disk_schedule import MAX_ENTRIES, DiskScheduledResourcesStatus, EntryState
from quorate.api.meta import Bytes
from quorate.disks.entries import Entry, amount

#: Whoever's owner is not known comes last.
_LAST: Final = datetime.max.replace(tzinfo=UTC)

Answers = dict[Entry, DiskScheduledResourcesStatus]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a disk does not give what is asked for."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What a disk may give."""

    #: The most that may be scheduled (M12).
    available: int
    #: Why it takes nothing new (M14); None: it does.
    closed: Refusal | None = None


def settle(
    requests: Mapping[Entry, Bytes],
    answers: Mapping[Entry, DiskScheduledResourcesStatus],
    terms: Terms,
    *,
    in_use: Mapping[Entry, int],
    owner_created: Mapping[Entry, datetime],
) -> Answers:
    """Answer every request. ``in_use``: the size of the logical volume of an entry that asks for less than it has."""
    settled: Answers = {}
    pending: list[Entry] = []
    for entry, answer in answers.items():
        if entry not in requests and (left := _least(answer, entry, in_use)):
            settled[entry] = _granted(answer, left, 0)
    for entry, size in requests.items():
        before = answers.get(entry)
        if before is None:
            pending.append(entry)
        elif size == before.requested_size == before.scheduled_size and before.state is EntryState.SCHEDULED:
            settled[entry] = before  # As nearly all are.
        elif size <= before.scheduled_size:
            settled[entry] = _granted(before, max(size, _least(before, entry, in_use)), size)
        else:
            # Counted with what it has, whatever is decided about more.
            settled[entry] = before
            if not _stands(before, size):
                pending.append(entry)
    total: int = sum(answer.scheduled_size for answer in settled.values())
    for entry in sorted(pending, key=lambda entry: (owner_created.get(entry, _LAST), entry.name, entry.sort)):
        if entry not in settled and len(settled) >= MAX_ENTRIES:
            continue  # Stays pending for as long as volumes of withdrawn entries take up the rows.
        before = settled.get(entry)
        held = 0 if before is None else int(before.scheduled_size)
        size = requests[entry]
        refusal = refuse(terms, total, size - held)
        if refusal is None:
            settled[entry] = _granted(before, size, size)
            total += size - held
        else:
            settled[entry] = _rejected(before, held, size, refusal)
    return settled


def refuse(terms: Terms, scheduled: int, more: int) -> Refusal | None:
    """Why a disk with so much scheduled does not give so much more; None if it does."""
    if terms.closed is not None:
        return terms.closed
    if scheduled > terms.available:
        over = amount(scheduled - terms.available)
        return Refusal(
            Rejection.OVER_COMMITTED.code,
            f"{amount(more)} more is asked for, and {over} more than the {amount(terms.available)} that may be"
            " granted is granted already",
        )
    if scheduled + more > terms.available:
        left = amount(terms.available - scheduled)
        return Refusal(
            Rejection.NO_SPACE.code,
            f"{amount(more)} more is asked for, {left} of {amount(terms.available)} is left",
        )
    return None


def _least(answer: DiskScheduledResourcesStatus, entry: Entry, in_use: Mapping[Entry, int]) -> int:
    """What cannot be given back, because its logical volume has it."""
    return min(answer.scheduled_size, in_use.get(entry, 0))


def _stands(answer: DiskScheduledResourcesStatus, size: int) -> bool:
    return answer.state is EntryState.REJECTED and answer.requested_size == size


def _granted(before: DiskScheduledResourcesStatus | None, size: int, asked: int) -> DiskScheduledResourcesStatus:
    in_use = size > asked
    return DiskScheduledResourcesStatus(
        state=EntryState.SCHEDULED,
        scheduled_size=Bytes(size),
        requested_size=Bytes(asked),
        reason=Kept.IN_USE.code if in_use else "",
        message=Kept.IN_USE.meaning if in_use else "",
        orphaned_since=before.orphaned_since if before is not None else None,
    )


def _rejected(
    before: DiskScheduledResourcesStatus | None, held: int, size: int, refusal: Refusal
) -> DiskScheduledResourcesStatus:
    return DiskScheduledResourcesStatus(
        state=EntryState.REJECTED,
        scheduled_size=Bytes(held),
        requested_size=Bytes(size),
        reason=refusal.reason,
        message=refusal.message[:1024],
        orphaned_since=before.orphaned_since if before is not None else None,
    )
