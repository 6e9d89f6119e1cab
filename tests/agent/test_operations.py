"""One command on one replica, run once."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.agent.memory import Outcome
from quorate.agent.operations import Case, Ruling, rule
from quorate.agent.steps import Look
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import Connection, DrbdStatus, ReplicaType
from quorate.api.storage.drbdrop import (
    ByteRange,
    CreateNewUUID,
    DRBDResourceOperation,
    DRBDResourceOperationSpec,
    DRBDResourceOperationStatus,
    OperationPhase,
    OperationType,
)
from quorate.api.struct import replace
from tests.agent.replica.builders import FILE, MIB, NOW, SECRET, commands, config, kernel, link, outcome, peer, replica

RUNNING, PENDING = OperationPhase.RUNNING, OperationPhase.PENDING
SUCCEEDED, FAILED = OperationPhase.SUCCEEDED, OperationPhase.FAILED
FRESH = (link(1, disk="Inconsistent"), link(2, disk="Inconsistent"))
EMPTY = kernel("Inconsistent", links=FRESH, quorum=False)


def case(
    status: DrbdStatus | None = EMPTY,
    *,
    phase: OperationPhase | None = None,
    kind: OperationType = OperationType.CREATE_NEW_UUID,
    force: bool = False,
    outcome: Outcome | None = None,
    part: ByteRange | None = None,
    **more: Any,
) -> Case:
    how = CreateNewUUID(clear_bitmap=not force, force_resync=force)
    operation = DRBDResourceOperation(
        metadata=ObjectMeta(name="pvc-1-formation", uid="uid-1"),
        spec=DRBDResourceOperationSpec(
            node_name=NodeName("n0"),
            drbd_resource_name=ReplicaName("pvc-1-0"),
            type=kind,
            create_new_uuid=how if kind is OperationType.CREATE_NEW_UUID else None,
            range=part,
        ),
        status=DRBDResourceOperationStatus(phase=phase, started_at=NOW if phase is RUNNING else None),
    )
    whole = Case(operation, "pvc-1", FILE, replica(), True, status, False)
    if outcome is not None:
        whole = changed(whole, outcomes={outcome.purpose: outcome})
    return changed(whole, **more)


def ruled(given: Case) -> Ruling:
    return rule(given, NOW)


def test_running_is_written_before_the_command_runs() -> None:
    first = ruled(case())
    assert first.status.phase is RUNNING
    assert first.status.started_at == NOW
    assert first.steps == ()


@pytest.mark.parametrize(("force", "option"), [(False, "--clear-bitmap"), (True, "--force-resync")])
def test_the_command_is_run_as_asked(force: bool, option: str) -> None:
    running = ruled(case(phase=RUNNING, force=force))
    assert commands(running.steps) == [f"drbdadm new-current-uuid {option} pvc-1/0"]


@pytest.mark.parametrize(
    "status",
    [
        kernel("UpToDate", links=FRESH),
        kernel("Outdated", links=FRESH),
        kernel("Diskless", links=FRESH),
        kernel("Inconsistent", links=(link(1, disk="UpToDate"), link(2, disk="Inconsistent"))),
        kernel("Inconsistent", links=(link(1, disk="Outdated"), link(2, disk="Inconsistent"))),
    ],
)
def test_it_is_not_run_where_somebody_may_have_data(status: DrbdStatus) -> None:
    refused = ruled(case(status))
    assert refused.status.phase is FAILED
    assert refused.status.completed_at == NOW
    assert "Inconsistent" in refused.status.message
    assert refused.steps == ()


@pytest.mark.parametrize(
    "status",
    [
        None,
        kernel("Inconsistent", links=(link(1, disk="Inconsistent"),)),
        kernel(
            "Inconsistent", links=(link(1, disk="Inconsistent"), link(2, "Connecting", flow="Off", disk="Outdated"))
        ),
        kernel(
            "Inconsistent", links=(link(1, disk="Inconsistent"), link(2, "Connecting", flow="Off", disk="DUnknown"))
        ),
        kernel("Inconsistent", links=(link(1, disk="Inconsistent"), link(2, flow="WFBitMapS", disk="Inconsistent"))),
    ],
)
def test_a_member_that_is_not_there_yet_is_waited_for(status: DrbdStatus | None) -> None:
    waiting = ruled(case(status))
    assert waiting.status.phase is PENDING
    assert waiting.again is not None
    assert waiting.steps == ()


def test_a_single_member_needs_nobody_and_a_tie_breaker_has_no_say() -> None:
    alone = replica(config=config(peers=()))
    assert ruled(case(kernel("Inconsistent", links=()), replica=alone)).status.phase is RUNNING
    tie_breaker = replica(config=config(peers=(peer(1), peer(2, ReplicaType.TIE_BREAKER))))
    links = (link(1, disk="Inconsistent"), link(2, "Connecting", disk="Diskless"))
    assert ruled(case(kernel("Inconsistent", links=links), replica=tie_breaker)).status.phase is RUNNING


def test_found_running_with_the_own_disk_up_to_date_it_has_succeeded() -> None:
    done = ruled(case(kernel(), phase=RUNNING))
    assert done.status.phase is SUCCEEDED
    assert done.status.completed_at == NOW


def test_found_running_and_not_run_it_is_run_only_if_it_still_may() -> None:
    assert commands(ruled(case(phase=RUNNING)).steps)
    lost = kernel("Inconsistent", links=(link(1, disk="UpToDate"), link(2, disk="Inconsistent")))
    assert ruled(case(lost, phase=RUNNING)).status.phase is FAILED


@pytest.mark.parametrize("disk", ["Diskless", "Attaching", "Consistent", "Outdated", "Negotiating"])
def test_found_running_on_a_replica_that_is_coming_up_it_is_waited_for(disk: str) -> None:
    for status in (None, kernel(disk, links=FRESH), kernel("Inconsistent", links=())):
        given = case(status, phase=RUNNING)
        assert ruled(given).status == given.operation.status
        assert ruled(given).steps == ()
        assert ruled(given).again is not None


def test_a_command_that_fails_fails_it_without_telling_secrets() -> None:
    said = outcome("operation", "uid-1", exit_code=11, output=f"refused --shared-secret={SECRET}")
    failed = ruled(case(phase=RUNNING, outcome=said))
    assert failed.status.phase is FAILED
    assert "exit code 11" in failed.status.message
    assert SECRET not in failed.status.message


@pytest.mark.parametrize(
    "kind",
    [OperationType.FORCE_PRIMARY, OperationType.INVALIDATE, OperationType.OUTDATE, OperationType.CREATE_SNAPSHOT],
)
def test_what_this_agent_does_not_know_fails_and_says_so(kind: OperationType) -> None:
    refused = ruled(case(kind=kind))
    assert refused.status.phase is FAILED
    assert refused.status.message == f"{kind.value} is not supported by this agent"


def test_nothing_is_decided_on_what_holds_no_more_or_while_work_is_under_way() -> None:
    assert ruled(case(current=False)).steps == (Look("kernel", "pvc-1"),)
    assert ruled(case(current=False, blind=True)).steps == ()
    for given in (case(current=False), case(busy=True)):
        assert ruled(given).status == given.operation.status


def test_a_replica_that_is_not_known_here_is_waited_for() -> None:
    assert ruled(case(replica=None)).status.phase is PENDING


# Verify.

PART = ByteRange(start=32 * MIB, end=33 * MIB)
VERIFY, ZERO = OperationType.VERIFY, OperationType.ZERO_RANGE


def compared(*done: str, losses: int = 0, **states: Any) -> Ruling:
    """A comparison under way, after these commands; ``states`` are changes of the link to member 1."""
    links = (link(1, **states), link(2))
    outcomes = {f"operation {what}": outcome(f"operation {what}", f"uid-1 {losses}", exit_code=0) for what in done}
    return ruled(case(kernel(links=links), kind=VERIFY, phase=RUNNING, part=PART, outcomes=outcomes))


def differing(kib: int) -> tuple[Connection, ...]:
    return (replace(link(1), peer_devices=(replace(link(1).peer_devices[0], out_of_sync=kib),)), link(2))


def test_a_comparison_begins_when_the_own_copy_is_good_and_all_links_are_at_rest() -> None:
    assert ruled(case(kernel(), kind=VERIFY)).status.phase is RUNNING
    for status in (None, kernel("Outdated"), kernel(links=(link(1, "Connecting"), link(2))), kernel(links=(link(1),))):
        assert ruled(case(status, kind=VERIFY)).status.phase is PENDING
    resync = kernel(links=(link(1, flow="SyncSource", disk="Inconsistent"), link(2)))
    assert ruled(case(resync, kind=VERIFY)).status.phase is PENDING


def test_peers_are_compared_one_after_the_other_over_the_range() -> None:
    first, second = compared(), compared("compare 1")
    assert commands(first.steps) == ["drbdsetup verify pvc-1 1 0 --start=65536s --stop=67584s"]
    assert commands(second.steps) == ["drbdsetup verify pvc-1 2 0 --start=65536s --stop=67584s"]
    assert compared("compare 1", "compare 2").status.phase is SUCCEEDED


def test_without_a_range_everything_is_compared() -> None:
    whole = ruled(case(kernel(), kind=VERIFY, phase=RUNNING))
    assert commands(whole.steps) == ["drbdsetup verify pvc-1 1 0"]


@pytest.mark.parametrize("flow", ["VerifyS", "VerifyT"])
def test_a_comparison_under_way_is_waited_for(flow: str) -> None:
    assert compared("compare 1", flow=flow).steps == ()
    assert compared("compare 1", flow=flow).status.phase is RUNNING


def test_what_differs_is_copied_to_that_peer_and_only_then_comes_the_next() -> None:
    done = {"operation compare 1": outcome("operation compare 1", "uid-1 0", exit_code=0)}
    given = case(kernel(links=differing(8)), kind=VERIFY, phase=RUNNING, outcomes=done)
    assert commands(ruled(given).steps) == ["drbdsetup invalidate-remote pvc-1 1 0 --reset-bitmap=no"]
    copying = compared("compare 1", "copy 1", flow="SyncSource", disk="Inconsistent")
    assert (copying.steps, copying.status.phase) == ((), RUNNING)
    # What was copied is compared again, before the next.
    assert commands(compared("compare 1", "copy 1").steps)[0].startswith("drbdsetup verify pvc-1 1 ")
    equal = compared("compare 1", "copy 1", "compare after copying 1")
    assert commands(equal.steps)[0].startswith("drbdsetup verify pvc-1 2 ")


def test_where_copying_what_differs_was_not_enough_everything_is_copied_and_then_it_is_given_up() -> None:
    names = ["compare 1", "copy 1"]
    assert commands(_still_differing(*names).steps) == ["drbdsetup invalidate-remote pvc-1 1 0"]
    assert commands(_still_differing(*names, "compare after copying 1").steps) == [
        "drbdsetup invalidate-remote pvc-1 1 0"
    ]
    names.append("copy everything 1")
    assert commands(compared(*names).steps)[0].startswith("drbdsetup verify pvc-1 1 ")
    assert commands(compared(*names, "compare after everything 1").steps)[0].startswith("drbdsetup verify pvc-1 2 ")
    refused = _still_differing(*names)
    assert refused.status.phase is FAILED
    assert "8 KiB" in refused.status.message


def _still_differing(*done: str, role: str = "Secondary", peer_role: str = "Secondary") -> Ruling:
    outcomes = {f"operation {what}": outcome(f"operation {what}", "uid-1 0", exit_code=0) for what in done}
    links = tuple(replace(each, peer_role=peer_role) for each in differing(8))
    return ruled(case(kernel(links=links, role=role), kind=VERIFY, phase=RUNNING, outcomes=outcomes))


def test_nothing_is_copied_from_here_while_another_member_is_primary() -> None:
    """What is written there meanwhile would be sent to nobody (G: 3 of 4)."""
    elsewhere = _still_differing("compare 1", peer_role="Primary")
    assert elsewhere.steps == ()
    # It is made anew from the copy that is in use.
    assert elsewhere.status.phase is FAILED
    assert _still_differing("compare 1", role="Primary").steps != ()


def test_what_was_compared_before_a_link_was_lost_is_compared_again() -> None:
    done = {"operation compare 1": outcome("operation compare 1", "uid-1 0", exit_code=0)}
    again = ruled(case(kernel(), kind=VERIFY, phase=RUNNING, outcomes=done, losses=1))
    assert commands(again.steps) == ["drbdsetup verify pvc-1 1 0"]


@pytest.mark.parametrize("state", ["Connecting", "StandAlone", "NetworkFailure"])
def test_a_lost_link_is_waited_for(state: str) -> None:
    lost = ruled(case(kernel(links=(link(1, state), link(2))), kind=VERIFY, phase=RUNNING))
    assert (lost.steps, lost.status.phase) == ((), RUNNING)


def test_a_single_copy_agrees_with_itself() -> None:
    alone = replica(config=config(peers=()))
    assert ruled(case(kernel(links=()), kind=VERIFY, phase=RUNNING, replica=alone)).status.phase is SUCCEEDED


# ZeroRange.


def zeroed(*done: str, status: DrbdStatus | None = None, **more: Any) -> Ruling:
    shown = status if status is not None else kernel(size=64 * 1024)
    outcomes = {f"operation {what}": outcome(f"operation {what}", "uid-1", exit_code=0) for what in done}
    return ruled(case(shown, kind=ZERO, phase=RUNNING, part=PART, outcomes=outcomes, **{"begun": True, **more}))


def test_the_range_is_written_in_one_piece_of_work_as_primary() -> None:
    assert [line.split(" oflag")[0] for line in commands(zeroed().steps)] == [
        "drbdadm primary pvc-1",
        "dd if=/dev/zero of=/dev/drbd1000 bs=1048576 seek=32 count=1",
        "drbdadm secondary pvc-1",
    ]


@pytest.mark.parametrize(
    "status",
    [
        None,
        kernel(role="Primary"),
        kernel(links=(link(1, role="Primary"), link(2))),
        kernel(links=(link(1, "Connecting"), link(2))),
        kernel("Outdated"),
        kernel(quorum=False),
    ],
)
def test_nothing_is_written_while_somebody_may_use_the_volume_or_is_out_of_touch(status: DrbdStatus | None) -> None:
    assert ruled(case(status, kind=ZERO, part=PART)).status.phase is PENDING
    begun = ruled(case(status, kind=ZERO, part=PART, phase=RUNNING))
    assert (begun.steps, begun.status.phase) == ((), FAILED)


def test_nothing_is_written_where_the_replica_is_meant_to_be_primary() -> None:
    attached = replica(config=config(primary=True))
    assert zeroed(replica=attached).steps == ()


def test_one_that_another_agent_began_is_not_written_again() -> None:
    """It may have been written, and used since."""
    interrupted = zeroed(begun=False)
    assert interrupted.steps == ()
    assert interrupted.status.phase is FAILED
    assert "interrupted" in interrupted.status.message


def test_it_is_done_when_it_is_written_and_nobody_is_primary_any_more() -> None:
    assert zeroed("promote", "zero", "demote").status.phase is SUCCEEDED
    left = zeroed("promote", "zero", status=kernel(role="Primary", size=64 * 1024))
    assert (left.steps, left.status.phase) == ((), RUNNING)


def test_a_range_beyond_the_end_is_cut_and_one_wholly_beyond_needs_nothing() -> None:
    cut = zeroed(status=kernel(size=32 * 1024 + 4))
    assert "bs=4096 seek=8192 count=1" in commands(cut.steps)[1]
    assert zeroed(status=kernel(size=32 * 1024)).status.phase is SUCCEEDED


def test_a_write_that_fails_fails_it() -> None:
    said = outcome("operation zero", "uid-1", exit_code=1, output="No space")
    assert ruled(case(kernel(), kind=ZERO, part=PART, phase=RUNNING, outcome=said)).status.phase is FAILED


HEALTHY = kernel("UpToDate", links=(link(1), link(2)))


def renewal(status: DrbdStatus | None = HEALTHY, **more: Any) -> Case:
    return case(status, kind=OperationType.RENEW_ACTIVITY_LOG, **more)


def test_a_log_is_renewed_by_parting_first_and_detaching_then() -> None:
    """In the other order, connected to a Primary, the disk could not be attached again (facts: k4_a 1, k4_d 1')."""
    assert rule(renewal(), NOW).status.phase is RUNNING
    ruling = rule(renewal(phase=RUNNING, begun=True), NOW)
    assert commands(ruling.steps) == [
        "drbdsetup disconnect pvc-1 1",
        "drbdsetup disconnect pvc-1 2",
        "drbdsetup detach 1000",
        "drbdadm adjust pvc-1",
    ]
    back = outcome("operation back", "uid-1", exit_code=0)
    assert rule(renewal(phase=RUNNING, begun=True, outcome=back), NOW).status.phase is SUCCEEDED


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(kernel("UpToDate", links=(link(1), link(2)), role="Primary"), id="in use here"),
        pytest.param(kernel("UpToDate", links=(link(1), link(2, "Connecting"))), id="a link is down"),
        pytest.param(kernel("Outdated", links=(link(1), link(2))), id="not up to date"),
        pytest.param(kernel("UpToDate", links=(link(1), link(2)), quorum=False), id="no quorum"),
        pytest.param(None, id="not up"),
    ],
)
def test_a_log_is_not_renewed_where_that_costs_something(status: DrbdStatus | None) -> None:
    assert rule(renewal(status), NOW).status.phase is PENDING
    begun = rule(renewal(status, phase=RUNNING, begun=True), NOW)
    assert (begun.status.phase, commands(begun.steps)) == (FAILED, [])


def test_a_renewal_that_another_agent_began_is_not_repeated() -> None:
    assert rule(renewal(phase=RUNNING), NOW).status.phase is FAILED
