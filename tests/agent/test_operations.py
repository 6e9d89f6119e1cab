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
from quorate.api.storage.drbd import DrbdStatus, ReplicaType
from quorate.api.storage.drbdrop import (
    CreateNewUUID,
    DRBDResourceOperation,
    DRBDResourceOperationSpec,
    DRBDResourceOperationStatus,
    OperationPhase,
    OperationType,
)
from tests.agent.replica.builders import FILE, NOW, SECRET, commands, config, kernel, link, outcome, peer, replica

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
        ),
        status=DRBDResourceOperationStatus(phase=phase, started_at=NOW if phase is RUNNING else None),
    )
    whole = Case(operation, "pvc-1", FILE, replica(), True, status, False, outcome)
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


@pytest.mark.parametrize("kind", [kind for kind in OperationType if kind is not OperationType.CREATE_NEW_UUID])
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
