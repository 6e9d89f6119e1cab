"""What of volumes being made and bytes being used is told, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quorate.agent.lvm.piece import Piece
from quorate.agent.lvm.settling import COUNTING, MAKING, counting, making
from quorate.api.quantity import Quantity
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.storage.lvg import LVMVolumeGroupStatus, ThinPoolStatus, VolumeGroupPhase
from quorate.api.struct import replace
from tests.agent.lvm.rig import llv, lvg

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEING_MADE = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.PENDING, message="It is being made.")
FAILED = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.FAILED, reason="NoSpace")
FAILING = replace(BEING_MADE, reason="CommandFailed")
THERE = LVMLogicalVolumeStatus(phase=LogicalVolumePhase.CREATED, actual_size=Quantity("12Mi"))
NOTHING_SAID = LVMLogicalVolumeStatus()


def of_age(seconds: float, said: LVMLogicalVolumeStatus = NOTHING_SAID) -> Piece:
    made = llv()
    metadata = replace(made.metadata, creation_timestamp=NOW - timedelta(seconds=seconds))
    return Piece(llv=replace(made, metadata=metadata, status=said), lvg=lvg())


@pytest.mark.parametrize(
    ("piece", "after", "expected"),
    [
        pytest.param(of_age(1), BEING_MADE, MAKING - 1, id="it is being made"),
        pytest.param(of_age(MAKING), BEING_MADE, None, id="it takes long"),
        pytest.param(of_age(1), THERE, None, id="it is there"),
        pytest.param(of_age(1), FAILED, None, id="it cannot be made"),
        pytest.param(of_age(1), FAILING, None, id="it could not be made so far"),
        pytest.param(of_age(1, FAILED), BEING_MADE, None, id="it could not be made, and now is"),
        pytest.param(of_age(-60), BEING_MADE, MAKING, id="clocks differ"),
    ],
)
def test_a_volume_is_told_of_when_it_is_there_fails_or_takes_long(
    piece: Piece, after: LVMLogicalVolumeStatus, expected: float | None
) -> None:
    assert making(piece, after, NOW) == expected


def group(free: int, **more: Any) -> LVMVolumeGroupStatus:
    """Of 100 MiB."""
    status = LVMVolumeGroupStatus(
        phase=VolumeGroupPhase.READY,
        vg_size=Quantity("100Mi"),
        vg_free=Quantity(f"{free}Mi"),
        allocated_size=Quantity(f"{100 - free}Mi"),
    )
    return replace(status, **more)


def pooled(used: int) -> tuple[ThinPoolStatus, ...]:
    return (ThinPoolStatus(name="tp", actual_size=Quantity("60Mi"), used_size=Quantity(f"{used}Mi")),)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(group(60), group(50), COUNTING, id="bytes are used"),
        pytest.param(group(50), group(60), COUNTING, id="bytes are given back"),
        pytest.param(group(60), group(60), None, id="nothing is new"),
        pytest.param(group(25), group(24), None, id="space gets low"),
        pytest.param(group(24), group(25), None, id="space is low no more"),
        pytest.param(group(20), group(19), COUNTING, id="space is low as before"),
        pytest.param(group(60), group(50, message="sdc is not taken"), None, id="something else is said"),
        pytest.param(group(60), group(50, phase=VolumeGroupPhase.NOT_READY), None, id="it cannot be used"),
        pytest.param(LVMVolumeGroupStatus(), group(60), None, id="it was never told of"),
        pytest.param(group(40, thin_pools=pooled(1)), group(40, thin_pools=pooled(2)), None, id="a pool fills"),
        pytest.param(
            group(20, thin_pools=pooled(1)), group(12, thin_pools=pooled(1)), COUNTING, id="low only with its pools"
        ),
        pytest.param(group(10, thin_pools=pooled(1)), group(9, thin_pools=pooled(1)), None, id="low without its pools"),
    ],
)
def test_bytes_alone_wait_unless_they_make_a_disk_low(
    before: LVMVolumeGroupStatus, after: LVMVolumeGroupStatus, expected: float | None
) -> None:
    assert counting(before, after, None, 25, NOW) == expected


def test_they_do_not_wait_for_ever() -> None:
    def waits(seconds: float) -> float | None:
        return counting(group(60), group(50), NOW - timedelta(seconds=seconds), 25, NOW)

    assert waits(COUNTING - 1) == 1
    assert waits(COUNTING) is None
