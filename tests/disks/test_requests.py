"""What owners do and read: pure functions over one ledger."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.merging import merge
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import MAX_ENTRIES, DiskScheduledResourcesStatus, DiskScheduleStatus
from quorate.api.meta import Bytes
from quorate.api.struct import replace
from quorate.disks import requests
from quorate.disks.entries import image, replica
from quorate.disks.requests import State
from tests.disks.making import NOW, deleting, granted, rejected, schedule

R = replica("r-0")


def ledger(
    replicas: Mapping[str, int],
    answers: Mapping[str, DiskScheduledResourcesStatus] | None = None,
    *,
    available: int = 100,
    verdict: object = None,
) -> DiskSchedule:
    """A ledger whose requests were answered so."""
    found = answers or {}
    status = DiskScheduleStatus(
        replicas=found,
        storage_scheduled=Bytes(sum(answer.scheduled_size for answer in found.values())),
        storage_available=Bytes(available),
        conditions=merge((), [verdict or Schedulable.SCHEDULABLE()], now=NOW),  # type: ignore[list-item]
    )
    return replace(schedule(replicas), status=status)


def test_asking_is_a_merge_patch_of_one_key_without_a_precondition() -> None:
    write = requests.ask(ledger({"a-0": 1, "b-0": 2}), R, 5)
    assert (write.patch, write.if_unchanged) == ({"spec": {"replicas": {"r-0": 5}}}, False)
    other = requests.ask(ledger({"a-0": 1}), image("i"), 5)
    assert other.patch == {"spec": {"backingImages": {"i": 5}}}


def test_withdrawing_removes_one_key() -> None:
    write = requests.withdraw(ledger({"a-0": 1, "r-0": 2}), R)
    assert (write.patch, write.if_unchanged) == ({"spec": {"replicas": {"r-0": None}}}, False)


def test_withdrawing_the_last_key_we_know_of_does_not_take_away_one_that_we_do_not() -> None:
    write = requests.withdraw(ledger({"r-0": 2}), R)
    assert (write.patch, write.if_unchanged) == ({"spec": {"replicas": None}}, True)


def test_asking_again_for_the_same_is_no_write() -> None:
    assert requests.ask(ledger({"r-0": 5}), R, 5).patch == {}
    assert requests.withdraw(ledger({"a-0": 5}), R).patch == {}


def test_nobody_asks_for_nothing() -> None:
    with pytest.raises(ValueError, match="r-0 asks disk data for 0 bytes"):
        requests.ask(ledger({}), R, 0)


@pytest.mark.parametrize(
    ("asked", "answer", "state"),
    [
        (None, None, State.NOT_ASKED),
        (4, granted(4), State.NOT_ASKED),
        (5, None, State.PENDING),
        (5, granted(4), State.PENDING),
        (5, rejected(4), State.PENDING),
        (5, granted(5), State.GRANTED),
        (5, granted(8, asked=5), State.GRANTED),
        (5, rejected(5), State.REJECTED),
        (5, rejected(5, held=4), State.REJECTED),
    ],
)
def test_an_answer_counts_only_for_the_size_it_was_given_to(
    asked: int | None, answer: DiskScheduledResourcesStatus | None, state: State
) -> None:
    found = ledger({} if asked is None else {"r-0": asked}, {} if answer is None else {"r-0": answer})
    assert requests.read(found, R, 5).state is state


def test_a_rejection_comes_with_its_reason() -> None:
    found = requests.read(ledger({"r-0": 5}, {"r-0": rejected(5, message="no room")}), R, 5)
    assert found.refusal == requests.Refusal("NoSpace", "no room")


@pytest.mark.parametrize(
    ("found", "size", "reason"),
    [
        (ledger({}), 100, None),
        (ledger({}), 101, "NoSpace"),
        (ledger({"r-0": 60}, {"r-0": granted(60)}), 100, None),
        (ledger({"r-0": 60}, {"r-0": granted(60)}), 101, "NoSpace"),
        (ledger({"a-0": 60}, {"a-0": granted(60)}, available=50), 1, "OverCommitted"),
        (ledger({}, verdict=Schedulable.CORDONED("n1")), 1, "Cordoned"),
        (deleting(ledger({})), 1, "Deleting"),
        (schedule(), 1, "DiskNotReady"),
        (ledger({f"x{n}-0": 1 for n in range(MAX_ENTRIES)}), 1, "TooManyEntries"),
        (ledger({"r-0": 1, **{f"x{n}-0": 1 for n in range(MAX_ENTRIES - 1)}}), 2, None),
    ],
)
def test_one_can_tell_without_asking_whether_it_would_be_in_vain(
    found: DiskSchedule, size: int, reason: str | None
) -> None:
    refusal = requests.refusal(found, R, size)
    assert (None if refusal is None else refusal.reason) == reason


def test_room_is_what_could_still_be_granted() -> None:
    assert requests.room(ledger({"a-0": 60}, {"a-0": granted(60)})) == 40
    assert requests.room(ledger({"a-0": 60}, {"a-0": granted(60)}, available=50)) == 0
    assert requests.room(ledger({}, verdict=Schedulable.DISABLED())) == 0


@pytest.mark.parametrize(
    ("found", "unanswered"),
    [
        (ledger({"a-0": 60}, {"a-0": granted(60)}), 0),
        (ledger({"a-0": 60}), 60),
        (ledger({"a-0": 60, "b-0": 30}, {"a-0": granted(60)}), 30),
        (ledger({"a-0": 80}, {"a-0": granted(60)}), 20),
        (ledger({"a-0": 40}, {"a-0": granted(60)}), 0),
    ],
    ids=["granted", "not answered", "another's", "growing", "shrinking"],
)
def test_what_was_asked_for_and_not_answered_is_known(found: DiskSchedule, unanswered: int) -> None:
    assert requests.unanswered(found) == unanswered


@pytest.mark.parametrize(("size", "extent", "rounded"), [(1, 4, 4), (4, 4, 4), (5, 4, 8), (5, 0, 5), (0, 4, 0)])
def test_sizes_are_asked_for_in_whole_extents(size: int, extent: int, rounded: int) -> None:
    assert requests.rounded_up(size, extent) == rounded
