"""Phase 3: one operation, of the right sort, on the right member; nothing else gives a volume its data (M3, M22)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.api import conditions, labels, names
from quorate.api.conditions.rv import Ready
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.storage.drbdrop import CreateNewUUID, OperationPhase, OperationType
from quorate.api.storage.rv import VolumePhase
from quorate.api.struct import replace
from quorate.engine import Create, Delete
from quorate.volumes.settling import COPYING, SETTLING
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.formation.bootstrap import timeout
from tests.volumes.volume.making import (
    GI,
    NOW,
    VOLUME,
    C,
    ago,
    as_ready,
    asked,
    bootstrapping,
    decided,
    formed,
    name,
    node,
    operation,
    phase_of,
    piece,
    waits,
    with_replica,
    written,
)


def made(view: VolumeView) -> DRBDResourceOperation:
    [write] = [each for each in decided(view).writes if isinstance(each, Create)]
    assert isinstance(write.obj, DRBDResourceOperation)
    return write.obj


@pytest.mark.parametrize(
    ("replication", "zero", "clear"),
    [
        (Replication.NONE, False, True),
        (Replication.NONE, True, True),
        (C, True, True),
        (C, False, False),
        (Replication.AVAILABILITY, True, True),
        (Replication.AVAILABILITY, False, False),
    ],
)
def test_copies_are_declared_equal_only_where_that_is_known(replication: Replication, zero: bool, clear: bool) -> None:
    """M22: by new-current-uuid, never by a forced primary."""
    found = made(bootstrapping(replication, "Inconsistent", zero=zero))
    assert found.spec.type is OperationType.CREATE_NEW_UUID
    assert found.spec.create_new_uuid == CreateNewUUID(clear_bitmap=clear, force_resync=not clear)


def test_one_member_whose_space_is_not_known_zero_is_enough_to_copy() -> None:
    view = with_replica(bootstrapping(C, "Inconsistent", zero=True), 2, lambda each: changed(each, volumes=(piece(2),)))
    found = made(view).spec.create_new_uuid
    assert found is not None
    assert found.force_resync


def test_the_operation_is_for_the_diskful_member_with_the_lowest_id() -> None:
    found = made(bootstrapping(C, "Inconsistent"))
    assert found.name == names.formation_operation(VOLUME)
    assert (found.spec.node_name, found.spec.drbd_resource_name) == (node(0), name(0))
    assert found.metadata.labels == {labels.NODE: node(0), labels.REPLICATED_VOLUME: VOLUME}
    assert [owner.uid for owner in found.metadata.owner_references] == ["uid-v"]


def with_operation(view: VolumeView, phase: OperationPhase | None, **more: Any) -> VolumeView:
    return changed(view, operation=operation(view, phase, **more))


def test_an_operation_of_an_earlier_formation_is_deleted_and_not_believed() -> None:
    view = with_operation(bootstrapping(), OperationPhase.SUCCEEDED, mark=ago(3600).isoformat())
    plan = decided(view)
    assert plan.transition is None
    assert [each.obj.name for each in plan.writes if isinstance(each, Delete)] == [names.formation_operation(VOLUME)]


def test_whose_an_operation_is_does_not_depend_on_the_servers_clock() -> None:
    """Which may be behind ours: the operation then seems to be older than the formation that it was made for."""
    view = with_operation(bootstrapping(since=COPYING), OperationPhase.SUCCEEDED)
    assert view.operation is not None
    early = replace(view.operation.metadata, creation_timestamp=ago(7200))
    plan = decided(changed(view, operation=replace(view.operation, metadata=early)))
    assert written(plan).datamesh_transitions == ()


@pytest.mark.parametrize(
    ("phase", "more", "words"),
    [
        (OperationPhase.SUCCEEDED, {"drbd_resource_name": name(1)}, "not the one that is needed"),
        (OperationPhase.FAILED, {"message": "exit code 10"}, "exit code 10"),
        (OperationPhase.PENDING, {"message": "waiting: v-1 is Connecting"}, "v-1 is Connecting"),
        (OperationPhase.RUNNING, {}, "Running"),
        (None, {}, "not looked at yet"),
    ],
)
def test_each_state_of_the_operation_waits_and_says_so(
    phase: OperationPhase | None, more: dict[str, Any], words: str
) -> None:
    plan = decided(with_operation(bootstrapping(C, "Inconsistent"), phase, **more))
    assert plan.transition is None
    assert waits(plan)[0] == "WaitingForOperation"
    assert words in waits(plan)[1]


@pytest.mark.parametrize("phase", [OperationPhase.FAILED, OperationPhase.RUNNING])
def test_past_its_time_formation_starts_again(phase: OperationPhase) -> None:
    """M8: sixty seconds, and as long as the copy takes at the slowest."""
    limit = 60 + GI / 12_500_000
    early, late = (bootstrapping(C, "Inconsistent", since=limit + delta) for delta in (-1, 1))
    assert decided(with_operation(early, phase)).transition is None
    assert phase_of(decided(asked(with_operation(late, phase)))) is FormationPhase.RESTARTING


@pytest.mark.parametrize(
    ("replication", "zero", "seconds"),
    [
        (Replication.NONE, False, 60.0),
        (C, True, 60.0),
        (C, False, 60.0 + GI / 12_500_000),
    ],
)
def test_only_what_is_copied_is_given_time_for_it(replication: Replication, zero: bool, seconds: float) -> None:
    assert timeout(bootstrapping(replication, zero=zero)) == pytest.approx(seconds)


def test_after_the_operation_every_copy_must_be_up_to_date() -> None:
    view = with_operation(bootstrapping(C, "Inconsistent", since=COPYING), OperationPhase.SUCCEEDED)
    assert waits(decided(view)) == ("WaitingForSynchronization", "not up to date yet [0 1 2]")


def test_that_the_first_data_are_being_copied_is_told_if_it_lasts() -> None:
    view = with_operation(bootstrapping(C, "Inconsistent", since=COPYING - 1), OperationPhase.SUCCEEDED)
    plan = decided(view)
    assert (plan.transition, plan.status) == (None, None)
    assert plan.requeue_after == pytest.approx(1)
    equal = with_operation(bootstrapping(C, "Inconsistent", since=SETTLING, zero=True), OperationPhase.SUCCEEDED)
    assert waits(decided(equal))[0] == "WaitingForSynchronization", "nothing is copied, so something is amiss"


def test_a_volume_that_is_formed_in_a_moment_is_told_of_along_with_its_replicas_word() -> None:
    """M23: whether it is formed never depends on that word, only whether one write tells of both."""
    quick = with_operation(bootstrapping(C, since=1), OperationPhase.SUCCEEDED)
    plan = decided(quick)
    assert plan.transition is None
    assert plan.status is None
    assert plan.requeue_after == pytest.approx(COPYING - 1)
    assert phase_of(decided(quick, NOW + timedelta(seconds=COPYING))) is None
    equal = with_operation(bootstrapping(C, since=1, zero=True), OperationPhase.SUCCEEDED)
    assert decided(equal).requeue_after == pytest.approx(SETTLING - 1)
    for number in range(3):
        quick = with_replica(quick, number, as_ready)
    found = written(decided(quick))
    assert found.datamesh_transitions == ()
    assert conditions.is_true(found.conditions, Ready)
    assert found.phase is VolumePhase.READY


@pytest.mark.parametrize("replication", list(Replication))
def test_with_every_copy_up_to_date_the_volume_is_born(replication: Replication) -> None:
    view = bootstrapping(replication, since=COPYING)
    plan = decided(with_operation(view, OperationPhase.SUCCEEDED))
    assert phase_of(plan) is None
    found = written(plan)
    assert found.datamesh_transitions == ()
    assert found.datamesh_revision == 2
    assert (
        found.membership_layout
        == {
            Replication.NONE: "1D",
            Replication.AVAILABILITY: "2D+1TB",
            Replication.CONSISTENCY: "2D",
            Replication.CONSISTENCY_AND_AVAILABILITY: "3D",
        }[replication]
    )


def test_the_operation_of_a_formed_volume_is_deleted_once_everything_that_people_wait_for_is_said() -> None:
    view = changed(formed(), operation=operation(bootstrapping(), OperationPhase.SUCCEEDED))
    said = conditions.merge((), [Ready.READY()], now=ago(1))
    plan = decided(view.with_status(replace(view.volume.status, conditions=said)))
    assert [each for each in plan.writes if isinstance(each, Delete)] == []
    assert plan.requeue_after == pytest.approx(SETTLING - 1)
    plan = decided(view)
    assert [each.obj.name for each in plan.writes if isinstance(each, Delete)] == [names.formation_operation(VOLUME)]
