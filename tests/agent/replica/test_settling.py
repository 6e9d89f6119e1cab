"""What of a new member's way to its first data is told, and when."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.agent.replica import settling
from quorate.agent.replica.settling import SETTLING
from quorate.agent.replica.view import View
from quorate.api.storage.drbd import DrbdStatus
from quorate.api.struct import replace
from tests.agent.replica.builders import (
    DISKLESS,
    NOW,
    actual,
    config,
    decided,
    kernel,
    link,
    outcome,
    outcomes,
    replica,
    view,
)

UP = kernel("Inconsistent", links=(link(1, disk="Inconsistent"), link(2, disk="Inconsistent")))
COMING = kernel(
    "Inconsistent", links=(link(1, disk="Inconsistent"), link(2, "Connecting", flow="Off", disk="DUnknown"))
)
COPYING = kernel("Inconsistent", links=(link(1, flow="SyncTarget"), link(2, disk="Inconsistent")))
GIVING = kernel("UpToDate", links=(link(1, flow="SyncSource", disk="Inconsistent"), link(2)))
DONE = kernel("UpToDate")


def newcomer(reported: DrbdStatus | None, shown: DrbdStatus | None, **changes: Any) -> View:
    """A member without data, of which this was reported and that is shown."""
    new = replica(status=reported, actual=actual(initial_sync_completed=False))
    if reported is None:
        new = replace(new, status=replace(new.status, datamesh_revision=0, actual_type=None))
    return view(new, shown, **changes)


@pytest.mark.parametrize(
    ("reported", "shown", "patience"),
    [
        pytest.param(None, COMING, SETTLING, id="its links come up, its revision with them"),
        pytest.param(None, COPYING, SETTLING, id="its copy has begun before its revision was told"),
        pytest.param(UP, COPYING, settling.COPYING, id="its copy arrives"),
        pytest.param(UP, GIVING, settling.COPYING, id="it has the first data, and the others get them"),
    ],
)
def test_a_member_on_its_way_is_told_when_it_has_arrived_or_a_while_later(
    reported: DrbdStatus | None, shown: DrbdStatus, patience: float
) -> None:
    case = newcomer(reported, shown)
    early = decided(case)
    assert early.status == case.replica.status
    assert early.held_back
    assert early.again == patience
    waiting = decided(changed(case, unreported_since=NOW - timedelta(seconds=1)))
    assert waiting.status == case.replica.status
    assert waiting.again == patience - 1
    late = decided(changed(case, unreported_since=NOW - timedelta(seconds=patience)))
    assert late.status.drbd.status == shown
    assert late.status.datamesh_revision == case.config.datamesh_revision
    assert not late.held_back


def test_a_copy_of_one_that_joins_a_living_volume_is_told_after_seconds_like_everything_else() -> None:
    case = newcomer(COMING, COPYING)
    hidden = replace(case.replica.status.drbd.config, hidden=True)
    drbd = replace(case.replica.status.drbd, config=hidden)
    joining = view(replace(case.replica, status=replace(case.replica.status, drbd=drbd)), COPYING)
    assert decided(case).again == settling.COPYING
    assert decided(joining).again == SETTLING


@pytest.mark.parametrize(
    ("reported", "shown"),
    [
        pytest.param(None, UP, id="all links are up"),
        pytest.param(COPYING, DONE, id="the copy is there"),
        pytest.param(UP, COMING, id="a link is lost"),
        pytest.param(UP, replace(COPYING, suspended=True, suspended_quorum=True), id="I/O is suspended"),
        pytest.param(UP, replace(COPYING, role="Primary"), id="the role changes"),
        pytest.param(UP, None, id="the resource is gone"),
        pytest.param(None, kernel("Inconsistent", links=(link(1, "StandAlone"), link(2, "Connecting"))), id="refused"),
        pytest.param(UP, kernel("Failed", links=(link(1, flow="SyncTarget"), link(2))), id="the disk failed"),
        pytest.param(
            UP,
            replace(COPYING, devices=(replace(COPYING.devices[0], quorum=False),)),
            id="quorum is lost",
        ),
    ],
)
def test_what_it_comes_to_loses_or_needs_is_told_at_once(reported: DrbdStatus | None, shown: DrbdStatus | None) -> None:
    decision = decided(newcomer(reported, shown))
    assert not decision.held_back
    assert decision.status.drbd.status == shown


def test_a_member_with_data_waits_with_nothing() -> None:
    decision = decided(view(replica(status=kernel()), COMING))
    assert not decision.held_back
    assert decision.status.drbd.status == COMING


def test_a_member_without_a_disk_waits_with_nothing_somebody_may_want_to_use_it() -> None:
    fresh = actual(disk="", metadata_created="", initial_sync_completed=False)
    shown = replace(COMING, devices=(replace(COMING.devices[0], disk_state="Diskless"),))
    new = replica(config=config(**DISKLESS), actual=fresh, status=None)
    assert not decided(view(new, shown)).held_back


def test_a_later_revision_is_confirmed_at_once_in_the_middle_of_a_copy() -> None:
    told = replica(config=config(datamesh_revision=6), status=UP, actual=actual(initial_sync_completed=False))
    decision = decided(view(told, COPYING))
    assert decision.status.datamesh_revision == 6
    assert decision.status.drbd.status == COPYING


def test_a_failure_takes_along_what_was_held_back() -> None:
    failed = outcome("adjust", "x", exit_code=1, output="Failure: (164)")
    decision = decided(newcomer(UP, COPYING, unadjusted=True, outcomes=outcomes(failed)))
    assert decision.status.drbd.errors.last_adjustment_error is not None
    assert decision.status.drbd.status == COPYING
