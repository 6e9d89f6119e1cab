"""The end of a replica."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.agent.replica.view import KernelView, View
from quorate.agent.steps import RemoveFile
from quorate.api.finalizers import AGENT, CONTROLLER, PEERS, QUORUM
from quorate.api.struct import replace
from tests.agent.replica.builders import FILE, NOW, commands, decided, errors, kernel, outcome, outcomes, replica, view

GONE = KernelView(known=True, current=True, status=None)


def deleting(*finalizers: str, **changes: Any) -> View:
    obj = replica()
    metadata = replace(obj.metadata, deletion_timestamp=NOW, finalizers=finalizers)
    return changed(view(replace(obj, metadata=metadata)), **changes)


@pytest.mark.parametrize("others", [(CONTROLLER,), (QUORUM, PEERS), ("somebody.else/finalizer",)])
def test_the_agent_is_the_last_to_let_go(others: tuple[str, ...]) -> None:
    decision = decided(deleting(*others, AGENT))
    assert decision.steps == ()
    assert not decision.release


def test_while_others_hold_it_a_deleted_replica_still_does_as_it_is_told() -> None:
    told = deleting(PEERS, AGENT, kernel=GONE)
    assert commands(decided(told)) == ["drbdadm up pvc-1", "drbdadm adjust pvc-1"]


def test_the_resource_goes_down_then_the_files_then_the_finalizer() -> None:
    last = deleting(AGENT)
    assert commands(decided(last)) == ["drbdsetup down pvc-1"]
    down = changed(last, kernel=GONE)
    files = (f"{FILE}_tmp", f"{FILE}_new", FILE)
    assert decided(down).steps == tuple(RemoveFile(file, "remove") for file in files)
    clean = changed(down, written=None)
    assert decided(clean).release


def test_what_drbd_knows_of_its_disk_goes_with_it_and_before_the_file() -> None:
    known = "/var/lib/drbd/drbd-minor-1000.lkbd"
    down = changed(deleting(AGENT), kernel=GONE, last_known_file=known)
    removed = [step.path for step in decided(down).steps if isinstance(step, RemoveFile)]
    assert removed[0] == known
    assert removed[-1] == FILE


def test_it_does_not_let_go_on_what_it_saw_before() -> None:
    stale = deleting(AGENT, kernel=KernelView(known=True, current=False, status=None), written=None)
    assert not decided(stale).release
    unread = deleting(AGENT, kernel=GONE, written=None, files_current=False)
    assert not decided(unread).release
    assert not decided(deleting(AGENT, kernel=GONE, written=None, busy=True)).release


def test_a_device_that_is_held_open_is_said_and_tried_again() -> None:
    said = "State change failed: (-12) Device is held open by someone\ndrbd1000 opened by qemu (pid 9) at now"
    held = deleting(AGENT, outcomes=outcomes(outcome("down", "end", exit_code=11, output=said)))
    decision = decided(held)
    shown = errors(decision).last_adjustment_error
    assert shown is not None
    assert "qemu (pid 9)" in shown.output
    assert decision.again == 1.0


def test_a_younger_replica_of_the_volume_takes_nothing_away_from_the_elder() -> None:
    decision = decided(deleting(AGENT, elder="pvc-1-3"))
    assert decision.release
    assert decision.steps == ()


def test_the_end_of_the_files_does_not_depend_on_the_config() -> None:
    broken = deleting(
        AGENT, kernel=KernelView(known=True, current=True, status=kernel()), intended=None, incomplete="disk"
    )
    assert commands(decided(broken)) == ["drbdsetup down pvc-1"]
