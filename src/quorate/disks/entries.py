"""What a ledger has entries of: replicas, and copies of images. The two maps of a DiskSchedule, read and written alike.

A replica and an image may have the same name; an Entry says which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from quorate.api.longhorn.disk_schedule import DiskSchedule, DiskScheduledResourcesStatus, DiskScheduleSpec
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.struct import replace

Requests = Mapping[str, Bytes]
Answers = Mapping[str, DiskScheduledResourcesStatus]


class Sort(StrEnum):
    """Whose an entry is. The values are the names of the two maps in ``spec`` and in ``status``."""

    REPLICA = "replicas"
    IMAGE = "backing_images"


class Entry(NamedTuple):
    """One line of a ledger."""

    sort: Sort
    name: str


def replica(name: str) -> Entry:
    """The entry of a replica."""
    return Entry(Sort.REPLICA, name)


def image(name: str) -> Entry:
    """The entry of an image's copy. There is at most one copy on a disk, so the image's name is enough."""
    return Entry(Sort.IMAGE, name)


def requests_of(schedule: DiskSchedule, sort: Sort) -> Requests:
    """What is asked for."""
    return schedule.spec.replicas if sort is Sort.REPLICA else schedule.spec.backing_images


def answers_of(schedule: DiskSchedule, sort: Sort) -> Answers:
    """What was answered."""
    return schedule.status.replicas if sort is Sort.REPLICA else schedule.status.backing_images


def requested(schedule: DiskSchedule, entry: Entry) -> Bytes | None:
    """What an entry asks for; None if nothing."""
    return requests_of(schedule, entry.sort).get(entry.name)


def answered(schedule: DiskSchedule, entry: Entry) -> DiskScheduledResourcesStatus | None:
    """What an entry was told; None if nothing yet."""
    return answers_of(schedule, entry.sort).get(entry.name)


def all_requests(schedule: DiskSchedule) -> Iterator[tuple[Entry, Bytes]]:
    """Every request."""
    for sort in Sort:
        for name, size in requests_of(schedule, sort).items():
            yield Entry(sort, name), size


def all_answers(schedule: DiskSchedule) -> Iterator[tuple[Entry, DiskScheduledResourcesStatus]]:
    """Every answer."""
    for sort in Sort:
        for name, answer in answers_of(schedule, sort).items():
            yield Entry(sort, name), answer


def count_of_requests(schedule: DiskSchedule) -> int:
    """How many there are."""
    return len(schedule.spec.replicas) + len(schedule.spec.backing_images)


def with_request(spec: DiskScheduleSpec, entry: Entry, size: Bytes | None) -> DiskScheduleSpec:
    """The spec with one key set, or taken away: the difference to the old one is a merge patch of that key alone."""
    requests = spec.replicas if entry.sort is Sort.REPLICA else spec.backing_images
    others = {name: asked for name, asked in requests.items() if name != entry.name}
    return replace(spec, **{entry.sort.value: others if size is None else {**others, entry.name: size}})


@lru_cache(maxsize=4096)
def amount(size: int) -> str:
    """Bytes as people write them."""
    return str(Quantity.of_bytes(size))
