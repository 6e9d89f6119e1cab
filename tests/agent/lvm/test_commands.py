"""What goes with every command of LVM."""

from __future__ import annotations

import pytest

from quorate.agent.lvm import commands
from quorate.agent.lvm.report import LVS, PVS, VGS
from quorate.agent.lvm.seen import NEW, SeenVolume
from quorate.agent.machine import FileBeneath
from quorate.agent.steps import Run, lvm_of

VOLUME = SeenVolume("vg0", "a", "u", 4096, tags=frozenset({NEW}))
CHANGES = (
    commands.create_thick("vg0", "a", 4096, ("x",)),
    commands.create_thin("vg0", "tp", "a", 4096, ("x",)),
    commands.retag("vg0", "a", add=("x",), remove=("y",)),
    commands.activate(VOLUME),
    commands.extend(VOLUME, 8192, ("/dev/sdb:0-1",)),
    commands.remove(VOLUME),
    commands.remove_very(VOLUME),
    commands.discard_new(VOLUME),
    commands.create_group("vg0", ("/dev/sdb",)),
    commands.extend_group("vg0", ("/dev/sdb",)),
    commands.create_pool("vg0", "tp", "50%"),
)


@pytest.mark.parametrize("argv", [LVS, VGS, PVS, *(change.argv for change in CHANGES)], ids=lambda argv: argv[0])
def test_no_command_of_lvm_reads_drbds_devices(argv: tuple[str, ...]) -> None:
    assert argv[1] == "--config"
    assert 'filter=["r|^/dev/drbd.*|"]' in argv[2]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.argv[0])
def test_what_changes_lvm_is_not_killed_while_devices_may_be_suspended(change: Run) -> None:
    assert change.silence is not None
    assert change.silence >= 300


def test_extents_that_were_zeroed_are_given_back_without_discards_and_others_as_the_host_likes() -> None:
    assert "issue_discards=0" in commands.discard_new(VOLUME).argv[2]
    assert "issue_discards" not in commands.remove(VOLUME).argv[2]


def test_after_hours_of_work_on_a_volume_it_is_looked_at_again_before_anything_is_decided() -> None:
    zero, flush = commands.zero_whole(VOLUME, about="x")
    copy, *_ = commands.fill(VOLUME, FileBeneath("/images", "a"), about="x")
    for step in (zero, flush, copy):
        assert step.changes == (lvm_of(VOLUME.place),)


def test_zeroing_may_be_slow_and_ends_with_zeros_on_the_drive() -> None:
    zero, flush = commands.zero_whole(VOLUME, about="x")
    assert zero.argv[0] == "blkdiscard"
    assert flush.argv == ("sync", VOLUME.path)
    assert {step.purpose for step in (zero, flush)} == {commands.ZERO_WHOLE}
    assert all(step.silence is not None and step.silence >= 120 for step in (zero, flush))
