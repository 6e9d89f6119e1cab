"""Copies that may differ: which operation is made when, and when it has had its time."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api import names
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.drbdrop import DRBDResourceOperationStatus, OperationPhase, OperationType
from quorate.api.storage.rv import Comparison, ComparisonReason
from quorate.api.struct import replace
from quorate.engine import Create, Delete
from quorate.volumes.attach.comparison import added, finished, hindrance, writes
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import THREE, TWO, attached, cut, of
from tests.volumes.replica.making import GI, NOW, VOLUME, name, picture, spoilt, with_device, with_rv

RESIZE, DUAL = ComparisonReason.RESIZE, ComparisonReason.TWO_PRIMARIES
BEFORE = GI // 2


def noted(view: VolumeView, **fields: Any) -> VolumeView:
    whole = {
        "revision": 6,
        "reason": RESIZE,
        "since": NOW,
        "reference": name(0),
        "start": BEFORE,
        "end": BEFORE + 65536,
        "overwrite": True,
    }
    return with_rv(view, comparisons=(Comparison(**{**whole, **fields}),))


COMPARED: dict[str, Any] = {"reason": DUAL, "start": 0, "end": None, "overwrite": False}


def made(view: VolumeView) -> list[DRBDResourceOperation]:
    return [write.obj for write in writes(view, NOW) if isinstance(write, Create)]  # type: ignore[misc]


def ran(view: VolumeView, phase: OperationPhase | None = None) -> VolumeView:
    (operation,) = made(view)
    return changed(view, comparisons=(replace(operation, status=DRBDResourceOperationStatus(phase=phase)),))


def deleted(view: VolumeView) -> bool:
    return any(isinstance(write, Delete) for write in writes(view, NOW))


def test_what_nobody_has_used_is_overwritten_and_anything_else_compared() -> None:
    (zeroing,) = made(noted(of(THREE)))
    assert zeroing.spec.type is OperationType.ZERO_RANGE
    assert zeroing.spec.range is not None
    assert (zeroing.spec.range.start, zeroing.spec.range.end) == (BEFORE, BEFORE + 65536)
    assert (zeroing.name, zeroing.spec.node_name) == (names.comparison_operation(VOLUME, 6), "n0")
    (comparing,) = made(noted(of(THREE), **COMPARED))
    assert (comparing.spec.type, comparing.spec.range) == (OperationType.VERIFY, None)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (noted(attached(of(THREE, 0), 0)), "WaitingForDetach"),
        (noted(cut(of(THREE), 1, 2)), "NotConnected"),
        (noted(picture(stale=(2,))), "NotConnected"),
        (noted(spoilt(of(THREE), 0, with_device(disk_state="Outdated"))), "WaitingForReference"),
        (noted(spoilt(of(THREE), 1, with_device(disk_state="Inconsistent"))), "WaitingForSync"),
        (noted(of(THREE), start=2 * GI, end=3 * GI), "WaitingForGrowth"),
        # A copy that is behind for a moment would stop a volume that needs both.
        (noted(attached(of(TWO, 0), 0), overwrite=False), "WaitingForDetach"),
        (noted(attached(of(THREE, 0), 0), overwrite=False), ""),
        (noted(attached(of(TWO, 0), 0), **COMPARED), ""),
    ],
)
def test_nothing_is_run_before_it_may(view: VolumeView, reason: str) -> None:
    wait = hindrance(view, view.volume.status.comparisons[0])
    assert (wait.reason if wait is not None else "") == reason
    assert len(made(view)) == (0 if reason else 1)


def test_when_it_has_succeeded_it_is_struck_off_and_only_then_the_operation_goes() -> None:
    done = ran(noted(of(THREE)), OperationPhase.SUCCEEDED)
    status = finished(done, NOW)
    assert status is not None
    assert status.comparisons == ()
    assert not deleted(done)
    assert deleted(done.with_status(status))


@pytest.mark.parametrize("phase", [None, OperationPhase.PENDING, OperationPhase.RUNNING])
def test_one_that_is_not_over_stays(phase: OperationPhase | None) -> None:
    view = ran(noted(of(THREE)), phase)
    assert finished(view, NOW) is None
    assert list(writes(view, NOW)) == []


def test_one_that_failed_is_made_anew() -> None:
    failed = ran(noted(of(THREE)), OperationPhase.FAILED)
    assert finished(failed, NOW) is None
    assert deleted(failed)


def test_one_that_has_not_begun_is_taken_back_when_somebody_comes_and_it_could_not_run() -> None:
    pending = ran(noted(of(THREE)), OperationPhase.PENDING)
    asked = with_rv(cut(pending, 1, 2), attach_requests=of(THREE, 0).volume.status.attach_requests)
    assert deleted(asked)
    begun = ran(noted(of(THREE)), OperationPhase.RUNNING)
    assert not deleted(with_rv(cut(begun, 1, 2), attach_requests=of(THREE, 0).volume.status.attach_requests))


def test_an_operation_of_another_comparison_settles_nothing() -> None:
    old = ran(noted(of(THREE)), OperationPhase.SUCCEEDED)
    newer = noted(old, revision=9)
    assert finished(newer, NOW) is None
    assert deleted(newer)


def test_of_two_about_everything_the_later_counts() -> None:
    status = noted(of(THREE), **COMPARED).volume.status
    again = added(status, replace(status.comparisons[0], revision=9))
    assert [each.revision for each in again.comparisons] == [9]
    part = added(status, replace(status.comparisons[0], revision=9, start=4096, end=8192))
    assert [each.revision for each in part.comparisons] == [6, 9]
