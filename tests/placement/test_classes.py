"""The controller of classes: what it publishes, when it takes that back, and what it counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from quorate.api import conditions
from quorate.api.conditions import ConditionType
from quorate.api.conditions import rsp as pool_conditions
from quorate.api.conditions.rsc import ConfigurationRolledOut, Ready, StoragePoolReady
from quorate.api.meta import ConditionStatus, NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Configuration, Replication, Topology
from quorate.api.storage.datamesh import Datamesh, Member
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsc import ReclaimPolicy, ReplicatedStorageClass, StorageClassPhase, StorageClassVolumes
from quorate.api.storage.rsp import PoolUsers, ReplicatedStoragePool
from quorate.api.storage.rv import ReplicatedVolume
from quorate.api.struct import replace
from quorate.engine import Key, PatchStatus, Plan
from quorate.placement.classes import CLASSES, COUNT_EVERY, COUNTED_AFTER, ClassView, decide
from quorate.placement.sufficiency import configuration_of
from tests.placement.builders import nodes
from tests.placement.objects import NOW, pool, storage_class, volume

THREE = "a1 b1 c1"


def ready_pool(names: str = THREE, verdict: conditions.Verdict | None = None, **said: Any) -> ReplicatedStoragePool:
    made = pool("g", nodes=nodes(names), **said)
    known = conditions.merge((), [verdict or pool_conditions.Ready.READY()], now=NOW)
    return replace(made, status=replace(made.status, conditions=known))


def decided(
    found: ReplicatedStorageClass,
    its_pool: ReplicatedStoragePool | None,
    *volumes: ReplicatedVolume,
    now: datetime = NOW,
) -> Plan:
    return decide(ClassView(found, its_pool, volumes), now, Random(0))


def reported(
    found: ReplicatedStorageClass,
    its_pool: ReplicatedStoragePool | None,
    *volumes: ReplicatedVolume,
    now: datetime = NOW,
) -> ReplicatedStorageClass:
    plan = decided(found, its_pool, *volumes, now=now)
    assert isinstance(plan.status, PatchStatus)
    assert isinstance(plan.status.intended, ReplicatedStorageClass)
    return plan.status.intended


def reason(found: ReplicatedStorageClass, condition: type[ConditionType]) -> str:
    known = conditions.find(found.status.conditions, condition)
    assert known is not None
    return known.reason


@pytest.mark.parametrize(
    ("found", "its_pool", "ready", "pool_ready", "phase"),
    [
        (storage_class(), ready_pool(), "Ready", "Ready", StorageClassPhase.READY),
        (
            storage_class(),
            None,
            "WaitingForStoragePool",
            "StoragePoolNotFound",
            StorageClassPhase.WAITING_FOR_STORAGE_POOL,
        ),
        (storage_class(), pool("g"), "WaitingForStoragePool", "Pending", StorageClassPhase.WAITING_FOR_STORAGE_POOL),
        (
            storage_class(),
            ready_pool(verdict=pool_conditions.Ready.LVM_VOLUME_GROUP_NOT_FOUND("g is missing")),
            "WaitingForStoragePool",
            "LVMVolumeGroupNotFound",
            StorageClassPhase.WAITING_FOR_STORAGE_POOL,
        ),
        (
            storage_class(),
            ready_pool("a1 b1"),
            "InsufficientEligibleNodes",
            "Ready",
            StorageClassPhase.INSUFFICIENT_NODES,
        ),
        (
            storage_class(topology=Topology.TRANS_ZONAL, zones=("a", "b")),
            ready_pool(),
            "InvalidConfiguration",
            "Ready",
            StorageClassPhase.INVALID_CONFIGURATION,
        ),
    ],
)
def test_a_class_says_whether_volumes_can_be_made(
    found: ReplicatedStorageClass,
    its_pool: ReplicatedStoragePool | None,
    ready: str,
    pool_ready: str,
    phase: StorageClassPhase,
) -> None:
    after = reported(found, its_pool)
    assert (reason(after, Ready), reason(after, StoragePoolReady), after.status.phase) == (ready, pool_ready, phase)
    assert (after.status.configuration is not None) == (ready == "Ready")
    assert bool(after.status.message) == (ready != "Ready")
    (event,) = decided(found, its_pool).events
    assert (event.reason, event.warning) == (ready, ready != "Ready")


def test_every_reason_of_a_class_is_given_by_some_case() -> None:
    """The table above and the counts below; a reason that nothing gives would be a promise to nobody."""
    given = {"Ready", "WaitingForStoragePool", "InsufficientEligibleNodes", "InvalidConfiguration"}
    assert {known.code for known in Ready.reasons()} == given
    assert {known.code for known in StoragePoolReady.reasons()} == {"Ready", "StoragePoolNotFound", "Pending"}


def test_the_pools_own_words_are_shown() -> None:
    after = reported(storage_class(), ready_pool(verdict=pool_conditions.Ready.LVM_VOLUME_GROUP_NOT_FOUND("g is gone")))
    shown = conditions.find(after.status.conditions, StoragePoolReady)
    assert shown is not None
    assert (shown.status, shown.message) == (ConditionStatus.FALSE, "g is gone")
    assert after.status.message == "ReplicatedStoragePool pool: g is gone"


def test_what_is_published_is_the_promise_with_the_generation_it_was_made_from() -> None:
    after = reported(storage_class(Replication.AVAILABILITY, generation=4), ready_pool(generation=7))
    assert after.status.configuration == configuration_of(after.spec)
    assert (after.status.configuration_generation, after.status.observed_generation) == (4, 4)
    status = after.status
    assert (status.storage_pool_name, status.storage_pool_based_on_generation) == ("pool", 7)
    assert status.storage_pool_eligible_nodes_revision == 3


def test_a_change_of_anything_else_makes_no_volume_outdated() -> None:
    first = reported(storage_class(generation=1), ready_pool())
    changed = replace(
        first,
        spec=replace(first.spec, reclaim_policy=ReclaimPolicy.RETAIN),
        metadata=replace(first.metadata, generation=2),
    )
    after = reported(changed, ready_pool())
    assert (after.status.configuration_generation, after.status.observed_generation) == (1, 2)


def test_what_is_published_stays_while_nodes_are_missing() -> None:
    first = reported(storage_class(), ready_pool())
    for its_pool in (ready_pool("a1"), None, ready_pool(verdict=pool_conditions.Ready.LVM_VOLUME_GROUP_NOT_FOUND())):
        after = reported(first, its_pool)
        assert reason(after, Ready) != "Ready"
        assert after.status.configuration == first.status.configuration
        assert after.status.configuration_generation == 1


def raised(first: ReplicatedStorageClass) -> ReplicatedStorageClass:
    """The same class, promising more."""
    spec = replace(first.spec, replication=Replication.CONSISTENCY_AND_AVAILABILITY)
    return replace(first, spec=spec, metadata=replace(first.metadata, generation=2))


def test_what_the_class_no_longer_says_is_withdrawn_until_the_new_promise_can_be_kept() -> None:
    changed = raised(reported(storage_class(Replication.CONSISTENCY), ready_pool("a1 b1")))
    after = reported(changed, ready_pool("a1 b1"))
    assert (after.status.configuration, after.status.configuration_generation) == (None, 0)
    later = reported(after, ready_pool())
    assert later.status.configuration == configuration_of(changed.spec)
    assert later.status.configuration_generation == 2


def test_volumes_keep_the_configuration_that_they_have() -> None:
    """NewVolumesOnly: the class counts them and changes none."""
    first = reported(storage_class(Replication.CONSISTENCY), ready_pool())
    old = first.status.configuration
    changed = reported(raised(first), ready_pool(), volume("v1", old))
    assert reason(changed, ConfigurationRolledOut) == "ConfigurationRolloutDisabled"
    new = changed.status.configuration
    assert reported(changed, ready_pool(), volume("v1", new)).status.volumes.aligned == 1
    plan = decided(changed, ready_pool(), volume("v1", old))
    assert all(write.target.KIND is ReplicatedStorageClass.KIND for write in plan.steps)


def on(made: ReplicatedVolume, *places: str) -> ReplicatedVolume:
    members = tuple(
        Member(
            name=ReplicaName(f"{made.name}-{number}"),
            type=ReplicaType.DISKFUL,
            node_name=NodeName(place),
            node_id=number,
        )
        for number, place in enumerate(places)
    )
    return replace(made, status=replace(made.status, datamesh=Datamesh(members=members)))


def test_a_volume_that_has_just_come_is_left_to_the_next_count() -> None:
    made = volume("v1")
    new = replace(made, metadata=replace(made.metadata, creation_timestamp=NOW))
    known = reported(storage_class(), ready_pool())
    assert decided(known, ready_pool(), new).steps == ()
    later = NOW + timedelta(seconds=COUNTED_AFTER)
    assert reported(known, ready_pool(), new, now=later).status.volumes.total == 1


def test_volumes_are_counted_by_what_they_live_by() -> None:
    now: Configuration = configuration_of(storage_class().spec)
    then = configuration_of(storage_class(Replication.NONE).spec)
    found = reported(
        storage_class(),
        ready_pool(),
        volume("fresh"),
        on(volume("well", now), "a1", "b1", "c1"),
        on(volume("astray", now), "a1", "gone"),
        volume("old", then),
    )
    assert found.status.volumes == StorageClassVolumes(
        total=4, pending_observation=1, aligned=2, stale_configuration=1, in_conflict_with_eligible_nodes=1
    )
    rolled_out = conditions.find(found.status.conditions, ConfigurationRolledOut)
    assert rolled_out is not None
    assert rolled_out.message == "1 of 4 volumes keep an older configuration"


def test_a_class_without_outdated_volumes_is_rolled_out() -> None:
    assert reason(reported(storage_class(), ready_pool()), ConfigurationRolledOut) == "RolledOutToAllVolumes"


def test_a_class_that_is_being_deleted_says_so() -> None:
    leaving = replace(storage_class(), metadata=replace(storage_class().metadata, deletion_timestamp=NOW))
    assert reported(leaving, ready_pool()).status.phase is StorageClassPhase.TERMINATING


def test_once_reported_there_is_nothing_to_write_however_much_time_passes() -> None:
    after = reported(storage_class(), ready_pool())
    plan = decided(after, ready_pool(), now=NOW + timedelta(days=1))
    assert (plan.steps, plan.events, plan.requeue_after) == ((), (), COUNT_EVERY)


def test_a_pool_wakes_the_classes_that_use_it() -> None:
    watch = next(watch for watch in CLASSES.watches if watch.cls is ReplicatedStoragePool)
    made = ready_pool()
    used = replace(
        made, status=replace(made.status, used_by=PoolUsers(replicated_storage_class_names=("fast", "slow")))
    )
    assert list(watch.keys(used)) == [Key("", "fast"), Key("", "slow")]
