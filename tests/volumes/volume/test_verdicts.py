"""The conditions of a volume, one by one, and its phase."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from quorate.api.conditions import Reason, Verdict
from quorate.api.conditions.merging import merge
from quorate.api.conditions.rv import (
    AllReplicasReady,
    DiskAllocation,
    DiskfulReplicaCountReached,
    PublishSucceeded,
    QuorumConfigured,
    Ready,
    Resilient,
    SharedSecretAlgorithmSelected,
)
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.storage.configuration import EligibleNodesPolicy, Replication
from quorate.api.storage.datamesh import EffectiveLayout, Step, StepStatus, Transition, TransitionGroup, TransitionType
from quorate.api.storage.rv import VolumePhase
from quorate.api.struct import replace
from quorate.placement.layout import layout_of
from quorate.volumes.places import find_places
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume import verdicts
from quorate.volumes.volume.layout import all_replicas_ready
from quorate.volumes.volume.report import composed
from quorate.volumes.volume.secrets import algorithm_selected
from tests.volumes.volume.making import (
    NOW,
    ago,
    connecting,
    formed,
    granted,
    ledger,
    lower,
    member,
    name,
    node,
    node_view,
    picture,
    rejected,
    status,
    storage_class,
    unscheduled,
    volume,
)


def told(view: VolumeView, **changes: Any) -> VolumeView:
    return view.with_status(replace(view.volume.status, **changes))


def healthy() -> VolumeView:
    """Formed, every replica ready, and as resilient as promised."""
    view = told(
        formed(), effective_layout=EffectiveLayout(failures_to_tolerate=1, guaranteed_minimum_data_redundancy=1)
    )
    return changed(view, replicas=tuple(as_ready(each) for each in view.replicas))


def as_ready(each: ReplicaView) -> ReplicaView:
    found = merge((), [ReplicaReady.READY()], now=NOW)
    return changed(each, replica=replace(each.replica, status=replace(each.replica.status, conditions=found)))


def is_(verdict: Verdict, reason: Reason) -> bool:
    return (verdict.type, verdict.status, verdict.reason) == (reason.condition, reason.status, reason.code)


def changing(step: str = "Show") -> tuple[Transition, ...]:
    """A replica that joins, and how far it is."""
    kind, group = TransitionType.ADD_REPLICA, TransitionGroup.VOTING_MEMBERSHIP
    steps = (Step(name=step, status=StepStatus.ACTIVE, datamesh_revision=8),)
    return (Transition(type=kind, group=group, replica_name=name(2), started_at=ago(9), steps=steps),)


def silent(view: VolumeView, number: int) -> VolumeView:
    return changed(
        view,
        replicas=tuple(
            changed(each, node=node_view(number, fresh=False)) if each.id == number else each for each in view.replicas
        ),
    )


def less_redundant(view: VolumeView) -> VolumeView:
    drbd = view.volume.status.drbd
    return told(view, drbd=replace(drbd, config=replace(drbd.config, quorum_minimum_redundancy=1)))


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (connecting(), QuorumConfigured.FORMATION_IN_PROGRESS),
        (healthy(), QuorumConfigured.QUORUM_CONFIGURED),
        # One lost node cannot confirm anything, and changes nothing.
        (silent(healthy(), 2), QuorumConfigured.QUORUM_CONFIGURED),
        (told(healthy(), datamesh_transitions=changing()), QuorumConfigured.QUORUM_CHANGE_IN_PROGRESS),
        # A copy that is being made changes no vote, however long it takes.
        (told(healthy(), datamesh_transitions=changing("Synchronize")), QuorumConfigured.QUORUM_CONFIGURED),
        (less_redundant(healthy()), QuorumConfigured.QUORUM_BELOW_PROMISE),
    ],
)
def test_quorum_configured(view: VolumeView, reason: Reason) -> None:
    assert is_(verdicts.quorum_configured(view), reason)


def with_members(view: VolumeView, *members: Any) -> VolumeView:
    return told(view, datamesh=replace(view.datamesh, members=members))


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (connecting(), DiskfulReplicaCountReached.FORMATION_IN_PROGRESS),
        (healthy(), DiskfulReplicaCountReached.COUNT_REACHED),
        (with_members(healthy(), member(0), member(1)), DiskfulReplicaCountReached.REPLICAS_MISSING),
        # One that joins, or is told to go, does not count.
        (
            with_members(healthy(), member(0), member(1), member(2, hidden=True)),
            DiskfulReplicaCountReached.REPLICAS_MISSING,
        ),
        (
            with_members(
                picture(healthy().volume, [*healthy().replicas[:2], *(unscheduled(each) for each in range(2, 8))]),
                member(0),
                member(1),
            ),
            DiskfulReplicaCountReached.WAITING_FOR_PLACE,
        ),
    ],
)
def test_diskful_replica_count_reached(view: VolumeView, reason: Reason) -> None:
    assert is_(verdicts.diskful_count(view, find_places(view)), reason)


def test_all_replicas_ready() -> None:
    assert is_(all_replicas_ready(picture(volume(status(None)))), AllReplicasReady.NO_REPLICAS)
    assert is_(all_replicas_ready(healthy()), AllReplicasReady.ALL_REPLICAS_READY)
    verdict = all_replicas_ready(changed(healthy(), replicas=(*healthy().replicas[:2], formed().replicas[2])))
    assert is_(verdict, AllReplicasReady.REPLICAS_NOT_READY)
    assert " on " in verdict.message


def test_a_replica_whose_agent_is_silent_is_not_ready_whatever_it_has_said() -> None:
    view = healthy()
    silent = changed(view.replicas[1], node=node_view(1, fresh=False))
    verdict = all_replicas_ready(changed(view, replicas=(view.replicas[0], silent, view.replicas[2])))
    assert is_(verdict, AllReplicasReady.REPLICAS_NOT_READY)
    assert verdict.message == f"not ready: {silent.name} on {silent.node_name}"


def asking(answer: Any) -> VolumeView:
    replicas = (*healthy().replicas, changed(unscheduled(3), ledgers=(ledger(3, {name(3): answer}),)))
    return picture(healthy().volume, replicas)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (healthy(), DiskAllocation.ALLOCATED),
        (picture(volume(status(None))), DiskAllocation.PENDING),
        (asking(lower()), DiskAllocation.PENDING),
        (asking(rejected()), DiskAllocation.REJECTED),
        (asking(granted()), DiskAllocation.ALLOCATED),
    ],
)
def test_disk_allocation_is_what_the_ledgers_say(view: VolumeView, reason: Reason) -> None:
    assert is_(verdicts.disk_allocation(view, find_places(view)), reason)


def survives(losses: int | None, copies: int | None, view: VolumeView | None = None) -> VolumeView:
    layout = EffectiveLayout(failures_to_tolerate=losses, guaranteed_minimum_data_redundancy=copies)
    return told(view or healthy(), effective_layout=layout)


def keeps_the_lost() -> VolumeView:
    kept = storage_class()
    kept = replace(kept, spec=replace(kept.spec, eligible_nodes_policy=EligibleNodesPolicy(remove_lost_replica=False)))
    view = with_members(silent(survives(0, 1), 2), *(member(number) for number in range(4)))
    return changed(view, rsc=kept)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (connecting(), Resilient.FORMING),
        (survives(1, 1), Resilient.RESILIENT),
        (survives(2, 1), Resilient.RESILIENT),
        (survives(0, 1), Resilient.DEGRADED),
        (survives(1, 0), Resilient.DEGRADED),
        (survives(-1, 0), Resilient.DEGRADED),
        (survives(None, None), Resilient.STATUS_UNKNOWN),
        (told(survives(0, 1), datamesh_transitions=changing()), Resilient.TRANSITION_IN_PROGRESS),
        (keeps_the_lost(), Resilient.LOST_REPLICA_KEPT),
    ],
)
def test_resilient_compares_what_can_be_survived_with_the_promise(view: VolumeView, reason: Reason) -> None:
    assert is_(verdicts.resilient(view, view.volume.status.effective_layout), reason)


def publishing(*nodes: int, on: tuple[int, ...] = ()) -> VolumeView:
    view = told(healthy(), published_on=tuple(node(each) for each in on))
    rv = view.volume
    asked = tuple(node(each) for each in nodes)
    return changed(view, rv=replace(rv, spec=replace(rv.spec, publish_on=asked)))


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (publishing(), PublishSucceeded.NOTHING_TO_PUBLISH),
        (publishing(0), PublishSucceeded.PUBLISHING),
        (publishing(0, on=(0,)), PublishSucceeded.PUBLISHED),
        (publishing(0, 1, on=(0,)), PublishSucceeded.PUBLISHING),
    ],
)
def test_publish_succeeded_until_the_queue_says_more(view: VolumeView, reason: Reason) -> None:
    assert is_(verdicts.publish_succeeded(view, view.volume.status.published_on), reason)


def test_the_algorithm_is_selected_when_every_member_shows_a_revision_with_it() -> None:
    assert is_(algorithm_selected(picture(volume(status(None)))), SharedSecretAlgorithmSelected.NOT_YET_SELECTED)
    assert is_(algorithm_selected(healthy()), SharedSecretAlgorithmSelected.ALGORITHM_SELECTED)


def ready(view: VolumeView) -> Verdict:
    found = verdicts.verdicts(view, view.volume.status, find_places(view), None)
    return next(each for each in found if each.type == "Ready")


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (healthy(), Ready.READY),
        (connecting(), Ready.FORMING),
        (less_redundant(healthy()), Ready.QUORUM_NOT_CONFIGURED),
        (with_members(healthy(), member(0), member(1)), Ready.DISKFUL_REPLICA_COUNT_NOT_REACHED),
        (changed(healthy(), replicas=formed().replicas), Ready.REPLICAS_NOT_READY),
    ],
)
def test_ready_is_the_conjunction_and_says_what_is_missing(view: VolumeView, reason: Reason) -> None:
    assert is_(ready(view), reason)


def test_every_condition_of_the_design_is_reported() -> None:
    view = healthy()
    found = {each.type for each in verdicts.verdicts(view, view.volume.status, find_places(view), None)}
    assert found == {
        "Ready",
        "QuorumConfigured",
        "SharedSecretAlgorithmSelected",
        "PublishSucceeded",
        "DiskfulReplicaCountReached",
        "AllReplicasReady",
        "ConfigurationReady",
        "DiskAllocation",
        "Resilient",
        "DualPrimaryLinkLost",
        "StatusLost",
    }


def phase(view: VolumeView) -> VolumePhase | None:
    return composed(view, find_places(view), None, NOW).phase


def test_the_phase_is_the_first_that_fits() -> None:
    assert phase(connecting()) is VolumePhase.FORMING
    assert phase(healthy()) is VolumePhase.READY
    assert phase(changed(healthy(), replicas=formed().replicas)) is VolumePhase.DEGRADED
    rv = healthy().volume
    gone = changed(healthy(), rv=replace(rv, metadata=replace(rv.metadata, deletion_timestamp=NOW)))
    assert phase(gone) is VolumePhase.TERMINATING


@pytest.mark.parametrize("replication", list(Replication))
def test_what_is_counted_of_a_formed_volume(replication: Replication) -> None:
    found = composed(formed(replication), find_places(formed(replication)), None, NOW)
    assert found.membership_layout == str(layout_of(formed(replication).configuration))
    assert found.actual_size is not None
    assert int(found.actual_size) == 1 << 30
    assert found.published_on == ()
