"""A disk that grew has its activity log, or it is seen to: renewed in the kernel, and read from the disk."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.agent.replica.activity_log import LOG_MAGIC, TRIES
from quorate.agent.replica.view import View
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage.drbd import DrbdActual
from quorate.api.struct import replace
from tests.agent.replica.builders import (
    DISK,
    DISKLESS,
    LV_SIZE,
    MIB,
    actual,
    commands,
    config,
    decided,
    kernel,
    logical_volume,
    outcome,
    outcomes,
    replica,
    usable_size,
    view,
    volume,
)

GROWN = Bytes(48 * MIB)
SIZE = usable_size(GROWN)
ABOUT = f"{SIZE}@{GROWN}"
READ = [
    "drbdsetup check-resize 1000",
    f"dd if={DISK} bs=4096 skip={GROWN // 4096 - 9} count=8 iflag=direct status=none",
]
RENEW, RESTORE = (f"drbdsetup disk-options 1000 --al-extents={number}" for number in (1236, 1237))
EMPTY, FOUND = "\0" * 32768, "\0" * 4096 + LOG_MAGIC + "\0" * 100


def grown(role: str = "Secondary", *, known: int | None = usable_size(LV_SIZE), **changes: Any) -> View:
    """DRBD has grown with its disk; ``known``: the size at which its log was last seen."""
    at = None if known is None else Quantity.of_bytes(known)
    obj = replica(
        config=config(size=Quantity.of_bytes(SIZE), primary=role == "Primary"), actual=actual(activity_log_at=at)
    )
    disk = logical_volume(GROWN, known_zero=True, actual_size=Quantity.of_bytes(GROWN))
    found = view(obj, kernel(role=role, size=SIZE // 1024), volume=volume(GROWN), logical_volume=disk)
    return changed(found, **changes)


def done(found: View) -> DrbdActual:
    return decided(found).status.drbd.actual


def read(output: str, seconds: float = 0.0) -> Any:
    return outcome("read-log", ABOUT, exit_code=0, output=output, age=seconds)


def renewed(*, exit_code: int = 0, purpose: str = "renew-log", failures: int = 1, seconds: float = 600.0) -> Any:
    made = outcome(purpose, str(SIZE), exit_code=exit_code, age=seconds)
    return made if exit_code == 0 else changed(made, failures=failures, times=failures)


@pytest.mark.parametrize("role", ["Primary", "Secondary"])
def test_whoever_grew_has_the_next_write_noted_and_reads_the_log_at_the_new_end(role: str) -> None:
    assert commands(decided(grown(role))) == [RENEW, RESTORE]
    decision = decided(grown(role, outcomes=outcomes(renewed())))
    assert commands(decision) == READ
    assert not decision.status.drbd.actual.activity_log_missing


@pytest.mark.parametrize("role", ["Primary", "Secondary"])
@pytest.mark.parametrize("known", [None, usable_size(LV_SIZE)])
@pytest.mark.parametrize("found", [None, "\0" * 32768])
def test_nothing_is_ever_written_to_a_volume_that_somebody_may_use(
    role: str, known: int | None, found: str | None
) -> None:
    """Its users see the new size at once: what was read before they wrote, and is written back after, is their loss."""
    known_so_far = [renewed(), *([] if found is None else [read(found, 60)])]
    for seen in ((), known_so_far):
        said = commands(decided(grown(role, known=known, outcomes=outcomes(*seen))))
        assert not any("of=" in each or "/dev/drbd" in each for each in said)


def test_at_the_size_at_which_it_was_seen_nothing_is_done() -> None:
    assert decided(grown("Primary", known=SIZE)).steps == ()


def test_one_that_was_never_looked_at_is_read_first_and_renewed_if_it_is_not_there() -> None:
    """It grew under an older version, or has just been made."""
    assert commands(decided(grown("Primary", known=None))) == READ
    found = grown("Primary", known=None, outcomes=outcomes(read(EMPTY)))
    assert decided(found).status.drbd.actual.activity_log_missing
    missing = replace(found.replica.status.drbd.actual, activity_log_missing=True)
    drbd = replace(found.replica.status.drbd, actual=missing)
    told = replace(found.replica, status=replace(found.replica.status, drbd=drbd))
    assert commands(decided(changed(found, replica=told))) == [RENEW, RESTORE]


def test_a_log_that_is_there_is_reported_and_what_was_read_is_forgotten() -> None:
    decision = decided(grown(outcomes=outcomes(renewed(), read(FOUND))))
    assert decision.steps == ()
    assert decision.status.drbd.actual.activity_log_at == Quantity.of_bytes(SIZE)
    assert "read-log" in decision.drop


def test_one_that_is_not_there_is_said_and_looked_for_again_with_patience() -> None:
    at_once = decided(grown(outcomes=outcomes(renewed(), read(EMPTY))))
    assert at_once.steps == ()
    assert at_once.again is not None
    assert at_once.status.drbd.actual.activity_log_missing
    assert at_once.status.drbd.actual.activity_log_at == Quantity.of_bytes(usable_size(LV_SIZE))
    assert commands(decided(grown(outcomes=outcomes(renewed(), read(EMPTY, 5))))) == READ


def test_drbd_is_not_asked_while_io_stands_still() -> None:
    standing = kernel(role="Primary", size=SIZE // 1024)
    found = grown("Primary")
    stopped = changed(found.kernel, status=replace(standing, suspended=True))
    assert commands(decided(changed(found, kernel=stopped))) == []


def test_under_load_drbd_refuses_and_is_asked_again_but_not_for_ever() -> None:
    """(122): extents come and go there, and with them the log is written."""
    busy = grown("Primary", outcomes=outcomes(renewed(exit_code=10, seconds=0)))
    assert (decided(busy).steps, decided(busy).again) == ((), 1.0)
    assert commands(decided(grown("Primary", outcomes=outcomes(renewed(exit_code=10))))) == [RENEW, RESTORE]
    assert commands(decided(grown("Primary", outcomes=outcomes(renewed(exit_code=10, failures=TRIES))))) == READ


def test_a_way_back_that_was_refused_holds_up_nothing_and_is_tried_until_it_is_gone() -> None:
    """Else the next ``adjust`` would find another number than the file's, and fail as long as the log is in use."""
    refused = renewed(exit_code=10, purpose="restore-log")
    assert commands(decided(grown("Primary", outcomes=outcomes(renewed(), refused)))) == READ
    seen = grown("Primary", known=SIZE, outcomes=outcomes(renewed(), refused))
    assert commands(decided(seen)) == [RESTORE]
    over = grown("Primary", known=SIZE, outcomes=outcomes(renewed(), renewed(purpose="restore-log")))
    assert decided(over).steps == ()


def test_a_disk_that_grew_under_a_small_drbd_has_its_log_where_it_was() -> None:
    former = actual(backing_size=Quantity.of_bytes(LV_SIZE), activity_log_at=None)
    obj = replica(config=config(), actual=former)
    assert not any("dd" in each for each in commands(decided(view(obj, kernel(), volume=volume(GROWN)))))


def test_a_member_without_a_disk_has_nothing_to_look_for() -> None:
    obj = replica(
        config=config(**DISKLESS, primary=True),
        actual=DrbdActual(initial_sync_completed=True, activity_log_at=Quantity.of_bytes(usable_size(LV_SIZE))),
    )
    decision = decided(view(obj, kernel(role="Primary", disk="Diskless", size=SIZE // 1024)))
    assert not any(each.startswith("dd") for each in commands(decision))
    assert decision.status.drbd.actual.activity_log_at == Quantity.of_bytes(SIZE)
