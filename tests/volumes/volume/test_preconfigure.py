"""Phase 1: 002's boxes one by one, with the corrections M8 to M11, M18 and M33."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.api import finalizers
from quorate.api.meta import NodeName
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import FormationPhase, PendingTransition
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Patch
from quorate.volumes.disks import Disk
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.volume.making import (
    EXTENT,
    GI,
    NOW,
    TB,
    C,
    D,
    ago,
    asked,
    decided,
    granted,
    group_name,
    ledger,
    lower,
    name,
    node,
    phase_of,
    picture,
    piece,
    pool,
    preconfigured,
    preconfiguring,
    status,
    types,
    unscheduled,
    volume,
    waits,
    with_replica,
    written,
)

LEVELS = list(Replication)


def starting(replication: Replication = C, *replicas: ReplicaView, since: float = 4.0, **more: Any) -> VolumeView:
    """A formation in its first phase, with just these replicas."""
    return picture(volume(status(FormationPhase.PRECONFIGURE, replication, since=since)), replicas, **more)


def created(view: VolumeView) -> list[ReplicatedVolumeReplica]:
    writes = decided(view).writes
    return [each.obj for each in writes if isinstance(each, Create) and isinstance(each.obj, ReplicatedVolumeReplica)]


# Beginning.


def test_formation_begins_with_revision_one_size_and_networks_and_nothing_else_is_written() -> None:
    plan = decided(picture(volume()))
    assert phase_of(plan) is FormationPhase.PRECONFIGURE
    found = written(plan)
    assert (found.datamesh_revision, found.datamesh.members) == (1, ())
    assert found.datamesh.size == Quantity.of_bytes(GI)
    assert found.datamesh.system_network_names == ("Internal",)
    assert found.configuration is not None
    assert len(plan.steps) == 1


def test_a_size_is_rounded_up_to_whole_blocks() -> None:
    rv = volume()
    odd = replace(rv, spec=replace(rv.spec, size=Quantity("1000001")))
    assert written(decided(picture(odd))).datamesh.size == Quantity.of_bytes(1003520)


def test_formation_does_not_begin_without_a_pool() -> None:
    plan = decided(picture(volume(), rsp=None))
    assert plan.transition is None
    assert written(plan).datamesh_revision == 0
    assert "pool" in written(plan).message


def test_formation_waits_for_agents_that_have_just_started_and_names_no_other() -> None:
    """One that cannot look for a minute keeps nobody waiting, and is not what is waited for."""
    agents = {NodeName("node-8"): ago(7 * 86400), NodeName("node-9"): ago(10)}
    plan = decided(picture(volume(), not_looked_at=agents))
    assert plan.transition is None
    assert "node-9" in written(plan).message
    assert "node-8" not in written(plan).message
    assert decided(picture(volume(), not_looked_at={NodeName("node-8"): ago(61)})).transition is not None


# Creating and deleting.


@pytest.mark.parametrize("replication", LEVELS)
def test_every_replica_of_the_layout_is_created_the_tie_breaker_included(replication: Replication) -> None:
    """M9, M26, M33: born together, with the finalizers that nobody may be without."""
    found = created(starting(replication))
    assert [each.spec.type for each in found] == types(replication)
    assert [each.name for each in found] == [name(number) for number in range(len(found))]
    for each in found:
        assert set(finalizers.OF_A_NEW_REPLICA) <= set(each.metadata.finalizers)
        assert each.spec.node_name is None
        assert [owner.uid for owner in each.metadata.owner_references] == ["uid-v"]


@pytest.mark.parametrize(
    ("replicas", "ids"),
    [
        ([], [0, 1, 2]),
        ([unscheduled(1)], [0, 2]),
        ([unscheduled(0), unscheduled(1), unscheduled(2)], []),
    ],
)
def test_ids_are_the_lowest_that_are_free(replicas: list[ReplicaView], ids: list[int]) -> None:
    assert [each.name for each in created(starting(C, *replicas))] == [name(number) for number in ids]


@pytest.mark.parametrize(
    "remembered",
    [
        {"pieces": (piece(0),)},
        {"ledgers": (ledger(0, {name(0): granted()}),)},
    ],
    ids=["a logical volume", "a ledger"],
)
def test_an_id_that_something_remembers_is_not_given_again(remembered: dict[str, Any]) -> None:
    """M18."""
    assert [each.name for each in created(starting(C, **remembered))] == [name(number) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "in_the_way",
    [
        unscheduled(0, deletion_timestamp=NOW),
        changed(
            preconfigured(0),
            replica=replace(
                preconfigured(0).replica, spec=replace(preconfigured(0).replica.spec, node_name=NodeName("gone"))
            ),
        ),
    ],
    ids=["deleting", "misplaced"],
)
def test_nothing_is_created_while_something_is_deleted_or_misplaced(in_the_way: ReplicaView) -> None:
    view = starting(C, in_the_way)
    assert created(view) == []
    assert waits(decided(view))[0] == "WaitingForReplicaCleanup"


def deleted(view: VolumeView) -> list[str]:
    return [each.obj.name for each in decided(view).writes if isinstance(each, Delete)]


@pytest.mark.parametrize(
    ("replicas", "gone"),
    [
        # Not scheduled goes before not preconfigured, that before any.
        ([unscheduled(0), preconfigured(1), preconfigured(2), preconfigured(3)], [0]),
        ([changed(preconfigured(0), volumes=()), preconfigured(1), preconfigured(2), preconfigured(3)], [0]),
        ([preconfigured(0), preconfigured(1), preconfigured(2), preconfigured(3)], [3]),
        # What the layout has no place for.
        ([preconfigured(0), preconfigured(1), preconfigured(2), unscheduled(3, TB)], [3]),
    ],
)
def test_what_is_too_much_is_deleted_least_progressed_first(replicas: list[ReplicaView], gone: list[int]) -> None:
    assert deleted(starting(C, *replicas)) == [name(number) for number in gone]


def test_a_replica_whose_disk_the_pool_no_longer_lists_is_misplaced_and_deleted() -> None:
    assert deleted(preconfiguring(rsp=pool((0, 1)))) == [name(2)]


def test_deleting_replicas_that_do_not_go_are_a_reason_to_start_again() -> None:
    view = preconfiguring(since=31)
    stuck = with_replica(
        view,
        2,
        lambda each: changed(
            each, replica=replace(each.replica, metadata=replace(each.replica.metadata, deletion_timestamp=ago(30)))
        ),
    )
    assert phase_of(decided(asked(stuck))) is FormationPhase.RESTARTING


# Places.


def test_waiting_for_space_has_no_timeout_and_writes_nothing_while_nothing_changes() -> None:
    """M10: an unschedulable volume churns nothing, for a day or a year."""
    replicas = [unscheduled(number) for number in range(3)]
    full = {group_name(number): Disk(ledger(number, available=GI), EXTENT) for number in range(5)}
    view = starting(C, *replicas, since=86_400, disks=full)
    plan = decided(view)
    assert plan.transition is None
    assert plan.writes[1:] == ()
    reason, message = waits(plan)
    assert reason == "NoSpace"
    assert message.startswith("scheduling failed [0 1 2]")
    assert plan.requeue_after is None
    told = view.with_status(written(plan))
    assert decided(told, NOW + timedelta(days=365)).steps[1:] == ()


def test_everybody_is_asked_for_at_once_and_nobody_placed_before_all_is_granted() -> None:
    view = starting(C, *(unscheduled(number) for number in range(3)))
    asks = [
        each for each in decided(view).writes if isinstance(each, Patch) and each.target.KIND.name == "DiskSchedule"
    ]
    assert len({each.target.name for each in asks}) == 3
    half = [
        changed(unscheduled(number), ledgers=(ledger(number, {name(number): granted() if number else lower()}),))
        for number in range(3)
    ]
    assert [each.target.KIND.name for each in decided(starting(C, *half)).steps[1:]] == ["ReplicatedVolume"]
    whole = [changed(unscheduled(number), ledgers=(ledger(number, {name(number): granted()}),)) for number in range(3)]
    placed = [
        each for each in decided(starting(C, *whole)).writes if each.target.KIND.name == "ReplicatedVolumeReplica"
    ]
    assert [each.target.name for each in placed] == [name(number) for number in range(3)]


def test_a_phase_that_waited_long_for_places_counts_anew_before_anybody_is_placed() -> None:
    """M8, M10: or the first minute after a day of waiting would be the last."""
    whole = [changed(unscheduled(number), ledgers=(ledger(number, {name(number): granted()}),)) for number in range(3)]
    plan = decided(starting(C, *whole, since=86_400))
    assert phase_of(plan) is FormationPhase.PRECONFIGURE
    found = written(plan).datamesh_transitions[0].formation
    assert found is not None
    assert found.phase_started_at == NOW


# Preconfigured.


def without(what: str) -> Callable[[ReplicaView], ReplicaView]:
    """A replica that lacks something."""

    def change(each: ReplicaView) -> ReplicaView:
        found = each.replica.status
        match what:
            case "logical volume":
                return changed(each, volumes=())
            case "created":
                return changed(each, volumes=(piece(each.id, phase=LogicalVolumePhase.PENDING),))
            case "address":
                drbd = replace(found.drbd, config=replace(found.drbd.config, address=None))
                return changed(each, replica=replace(each.replica, status=replace(found, drbd=drbd)))
            case _:
                asks = replace(found, datamesh_pending_transition=None)
                return changed(each, replica=replace(each.replica, status=asks))

    return change


@pytest.mark.parametrize("what", ["logical volume", "created", "address", "request"])
def test_everybody_must_be_preconfigured_and_the_wait_says_who_lacks_what(what: str) -> None:
    view = with_replica(preconfiguring(), 1, without(what))
    plan = decided(view)
    assert plan.transition is None
    reason, message = waits(plan)
    assert reason == "Preconfiguring"
    assert message.startswith("preconfiguring [1]: v-1: ")


@pytest.mark.parametrize(("since", "restarts"), [(29.9, False), (30.0, True)])
def test_the_phase_has_thirty_seconds_from_its_start(since: float, restarts: bool) -> None:
    """M8."""
    plan = decided(asked(with_replica(preconfiguring(since=since), 1, without("address"))))
    if restarts:
        assert phase_of(plan) is FormationPhase.RESTARTING
    else:
        assert plan.requeue_after == pytest.approx(30.0 - since)


def test_a_volume_that_is_zeroed_whole_is_given_the_time_it_takes() -> None:
    view = with_replica(preconfiguring(since=40), 1, without("created"))
    zeroing = [replace(each, spec=replace(each.spec, zeroed=True)) for each in view.pieces]
    assert decided(changed(view, pieces=tuple(zeroing))).transition is None


# Safety.


def spoilt(view: VolumeView, number: int, **status_: Any) -> VolumeView:
    return with_replica(
        view,
        number,
        lambda each: changed(each, replica=replace(each.replica, status=replace(each.replica.status, **status_))),
    )


def other_request(**fields: Any) -> PendingTransition:
    return replace(PendingTransition(member=True, type=D, lvm_volume_group_name="lvg-1"), **fields)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (
            preconfiguring().with_status(
                replace(
                    preconfiguring().volume.status,
                    datamesh=replace(preconfiguring().datamesh, system_network_names=("Internal", "Storage")),
                )
            ),
            "AddressesMissing",
        ),
        (spoilt(preconfiguring(), 1, datamesh_pending_transition=other_request(type=TB)), "SpecMismatch"),
        (
            spoilt(preconfiguring(), 1, datamesh_pending_transition=other_request(lvm_volume_group_name="lvg-4")),
            "SpecMismatch",
        ),
        (
            with_replica(
                preconfiguring(), 1, lambda each: changed(each, volumes=(piece(1, actual_size=Quantity("1Gi")),))
            ),
            "BackingVolumeTooSmall",
        ),
        # M11: not known is not enough.
        (
            with_replica(preconfiguring(), 1, lambda each: changed(each, volumes=(piece(1, actual_size=None),))),
            "BackingVolumeTooSmall",
        ),
    ],
    ids=["addresses", "type", "disk", "size", "unknown size"],
)
def test_nobody_is_introduced_while_a_safety_check_fails(view: VolumeView, reason: str) -> None:
    """M11."""
    assert waits(decided(view))[0] == reason


def test_without_a_device_minor_nobody_is_introduced_and_nothing_is_given_up() -> None:
    rv = volume(status(FormationPhase.PRECONFIGURE, minor=None, since=600))
    plan = decided(picture(rv, preconfiguring().replicas))
    assert waits(plan)[0] == "WaitingForDeviceMinor"


# On to phase 2.


@pytest.mark.parametrize("replication", LEVELS)
def test_those_who_pass_are_told_of_one_another_in_one_write(replication: Replication) -> None:
    """M4: only diskful members count, and qmr is the promise's."""
    plan = decided(preconfiguring(replication))
    assert phase_of(plan) is FormationPhase.ESTABLISH_CONNECTIVITY
    assert len(plan.steps) == 1
    found = written(plan)
    assert found.datamesh_revision == 2
    assert [(each.name, each.type, each.node_name) for each in found.datamesh.members] == [
        (name(number), each, node(number)) for number, each in enumerate(types(replication))
    ]
    assert all(each.addresses and each.zone and not each.hidden for each in found.datamesh.members)
    config = found.drbd.config
    assert (config.quorum, config.quorum_minimum_redundancy) == {
        Replication.NONE: (1, 1),
        Replication.AVAILABILITY: (2, 1),
        Replication.CONSISTENCY: (2, 2),
        Replication.CONSISTENCY_AND_AVAILABILITY: (2, 2),
    }[replication]
    assert config.shared_secret is not None
