"""The corrections of the specification that the agent realises, each by its number (the contract's list)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.agent.operations import rule
from quorate.agent.steps import Run
from quorate.api.codec import to_builtins
from quorate.api.finalizers import AGENT, CONTROLLER
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage.drbd import DrbdStatus, ReplicaType
from quorate.api.storage.drbdrop import OperationPhase
from quorate.api.struct import replace
from quorate.drbd.resource_file import own_quorum
from tests.agent.replica.builders import (
    DISKLESS,
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
    peer,
    replica,
    usable_size,
    view,
    volume,
)
from tests.agent.test_operations import EMPTY, case

NEVER_IN_SYNC = actual(initial_sync_completed=False)


@pytest.mark.parametrize(
    ("intended", "shown", "expected"),
    [
        (True, "Secondary", ["drbdadm primary pvc-1"]),
        (False, "Primary", ["drbdadm secondary pvc-1"]),
        (True, "Primary", []),
        (False, "Secondary", []),
    ],
)
def test_who_is_not_primary_and_should_be_is_promoted_and_the_other_way_round(
    intended: bool, shown: str, expected: list[str]
) -> None:
    """M1."""
    assert commands(decided(view(replica(config=config(primary=intended)), kernel(role=shown)))) == expected


def test_nothing_is_promoted_before_the_resource_is_up_and_as_its_file_says() -> None:
    """M2: ``up`` and ``adjust`` come first."""
    to_be_primary = replica(config=config(primary=True))
    assert commands(decided(view(to_be_primary, None))) == ["drbdadm up pvc-1", "drbdadm adjust pvc-1"]
    lacking = kernel(links=(link(1),))
    assert commands(decided(view(to_be_primary, lacking))) == ["drbdadm adjust pvc-1"]


@given(
    disk=st.sampled_from(["UpToDate", "Inconsistent", "Outdated", "Consistent", "Diskless", "Attaching"]),
    role=st.sampled_from(["Primary", "Secondary"]),
    quorum=st.booleans(),
    links=st.sampled_from([(), (link(1),), (link(1), link(2)), (link(1, "Connecting"), link(2))]),
    given=st.fixed_dictionaries(
        {"primary": st.booleans(), "yields": st.booleans(), "peers": st.sampled_from([(), (peer(1), peer(2))])}
    ),
    in_sync=st.booleans(),
    up=st.booleans(),
)
def test_no_primary_is_ever_forced(
    disk: str, role: str, quorum: bool, links: Any, given: dict[str, Any], in_sync: bool, up: bool
) -> None:
    """M2, M3, M22: neither alone nor among others; only the one operation of a volume's formation gives it data."""
    shown = kernel(disk, role=role, quorum=quorum, links=links) if up else None
    obj = replica(config=config(**given), actual=actual(initial_sync_completed=in_sync))
    for step in decided(view(obj, shown)).steps:
        if isinstance(step, Run):
            assert not ({"primary", "--force"} <= set(step.argv))
            assert "new-current-uuid" not in step.argv
            assert "--overwrite-data-of-peer" not in step.argv


def test_a_member_without_peers_waits_for_its_first_data_like_any_other() -> None:
    """M3."""
    alone = replica(config=config(peers=(), primary=True), actual=NEVER_IN_SYNC)
    decision = decided(view(alone, kernel("Inconsistent", links=())))
    assert decision.steps == ()
    assert not decision.status.drbd.actual.initial_sync_completed


@pytest.mark.parametrize(
    ("given", "shown", "completed"),
    [
        ({}, kernel(), True),
        ({}, kernel("Inconsistent"), False),
        ({}, kernel("Outdated"), False),
        (DISKLESS, kernel("Diskless"), True),
        (DISKLESS, kernel("Diskless", links=(link(1),)), False),  # its first adjust is not done
    ],
)
def test_the_first_sync_is_over_when_the_own_disk_was_up_to_date_or_without_one_after_the_first_adjust(
    given: dict[str, Any], shown: DrbdStatus, completed: bool
) -> None:
    """M3."""
    obj = replica(config=config(**given), actual=NEVER_IN_SYNC)
    assert decided(view(obj, shown)).status.drbd.actual.initial_sync_completed is completed


def test_first_data_come_by_a_new_uuid_though_there_is_no_quorum_yet() -> None:
    """M3, M22: with quorum set, the kernel refuses a forced primary (recording formation_force_resync)."""
    ruling = rule(case(EMPTY, phase=OperationPhase.RUNNING), NOW)
    assert commands(ruling.steps) == ["drbdadm new-current-uuid --clear-bitmap pvc-1/0"]


def test_in_use_a_volume_grows_only_by_what_is_known_to_be_zero() -> None:
    """M20: copied, the new space stops a volume that needs two copies; assumed equal, it hides differences."""
    large = Bytes(48 * MIB)
    obj = replica(config=config(size=Quantity.of_bytes(usable_size(large))))
    in_use = kernel(links=(link(1, role="Primary"), link(2)))

    def grown(*, zero: bool, shown: DrbdStatus = in_use) -> Any:
        disk = logical_volume(large, known_zero=zero, actual_size=Quantity.of_bytes(large))
        return decided(view(obj, shown, volume=volume(large), logical_volume=disk))

    assert commands(grown(zero=True)) == ["drbdadm -- --assume-clean resize pvc-1"]
    refused = grown(zero=False)
    assert refused.steps == ()
    shown = errors(refused).last_resize_error
    assert shown is not None
    assert shown.reason == "WaitingForDetach"
    assert commands(grown(zero=False, shown=kernel())) == ["drbdadm resize pvc-1"]


@pytest.mark.parametrize(
    ("kind", "hidden", "quorum"),
    [
        (ReplicaType.DISKFUL, False, None),
        (ReplicaType.DISKFUL, True, 32),
        (ReplicaType.TIE_BREAKER, False, 32),
        (ReplicaType.TIE_BREAKER, True, 32),
        (ReplicaType.ACCESS, True, 32),
    ],
)
def test_the_file_says_majority_for_a_shown_disk_and_an_unreachable_number_for_all_else(
    kind: ReplicaType, hidden: bool, quorum: int | None
) -> None:
    """M21: a number that can be reached breaks the tie-breaker; what ``config.quorum`` says is for people."""
    disk = {} if kind is ReplicaType.DISKFUL else {"disk": None}
    asked = config(type=kind, hidden=hidden, quorum=2, **disk)
    assert own_quorum(asked) == quorum
    written = view(replica(config=asked)).written or ""
    assert f"    quorum {quorum or 'majority'};\n" in written


def test_what_is_reported_and_read_is_where_the_contract_has_it() -> None:
    """M28."""
    status = to_builtins(decided(view()).status)
    assert status["drbd"]["actual"]["initialSyncCompleted"] is True
    assert status["drbd"]["config"]["nodeId"] == 0
    assert status["drbd"]["config"]["address"] == {"ipv4": "10.0.0.1", "port": 7000}
    assert not {"nodeId", "address", "initialSyncCompleted"} & {*status, *status["drbd"]}


@pytest.mark.parametrize("finalizers", [(), (CONTROLLER,)])
def test_the_agent_sets_no_finalizer_and_touches_nothing_without_its_own(finalizers: tuple[str, ...]) -> None:
    """M33: both are there from the creation on."""
    obj = replica()
    bare = replace(obj, metadata=replace(obj.metadata, finalizers=finalizers))
    decision = decided(view(bare, None, written=None))
    assert decision.steps == ()
    assert not decision.release
    kept = replace(obj, metadata=replace(obj.metadata, finalizers=(*finalizers, AGENT)))
    assert decided(view(kept, None, written=None)).steps
