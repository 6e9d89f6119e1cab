"""The controller of DiskSchedules: one ledger per disk, and one write for everything that is decided about it.

A pass is about one disk. All that is pending is decided together and written as one status, with the resourceVersion of
what was decided upon: of two leaders that decide at once only one succeeds, and a request that comes in between makes
the write a conflict and is part of the next decision.

While neither spec nor disk has changed there is nothing to decide, which ``observedGeneration`` tells at once: such a
pass looks at no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final

from quorate.api import conditions, finalizers, names
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.disk_schedule import (
    DiskScheduledResourcesStatus,
    DiskScheduleSpec,
    DiskScheduleStatus,
)
from quorate.api.meta import Bytes, ConditionStatus, ObjectMeta
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.disks import reporting
from quorate.disks.entries import Entry, Sort, all_answers, all_requests
from quorate.disks.ledger import Refusal, Terms, settle
from quorate.disks.owners import owner_created, size_in_use
from quorate.disks.place import Place, choose, places_of
from quorate.engine import (
    AddFinalizer,
    Controller,
    Create,
    Delete,
    Index,
    Key,
    Patch,
    PatchStatus,
    Plan,
    PlanEvent,
    Reader,
    ReleaseFinalizer,
    Watch,
    no_keys,
)

#: Longhorn Nodes by the names of their disks' ledgers.
BY_DISK: Final = "disk"
#: Seconds after which a ledger with bytes that were given back too early is looked at again.
LOOK_AGAIN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Entries:
    """Everything that is in a ledger, and what is known of what is to be decided."""

    requests: Mapping[Entry, Bytes]
    answers: Mapping[Entry, DiskScheduledResourcesStatus]
    #: Of what is pending.
    owner_created: Mapping[Entry, datetime]
    #: Of what is to be given back.
    in_use: Mapping[Entry, int]


@dataclass(frozen=True, slots=True)
class DiskView:
    """One ledger, and what bears on it."""

    name: str
    schedule: DiskSchedule | None
    places: tuple[Place, ...]
    #: None: every request is answered, and every answer asked for.
    undecided: Entries | None = None


def observe(reader: Reader, key: Key) -> DiskView | None:
    """Gather the ledger and its disk, and its entries if there is something to decide about them."""
    schedule = reader.get(DiskSchedule, key.name, names.NAMESPACE)
    places = places_of(key.name, reader.find(Node, BY_DISK, key.name))
    if schedule is None:
        return DiskView(key.name, None, places) if places else None
    return DiskView(key.name, schedule, places, _entries(reader, schedule) if _is_undecided(schedule) else None)


def _entries(reader: Reader, schedule: DiskSchedule) -> Entries:
    requests, answers = dict(all_requests(schedule)), dict(all_answers(schedule))
    created: dict[Entry, datetime] = {}
    in_use: dict[Entry, int] = {}
    for entry, size in requests.items():
        before = answers.get(entry)
        if before is None or size > before.scheduled_size:
            since = owner_created(reader, entry)
            if since is not None:
                created[entry] = since
        elif size < before.scheduled_size:
            in_use[entry] = size_in_use(reader, schedule, entry)
    for entry in answers:
        if entry not in requests:
            in_use[entry] = size_in_use(reader, schedule, entry)
    return Entries(requests, answers, created, in_use)


def decide(view: DiskView, now: datetime, _: Random) -> Plan:
    """Make the ledger of a disk that has none, follow the disk, answer the requests, and let go in the end."""
    schedule, place = view.schedule, choose(view.schedule, view.places)
    if schedule is None:
        return Plan(writes=() if place is None else (Create(_new(view.name, place)),))
    if _is_empty(schedule):
        if schedule.deleting:
            return Plan(writes=(ReleaseFinalizer(schedule, finalizers.LONGHORN, after=()),))
        if place is None:
            return Plan(writes=(Delete(schedule, if_unchanged=True),))
    if not schedule.deleting:
        if finalizers.LONGHORN not in schedule.metadata.finalizers:
            return Plan(writes=(AddFinalizer(schedule, finalizers.LONGHORN),))
        if place is not None and (place.node, place.name) != (schedule.spec.node_id, schedule.spec.name):
            return _follow(schedule, place)
    return _answer(schedule, place, view, now)


def _new(name: str, place: Place) -> DiskSchedule:
    metadata = ObjectMeta(namespace=names.NAMESPACE, name=name, finalizers=(finalizers.LONGHORN,))
    return DiskSchedule(metadata=metadata, spec=DiskScheduleSpec(name=place.name, node_id=place.node))


def _follow(schedule: DiskSchedule, place: Place) -> Plan:
    moved = replace(schedule, spec=replace(schedule.spec, name=place.name, node_id=place.node))
    before = f", it was disk {schedule.spec.name} on node {schedule.spec.node_id}" if schedule.spec.name else ""
    message = f"the disk is now {place}{before}"
    return Plan(
        writes=(Patch(schedule, moved, if_unchanged=True),), events=(PlanEvent(schedule, "DiskMoved", message),)
    )


def _answer(schedule: DiskSchedule, place: Place | None, view: DiskView, now: datetime) -> Plan:
    before, generation = schedule.status, schedule.metadata.generation
    # A disk that is nowhere to be seen may come back: what it could give is remembered.
    available = before.storage_available if place is None else place.disk.storage_available
    schedulable = reporting.schedulable(schedule, place, view.places)
    closed = None
    if schedulable.status is not ConditionStatus.TRUE:
        closed = Refusal(schedulable.reason, schedulable.message)
    status, again = before, None
    if view.undecided is not None:
        found = view.undecided
        answers = settle(
            found.requests,
            found.answers,
            Terms(available, closed),
            in_use=found.in_use,
            owner_created=found.owner_created,
        )
        status = _entered(before, answers)
        again = LOOK_AGAIN if any(found.in_use.values()) else None
    over = status.storage_scheduled - available
    verdicts = (schedulable, reporting.over_committed(over, available), reporting.low_space(before, place))
    status = replace(
        status,
        observed_generation=generation,
        storage_available=available,
        conditions=conditions.merge(before.conditions, verdicts, now=now, generation=generation),
    )
    return Plan(
        status=PatchStatus(schedule, replace(schedule, status=status), if_unchanged=True),
        events=tuple(reporting.events(schedule, status)),
        requeue_after=again,
    )


def _entered(before: DiskScheduleStatus, answers: Mapping[Entry, DiskScheduledResourcesStatus]) -> DiskScheduleStatus:
    def of(sort: Sort) -> dict[str, DiskScheduledResourcesStatus]:
        return {entry.name: answer for entry, answer in sorted(answers.items()) if entry.sort is sort}

    total = Bytes(sum(answer.scheduled_size for answer in answers.values()))
    return replace(before, replicas=of(Sort.REPLICA), backing_images=of(Sort.IMAGE), storage_scheduled=total)


def _is_undecided(schedule: DiskSchedule) -> bool:
    """Whether there may be a request without an answer, or an answer without a request."""
    spec, status = schedule.spec, schedule.status
    return (
        status.observed_generation != schedule.metadata.generation
        or spec.replicas.keys() != status.replicas.keys()
        or spec.backing_images.keys() != status.backing_images.keys()
    )


def _is_empty(schedule: DiskSchedule) -> bool:
    spec, status = schedule.spec, schedule.status
    return not (spec.replicas or spec.backing_images or status.replicas or status.backing_images)


def _ledgers(node: Node) -> Iterable[str]:
    return (names.disk_schedule(disk.disk_uuid) for disk in node.status.disk_status.values() if disk.disk_uuid)


def _of_node(node: Node) -> Iterable[Key]:
    return (Key(names.NAMESPACE, name) for name in _ledgers(node))


def _disks_changed(old: Node | None, new: Node | None) -> bool:
    return old is None or new is None or old.status.disk_status != new.status.disk_status


def _own(schedule: DiskSchedule) -> Iterable[Key]:
    return (Key(schedule.namespace, schedule.name),) if schedule.namespace == names.NAMESPACE else ()


SCHEDULE_CONTROLLER = Controller(
    name="disk-schedules",
    watches=(
        Watch(DiskSchedule, _own),
        Watch(Node, _of_node, when=_disks_changed),
        Watch(ReplicatedVolumeReplica, no_keys),
        Watch(ReplicatedVolume, no_keys),
        Watch(BackingImage, no_keys),
        Watch(LVMLogicalVolume, no_keys),
    ),
    indexes=(Index(Node, BY_DISK, _ledgers),),
    observe=observe,
    decide=decide,
)
