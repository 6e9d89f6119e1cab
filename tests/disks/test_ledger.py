"""The rule of the ledger, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from quorate.api.longhorn.disk_schedule import MAX_ENTRIES, DiskScheduledResourcesStatus, EntryState
from quorate.api.meta import Bytes
from quorate.disks.entries import Entry, image, replica
from quorate.disks.ledger import Refusal, Terms, settle
from tests.disks.making import NOW, granted, rejected

OPEN = Terms(100)
CLOSED = Terms(100, Refusal("Disabled", "switched off"))
R, S = replica("r-0"), replica("s-0")

Told = Mapping[Entry, DiskScheduledResourcesStatus]


def settled(
    requests: Mapping[Entry, int],
    answers: Told | None = None,
    terms: Terms = OPEN,
    *,
    in_use: Mapping[Entry, int] | None = None,
    ages: Mapping[Entry, float] | None = None,
) -> dict[Entry, DiskScheduledResourcesStatus]:
    """Ages are in seconds before NOW."""
    asked = {entry: Bytes(size) for entry, size in requests.items()}
    created = {entry: NOW - timedelta(seconds=age) for entry, age in (ages or {}).items()}
    return settle(asked, answers or {}, terms, in_use=in_use or {}, owner_created=created)


def brief(answers: Told) -> dict[str, tuple[str, int]]:
    return {entry.name: (answer.state.value, answer.scheduled_size) for entry, answer in answers.items()}


@pytest.mark.parametrize(
    ("asked", "before", "terms", "state", "size", "reason"),
    [
        # New ones (M12): the bound itself still fits.
        (100, None, OPEN, "scheduled", 100, ""),
        (101, None, OPEN, "rejected", 0, "NoSpace"),
        # M30: a rejection stands while the same size is asked for, however much room there is meanwhile.
        (101, rejected(101), Terms(1000), "rejected", 0, "NoSpace"),
        (101, rejected(101, reason="Disabled"), Terms(1000), "rejected", 0, "Disabled"),
        # Another size is another question.
        (100, rejected(101), OPEN, "scheduled", 100, ""),
        (102, rejected(101), Terms(1000), "scheduled", 102, ""),
        # Growth keeps what it had when it is rejected.
        (80, granted(60), OPEN, "scheduled", 80, ""),
        (120, granted(60), OPEN, "rejected", 60, "NoSpace"),
        (120, rejected(120, held=60), Terms(1000), "rejected", 60, "NoSpace"),
        # M13: a growth that is cancelled leaves no rejection behind.
        (60, rejected(120, held=60), OPEN, "scheduled", 60, ""),
        (50, rejected(120, held=60), OPEN, "scheduled", 50, ""),
        (60, rejected(120, held=60), CLOSED, "scheduled", 60, ""),
        (60, rejected(120, held=60), Terms(50), "scheduled", 60, ""),
        # Less is always granted, also by a disk that takes nothing new.
        (40, granted(60), CLOSED, "scheduled", 40, ""),
        (60, granted(60), CLOSED, "scheduled", 60, ""),
        # M14: a closed disk says why, to new entries and to growth.
        (10, None, CLOSED, "rejected", 0, "Disabled"),
        (70, granted(60), CLOSED, "rejected", 60, "Disabled"),
        # A disk that shrank keeps what is there and lets nothing grow.
        (60, granted(60), Terms(50), "scheduled", 60, ""),
        (61, granted(60), Terms(50), "rejected", 60, "OverCommitted"),
    ],
)
def test_one_entry(
    asked: int, before: DiskScheduledResourcesStatus | None, terms: Terms, state: str, size: int, reason: str
) -> None:
    answer = settled({R: asked}, {} if before is None else {R: before}, terms)[R]
    assert (answer.state, answer.scheduled_size, answer.requested_size) == (state, size, asked)
    assert answer.reason == reason


@pytest.mark.parametrize(
    ("ages", "first"),
    [({R: 10, S: 5}, "r-0"), ({R: 5, S: 10}, "s-0"), ({R: 5, S: 5}, "r-0"), ({S: 5}, "s-0"), ({}, "r-0")],
)
def test_the_oldest_owner_comes_first_then_the_name_and_who_has_none_comes_last(
    ages: Mapping[Entry, float], first: str
) -> None:
    answers = settled({S: 60, R: 60}, ages=ages)
    assert [name for name, (state, _) in brief(answers).items() if state == "scheduled"] == [first]


def test_what_does_not_fit_does_not_keep_smaller_ones_from_fitting() -> None:
    answers = settled({R: 101, S: 100}, ages={R: 10, S: 5})
    assert brief(answers) == {"r-0": ("rejected", 0), "s-0": ("scheduled", 100)}


def test_what_is_given_back_can_be_given_away_in_the_same_decision() -> None:
    assert brief(settled({S: 100}, {R: granted(100)})) == {"s-0": ("scheduled", 100)}


def test_m31_bytes_that_are_given_back_while_the_volume_is_there_are_not_given_away() -> None:
    answers = settled({S: 60}, {R: granted(100)}, in_use={R: 80})
    assert brief(answers) == {"r-0": ("scheduled", 80), "s-0": ("rejected", 0)}
    assert (answers[R].reason, answers[R].requested_size) == ("InUse", 0)
    assert brief(settled({S: 60}, answers, in_use={})) == {"s-0": ("rejected", 0)}, "and M30 stands"
    assert brief(settled({S: 61}, answers, in_use={})) == {"s-0": ("scheduled", 61)}


def test_an_entry_does_not_fall_below_what_its_volume_has() -> None:
    answers = settled({R: 60}, {R: granted(100)}, in_use={R: 80})
    assert brief(answers) == {"r-0": ("scheduled", 80)}
    assert answers[R].reason == "InUse"


def test_a_volume_that_is_larger_than_what_was_granted_keeps_no_more_than_that() -> None:
    assert brief(settled({}, {R: granted(100)}, in_use={R: 120})) == {"r-0": ("scheduled", 100)}


def test_a_replica_and_an_image_of_one_name_are_two_entries() -> None:
    answers = settled({R: 60, image("r-0"): 60})
    assert sorted((entry.sort, answer.state.value) for entry, answer in answers.items()) == [
        ("backing_images", "scheduled"),
        ("replicas", "rejected"),
    ]


def test_no_more_rows_are_written_than_a_ledger_may_have() -> None:
    withdrawn = {replica(f"w{number}-0"): granted(1) for number in range(10)}
    asked = {replica(f"n{number:04}-0"): 1 for number in range(MAX_ENTRIES)}
    answers = settled(asked, withdrawn, Terms(10**6), in_use=dict.fromkeys(withdrawn, 1))
    assert len(answers) == MAX_ENTRIES
    assert len(settled(asked, answers, Terms(10**6), in_use={})) == MAX_ENTRIES
    assert all(entry in asked for entry in settled(asked, answers, Terms(10**6), in_use={}))


def test_a_rejection_says_how_much_there_is() -> None:
    answer = settled({R: 3 * 1024**3, S: 1024**3}, {S: granted(1024**3)}, Terms(2 * 1024**3))[R]
    assert answer.message == "3Gi more is asked for, 1Gi of 2Gi is left"


def test_the_answer_to_nothing_is_nothing() -> None:
    assert settled({}) == {}
    assert settled({R: 0})[R].state is EntryState.SCHEDULED
