"""DRBD's metadata: made once, looked for, and never made again."""

from __future__ import annotations

from dataclasses import replace as changed
from itertools import product
from typing import Any

import pytest

from quorate.agent.memory import Outcome
from quorate.agent.replica.decide import Decision
from quorate.agent.replica.view import View
from quorate.agent.steps import RemoveFile, Run
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage.drbd import DrbdStatus
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.struct import replace
from tests.agent.replica.builders import (
    LLV,
    LV_SIZE,
    MIB,
    NOW,
    actual,
    commands,
    config,
    decided,
    errors,
    kernel,
    link,
    logical_volume,
    outcome,
    outcomes,
    replica,
    usable_size,
    view,
    volume,
)

NONE_FOUND = "No valid meta data found"
UNCLEAN = 'Found meta data is "unclean", please apply-al first'
CLEAN = "# DRBD meta data dump\nmax-peers 7;\n"
MAPPING = f"quorate-vg0-{LLV}"
CUT = "lvreduce --force"
GROWN = Bytes(48 * MIB)
ATTACH = ["drbdadm up pvc-1", "drbdadm adjust pvc-1"]
NEVER_CREATED = actual(disk="", metadata_created="", initial_sync_completed=False)


def creates(decision: Decision) -> bool:
    return any("create-md" in each for each in commands(decision))


def test_a_new_disk_gets_metadata_and_then_the_tag() -> None:
    new = view(replica(actual=NEVER_CREATED, status=None), None, volume=volume(tags=()))
    assert commands(decided(new)) == [
        "drbdadm create-md --max-peers=7 --force pvc-1",
        f"lvchange --addtag quorate.md vg0/{LLV}",
    ]


def test_what_drbd_knew_of_a_disk_of_the_same_minor_is_forgotten_before_metadata_are_made() -> None:
    """Minors are used again; an older agent, or a machine that was away, left such files."""
    new = view(replica(actual=NEVER_CREATED, status=None), None, volume=volume(tags=()))
    known = "/var/lib/drbd/drbd-minor-1000.lkbd"
    first, second, *_ = decided(changed(new, last_known_file=known)).steps
    assert isinstance(first, RemoveFile)
    assert first.path == known
    assert isinstance(second, Run)
    assert "create-md" in second.argv


@pytest.mark.parametrize(
    "not_yet",
    [
        {"logical_volume": None},
        {"logical_volume": logical_volume(phase=LogicalVolumePhase.PENDING)},
        {"logical_volume": logical_volume(phase=LogicalVolumePhase.RESIZING)},
        {"logical_volume": logical_volume(phase=LogicalVolumePhase.FAILED)},
        {"volume": volume(tags=("quorate.new",))},
        {"volume": None},
    ],
)
def test_a_disk_that_is_not_ready_gets_none(not_yet: dict[str, Any]) -> None:
    new = view(replica(actual=NEVER_CREATED, status=None), None, **{"volume": volume(tags=()), **not_yet})
    assert decided(new).steps == ()


def test_the_tag_comes_before_the_field_and_both_before_the_first_up() -> None:
    tagged = view(replica(actual=NEVER_CREATED, status=None), None)
    recording = decided(tagged)
    assert recording.steps == ()
    assert recording.status.drbd.actual.metadata_created == LLV
    recorded_only = view(replica(status=None), None, volume=volume(tags=()))
    assert commands(decided(recorded_only)) == [f"lvchange --addtag quorate.md vg0/{LLV}"]


def test_a_disk_that_replaces_another_has_not_been_seen_up_to_date() -> None:
    moved = view(replica(actual=actual(disk="", metadata_created="pvc-1-0-older"), status=None), None)
    assert decided(moved).status.drbd.actual.initial_sync_completed is False


def test_the_field_is_cleared_when_its_logical_volume_is_gone() -> None:
    gone = view(replica(actual=actual(metadata_created="pvc-1-0-older")), metadata_owner_exists=False)
    assert decided(gone).status.drbd.actual.metadata_created == ""


def test_nothing_ever_makes_metadata_where_the_field_or_the_tag_says_that_there_are_some() -> None:
    """Every combination of what can be known, seen and remembered."""
    shown = [
        None,
        kernel("Diskless"),
        kernel("Diskless", links=()),
        kernel(),
        kernel("Inconsistent"),
        kernel("Failed", role="Primary", quorum=False),
    ]
    remembered = [
        (),
        (outcome("adjust", f"x @{LV_SIZE}", output=NONE_FOUND),),
        (
            outcome("adjust", f"x @{LV_SIZE}", output=NONE_FOUND),
            outcome("probe", f"missing {LV_SIZE}", output=NONE_FOUND),
            outcome(f"probe {LV_SIZE}", f"missing {GROWN}", output=NONE_FOUND),
        ),
        (outcome("metadata", f"create {LLV}", output="open failed"),),
        (outcome("probe", "", exit_code=20, output="No such file or directory"),),
    ]
    protections = [
        (LLV, ("quorate.md",)),
        (LLV, ()),
        ("", ("quorate.md",)),
        ("another", ("quorate.md", "quorate.zero")),
    ]
    cases = 0
    for status, history, (field, tags), size, backing, llv, exists, unadjusted in product(
        shown,
        remembered,
        protections,
        (LV_SIZE, GROWN),
        (None, LV_SIZE, GROWN),
        (None, logical_volume(), logical_volume(GROWN, phase=LogicalVolumePhase.RESIZING)),
        (False, True),
        (False, True),
    ):
        size_ahead = None if backing is None else Quantity.of_bytes(backing)
        obj = replica(actual=actual(metadata_created=field, backing_size=size_ahead), status=None)
        case = view(
            obj,
            status,
            outcomes=outcomes(*history),
            volume=volume(size, tags),
            logical_volume=llv,
            metadata_owner_exists=exists,
            unadjusted=unadjusted,
        )
        assert not creates(decided(case)), case
        cases += 1
    assert cases == 6 * 5 * 4 * 2 * 3 * 3 * 2 * 2


def test_metadata_are_not_made_while_the_kernel_has_the_disk() -> None:
    attached = view(replica(actual=NEVER_CREATED), volume=volume(tags=()))
    assert not creates(decided(attached))


class TestMissing:
    """``up`` did not find them although they were made."""

    def missing(
        self,
        *given: Outcome,
        size: int = GROWN,
        backing: int | None = LV_SIZE,
        ends: tuple[int, ...] = (),
        status: DrbdStatus | None = None,
        reported: int | None = None,
        output: str = NONE_FOUND,
    ) -> View:
        told = kernel(size=usable_size(LV_SIZE) // 1024 if reported is None else reported)
        ahead = None if backing is None else Quantity.of_bytes(backing)
        obj = replica(actual=actual(backing_size=ahead), status=told)
        tags = ("quorate.md", *(f"quorate.end={end}" for end in ends))
        lost = view(obj, status, volume=volume(size, tags))
        failed = outcome("adjust", decided(lost).steps[0].about, output=output, age=10)
        return changed(lost, outcomes=outcomes(failed, *given))

    def probed(self, output: str = NONE_FOUND, exit_code: int = 1, size: int = GROWN) -> Outcome:
        return outcome("probe", f"missing {size}", exit_code=exit_code, output=output)

    def found(self, output: str = UNCLEAN, exit_code: int = 1, at: int = LV_SIZE, size: int = GROWN) -> Outcome:
        return outcome(f"probe {at}", f"missing {size}", exit_code=exit_code, output=output)

    def test_first_up_is_tried_because_it_may_find_them_by_itself(self) -> None:
        grown = view(
            replica(actual=actual(backing_size=Quantity.of_bytes(LV_SIZE)), status=None), None, volume=volume(GROWN)
        )
        assert commands(decided(grown)) == ATTACH

    def test_then_they_are_looked_for_at_the_end_of_the_disk(self) -> None:
        assert commands(decided(self.missing())) == ["drbdadm dump-md pvc-1"]

    def test_then_at_the_end_of_its_former_size_of_which_nothing_more_is_shown_and_read_only(self) -> None:
        for lost in (self.missing(self.probed()), self.missing(self.probed(), backing=None, ends=(LV_SIZE,))):
            decision = decided(lost)
            assert commands(decision) == [
                f"dmsetup remove --retry {MAPPING}",
                f"dmsetup create {MAPPING} --readonly --table 0 {LV_SIZE // 512} linear /dev/vg0/{LLV} 0",
                f"drbdmeta - v09 /dev/mapper/{MAPPING} internal dump-md",
                f"dmsetup remove --retry {MAPPING}",
            ]
            assert decision.disk

    @pytest.mark.parametrize(("exit_code", "output"), [(1, UNCLEAN), (0, CLEAN)])
    def test_then_the_disk_is_cut_back_to_exactly_where_they_were_found_and_attached_at_once(
        self, exit_code: int, output: str
    ) -> None:
        lost = self.missing(self.probed(), self.found(output, exit_code))
        assert commands(decided(lost)) == [f"{CUT} --fs ignore --size {LV_SIZE}b vg0/{LLV}", *ATTACH]
        up = self.missing(self.probed(), self.found(output, exit_code), status=kernel("Diskless"))
        assert commands(decided(up)) == [f"{CUT} --fs ignore --size {LV_SIZE}b vg0/{LLV}", "drbdadm adjust pvc-1"]

    def test_lvm_that_looks_at_no_file_system_is_not_told_to_ignore_it(self) -> None:
        refused = changed(
            outcome("shrink", f"{GROWN} to {LV_SIZE}", exit_code=3), command="lvreduce --force --fs ignore"
        )
        lost = self.missing(self.probed(), self.found(), refused)
        assert commands(decided(lost)) == [f"{CUT} --size {LV_SIZE}b vg0/{LLV}", *ATTACH]

    @pytest.mark.parametrize("exit_code", [0, 3, 5, None])
    def test_it_is_cut_back_once_and_never_again(self, exit_code: int | None) -> None:
        tried = outcome("shrink", f"{GROWN} to {LV_SIZE}", exit_code=exit_code)
        decision = decided(self.missing(self.probed(), self.found(), tried))
        assert not any("lvreduce" in each for each in commands(decision))
        assert errors(decision).last_metadata_error is not None

    def test_of_several_former_sizes_the_largest_that_has_them_counts(self) -> None:
        """Metadata only ever move outward; what they looked like may stay behind."""
        ends = (36 * MIB, 40 * MIB)
        first = decided(self.missing(self.probed(), ends=ends))
        assert f"0 {40 * MIB // 512} linear" in commands(first)[1]
        second = self.missing(self.probed(), self.found(NONE_FOUND, at=40 * MIB), self.found(at=36 * MIB), ends=ends)
        assert commands(decided(second))[0] == f"{CUT} --fs ignore --size {36 * MIB}b vg0/{LLV}"

    @pytest.mark.parametrize(
        ("exit_code", "output"),
        [(1, NONE_FOUND), (20, "open failed: Device or resource busy"), (1, "Segmentation fault"), (1, ""), (None, "")],
    )
    def test_a_disk_that_does_not_have_them_at_its_former_end_is_never_cut(
        self, exit_code: int | None, output: str
    ) -> None:
        looked = changed(self.found(output), exit_code=exit_code)
        decision = decided(self.missing(self.probed(), looked))
        assert not any("lvreduce" in each for each in commands(decision))
        shown = errors(decision).last_metadata_error
        assert shown is not None
        assert shown.reason == "MetadataMissing"

    def test_a_disk_of_the_size_it_always_had_is_never_cut(self) -> None:
        for backing in (None, LV_SIZE, GROWN, 64 * MIB):
            given = (self.probed(size=LV_SIZE), self.found(size=LV_SIZE))
            decision = decided(self.missing(*given, backing=backing, size=LV_SIZE, ends=(LV_SIZE, GROWN)))
            assert not any("lvreduce" in each for each in commands(decision))
            shown = errors(decision).last_metadata_error
            assert shown is not None
            assert shown.reason == "MetadataMissing"

    def test_a_disk_whose_former_size_nobody_wrote_is_never_cut(self) -> None:
        decision = decided(self.missing(self.probed(), self.found(), backing=None))
        assert not any("lvreduce" in each for each in commands(decision))
        assert errors(decision).last_metadata_error is not None

    def test_a_disk_of_which_drbd_has_used_more_is_never_cut(self) -> None:
        used = self.missing(self.probed(), self.found(), reported=usable_size(GROWN) // 1024, ends=(LV_SIZE,))
        decision = decided(used)
        assert not any("lvreduce" in each for each in commands(decision))
        assert errors(decision).last_metadata_error is not None

    def test_the_volume_controllers_word_for_the_size_counts_too(self) -> None:
        lost = self.missing(self.probed(), self.found())
        told = replace(lost.replica, status=replace(lost.replica.status, size=Quantity.of_bytes(usable_size(GROWN))))
        assert not any("lvreduce" in each for each in commands(decided(changed(lost, replica=told))))

    @pytest.mark.parametrize(
        ("exit_code", "output"),
        [
            (1, UNCLEAN),
            (0, CLEAN),
            (20, "open(/dev/vg0/x) failed: No such file or directory"),
            (1, "Segmentation fault"),
            (1, ""),
            (139, NONE_FOUND),
        ],
    )
    def test_a_disk_on_which_dump_md_says_anything_but_none_is_never_cut(self, exit_code: int, output: str) -> None:
        decision = decided(self.missing(self.probed(output, exit_code), self.found()))
        assert not any("lvreduce" in each for each in commands(decision))

    def test_a_probe_from_before_the_last_attempt_counts_for_nothing(self) -> None:
        old = outcome("probe", f"missing {GROWN}", output=NONE_FOUND, age=100)
        assert commands(decided(self.missing(old, self.found()))) == ["drbdadm dump-md pvc-1"]
        old = outcome(f"probe {LV_SIZE}", f"missing {GROWN}", output=UNCLEAN, age=100)
        assert not any("lvreduce" in each for each in commands(decided(self.missing(self.probed(), old))))

    def test_a_disk_that_does_not_attach_for_another_reason_is_let_go_of_once(self) -> None:
        """Killed while it looked at the disk's beginning, the agent itself holds it."""
        held = self.missing(output="/dev/vg0/x: Device or resource busy")
        assert commands(decided(held)) == [f"dmsetup remove --retry {MAPPING}"]
        let_go = changed(held, outcomes={**held.outcomes, "unmap": outcome("unmap", exit_code=0)})
        assert not any("dmsetup" in each for each in commands(decided(let_go)))

    def test_the_error_says_what_was_done_to_the_disk_and_goes_when_it_is_attached(self) -> None:
        lost = self.missing(backing=None)
        shown = errors(decided(lost)).last_metadata_error
        assert shown is not None
        assert "Nothing was changed on it" in shown.output
        cut = self.missing(outcome("shrink", f"{GROWN} to {LV_SIZE}", exit_code=0), size=LV_SIZE)
        shown = errors(decided(cut)).last_metadata_error
        assert shown is not None
        assert f"It was cut back: {GROWN} to {LV_SIZE} bytes" in shown.output
        found = view(replica(errors=errors(decided(lost))))
        assert errors(decided(found)).last_metadata_error is None


def test_unclean_metadata_are_simply_attached() -> None:
    unclean = view(
        replica(status=None), None, outcomes=outcomes(outcome("probe", "x", output='Found meta data is "unclean"'))
    )
    assert commands(decided(unclean)) == ATTACH


def test_a_member_that_gets_a_disk_while_it_serves_gets_metadata_first() -> None:
    serving = view(
        replica(actual=NEVER_CREATED),
        kernel("Diskless", role="Primary", links=(link(1), link(2))),
        volume=volume(tags=()),
    )
    assert creates(decided(serving))


def test_no_command_carries_the_secret() -> None:
    for case in (view(shown=None), view(replica(actual=NEVER_CREATED), None, volume=volume(tags=()))):
        for step in decided(case, NOW).steps:
            assert "correct horse" not in repr(step)
            if isinstance(step, Run):
                assert not any("correct horse" in word for word in step.argv)
    assert "correct horse" not in repr(view())
    assert config().shared_secret is not None
