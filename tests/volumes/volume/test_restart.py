"""Starting again: written first, then everything goes, and nobody's data with it."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from quorate.api import finalizers
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.storage.drbdrop import OperationPhase
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.struct import replace
from quorate.engine import Delete, ReleaseFinalizer
from quorate.volumes.view import ReplicaView
from tests.volumes.volume.making import (
    NOW,
    C,
    ago,
    asked,
    bootstrapping,
    configuration,
    connecting,
    decided,
    granted,
    joined,
    ledger,
    members_of,
    name,
    node_view,
    operation,
    phase_of,
    picture,
    piece,
    preconfiguring,
    shown,
    status,
    volume,
    waits,
    with_replica,
    written,
)


def with_data(each: ReplicaView) -> ReplicaView:
    found = each.replica.status
    drbd = replace(found.drbd, actual=replace(found.drbd.actual, initial_sync_completed=True))
    return changed(each, replica=replace(each.replica, status=replace(found, drbd=drbd, datamesh_revision=1)))


def dying(each: ReplicaView) -> ReplicaView:
    return changed(
        each,
        member=None,
        replica=replace(
            each.replica,
            metadata=replace(each.replica.metadata, deletion_timestamp=ago(1), finalizers=(finalizers.AGENT,)),
        ),
    )


def test_that_it_restarts_is_written_alone_and_before_anything_is_deleted() -> None:
    def apart(each: ReplicaView) -> ReplicaView:
        found = each.replica.status
        drbd = replace(found.drbd, status=shown(each.id, members_of(C), link="Connecting"))
        return changed(each, replica=replace(each.replica, status=replace(found, drbd=drbd)))

    plan = decided(asked(with_replica(connecting(since=31), 0, apart)))
    assert phase_of(plan) is FormationPhase.RESTARTING
    assert len(plan.steps) == 1
    assert [event.reason for event in plan.events] == ["FormationRestarted"]
    assert written(plan).configuration == configuration(C)


@pytest.mark.parametrize("phase", [FormationPhase.ESTABLISH_CONNECTIVITY, FormationPhase.BOOTSTRAP_DATA])
def test_a_replica_with_data_forbids_it(phase: FormationPhase) -> None:
    """In the last phase too: a disk does not tell whether users have written on it since (decision 0010)."""
    if phase is FormationPhase.ESTABLISH_CONNECTIVITY:
        view = connecting(since=10_000)
    else:
        view = bootstrapping(C, "Inconsistent", since=10_000)
        view = changed(view, operation=operation(view, OperationPhase.FAILED))
    plan = decided(asked(with_replica(view, 0, with_data)))
    assert plan.transition is None
    assert waits(plan)[0] == "ReplicasHoldData"


RESTARTING = volume(status(FormationPhase.RESTARTING))


def test_everything_that_was_made_is_deleted() -> None:
    members = members_of(C)
    replicas = [changed(joined(number, members), member=None) for number in range(3)]
    plan = decided(picture(RESTARTING, replicas))
    assert [each.obj.name for each in plan.writes if isinstance(each, Delete)] == [name(number) for number in range(3)]


def test_the_agents_finalizer_is_never_stripped() -> None:
    members = members_of(C)
    plan = decided(picture(RESTARTING, [dying(joined(number, members)) for number in range(3)]))
    assert [each for each in plan.writes if isinstance(each, ReleaseFinalizer)] == []


def test_a_node_that_is_down_holds_it_and_is_named() -> None:
    lost = changed(dying(joined(1, members_of(C))), node=node_view(1, fresh=False))
    plan = decided(picture(RESTARTING, [lost]))
    assert waits(plan)[0] == "NodeDown"
    assert "n1" in waits(plan)[1]


def test_what_replicas_left_behind_goes_piece_first_then_space() -> None:
    """M31."""
    left = picture(RESTARTING, pieces=(piece(0),), ledgers=(ledger(0, {name(0): granted()}),))
    assert [type(each).__name__ for each in decided(left).steps[1:-1]] == ["Delete"]
    empty = picture(RESTARTING, ledgers=(ledger(0, {name(0): granted()}),))
    assert [each.target.KIND.name for each in decided(empty).steps[1:-1]] == ["DiskSchedule"]


def test_when_nothing_is_left_it_begins_again_with_the_same_configuration_and_minor() -> None:
    """M10."""
    plan = decided(picture(RESTARTING))
    assert phase_of(plan) is FormationPhase.PRECONFIGURE
    found = written(plan)
    assert found.configuration == configuration(C)
    assert found.drbd.config.device_minor == 3
    assert found.drbd.config.shared_secret is None
    assert found.datamesh_revision == 1
    assert found.datamesh_transitions[0].started_at == NOW


def test_a_disk_that_was_there_already_forbids_it_as_well() -> None:
    """What is on it is somebody's: making and deleting its objects again and again would only try the agent's guard."""

    def found(replica: ReplicaView) -> ReplicaView:
        there = piece(0, phase=LogicalVolumePhase.FAILED, actual_size=None, reason="LVExists")
        return changed(replica, volumes=(there,))

    plan = decided(with_replica(preconfiguring(since=10_000), 0, found))
    assert plan.transition is None
    assert waits(plan)[0] == "ReplicasHoldData"
