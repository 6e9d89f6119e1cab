"""A kernel resource of our name that is not ours stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.agent.replica.view import View
from quorate.api.finalizers import AGENT
from quorate.api.storage.drbd import Device, DrbdStatus
from quorate.api.struct import replace
from tests.agent.replica.builders import NOW, commands, config, decided, errors, kernel, replica, view


def theirs(**changes: Any) -> DrbdStatus:
    device = Device(minor=7, disk_state="UpToDate", quorum=True, size=1024)
    return replace(kernel(**changes), devices=(device,))


def without_files(status: DrbdStatus, **changes: Any) -> View:
    return view(replica(config=config(**changes), status=None), status, written=None)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (theirs(), {}),
        (theirs(node_id=3), {}),
        (theirs(role="Primary"), {"primary": True}),
        (theirs(), {"down": True}),
    ],
)
def test_it_is_neither_taken_down_nor_adjusted_and_the_replica_says_so(
    status: DrbdStatus, told: dict[str, bool]
) -> None:
    decision = decided(without_files(status, **told))
    assert decision.steps == ()
    shown = errors(decision).last_adjustment_error
    assert shown is not None
    assert shown.reason == "ForeignResource"
    assert "minor 7" in shown.output


def test_before_that_is_known_the_files_are_looked_at() -> None:
    unread = view(replica(config=config(down=True)), theirs(), written=None, files_current=False)
    decision = decided(unread)
    assert [getattr(step, "at", "") for step in decision.steps] == ["file", "file"]
    assert errors(decision).last_adjustment_error is None


def test_one_that_a_file_of_ours_describes_or_that_has_our_minor_is_ours() -> None:
    assert commands(decided(view(shown=theirs(node_id=3)))) == ["drbdsetup down pvc-1"]
    assert commands(decided(without_files(kernel(node_id=3)))) == ["drbdsetup down pvc-1"]


def test_at_the_end_of_a_replica_it_is_left_to_its_owner() -> None:
    obj = replica(config=config())
    last = replace(obj, metadata=replace(obj.metadata, deletion_timestamp=NOW, finalizers=(AGENT,)))
    decision = decided(view(last, theirs(), written=None))
    assert decision.release
    assert decision.steps == ()
    assert commands(decided(view(last, theirs()))) == ["drbdsetup down pvc-1"]
