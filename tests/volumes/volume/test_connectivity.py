"""Phase 2: 002's boxes, the fall-back of the algorithm (M19), and that nobody is taken for connected who is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from random import Random
from typing import Any

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase
from quorate.api.storage.drbd import AlgorithmError, DrbdErrors, SharedSecretAlgorithm
from quorate.api.struct import replace
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume.secrets import ALGORITHMS, LENGTH, new_secret, next_algorithm
from tests.volumes.volume.making import (
    C,
    ago,
    asked,
    connecting,
    decided,
    members_of,
    name,
    node_view,
    phase_of,
    shown,
    unscheduled,
    waits,
    with_replica,
    written,
)

Change = Callable[[ReplicaView], ReplicaView]


def told(**status: Any) -> Change:
    return lambda each: changed(each, replica=replace(each.replica, status=replace(each.replica.status, **status)))


def seen(replication: Replication = C, **more: Any) -> Change:
    """A member whose kernel shows something else."""

    def change(each: ReplicaView) -> ReplicaView:
        found = each.replica.status
        drbd = replace(found.drbd, status=shown(each.id, members_of(replication), **more))
        return told(drbd=drbd)(each)

    return change


@pytest.mark.parametrize("replication", list(Replication))
def test_connected_members_without_data_go_on_to_the_last_phase(replication: Replication) -> None:
    plan = decided(connecting(replication))
    assert phase_of(plan) is FormationPhase.BOOTSTRAP_DATA
    assert written(plan).datamesh_revision == 2


def dying(each: ReplicaView) -> ReplicaView:
    metadata = replace(each.replica.metadata, deletion_timestamp=ago(1))
    return changed(each, replica=replace(each.replica, metadata=metadata))


def silent(each: ReplicaView) -> ReplicaView:
    return changed(each, node=node_view(each.id, fresh=False))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dying, "MembersChanged"),
        (told(datamesh_revision=1), "WaitingForConfiguration"),
        (silent, "WaitingForConfiguration"),
        (seen(link="Connecting"), "WaitingForConnections"),
        (seen(disk="UpToDate"), "WaitingForBootstrapReadiness"),
        (seen(flow="SyncSource"), "WaitingForBootstrapReadiness"),
        (seen(flow="Off"), "WaitingForBootstrapReadiness"),
    ],
)
def test_each_box_waits_with_its_reason_and_names_the_member(change: Change, reason: str) -> None:
    plan = decided(with_replica(connecting(), 1, change))
    assert plan.transition is None
    found, message = waits(plan)
    assert found == reason
    assert "1" in message


def test_a_tie_breaker_with_a_disk_is_not_ready() -> None:
    members = members_of(Replication.AVAILABILITY)
    wrong = shown(2, members)
    wrong = replace(wrong, devices=(replace(wrong.devices[0], disk_state="Inconsistent"),))
    view = with_replica(
        connecting(Replication.AVAILABILITY),
        2,
        lambda each: told(drbd=replace(each.replica.status.drbd, status=wrong))(each),
    )
    assert waits(decided(view))[0] == "WaitingForBootstrapReadiness"


def test_a_stranger_among_the_replicas_stops_it() -> None:
    view = connecting()
    assert waits(decided(changed(view, replicas=(*view.replicas, unscheduled(5)))))[0] == "MembersChanged"


@pytest.mark.parametrize(("since", "restarts"), [(29.0, False), (30.0, True)])
def test_the_phase_has_thirty_seconds_from_its_start(since: float, restarts: bool) -> None:
    """M8."""
    plan = decided(asked(with_replica(connecting(since=since), 1, seen(link="Connecting"))))
    assert (plan.transition is not None) is restarts
    if restarts:
        assert phase_of(plan) is FormationPhase.RESTARTING
        assert written(plan).datamesh.members == ()


def unable(view: VolumeView, algorithm: SharedSecretAlgorithm, since: float = 0) -> VolumeView:
    """The second member says that its kernel lacks an algorithm, which is the volume's."""
    config = replace(view.volume.status.drbd.config, shared_secret_alg=algorithm)
    drbd = replace(view.volume.status.drbd, config=config)
    error = AlgorithmError(unsupported_alg=algorithm.value)
    view = view.with_status(replace(view.volume.status, drbd=drbd))
    return with_replica(
        view,
        1,
        lambda each: told(
            drbd=replace(each.replica.status.drbd, errors=DrbdErrors(shared_secret_alg_selection_error=error))
        )(each),
    )


def test_an_algorithm_that_a_kernel_lacks_is_followed_by_the_next_as_a_new_revision() -> None:
    """M19."""
    plan = decided(unable(connecting(), ALGORITHMS[0]))
    found = written(plan)
    assert plan.transition is not None
    assert found.drbd.config.shared_secret_alg is ALGORITHMS[1]
    assert found.datamesh_revision == 3
    formation = found.datamesh_transitions[0].formation
    assert formation is not None
    assert formation.phase is FormationPhase.ESTABLISH_CONNECTIVITY


def test_when_the_list_has_ended_it_stops_and_a_person_is_asked() -> None:
    """M19: no restart helps, so none happens."""
    plan = decided(unable(connecting(since=3600), ALGORITHMS[-1]))
    assert plan.transition is None
    assert waits(plan)[0] == "UnableToSelectSharedSecretAlgorithm"
    conditions = {each.type: each for each in written(plan).conditions}
    assert conditions["SharedSecretAlgorithmSelected"].reason == "UnableToSelectSharedSecretAlgorithm"
    assert name(1) in conditions["SharedSecretAlgorithmSelected"].message


def test_the_algorithms_are_tried_in_the_seeds_order() -> None:
    assert ALGORITHMS == (SharedSecretAlgorithm.SHA256, SharedSecretAlgorithm.SHA1)
    assert [next_algorithm(each) for each in ALGORITHMS] == [SharedSecretAlgorithm.SHA1, None]


def test_a_secret_fits_drbd_and_is_shown_nowhere() -> None:
    secret = new_secret(Random(1))
    assert len(secret.reveal()) == LENGTH <= 63
    assert secret != new_secret(Random(2))
    plan = decided(connecting())
    revealed = connecting().volume.status.drbd.config.shared_secret
    assert revealed is not None
    assert revealed.reveal() not in repr(plan.transition)
    assert revealed.reveal() not in repr(plan.events)
