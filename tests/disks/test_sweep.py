"""What nobody will give back is taken back, late and only then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from quorate.api import names
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import DiskScheduleStatus
from quorate.api.meta import NodeName, Resource
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import (
    Datamesh,
    Member,
    PendingReplicaTransition,
    PendingTransition,
    Transition,
    TransitionGroup,
    TransitionType,
)
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.disks.sweep import GRACE, INTERVAL, SWEEP_CONTROLLER
from quorate.engine import Patch, PatchStatus, Plan
from tests.disks.making import NOW, UUID, granted, image, logical_volume, pass_over, replica, schedule, volume

LEDGER = names.disk_schedule(UUID)


def ledger(orphaned: bool = False) -> DiskSchedule:
    since = NOW - GRACE if orphaned else None
    status = DiskScheduleStatus(
        replicas={"v-0": replace(granted(1), orphaned_since=since)},
        backing_images={"os": replace(granted(1), orphaned_since=since)},
    )
    return replace(schedule({"v-0": 1}, {"os": 1}), status=status)


def looked(*objects: Resource, **how: Any) -> Plan:
    return pass_over(SWEEP_CONTROLLER, LEDGER, *objects, **how)


def marks(plan: Plan) -> dict[str, Any]:
    (write,) = plan.steps
    assert isinstance(write, PatchStatus)
    assert write.if_unchanged
    return {name: entry["orphanedSince"] for found in write.patch.values() for name, entry in found.items()}


def listing(**status: Any) -> Resource:
    return replace(volume("v"), status=ReplicatedVolumeStatus(**status))


MEMBER = Member(name=ReplicaName("v-0"), type=ReplicaType.DISKFUL, node_name=NodeName("n1"), node_id=0)
WAITING = PendingReplicaTransition(
    name=ReplicaName("v-0"), transition=PendingTransition(member=True), first_observed_at=NOW
)

JOINING = Transition(
    type=TransitionType.ADD_REPLICA,
    group=TransitionGroup.VOTING_MEMBERSHIP,
    replica_name=ReplicaName("v-0"),
    started_at=NOW,
)


@pytest.mark.parametrize(
    ("others", "orphans"),
    [
        ([], {"v-0", "os"}),
        ([replica("v-0")], {"os"}),
        ([image("os")], {"v-0"}),
        ([replica("v-0"), image("os")], set()),
        # A live volume that lists the replica is enough, one that does not is not.
        ([volume("v")], {"v-0", "os"}),
        ([listing(datamesh=Datamesh(members=(MEMBER,)))], {"os"}),
        ([listing(datamesh_pending_replica_transitions=(WAITING,))], {"os"}),
        ([listing(datamesh_transitions=(JOINING,))], {"os"}),
        ([listing(datamesh_transitions=(replace(JOINING, replica_name=ReplicaName("v-1")),))], {"v-0", "os"}),
        # Bytes that are in use are somebody's (M31).
        ([logical_volume(names.logical_volume("v-0", "data"))], {"os"}),
        ([logical_volume(names.logical_volume("os-copy", "data"))], {"v-0"}),
    ],
)
def test_what_is_nobodys_is_marked_first(others: list[Resource], orphans: set[str]) -> None:
    plan = looked(ledger(), *others)
    assert (set(marks(plan)) if plan.steps else set()) == orphans
    assert plan.requeue_after == INTERVAL


def test_what_has_been_nobodys_for_long_enough_goes_in_one_conditional_write() -> None:
    plan = looked(ledger(orphaned=True), image("os"))
    (write,) = plan.steps
    assert isinstance(write, Patch)
    assert (write.patch, write.if_unchanged) == ({"spec": {"replicas": None}}, True)
    assert [event.reason for event in plan.events] == ["Swept"]


def test_what_has_been_nobodys_only_for_a_while_stays() -> None:
    assert looked(ledger(orphaned=True), now=NOW - timedelta(seconds=1)).steps == ()


def test_an_owner_who_turns_up_after_all_takes_the_mark_away() -> None:
    plan = looked(ledger(orphaned=True), replica("v-0"), image("os"))
    assert marks(plan) == {"v-0": None, "os": None}


def test_a_request_without_an_answer_is_not_swept_before_it_has_been_marked() -> None:
    assert looked(schedule({"v-0": 1})).steps == ()


def test_names_that_no_replica_can_have_are_nobodys() -> None:
    odd = replace(schedule({"nonsense": 1}), status=DiskScheduleStatus(replicas={"nonsense": granted(1)}))
    assert set(marks(looked(odd))) == {"nonsense"}


def test_passes_follow_one_another_and_are_not_woken_by_every_request() -> None:
    when = SWEEP_CONTROLLER.watches[0].when
    assert when is not None
    assert when(None, schedule())
    assert not when(schedule(), schedule({"v-0": 1}))
