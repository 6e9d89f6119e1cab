"""Growing on several disks: all or nothing (M13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.merging import merge
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus, DiskScheduleStatus
from quorate.api.meta import Bytes
from quorate.api.struct import replace
from quorate.disks.entries import Sort, all_answers, all_requests, replica, requested
from quorate.disks.expansion import Growth, expand, roll_back
from quorate.disks.ledger import Terms, settle
from quorate.disks.requests import State, granted_size
from tests.disks.making import NOW, granted, rejected, schedule

OLD, NEW = 10, 25


def disk(number: int, asked: int, answer: DiskScheduledResourcesStatus, *, available: int = 100) -> DiskSchedule:
    status = DiskScheduleStatus(
        replicas={f"v-{number}": answer},
        storage_scheduled=answer.scheduled_size,
        storage_available=Bytes(available),
        conditions=merge((), [Schedulable.SCHEDULABLE()], now=NOW),
    )
    return replace(schedule({f"v-{number}": asked}, uuid=f"d{number}", disk=f"disk{number}"), status=status)


def parts(*disks: DiskSchedule) -> list[Growth]:
    return [Growth(found, replica(f"v-{number}"), OLD, NEW) for number, found in enumerate(disks)]


def test_all_are_asked_at_once_and_each_by_its_own_key() -> None:
    found = expand(parts(disk(0, OLD, granted(OLD)), disk(1, OLD, granted(OLD))))
    assert found.state is State.PENDING
    assert [write.patch for write in found.writes] == [
        {"spec": {"replicas": {"v-0": NEW}}},
        {"spec": {"replicas": {"v-1": NEW}}},
    ]


def test_it_waits_until_the_last_has_answered() -> None:
    found = expand(parts(disk(0, NEW, granted(NEW)), disk(1, NEW, granted(OLD))))
    assert (found.state, found.writes) == (State.PENDING, ())


def test_it_is_granted_when_all_have_granted() -> None:
    assert expand(parts(disk(0, NEW, granted(NEW)), disk(1, NEW, granted(NEW)))).state is State.GRANTED


def test_m13_one_rejection_returns_what_the_others_have_granted() -> None:
    found = expand(parts(disk(0, NEW, granted(NEW)), disk(1, NEW, rejected(NEW, held=OLD)), disk(2, OLD, granted(OLD))))
    assert found.state is State.REJECTED
    assert [write.patch for write in found.writes] == [
        {"spec": {"replicas": {"v-0": OLD}}},
        {"spec": {"replicas": {"v-1": OLD}}},
    ]
    assert [refused.reason for refused in found.refusals] == ["NoSpace"]
    assert found.message.startswith("n1/disk1: NoSpace")


def test_a_disk_that_visibly_has_no_room_is_not_asked_and_nor_are_the_others() -> None:
    found = expand(parts(disk(0, OLD, granted(OLD)), disk(1, OLD, granted(OLD), available=20)))
    assert (found.state, found.writes) == (State.REJECTED, ())
    assert found.message == "n1/disk1: NoSpace: 15 more is asked for, 10 of 20 is left"


def test_nothing_is_written_for_a_growth_that_was_never_asked_for() -> None:
    assert all(not write.patch for write in roll_back(parts(disk(0, OLD, granted(OLD)))))


def test_going_back_asks_for_nothing_that_was_given_back() -> None:
    withdrawn = replace(disk(0, OLD, granted(OLD)), spec=schedule().spec)
    assert roll_back(parts(withdrawn)) == ()


def test_a_volume_does_not_shrink() -> None:
    with pytest.raises(ValueError, match="cannot grow from 25 to 10"):
        Growth(disk(0, NEW, granted(NEW)), replica("v-0"), NEW, OLD)


def decided(found: DiskSchedule) -> DiskSchedule:
    """The ledger after its controller has been there."""
    answers = settle(
        dict(all_requests(found)),
        dict(all_answers(found)),
        Terms(found.status.storage_available),
        in_use={},
        owner_created={},
    )
    assert all(entry.sort is Sort.REPLICA for entry in answers)
    replicas = {entry.name: answer for entry, answer in answers.items()}
    total = Bytes(sum(answer.scheduled_size for answer in replicas.values()))
    return replace(found, status=replace(found.status, replicas=replicas, storage_scheduled=total))


@given(
    limits=st.lists(st.integers(OLD, 40), min_size=1, max_size=4),
    order=st.lists(st.integers(0, 3), max_size=20),
    taken=st.lists(st.integers(0, 20), min_size=4, max_size=4),
)
def test_it_ends_all_or_nothing_whoever_answers_when_and_whoever_else_asks(
    limits: list[int], order: list[int], taken: list[int]
) -> None:
    disks = [disk(number, OLD, granted(OLD), available=limit) for number, limit in enumerate(limits)]
    for step, turn in enumerate([*order, *[*range(len(disks)), -1] * 6]):
        if step == len(order) // 2:  # Somebody else comes, between our look and the disk's decision.
            disks = [
                replace(found, spec=replace(found.spec, replicas={**found.spec.replicas, "a-0": Bytes(more)}))
                for found, more in zip(disks, taken, strict=False)
            ]
        if 0 <= turn < len(disks):
            disks[turn] = decided(disks[turn])
            continue
        writes = {id(write.observed): write.intended for write in expand(parts(*disks)).writes}
        disks = [writes.get(id(found), found) for found in disks]  # type: ignore[misc]
    sizes = {granted_size(found, replica(f"v-{number}")) for number, found in enumerate(disks)}
    fits = all(found.status.storage_scheduled <= found.status.storage_available for found in disks)
    assert fits
    assert sizes in ({OLD}, {NEW})
    end = expand(parts(*disks))
    assert (end.state is State.GRANTED) == (sizes == {NEW})
    assert all(requested(found, replica(f"v-{number}")) in sizes for number, found in enumerate(disks))
