"""What the API is told of the kernel, and how often."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime, timedelta
from typing import Any

import pytest

from quorate.agent.replica.algorithm import CRYPTO_SEEN
from quorate.agent.replica.decide import Decision
from quorate.agent.steps import Look, Run, WriteFile
from quorate.api.storage.drbd import DrbdStatus, ReplicaType, SharedSecretAlgorithm
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from tests.agent.replica.builders import (
    DISK,
    DISKLESS,
    NOW,
    SECRET,
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
    peer,
    replica,
    view,
)

#: sha256 was loaded, and looked for.
TRIED = outcome(CRYPTO_SEEN, "sha256", exit_code=0)


def _with(obj: ReplicatedVolumeReplica, decision: Decision) -> ReplicatedVolumeReplica:
    return replace(obj, status=decision.status)


def with_volume(status: DrbdStatus, **changes: Any) -> DrbdStatus:
    """The status with something changed about the first peer's side of the volume."""
    first, *rest = status.connections
    volume = replace(first.peer_devices[0], **changes)
    return replace(status, connections=(replace(first, peer_devices=(volume,)), *rest))


def busier(status: DrbdStatus) -> DrbdStatus:
    device = replace(
        status.devices[0], written=10**9, read=7, al_writes=3, bm_writes=2, upper_pending=1, lower_pending=4
    )
    links = tuple(replace(each, ap_in_flight=8, rs_in_flight=9, congested=True) for each in status.connections)
    return with_volume(replace(status, devices=(device,), connections=links), pending=3, unacked=4)


class TestStatus:
    def test_counters_alone_are_not_reported(self) -> None:
        case = view(shown=busier(kernel()))
        assert decided(case).status == case.replica.status

    def test_they_come_along_when_something_else_changes(self) -> None:
        shown = busier(kernel(role="Primary"))
        case = view(replica(config=config(primary=True)), shown)
        assert decided(case).status.drbd.status == shown

    def test_a_resource_that_is_gone_is_reported_as_gone(self) -> None:
        assert decided(view(shown=None)).status.drbd.status is None

    def test_progress_is_reported_in_whole_percent_at_most_every_five_seconds(self) -> None:
        before, after = with_volume(kernel(), percent_in_sync=40), with_volume(kernel(), percent_in_sync=41)
        case = view(replica(status=before), after)
        assert decided(case).status.drbd.status == after
        soon = decided(changed(case, progress_reported=NOW - timedelta(seconds=2)))
        assert soon.status.drbd.status == before
        assert soon.again == 3.0
        assert decided(changed(case, progress_reported=NOW - timedelta(seconds=5))).status.drbd.status == after

    def test_out_of_sync_alone_is_not_progress(self) -> None:
        case = view(shown=with_volume(kernel(), out_of_sync=4))
        assert decided(case).status == case.replica.status


class TestRevision:
    """``rvr.status.datameshRevision``: only what the kernel shows."""

    newer = config(datamesh_revision=6)

    def test_it_is_reported_once_the_file_is_adjusted_to(self) -> None:
        assert decided(view(replica(config=self.newer))).status.datamesh_revision == 6

    @pytest.mark.parametrize(
        ("shown", "changes"),
        [
            (None, {}),
            (kernel(), {"unadjusted": True}),
            (kernel(), {"written": "something else"}),
            (kernel(), {"files_current": False}),
            (kernel(), {"busy": True}),
            (kernel(), {"algorithms": frozenset({"sha1"})}),
            (kernel("Diskless"), {}),
            (kernel(links=(link(1),)), {}),
            (kernel(links=(link(1), link(2), link(3))), {}),
            (kernel(node_id=4), {}),
        ],
    )
    def test_it_is_not_reported_while_the_kernel_is_not_what_the_config_says(
        self, shown: DrbdStatus | None, changes: dict[str, Any]
    ) -> None:
        assert decided(view(replica(config=self.newer), shown, **changes)).status.datamesh_revision == 5

    def test_a_link_that_is_not_up_does_not_hold_it_back(self) -> None:
        shown = kernel(links=(link(1), link(2, "Connecting", flow="Off", disk="DUnknown")))
        assert decided(view(replica(config=self.newer), shown)).status.datamesh_revision == 6

    def test_it_does_not_go_back_when_a_link_breaks_later(self) -> None:
        shown = kernel(links=(link(1), link(2, "StandAlone")))
        assert decided(view(shown=shown)).status.datamesh_revision == 5


class TestActual:
    def test_the_type_follows_the_kernel_not_the_config(self) -> None:
        told = replica(config=config(**DISKLESS))
        told = replace(told, status=replace(told.status, actual_type=ReplicaType.DISKFUL))
        assert decided(view(told)).status.actual_type is ReplicaType.DISKFUL
        done = decided(view(told, kernel("Diskless")))
        assert done.status.actual_type is ReplicaType.TIE_BREAKER
        assert done.status.drbd.actual.disk == ""

    def test_the_disk_is_what_the_kernel_has_not_what_it_is_to_have(self) -> None:
        moving = view(replica(config=config(disk="/dev/vg0/another")), unadjusted=True)
        assert decided(moving).status.drbd.actual.disk == DISK
        assert decided(view(shown=kernel("Diskless"))).status.drbd.actual.disk == ""

    @pytest.mark.parametrize(
        ("disk", "expected"),
        [
            ("UpToDate", True),
            ("Inconsistent", False),
            ("Outdated", False),
            ("Consistent", False),
            ("Negotiating", False),
        ],
    )
    def test_the_initial_sync_is_completed_when_the_own_disk_has_been_seen_up_to_date(
        self, disk: str, expected: bool
    ) -> None:
        new = replica(actual=actual(initial_sync_completed=False))
        assert decided(view(new, kernel(disk))).status.drbd.actual.initial_sync_completed is expected

    def test_it_stays_completed(self) -> None:
        assert decided(view(shown=kernel("Inconsistent"))).status.drbd.actual.initial_sync_completed is True

    def test_without_a_disk_the_first_adjustment_completes_it(self) -> None:
        fresh = actual(disk="", metadata_created="", initial_sync_completed=False)
        new = replica(config=config(**DISKLESS), actual=fresh)
        assert decided(view(new, kernel("Diskless"))).status.drbd.actual.initial_sync_completed is True
        pending = view(new, kernel("Diskless"), unadjusted=True)
        assert decided(pending).status.drbd.actual.initial_sync_completed is False

    def test_two_primaries_are_confirmed_only_once_adjusted(self) -> None:
        told = replica(config=config(allow_two_primaries=True))
        assert decided(view(told, unadjusted=True)).status.drbd.actual.allow_two_primaries is False
        assert decided(view(told)).status.drbd.actual.allow_two_primaries is True


class TestErrors:
    def test_a_failure_is_shown_masked_and_trimmed_and_the_next_success_clears_it(self) -> None:
        said = f"drbdsetup new-peer --shared-secret={SECRET} {'x' * 5000}"
        failed = outcome("adjust", "x", exit_code=1, output=said)
        shown = errors(decided(view(shown=None, outcomes=outcomes(failed)))).last_adjustment_error
        assert shown is not None
        assert SECRET not in shown.output
        assert len(shown.output) <= 1024
        after = view(replica(errors=errors(decided(view(shown=None, outcomes=outcomes(failed))))))
        assert errors(decided(after)).last_adjustment_error is None

    def test_an_error_outlives_a_restart_of_the_agent_until_it_is_known_to_be_over(self) -> None:
        failed = outcome("adjust", "x", output="Failure: (164)")
        before = errors(decided(view(unadjusted=True, outcomes=outcomes(failed))))
        assert before.last_adjustment_error is not None
        assert errors(decided(view(replica(errors=before), unadjusted=True))) == before

    def test_a_command_that_hangs_is_shown_while_it_hangs(self) -> None:
        hung = changed(outcome("adjust", "x", exit_code=None, output="silent for 10 s"), hung=True)
        decision = decided(view(busy=True, hung=True, outcomes=outcomes(hung)))
        shown = errors(decision).last_adjustment_error
        assert shown is not None
        assert (shown.reason, shown.exit_code) == ("CommandHung", -1)
        assert decision.steps == ()

    def test_a_config_that_drbdadm_refuses_stops_everything_behind_it(self) -> None:
        case = view(shown=None, written=None)
        about = decided(case).steps[0].about
        refused = outcome("config", about, exit_code=10, output=f"{case.temporary_file}:5: Parse error: 'cpu-mask'")
        decision = decided(changed(case, outcomes=outcomes(refused)))
        assert decision.steps == ()
        shown = errors(decision).last_config_error
        assert shown is not None
        assert shown.reason == "InvalidConfig"

    def test_an_algorithm_that_is_not_loaded_is_loaded_before_it_is_refused(self) -> None:
        """M19: ``/proc/crypto`` has only what is loaded."""
        case = view(shown=None, written=None, algorithms=frozenset({"crc32c", "sha1"}))
        decision = decided(case)
        assert errors(decision).shared_secret_alg_selection_error is None
        load, look = decision.steps
        assert isinstance(load, Run)
        assert load.argv == ("modprobe", "-q", "crypto-sha256")
        assert 1 in load.accept  # what it says does not count, but what is there afterwards
        assert isinstance(look, Look)
        assert look.subject == "/proc/crypto"
        loaded = changed(case, algorithms=frozenset({"sha1", "sha256"}), outcomes=outcomes(TRIED))
        assert [type(step) for step in decided(loaded).steps][:1] == [WriteFile]

    def test_an_algorithm_that_the_kernel_has_not_got_is_named(self) -> None:
        """M19."""
        case = view(shown=None, written=None, algorithms=frozenset({"crc32c", "sha1"}), outcomes=outcomes(TRIED))
        decision = decided(case)
        shown = errors(decision).shared_secret_alg_selection_error
        assert shown is not None
        assert shown.unsupported_alg == "sha256"
        assert decision.steps == ()
        assert decision.again == 60.0
        assert errors(decided(view(replica(errors=errors(decision))))).shared_secret_alg_selection_error is None
        # Another one is tried at once.
        other = replica(config=config(shared_secret_alg=SharedSecretAlgorithm.SHA1))
        assert decided(view(other, None, written=None, algorithms=frozenset(), outcomes=outcomes(TRIED))).steps

    def test_one_that_the_kernel_refuses_at_up_counts_the_same(self) -> None:
        """M19."""
        said = "pvc-1: Failure: (120) The 'cram-hmac-alg' you specified is not known in the kernel."
        refused = outcome("adjust", "x", output=said)
        shown = errors(decided(view(unadjusted=True, outcomes=outcomes(refused)))).shared_secret_alg_selection_error
        assert shown is not None
        assert shown.unsupported_alg == "sha256"

    def test_a_member_that_cannot_be_forgotten_is_shown_for_as_long_as_it_cannot(self) -> None:
        left = replica(config=config(peers=(peer(2),), forget=(1,), datamesh_revision=6))
        case = view(left, kernel(links=(link(2),)))
        refused = outcome("forget 1", exit_code=10, output="forget-peer failed")
        decision = decided(changed(case, outcomes=outcomes(refused)))
        shown = errors(decision).last_adjustment_error
        assert shown is not None
        assert shown.output == "forget-peer failed"
        assert decision.status.datamesh_revision == 5
        done = changed(case, outcomes=outcomes(outcome("forget 1", exit_code=0)), replica=_with(left, decision))
        assert errors(decided(done)).last_adjustment_error is None

    def test_who_waits_for_a_look_that_fails_says_so(self) -> None:
        blind = outcome("look", exit_code=None, output="lvs ended with 5: Couldn't find device", times=3)
        case = view(shown=None, volumes_current=False, outcomes={"look at the volumes": blind})
        decision = decided(case)
        shown = errors(decision).last_metadata_error
        assert shown is not None
        assert (shown.reason, shown.output) == ("VolumesUnreadable", "lvs ended with 5: Couldn't find device")
        assert decision.again == 4.0
        unread = outcome("look at the files", exit_code=None, output="Input/output error")
        decision = decided(view(files_current=False, outcomes=outcomes(unread)))
        shown = errors(decision).last_config_error
        assert shown is not None
        assert (shown.reason, shown.output) == ("FilesUnreadable", "Input/output error")

    def test_a_missing_logical_volume_is_shown(self) -> None:
        gone = view(shown=None, volume=None, logical_volume=logical_volume())
        shown = errors(decided(gone)).last_metadata_error
        assert shown is not None
        assert shown.reason == "NoLogicalVolume"


class TestMarks:
    """Bits against a peer that is as good as the own copy."""

    MARKED = with_volume(kernel(), out_of_sync=4)

    @pytest.mark.parametrize(
        ("since", "told"), [(None, 0), (NOW, 0), (NOW - timedelta(seconds=2), 0), (NOW - timedelta(seconds=3), 4)]
    )
    def test_they_are_told_of_when_they_have_stood_for_a_while(self, since: datetime | None, told: int) -> None:
        decision = decided(view(shown=self.MARKED, marked_since=since))
        status = decision.status.drbd.status
        assert status is not None
        assert status.connections[0].peer_devices[0].out_of_sync == told

    def test_those_of_the_moment_are_not_told_with_something_else_either(self) -> None:
        shown = with_volume(kernel(role="Primary"), out_of_sync=4)
        status = decided(view(replica(config=config(primary=True)), shown)).status.drbd.status
        assert status is not None
        assert status.role == "Primary"
        assert status.connections[0].peer_devices[0].out_of_sync == 0

    @pytest.mark.parametrize(("amount", "news"), [(4, False), (5, False), (7, False), (8, True), (0, True)])
    def test_how_many_is_told_in_powers_of_two_and_their_end_at_once(self, amount: int, news: bool) -> None:
        reported = replica(status=self.MARKED)
        case = view(reported, with_volume(kernel(), out_of_sync=amount), marked_since=NOW - timedelta(hours=1))
        assert (decided(case).status != reported.status) is news

    def test_a_counter_that_ran_below_nothing_is_no_more_than_the_device(self) -> None:
        shown = with_volume(kernel(), out_of_sync=2**63 - 1)
        status = decided(view(shown=shown, marked_since=NOW - timedelta(hours=1))).status.drbd.status
        assert status is not None
        assert status.connections[0].peer_devices[0].out_of_sync == shown.devices[0].size

    def test_what_a_resync_has_left_costs_no_write(self) -> None:
        syncing = with_volume(kernel(), out_of_sync=4096, replication_state="SyncSource", percent_in_sync=50)
        case = view(replica(status=syncing), with_volume(syncing, out_of_sync=8))
        assert decided(case).status == case.replica.status


class TestKeptLinks:
    """While copies may differ, nothing is run that makes links anew."""

    @pytest.mark.parametrize(
        ("changes", "marks", "ran"),
        [
            ({}, 0, ["drbdadm adjust pvc-1"]),
            ({}, 4, []),
            ({"keep_links": True}, 0, []),
            ({"compared": (1,)}, 4, ["drbdadm adjust pvc-1"]),
        ],
    )
    def test_a_new_file_is_not_adjusted_to(self, changes: dict[str, Any], marks: int, ran: list[str]) -> None:
        case = view(replica(config=config(**changes)), with_volume(kernel(), out_of_sync=marks), unadjusted=True)
        decision = decided(case)
        assert commands(decision) == ran
        error = errors(decision).last_adjustment_error
        assert (error is not None and error.reason == "LinksKept") is (not ran)

    def test_a_link_that_is_missing_is_made(self) -> None:
        case = view(replica(config=config(keep_links=True)), kernel(links=(link(1),)))
        assert commands(decided(case)) == ["drbdadm adjust pvc-1"]

    def test_what_is_to_be_down_goes_down(self) -> None:
        case = view(replica(config=config(keep_links=True, down=True)))
        assert commands(decided(case)) == ["drbdsetup down pvc-1"]
