"""A disk that grew has its activity log, or it is seen to: read from the disk, and made by a write into new space."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.agent.replica.activity_log import LOG_MAGIC
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
LAST = SIZE // 4096 - 1
HALF = f"dd if=/dev/drbd1000 bs=4096 skip={LAST} count=1 iflag=direct status=none"
WRITE_BACK = [f"{HALF} of=/dev/drbd1000 seek={LAST} oflag=direct conv=notrunc,nocreat,fsync"]
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


def test_a_secondary_reads_the_log_where_the_disk_ends_now_and_notes_where_that_is() -> None:
    decision = decided(grown())
    assert commands(decision) == READ
    assert not decision.status.drbd.actual.activity_log_missing


def test_at_the_size_at_which_it_was_seen_nothing_is_read() -> None:
    assert decided(grown("Primary", known=SIZE)).steps == ()


def test_a_log_that_is_there_is_reported_and_what_was_read_is_forgotten() -> None:
    decision = decided(grown(outcomes=outcomes(read(FOUND))))
    assert decision.steps == ()
    assert decision.status.drbd.actual.activity_log_at == Quantity.of_bytes(SIZE)
    assert "read-log" in decision.drop


def test_one_that_is_not_there_is_said_and_looked_for_again_with_patience() -> None:
    at_once = decided(grown(outcomes=outcomes(read(EMPTY))))
    assert at_once.steps == ()
    assert at_once.again is not None
    assert at_once.status.drbd.actual.activity_log_missing
    assert at_once.status.drbd.actual.activity_log_at == Quantity.of_bytes(usable_size(LV_SIZE))
    assert commands(decided(grown(outcomes=outcomes(read(EMPTY, 5))))) == READ


def test_a_primary_that_grew_writes_its_last_block_back_at_once_beside_all_other_work() -> None:
    decision = decided(grown("Primary"))
    assert commands(decision) == WRITE_BACK
    assert decision.work == "log/pvc-1"
    written = outcome("write-back", str(SIZE), exit_code=0)
    assert commands(decided(grown("Primary", outcomes=outcomes(written)))) == READ


def test_it_is_not_written_while_io_stands_still() -> None:
    standing = kernel(role="Primary", size=SIZE // 1024)
    found = grown("Primary")
    stopped = changed(found.kernel, status=replace(standing, suspended=True))
    assert WRITE_BACK[0] not in commands(decided(changed(found, kernel=stopped)))


def test_beside_users_of_a_volume_that_grew_under_another_version_nothing_is_written() -> None:
    """Nobody knows whether they were told of the size, and write there."""
    assert commands(decided(grown("Primary", known=None))) == READ
    decision = decided(grown("Primary", known=None, outcomes=outcomes(read(EMPTY, 60))))
    assert commands(decision) == READ
    assert decision.status.drbd.actual.activity_log_missing


def test_a_disk_that_grew_under_a_small_drbd_has_its_log_where_it_was() -> None:
    former = actual(backing_size=Quantity.of_bytes(LV_SIZE), activity_log_at=None)
    obj = replica(config=config(), actual=former)
    assert not any("dd" in each for each in commands(decided(view(obj, kernel(), volume=volume(GROWN)))))


@pytest.mark.parametrize(("role", "expected"), [("Primary", WRITE_BACK), ("Secondary", [])])
def test_a_primary_without_a_disk_writes_for_those_with_one(role: str, expected: list[str]) -> None:
    obj = replica(
        config=config(**DISKLESS, primary=role == "Primary"),
        actual=DrbdActual(initial_sync_completed=True, activity_log_at=Quantity.of_bytes(usable_size(LV_SIZE))),
    )
    shown = kernel(role=role, disk="Diskless", size=SIZE // 1024)
    assert [each for each in commands(decided(view(obj, shown))) if each.startswith("dd")] == expected
