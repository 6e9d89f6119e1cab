"""Takes back what nobody will give back: entries whose owner is gone. A repair; owners withdraw their own.

Every few minutes each ledger is gone through. An entry is nobody's if its replica or image does not exist, no volume
lists it, and no logical volume of it is on the disk. It is marked with the time; if it still is nobody's after the
grace period, its request is taken away. The mark is in the ledger, so that neither a new leader nor a cache that is a
moment behind can mistake an owner whom it has not seen yet for one who is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

from quorate.api import names
from quorate.api.longhorn import BackingImage, DiskSchedule
from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.disks.entries import Entry, Sort, all_requests, answers_of, requests_of
from quorate.disks.owners import owner_of, size_in_use
from quorate.engine import Controller, Key, Patch, PatchStatus, Plan, PlanEvent, Reader, Watch, no_keys

#: How often a ledger is gone through, in seconds.
INTERVAL: Final = 300.0
#: How long an entry must have been nobody's.
GRACE: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger, and which of its entries are nobody's."""

    schedule: DiskSchedule
    orphans: frozenset[Entry]


def observe(reader: Reader, key: Key) -> Ledger | None:
    """Go through the entries."""
    schedule = reader.get(DiskSchedule, key.name, key.namespace)
    if schedule is None or schedule.namespace != names.NAMESPACE:
        return None
    orphans = frozenset(
        entry
        for entry, _ in all_requests(schedule)
        if owner_of(reader, entry) is None and not size_in_use(reader, schedule, entry)
    )
    return Ledger(schedule, orphans)


def decide(ledger: Ledger, now: datetime, _: Random) -> Plan:
    """Take away what has been nobody's for long enough; else mark what is, and unmark what is not."""
    schedule = ledger.schedule
    gone = {sort: _expired(ledger, sort, now) for sort in Sort}
    if any(gone.values()):
        spec = replace(
            schedule.spec, **{sort.value: _without(requests_of(schedule, sort), gone[sort]) for sort in Sort}
        )
        listed = ", ".join(sorted({name for found in gone.values() for name in found})[:20])
        return Plan(
            writes=(Patch(schedule, replace(schedule, spec=spec), if_unchanged=True),),
            events=(PlanEvent(schedule, "Swept", f"given back, because nobody is left whose it is: {listed}"),),
            requeue_after=INTERVAL,
        )
    marked = {sort.value: _marked(ledger, sort, now) for sort in Sort}
    status = replace(schedule.status, **marked)
    return Plan(
        status=PatchStatus(schedule, replace(schedule, status=status), if_unchanged=True), requeue_after=INTERVAL
    )


def _expired(ledger: Ledger, sort: Sort, now: datetime) -> frozenset[str]:
    return frozenset(
        name
        for name, answer in answers_of(ledger.schedule, sort).items()
        if Entry(sort, name) in ledger.orphans
        and answer.orphaned_since is not None
        and now - answer.orphaned_since >= GRACE
    )


def _marked(ledger: Ledger, sort: Sort, now: datetime) -> Mapping[str, DiskScheduledResourcesStatus]:
    answers = answers_of(ledger.schedule, sort)
    changed: dict[str, DiskScheduledResourcesStatus] = {}
    for name, answer in answers.items():
        orphaned = Entry(sort, name) in ledger.orphans
        if orphaned != (answer.orphaned_since is not None):
            changed[name] = replace(answer, orphaned_since=now.replace(microsecond=0) if orphaned else None)
    return {**answers, **changed} if changed else answers


def _without(requests: Mapping[str, int], gone: frozenset[str]) -> dict[str, int]:
    return {name: size for name, size in requests.items() if name not in gone}


def _is_new(old: DiskSchedule | None, _: DiskSchedule | None) -> bool:
    """From then on the passes follow one another by themselves."""
    return old is None


SWEEP_CONTROLLER = Controller(
    name="disk-schedule-sweep",
    watches=(
        Watch(DiskSchedule, when=_is_new),
        Watch(ReplicatedVolumeReplica, no_keys),
        Watch(ReplicatedVolume, no_keys),
        Watch(BackingImage, no_keys),
        Watch(LVMLogicalVolume, no_keys),
    ),
    observe=observe,
    decide=decide,
)
