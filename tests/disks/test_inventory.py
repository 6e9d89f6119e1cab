"""The inventory of a node: which disks, how much each may give, and why it may not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from quorate.api import annotation_keys, core, labels, names
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec, DiskSettings
from quorate.api.conditions import find
from quorate.api.conditions.disks import LowSpace, Schedulable
from quorate.api.conditions.inventory import Ready
from quorate.api.conditions.lvm import Ready as GroupReady
from quorate.api.conditions.lvm import Removable
from quorate.api.core.lease import LeaseSpec
from quorate.api.longhorn import Node
from quorate.api.longhorn.disk_schedule import DiskScheduleStatus
from quorate.api.longhorn.node import DiskStatus, NodeSpec, NodeStatus, Orphan, OrphanType
from quorate.api.meta import Bytes, MicroTime, Resource
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import ThinPool, VolumeGroupPhase
from quorate.api.struct import replace
from quorate.disks.inventory import INVENTORY_CONTROLLER
from quorate.engine import Create, Delete, Patch, PatchStatus, Plan, ReleaseFinalizer
from tests.disks.making import (
    GI,
    NOW,
    deleting,
    drive,
    group,
    inventory,
    machine,
    meta,
    pass_over,
    pool,
    said,
    schedule,
    status_written,
)


def looked(*objects: Resource, **how: Any) -> Plan:
    return pass_over(INVENTORY_CONTROLLER, "n1", *objects, **how)


def disks(*objects: Resource, **how: Any) -> dict[str, DiskStatus]:
    found = status_written(looked(*objects, **how))
    assert isinstance(found, Node)
    return dict(found.status.disk_status)


def verdict(disk: DiskStatus, cls: Any) -> tuple[str, str]:
    condition = find(disk.conditions, cls)
    assert condition is not None
    return condition.status.value, condition.reason


def test_a_group_is_one_disk_and_each_of_its_thin_pools_another() -> None:
    thin = ThinPool(name="thin", size="40Gi", allocation_limit="200%")
    found = disks(inventory(), group(pools=[pool(used=10 * GI)], pool_specs=[thin], free=60 * GI, drives=["d2", "d1"]))
    assert list(found) == ["data", "data/thin"]
    thick = found["data"]
    assert (thick.disk_uuid, thick.lvm_volume_group_name, thick.lvm_volume_group_thin_pool_name) == (
        "VGuuid-0000",
        "data",
        "",
    )
    assert (thick.storage_maximum, thick.storage_reserved, thick.storage_available) == (100 * GI, 40 * GI, 60 * GI)
    assert (thick.storage_free, thick.extent_size, thick.drives) == (60 * GI, 4 * 1024**2, ("d1", "d2"))
    pooled = found["data/thin"]
    assert (pooled.disk_uuid, pooled.lvm_volume_group_thin_pool_name) == ("Pool-thin", "thin")
    assert (pooled.storage_maximum, pooled.storage_reserved, pooled.storage_available) == (40 * GI, 0, 80 * GI)
    assert pooled.storage_free == 30 * GI // (40 * GI // 100) * (40 * GI // 100)


@pytest.mark.parametrize(
    ("size", "reserved", "limit", "available"),
    [
        (100, 0, "100%", 100),
        (100, 30, "100%", 70),
        (100, 30, "150%", 105),
        (100, 100, "150%", 0),
        (100, 101, "150%", 0),
    ],
)
def test_m12_what_may_be_scheduled_is_capacity_less_reserved_times_over_provisioning(
    size: int, reserved: int, limit: str, available: int
) -> None:
    thin = ThinPool(name="thin", size="1Gi", allocation_limit=limit)
    spec = said("data/thin", storage_reserved=Bytes(reserved * GI))
    found = disks(inventory(spec=spec), group(pools=[pool(size=size * GI)], pool_specs=[thin]))["data/thin"]
    assert (found.storage_available, found.storage_reserved) == (available * GI, reserved * GI)


def test_writes_to_a_disk_do_not_lower_what_may_be_scheduled() -> None:
    empty, full = (disks(inventory(), group(pools=[pool(used=used)]))["data/thin"] for used in (0, 30 * GI))
    assert empty.storage_available == full.storage_available
    assert empty.storage_free > full.storage_free


@pytest.mark.parametrize(("size", "reserved"), [("40Gi", 40), ("25%", 25)])
def test_a_pool_that_is_yet_to_be_made_is_reserved_as_it_is_planned(size: str, reserved: int) -> None:
    thin = ThinPool(name="thin", size=size)
    assert disks(inventory(), group(pool_specs=[thin]))["data"].storage_reserved == reserved * GI
    assert list(disks(inventory(), group(pool_specs=[thin], pools=[pool(size=None)]))) == ["data"]


def test_a_disk_of_which_no_uuid_is_known_is_none_yet() -> None:
    assert disks(inventory(), group(uuid="")) == {}


def test_a_pool_of_which_nobody_knows_how_full_it_is_has_nothing_free() -> None:
    found = disks(inventory(), group(pools=[pool(used=None)]))["data/thin"]
    assert found.storage_free == 0
    assert verdict(found, Schedulable) == ("False", "LowSpace")


INACTIVE = {annotation_keys.MARKER: "MARKER_DISK_INACTIVE"}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([group()], "Schedulable"),
        ([deleting(group())], "Deleting"),
        ([group(phase=VolumeGroupPhase.NOT_READY)], "DiskNotReady"),
        ([group(), inventory(spec=said("data", allow_scheduling=False))], "Disabled"),
        ([group(), inventory(spec=NodeSpec(allow_scheduling=False))], "Disabled"),
        ([group(annotations={annotation_keys.UNSCHEDULABLE: ""})], "Disabled"),
        ([group(), machine(cordoned=True)], "Cordoned"),
        ([group(), machine(annotations={annotation_keys.EVACUATE: "true"})], "Cordoned"),
        ([group(), machine(annotations={annotation_keys.EVACUATE: "false"})], "Schedulable"),
        ([group(drives=["d1"]), drive(health=DriveHealth.SUSPECT)], "Unhealthy"),
        ([group(drives=["d1"]), drive(health=DriveHealth.BAD)], "Unhealthy"),
        ([group(drives=["d1"]), drive(health=DriveHealth.UNKNOWN)], "Schedulable"),
        ([group(drives=["d1"]), drive(health=None)], "Schedulable"),
        ([group(drives=["d1"]), drive("other", health=DriveHealth.BAD)], "Schedulable"),
        ([group(drives=["d1"]), drive(status=OperationalStatus.RELEASED)], "Deleting"),
        ([group(drives=["d1"]), drive(annotations=INACTIVE)], "Inactive"),
        ([group(), machine(annotations=INACTIVE)], "Inactive"),
        ([group(free=9 * GI)], "LowSpace"),
        ([group(free=10 * GI)], "Schedulable"),
    ],
)
def test_m14_a_disk_that_takes_nothing_new_says_why(objects: list[Resource], reason: str) -> None:
    if not any(isinstance(obj, Node) for obj in objects):
        objects = [inventory(), *objects]
    status = "True" if reason == "Schedulable" else "False"
    assert verdict(disks(*objects)["data"], Schedulable) == (status, reason)


def test_a_silent_agent_makes_its_disks_unknown_and_what_it_said_stays() -> None:
    found = disks(inventory(), group(), silent={"n1": 40.1})["data"]
    assert verdict(found, Ready) == ("Unknown", "AgentNotReady")
    assert verdict(found, Schedulable) == ("False", "DiskNotReady")
    assert found.storage_available == 100 * GI
    assert verdict(disks(inventory(), group(), silent={"n1": 40.0})["data"], Ready) == ("True", "Ready")
    assert verdict(disks(inventory(), group(), silent={})["data"], Ready) == ("Unknown", "AgentNotReady")


def test_that_an_agent_falls_silent_is_told_once_and_that_it_speaks_again() -> None:
    ready = status_written(looked(inventory(), group()))
    assert looked(inventory(), group()).events == ()
    silent = looked(ready, group(), silent={"n1": 40.1})
    assert [(event.obj, event.reason, event.warning) for event in silent.events] == [(ready, "AgentNotReady", True)]
    unknown = status_written(silent)
    assert looked(unknown, group(), silent={"n1": 60.0}).events == ()
    assert [(event.reason, event.warning) for event in looked(unknown, group()).events] == [("Ready", False)]


def test_a_node_is_looked_at_again_when_its_agent_would_be_silent_for_too_long() -> None:
    assert looked(inventory(), group(), silent={"n1": 30.0}).requeue_after == 5.0
    assert looked(inventory(), group(), silent={"n1": 39.999}).requeue_after == 0.5
    assert looked(inventory(), group(), silent={"n1": 50.0}).requeue_after == 5.0
    assert looked(inventory(), group(), silent={}).requeue_after is None


def test_the_low_water_mark_is_the_cluster_configurations() -> None:
    config = ClusterConfig(
        metadata=meta(names.CLUSTER), spec=ClusterConfigSpec(disks=DiskSettings(low_water_percent=50))
    )
    assert verdict(disks(inventory(), group(free=49 * GI), config)["data"], LowSpace) == ("True", "LowSpace")
    assert verdict(disks(inventory(), group(free=50 * GI), config)["data"], LowSpace) == ("False", "EnoughSpace")


def test_a_group_that_is_all_thin_pool_is_not_short_of_space() -> None:
    found = disks(inventory(), group(free=0, pools=[pool(size=100 * GI)]))["data"]
    assert verdict(found, LowSpace) == ("False", "EnoughSpace")
    assert found.storage_available == 0


@pytest.mark.parametrize(
    ("objects", "ready", "schedulable"),
    [
        ([], "NoDisks", "DiskNotReady"),
        ([group()], "Ready", "Schedulable"),
        ([group(phase=VolumeGroupPhase.NOT_READY)], "VolumeGroupNotReady", "DiskNotReady"),
        ([group(), machine(cordoned=True)], "Ready", "Cordoned"),
        (
            [group(), group("more", uuid="Other", phase=VolumeGroupPhase.NOT_READY)],
            "VolumeGroupNotReady",
            "Schedulable",
        ),
    ],
)
def test_the_node_as_a_whole(objects: list[Resource], ready: str, schedulable: str) -> None:
    found = status_written(looked(inventory(spec=NodeSpec(tags=("x",))), *objects))
    reasons = {condition.type: condition.reason for condition in found.status.conditions}
    assert reasons == {
        "Ready": ready,
        "Schedulable": schedulable,
        "Orphans": "NoOrphans",
        "KernelStuck": "NothingHangs",
    }


def test_the_zone_is_the_machines() -> None:
    found = status_written(looked(inventory(), machine(labels={labels.ZONE: "z1"})))
    assert found.status.zone == "z1"


@pytest.mark.parametrize("objects", [[machine()], [group()], [machine(), group()]])
def test_the_object_is_made_for_every_node_that_there_is(objects: list[Resource]) -> None:
    (create,) = [write for write in looked(*objects).steps if isinstance(write, Create)]
    assert isinstance(create.obj, Node)
    assert (create.obj.namespace, create.obj.name, create.obj.spec) == (names.NAMESPACE, "n1", NodeSpec())


def test_the_object_of_a_node_that_is_gone_goes_unless_people_said_something_in_it() -> None:
    assert [type(write) for write in looked(inventory()).steps] == [Delete]
    assert not any(isinstance(write, Delete) for write in looked(inventory(spec=NodeSpec(tags=("x",)))).steps)
    assert not any(isinstance(write, Delete) for write in looked(inventory(), group()).steps)


def test_of_nothing_nothing_is_made() -> None:
    assert looked(machine("n2"), group(node="n2")).steps == ()


def test_once_reported_there_is_nothing_to_write_however_much_time_passes() -> None:
    objects = [group(pools=[pool()], drives=["d1"]), drive(), machine()]
    plan = looked(inventory(), *objects)
    settled = [status_written(plan), *(_patched(plan, obj) for obj in objects)]
    assert looked(*settled, now=NOW + timedelta(days=1)).steps == ()


def _patched(plan: Plan, obj: Resource) -> Resource:
    return next(
        (write.intended for write in plan.steps if isinstance(write, PatchStatus) and write.observed == obj), obj
    )


def test_what_is_scheduled_is_told_along_with_something_else_and_never_alone() -> None:
    first = status_written(looked(inventory(), group(), machine()))
    ledger = replace(schedule(), status=DiskScheduleStatus(storage_scheduled=Bytes(7)))
    again = status_written(looked(first, group(), machine(), ledger))
    assert again.status.disk_status["data"].storage_scheduled == 0
    changed = status_written(looked(first, group(free=50 * GI), machine(), ledger))
    assert changed.status.disk_status["data"].storage_scheduled == 7


def test_a_little_written_to_a_disk_is_not_written_to_the_inventory() -> None:
    first = status_written(looked(inventory(), group(free=50 * GI + 900), machine()))
    assert status_written(looked(first, group(free=50 * GI + 1), machine())).status == first.status


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (group(), "Ready"),
        (group(phase=VolumeGroupPhase.NOT_READY, uuid="", message="no such group"), "VolumeGroupNotFound"),
        (group(phase=VolumeGroupPhase.NOT_READY, pools=[pool(ready=False)]), "ThinPoolNotReady"),
        (group(phase=VolumeGroupPhase.NOT_READY, message="1 device is missing"), "VolumeGroupIncomplete"),
    ],
)
def test_the_condition_of_a_group_is_composed_from_what_its_agent_reports(found: LVMVolumeGroup, reason: str) -> None:
    plan = looked(inventory(), found)
    (written,) = [write for write in plan.steps if isinstance(write, PatchStatus) and write is not plan.status]
    assert isinstance(written.intended, LVMVolumeGroup)
    condition = find(written.intended.status.conditions, GroupReady)
    assert condition is not None
    assert condition.reason == reason
    assert set(written.patch) == {"conditions"}, "the rest is the agent's"


def test_a_group_of_a_silent_agent_is_unknown() -> None:
    plan = looked(inventory(), group(), silent={})
    (written,) = [write for write in plan.steps if isinstance(write, PatchStatus) and write is not plan.status]
    condition = find(written.intended.status.conditions, GroupReady)  # type: ignore[attr-defined]
    assert condition is not None
    assert (condition.status.value, condition.reason) == ("Unknown", "AgentNotReady")


def test_a_group_gets_the_label_by_which_its_agent_finds_it() -> None:
    bare = group()
    bare = replace(bare, metadata=replace(bare.metadata, labels={"app": "x"}))
    (write,) = [write for write in looked(inventory(), bare).steps if isinstance(write, Patch)]
    assert write.patch == {"metadata": {"labels": {labels.NODE: "n1"}}}
    anothers = replace(bare, metadata=replace(bare.metadata, labels={labels.NODE: "n2"}))
    assert not any(isinstance(write, Patch) for write in looked(inventory(), anothers).steps), "it is immutable"


def test_a_lease_wakes_only_the_node_whose_agents_it_is_and_its_renewals_wake_nobody() -> None:
    (watch,) = [watch for watch in INVENTORY_CONTROLLER.watches if watch.cls is core.Lease]
    agents = core.Lease(metadata=meta("quorate-agent-n1", namespace=names.NAMESPACE))
    assert [key.name for key in watch.keys(agents)] == ["n1"]
    assert watch.when is not None
    assert watch.when(None, agents)
    renewed = replace(agents, spec=LeaseSpec(renew_time=MicroTime("2030-01-01T00:00:00.000000Z")))
    assert not watch.when(agents, renewed)
    assert watch.when(agents, replace(agents, spec=LeaseSpec(holder_identity="another")))
    others = [meta("quorate-agent-n1", namespace="elsewhere"), meta("leader", namespace=names.NAMESPACE)]
    assert [list(watch.keys(core.Lease(metadata=other))) for other in others] == [[], []]


LEFT = ("data/replica-web-0-01234567", "data/root")


def leaving(*, agent: str = "agent", orphan: str = LEFT[0], node: bool = True, **how: Any) -> str:
    """Whether a group with two volumes that no object stands for is let go of, or what holds it."""
    found, state = group(drives=["d1"]), how.pop("drive", OperationalStatus.OPERATIVE)
    found = deleting(replace(found, status=replace(found.status, unmanaged_volumes=how.pop("left", LEFT))))
    told = (Orphan(id="u1", type=OrphanType.LOGICAL_VOLUME, name=orphan, volume_name="web"),) if orphan else ()
    known = replace(inventory(), status=NodeStatus(orphans=told, orphans_reported_by="agent"))
    lease = core.Lease(
        metadata=meta("quorate-agent-n1", namespace=names.NAMESPACE), spec=LeaseSpec(holder_identity=agent)
    )
    objects: list[Resource] = [found, known, lease, drive(status=state), *([machine()] if node else [])]
    (write,) = (each for each in looked(*objects, **how).writes if not isinstance(each, Patch))
    if isinstance(write, ReleaseFinalizer):
        return "let go"
    assert isinstance(write, PatchStatus)
    written: Any = write.intended
    condition = find(written.status.conditions, Removable)
    assert condition is not None
    return f"{condition.reason}: {condition.message}"


def test_a_group_is_held_by_what_is_ours_and_not_by_what_nobody_here_may_remove() -> None:
    held = leaving()
    assert LEFT[0] in held
    assert LEFT[1] not in held
    assert leaving(orphan="") == "let go"
    # Not for sure: the present agent has not looked yet.
    assert LEFT[1] in leaving(agent="the next one", orphan="")


def test_a_node_whose_agent_is_heard_is_there_although_its_object_was_deleted() -> None:
    assert LEFT[0] in leaving(node=False)
    assert leaving(node=False, silent={"n1": 3600.0}) == "let go"


def test_a_drive_that_leaves_a_machine_that_is_gone_holds_no_group() -> None:
    removed: dict[str, Any] = {"drive": OperationalStatus.REMOVING, "left": ()}
    assert leaving(**removed).startswith("DriveLeaves")
    assert leaving(node=False, silent={"n1": 3600.0}, **removed) == "let go"
