"""The order of a replica's life, and its rest."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.agent.replica.decide import Decision
from quorate.agent.replica.view import KernelView, View
from quorate.agent.steps import Look, MoveFile, RemoveFile, Run, WriteFile
from quorate.api.storage.drbd import Connection, DrbdStatus, ReplicaType
from quorate.api.struct import replace
from tests.agent.replica.builders import (
    DISKLESS,
    LV_SIZE,
    NOW,
    actual,
    commands,
    config,
    decided,
    kernel,
    link,
    outcome,
    outcomes,
    peer,
    replica,
    view,
    volume,
)

UP = ["drbdadm up pvc-1", "drbdadm adjust pvc-1"]


def test_a_replica_at_rest_needs_nothing_and_reports_nothing_however_much_time_passes() -> None:
    at_rest = view()
    for now in (NOW, NOW + timedelta(days=365)):
        decision = decided(at_rest, now)
        assert decision.steps == ()
        assert decision.status == at_rest.replica.status
        assert decision.again is None


def test_nothing_is_done_before_the_config_is_complete_and_stamped() -> None:
    for lacking in ({"shared_secret": None}, {"node_id": None}, {"peers_initialized": False}, {"disk": None}):
        incomplete = view(replica(config=config(**lacking)), None, written=None)
        assert decided(incomplete).steps == ()


def test_nothing_is_made_for_an_object_that_could_go_without_us() -> None:
    unkept = replica()
    unkept = replace(unkept, metadata=replace(unkept.metadata, finalizers=()))
    assert decided(view(unkept, None)).steps == ()


def test_a_new_replica_comes_to_life_in_order() -> None:
    new = replica(
        config=config(), actual=actual(disk="", initial_sync_completed=False, metadata_created=""), status=None
    )
    fresh = view(new, None, written=None, volume=volume(tags=()))
    first = decided(fresh)
    assert [type(step) for step in first.steps] == [WriteFile, Run, WriteFile, MoveFile]
    assert commands(first) == [f"drbdadm -c /dev/null --config-to-test {fresh.temporary_file} sh-nop"]
    in_place = changed(fresh, written=fresh.intended.content if fresh.intended else None, unadjusted=True)
    assert commands(decided(in_place)) == [
        "drbdadm create-md --max-peers=7 --force pvc-1",
        "lvchange --addtag quorate.md vg0/pvc-1-0-abcdef01",
    ]
    tagged = changed(in_place, volume=volume())
    recorded = decided(tagged)
    assert recorded.steps == ()
    assert recorded.status.drbd.actual.metadata_created == "pvc-1-0-abcdef01"
    ready = with_written(tagged, recorded)
    last = decided(ready)
    assert commands(last) == UP
    assert last.steps[-1] == RemoveFile(ready.temporary_file, "adjust", last.steps[0].about)


def with_written(view: View, decision: Decision) -> View:
    return changed(view, replica=replace(view.replica, status=decision.status))


def test_the_file_is_named_in_every_call_of_drbdadm() -> None:
    for case in (
        view(shown=None),
        view(shown=kernel("Diskless")),
        view(replica(config=config(primary=True))),
        view(replica(config=config(primary=False)), kernel(role="Primary")),
    ):
        for step in decided(case).steps:
            if argv := getattr(step, "argv", ()):
                assert argv[:3] == ("drbdadm", "-c", case.file) or argv[0] != "drbdadm"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (None, UP),
        (kernel("Diskless"), ["drbdadm adjust pvc-1"]),
        (kernel(links=(link(1),)), ["drbdadm adjust pvc-1"]),
        (kernel(links=(link(1), link(2), link(3))), ["drbdadm adjust pvc-1"]),
        (kernel(links=(link(1), link(2, "StandAlone"))), ["drbdadm adjust pvc-1"]),
        (kernel(links=(link(1), link(2, "Connecting", flow="Off", disk="DUnknown"))), []),
        (kernel(links=(link(1), link(2, flow="SyncSource", disk="Inconsistent"))), []),
        (kernel("Failed"), []),
        (kernel("Attaching"), []),
    ],
)
def test_adjust_runs_only_where_it_repairs_something(shown: DrbdStatus | None, expected: list[str]) -> None:
    assert commands(decided(view(replica(status=shown), shown))) == expected


def test_a_file_that_has_not_been_adjusted_to_is_adjusted_to_also_after_a_restart() -> None:
    assert commands(decided(view(unadjusted=True))) == ["drbdadm adjust pvc-1"]


def test_a_diskless_member_is_not_linked_to_another() -> None:
    peers = (peer(1), peer(2, ReplicaType.ACCESS))
    diskless = replica(config=config(peers=peers, **DISKLESS), actual=actual(disk="", metadata_created=""))
    at_rest = view(diskless, kernel("Diskless", links=(link(1),)))
    assert decided(at_rest).steps == ()


def test_a_member_that_loses_its_disk_is_adjusted() -> None:
    diskless = replica(config=config(**DISKLESS))
    assert commands(decided(view(diskless))) == ["drbdadm adjust pvc-1"]


def test_an_adjust_that_fails_or_changes_nothing_is_repeated_with_growing_pauses() -> None:
    broken = view(shown=kernel(links=(link(1), link(2, "StandAlone"))))
    about = decided(broken).steps[0].about
    for exit_code in (0, 1):
        for times, pause in ((1, 1.0), (2, 2.0), (4, 8.0), (40, 60.0)):
            tried = changed(broken, outcomes=outcomes(outcome("adjust", about, exit_code=exit_code, times=times)))
            waiting = decided(tried)
            assert waiting.steps == ()
            assert waiting.again == pause
            assert commands(decided(tried, NOW + timedelta(seconds=pause))) == ["drbdadm adjust pvc-1"]


def test_another_state_of_affairs_is_tried_at_once() -> None:
    broken = view(shown=kernel(links=(link(1, "StandAlone"), link(2))))
    tried = changed(broken, outcomes=outcomes(outcome("adjust", "something else", times=40)))
    assert commands(decided(tried)) == ["drbdadm adjust pvc-1"]


def test_a_clock_that_was_set_back_does_not_make_it_wait_for_longer() -> None:
    broken = view(shown=kernel(links=(link(1, "StandAlone"), link(2))))
    about = decided(broken).steps[0].about
    tried = changed(broken, outcomes=outcomes(outcome("adjust", about, age=-86400.0, times=3)))
    assert decided(tried).again == 4.0


def test_a_resource_of_our_name_with_another_node_id_is_taken_down_first() -> None:
    assert commands(decided(view(shown=kernel(node_id=3)))) == ["drbdsetup down pvc-1"]


class TestDown:
    def test_the_resource_goes_down_and_its_file_stays(self) -> None:
        told = view(replica(config=config(down=True)))
        assert commands(decided(told)) == ["drbdsetup down pvc-1"]
        done = decided(changed(told, kernel=KernelView(known=True, current=True, status=None)))
        assert done.steps == ()

    def test_the_revision_is_reported_once_it_is_down_and_not_before(self) -> None:
        told = view(replica(config=config(down=True, datamesh_revision=6)))
        assert decided(told).status.datamesh_revision == 5
        gone = changed(told, kernel=KernelView(known=True, current=True, status=None))
        assert decided(gone).status.datamesh_revision == 6


class TestForget:
    asked = config(peers=(peer(2),), forget=(1,), datamesh_revision=6)

    def test_who_has_left_is_forgotten_after_the_adjustment(self) -> None:
        before = view(replica(config=self.asked), kernel(links=(link(1), link(2))), unadjusted=True)
        assert commands(decided(before)) == ["drbdadm adjust pvc-1"]
        after = view(replica(config=self.asked), kernel(links=(link(2),)))
        assert commands(decided(after)) == ["drbdsetup forget-peer pvc-1 1"]

    def test_the_revision_is_shown_only_once_all_are_forgotten(self) -> None:
        left = view(replica(config=self.asked), kernel(links=(link(2),)))
        assert decided(left).status.datamesh_revision == 5
        done = decided(changed(left, outcomes=outcomes(outcome("forget 1", exit_code=0))))
        assert done.status.datamesh_revision == 6
        assert done.status.drbd.actual.forgotten == (1,)

    def test_one_whom_the_kernel_does_not_know_is_forgotten(self) -> None:
        """A newcomer has never met it; or an agent was killed after the command and before it was written down."""
        left = view(replica(config=self.asked), kernel(links=(link(2),)))
        said = outcome("forget 1", exit_code=10, output="pvc-1: Failure: (171) Invalid peer-node-id\n")
        done = decided(changed(left, outcomes=outcomes(said)))
        assert done.status.drbd.actual.forgotten == (1,)
        assert done.status.datamesh_revision == 6
        assert done.status.drbd.errors.last_adjustment_error is None
        refused = outcome("forget 1", exit_code=10, output="pvc-1: Failure: (125) Device has a net-config\n")
        assert decided(changed(left, outcomes=outcomes(refused))).status.datamesh_revision == 5

    def test_what_is_recorded_is_not_done_again(self) -> None:
        done = view(replica(config=self.asked, actual=actual(forgotten=(1,))), kernel(links=(link(2),)))
        assert decided(done).steps == ()

    def test_an_id_that_is_a_member_again_is_not_forgotten_and_its_old_outcome_counts_for_nothing(self) -> None:
        again = view(replica(config=config(), actual=actual(forgotten=(1,))))
        stale = changed(again, outcomes=outcomes(outcome("forget 1", exit_code=0)))
        decision = decided(stale)
        assert decision.drop == ("forget 1",)
        assert decision.status.drbd.actual.forgotten == ()

    def test_a_member_without_a_disk_has_nothing_to_forget(self) -> None:
        diskless = config(peers=(peer(2),), forget=(1,), **DISKLESS)
        obj = replica(config=diskless, actual=actual(disk="", metadata_created=""))
        decision = decided(view(obj, kernel("Diskless", links=(link(2),))))
        assert decision.steps == ()
        assert decision.status.drbd.actual.forgotten == (1,)


class TestRecount:
    """The kernel does not count votes when it forgets a member (decision 0004), nor when a peer becomes quorate."""

    survivor = config(peers=(), forget=(1,), datamesh_revision=6)

    def alone(self, *, quorum: bool = False, **changes: Any) -> View:
        obj = replica(config=replace(self.survivor, **changes), actual=actual(forgotten=(1,)))
        return view(obj, kernel(links=(), quorum=quorum))

    def test_who_stands_still_and_has_forgotten_somebody_has_the_kernel_count_anew(self) -> None:
        decision = decided(self.alone())
        assert commands(decision) == ["drbdsetup resource-options pvc-1 --quorum=all", "drbdadm adjust pvc-1"]
        assert decision.status.datamesh_revision == 6, "nobody waits for it"

    def test_that_the_file_is_due_is_said_before_and_unsaid_after(self) -> None:
        first, *_, last = decided(self.alone()).steps
        assert isinstance(first, WriteFile)
        assert isinstance(last, RemoveFile)
        assert first.path == last.path

    def test_once_is_enough(self) -> None:
        done = outcomes(outcome("recount", "6 (1,)", exit_code=0))
        assert decided(changed(self.alone(), outcomes=done)).steps == ()

    @pytest.mark.parametrize("changes", [{"quorum": True}, {"hidden": True}, {"forget": ()}])
    def test_nobody_else_does(self, changes: dict[str, Any]) -> None:
        assert not any("resource-options" in each for each in commands(decided(self.alone(**changes))))

    @pytest.mark.parametrize(
        ("links", "disk", "counts"),
        [
            ((link(1), link(2)), "UpToDate", True),
            ((link(1), link(2, disk="Diskless")), "UpToDate", True),
            ((link(1), link(2, "Connecting", disk="DUnknown")), "UpToDate", True),
            ((link(1, disk="Diskless"), link(2, disk="Diskless")), "UpToDate", False),
            ((link(1), link(2, disk="Diskless")), "Outdated", False),
            ((link(1, "Connecting", disk="UpToDate"), link(2, "Connecting", disk="UpToDate")), "UpToDate", False),
        ],
    )
    def test_a_voter_that_sees_votes_and_copies_enough_has_the_kernel_count_them(
        self, links: tuple[Connection, ...], disk: str, counts: bool
    ) -> None:
        """The kernel counts who is shown to it with its next change; where everybody stands still, none comes."""
        still = view(replica(config=config()), kernel(disk, links=links, quorum=False))
        expected = ["drbdsetup resource-options pvc-1 --quorum=all", "drbdadm adjust pvc-1"]
        assert commands(decided(still)) == (expected if counts else [])

    def test_who_is_shown_to_nobody_yet_is_not_counted(self) -> None:
        joining = config(peers=(peer(1, hidden=True), peer(2)))
        still = kernel(links=(link(1), link(2, disk="Diskless")), quorum=False)
        assert commands(decided(view(replica(config=joining), still))) == []

    def test_a_voter_without_its_disk_counts_without_trying_that(self) -> None:
        one = view(replica(config=config()), kernel("Diskless", quorum=False))
        assert one.intended is not None
        heard = outcome("adjust-links", one.intended.digest, exit_code=0)
        tried = outcome("adjust", f"{one.intended.digest}: no disk @{LV_SIZE}", times=9)
        decision = decided(changed(one, outcomes=outcomes(heard, tried)))
        expected = ["drbdsetup resource-options pvc-1 --quorum=all", "drbdadm adjust --skip-disk pvc-1"]
        assert commands(decision) == expected

    def diskless(self, peer_disk: str = "UpToDate", connection: str = "Connected", *, quorum: bool = False) -> View:
        obj = replica(config=config(peers=(peer(2),), **DISKLESS), actual=actual(disk="", metadata_created=""))
        shown = link(2, connection, disk=peer_disk)
        return view(obj, kernel("Diskless", links=(shown,), quorum=quorum))

    def test_who_has_no_disk_and_sees_data_has_the_kernel_ask_again_whether_its_peer_is_quorate(self) -> None:
        """What it asks for meanwhile is as far out of reach as before."""
        expected = ["drbdsetup resource-options pvc-1 --quorum=31", "drbdadm adjust pvc-1"]
        assert commands(decided(self.diskless())) == expected
        tried = changed(self.diskless(), outcomes=outcomes(outcome("recount", exit_code=0, times=3)))
        decision = decided(tried)
        assert decision.steps == ()
        assert decision.again == 4.0
        assert commands(decided(tried, NOW + timedelta(seconds=4))) == expected

    @pytest.mark.parametrize(
        "seen", [{"quorum": True}, {"peer_disk": "Outdated"}, {"peer_disk": "DUnknown", "connection": "Connecting"}]
    )
    def test_who_has_no_disk_and_sees_no_data_has_nobody_to_ask(self, seen: dict[str, Any]) -> None:
        assert commands(decided(self.diskless(**seen))) == []


class TestMeetingAgain:
    """A Primary without a disk does not trust a copy of another generation, until it meets it anew."""

    def apart(self, peer_disk: str = "Consistent", *, flow: str = "Established", times: int = 4, **shown: Any) -> View:
        obj = replica(
            config=config(peers=(peer(2),), primary=True, **DISKLESS), actual=actual(disk="", metadata_created="")
        )
        known = {"role": "Primary", "quorum": False, **shown}
        one = view(obj, kernel("Diskless", links=(link(2, disk=peer_disk, flow=flow),), **known))
        return changed(one, outcomes=outcomes(outcome("recount", exit_code=0, times=times)))

    def test_who_has_counted_in_vain_beside_one_parts_from_it_and_meets_it(self) -> None:
        assert commands(decided(self.apart())) == ["drbdsetup disconnect pvc-1 2", "drbdadm adjust pvc-1"]

    @pytest.mark.parametrize(
        "seen",
        [
            {"times": 3},
            {"peer_disk": "UpToDate"},
            {"peer_disk": "Outdated"},
            {"flow": "SyncTarget"},
            {"quorum": True},
            {"role": "Secondary"},
        ],
    )
    def test_nobody_else_lets_go_of_a_link(self, seen: dict[str, Any]) -> None:
        assert not any("disconnect" in each for each in commands(decided(self.apart(**seen))))

    def test_when_it_is_over_the_next_time_is_counted_from_the_beginning(self) -> None:
        over = changed(
            self.apart(quorum=True), outcomes=outcomes(outcome("recount", times=4), outcome("meet", times=2))
        )
        assert set(decided(over).drop) >= {"recount", "meet"}

    @pytest.mark.parametrize("seen", [{}, {"flow": "Off"}, {"peer_disk": "DUnknown"}])
    def test_it_is_not_over_while_it_stands_still(self, seen: dict[str, Any]) -> None:
        assert "recount" not in decided(self.apart(**seen)).drop

    def test_it_comes_before_a_demotion_that_fails(self) -> None:
        """Whoever waits for a write cannot close the device, and the write waits for the copy."""
        one = self.apart()
        drbd = replace(one.replica.status.drbd, config=replace(one.config, primary=False))
        leaving = changed(one, replica=replace(one.replica, status=replace(one.replica.status, drbd=drbd)))
        assert commands(decided(leaving))[0] == "drbdsetup disconnect pvc-1 2"


class TestLooking:
    def test_what_nobody_has_seen_is_looked_at_with_everything_else_at_once(self) -> None:
        decision = decided(view(kernel=KernelView(look_at_all=True)))
        assert decision.steps == (Look("kernel"),)
        assert decision.work == "look/kernel"

    def test_what_has_changed_is_looked_at_alone(self) -> None:
        decision = decided(view(kernel=KernelView(known=True, status=kernel())))
        assert decision.steps == (Look("kernel", "pvc-1"),)

    def test_nothing_is_reported_from_what_holds_no_more(self) -> None:
        stale = view(kernel=KernelView(known=True, status=kernel("Inconsistent")))
        assert decided(stale).status == stale.replica.status

    def test_a_kernel_that_cannot_be_looked_at_is_an_error_and_looked_at_again_with_patience(self) -> None:
        blind = view(kernel=KernelView(known=True, status=kernel(), error="drbdsetup: not what it prints"))
        tried = changed(blind, outcomes=outcomes(outcome("look at the kernel", times=3)))
        decision = decided(tried)
        assert decision.steps == ()
        assert decision.again == 4.0
        shown = decision.status.drbd.errors.last_status_error
        assert shown is not None
        assert "not what it prints" in shown.output
        assert commands(decided(tried, NOW + timedelta(seconds=5))) == []
        assert decided(tried, NOW + timedelta(seconds=5)).steps == (Look("kernel", "pvc-1"),)

    def test_work_under_way_is_waited_for(self) -> None:
        assert decided(view(shown=None, busy=True)).steps == ()
        assert decided(view(kernel=KernelView(known=True), busy=True)).steps == ()

    def test_while_a_command_hangs_the_kernel_is_still_looked_at(self) -> None:
        hanging = view(kernel=KernelView(known=True), busy=True, hung=True)
        assert decided(hanging).steps == (Look("kernel", "pvc-1"),)


def test_of_two_replicas_of_a_volume_on_one_node_the_younger_only_says_so() -> None:
    decision = decided(view(shown=None, elder="pvc-1-4"))
    assert decision.steps == ()
    error = decision.status.drbd.errors.last_config_error
    assert error is not None
    assert "pvc-1-4" in error.output
