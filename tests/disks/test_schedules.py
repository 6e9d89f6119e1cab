"""The life of a ledger: it is made, answers, follows its disk, and goes when nothing is left in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from quorate.api import finalizers, names
from quorate.api.conditions import find
from quorate.api.conditions.disks import LowSpace, OverCommitted, Schedulable
from quorate.api.conditions.inventory import Ready
from quorate.api.conditions.merging import merge
from quorate.api.longhorn import DiskSchedule, Node
from quorate.api.longhorn.disk_schedule import DiskScheduleStatus
from quorate.api.longhorn.node import DiskStatus, NodeStatus
from quorate.api.meta import Bytes, Resource
from quorate.api.quantity import Quantity
from quorate.api.struct import replace
from quorate.disks.schedules import LOOK_AGAIN, SCHEDULE_CONTROLLER
from quorate.engine import AddFinalizer, Create, Delete, Patch, Plan, ReleaseFinalizer
from tests.disks.making import (
    NOW,
    UUID,
    deleting,
    granted,
    image,
    inventory,
    logical_volume,
    observed,
    pass_over,
    rejected,
    replica,
    schedule,
    status_written,
)

LEDGER = names.disk_schedule(UUID)
OK = (Ready.READY(), Schedulable.SCHEDULABLE(), LowSpace.ENOUGH_SPACE())


def node(
    name: str = "n1", *, disk: str = "data", uuid: str = UUID, available: int = 100, verdicts: tuple[Any, ...] = OK
) -> Node:
    """A node with one disk."""
    found = DiskStatus(disk_uuid=uuid, storage_available=Bytes(available), conditions=merge((), verdicts, now=NOW))
    return replace(inventory(name), status=NodeStatus(disk_status={disk: found}))


def looked(*objects: Resource, **how: Any) -> Plan:
    return pass_over(SCHEDULE_CONTROLLER, LEDGER, *objects, **how)


def decided(*objects: Resource) -> DiskSchedule:
    found = status_written(looked(*objects))
    assert isinstance(found, DiskSchedule)
    return found


def reasons(found: DiskSchedule) -> dict[str, str]:
    return {condition.type: condition.reason for condition in found.status.conditions}


def states(found: DiskSchedule) -> dict[str, tuple[str, int]]:
    both = {**found.status.replicas, **found.status.backing_images}
    return {name: (answer.state.value, answer.scheduled_size) for name, answer in both.items()}


def test_every_disk_of_the_inventory_gets_a_ledger_with_its_finalizer_from_the_start() -> None:
    (write,) = looked(node()).steps
    assert isinstance(write, Create)
    assert isinstance(write.obj, DiskSchedule)
    assert (write.obj.name, write.obj.namespace) == (UUID.lower(), names.NAMESPACE)
    assert (write.obj.spec.name, write.obj.spec.node_id) == ("data", "n1")
    assert write.obj.metadata.finalizers == (finalizers.LONGHORN,)


def test_everything_pending_is_decided_in_one_write_that_holds_only_if_nothing_changed() -> None:
    plan = looked(node(), schedule({"a-0": 60, "b-0": 60}, {"i": 40}), replica("a-0"), replica("b-0"), image("i"))
    (write,) = plan.steps
    assert write is plan.status
    assert plan.status is not None
    assert plan.status.if_unchanged
    after = status_written(plan)
    assert states(after) == {"a-0": ("scheduled", 60), "b-0": ("rejected", 0), "i": ("scheduled", 40)}
    assert (after.status.storage_scheduled, after.status.storage_available) == (100, 100)
    assert after.status.observed_generation == after.metadata.generation


def test_the_seeds_example_comes_out_as_the_seed_says() -> None:
    gi = 1024**3
    ledger = schedule(
        {"r1-0": 50 * gi, "r2-0": 50 * gi, "r3-0": 500 * gi, "r4-0": 5 * gi}, {"b1": 50 * gi, "b2": 50 * gi}
    )
    answered = DiskScheduleStatus(
        replicas={"r1-0": granted(50 * gi), "r2-0": granted(50 * gi), "r3-0": rejected(500 * gi)},
        backing_images={"b1": granted(50 * gi), "b2": granted(50 * gi)},
        storage_scheduled=Bytes(200 * gi),
    )
    after = decided(node(available=300 * gi), replace(ledger, status=answered))
    assert states(after)["r4-0"] == ("scheduled", 5 * gi), "which was pending"
    assert states(after)["r3-0"] == ("rejected", 0)
    assert after.status.storage_scheduled == 205 * gi


def test_the_order_is_that_of_the_owners_creation_and_then_of_their_names() -> None:
    ledger = schedule({"a-0": 60, "b-0": 60})
    assert states(decided(node(), ledger, replica("a-0", age=1), replica("b-0", age=2)))["b-0"][0] == "scheduled"
    assert states(decided(node(), ledger, replica("a-0", age=2), replica("b-0", age=2)))["a-0"][0] == "scheduled"


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (Schedulable.DISABLED("off"), "Disabled"),
        (Schedulable.CORDONED("n1"), "Cordoned"),
        (Schedulable.UNHEALTHY("d1"), "Unhealthy"),
        (Schedulable.INACTIVE("d1"), "Inactive"),
        (Schedulable.DELETING("g"), "Deleting"),
        (Schedulable.LOW_SPACE("1 %"), "LowSpace"),
        (Schedulable.DISK_NOT_READY("g"), "DiskNotReady"),
    ],
)
def test_m14_a_disk_that_takes_nothing_new_rejects_with_the_reason_and_keeps_what_it_has(
    verdict: Any, reason: str
) -> None:
    ledger = replace(schedule({"new-0": 1, "old-0": 5}), status=DiskScheduleStatus(replicas={"old-0": granted(5)}))
    after = decided(node(verdicts=(Ready.READY(), verdict)), ledger)
    assert states(after) == {"new-0": ("rejected", 0), "old-0": ("scheduled", 5)}
    answer = after.status.replicas["new-0"]
    assert (answer.reason, answer.message) == (reason, verdict.message)
    assert reasons(after)["Schedulable"] == reason


def test_a_disk_that_shrank_keeps_its_entries_rejects_growth_and_says_by_how_much() -> None:
    ledger = replace(
        schedule({"a-0": 60, "b-0": 31}),
        status=DiskScheduleStatus(
            replicas={"a-0": granted(60), "b-0": granted(30)}, storage_scheduled=Bytes(90), storage_available=Bytes(90)
        ),
    )
    after = decided(node(available=50), ledger)
    assert states(after) == {"a-0": ("scheduled", 60), "b-0": ("rejected", 30)}
    assert after.status.replicas["b-0"].reason == "OverCommitted"
    condition = find(after.status.conditions, OverCommitted)
    assert condition is not None
    assert condition.status == "True"
    assert condition.message == "40 more is granted than the 50 that may be"
    assert (after.status.storage_scheduled, after.status.storage_available) == (90, 50)


def test_a_disk_that_shrinks_and_grows_again_says_so_without_touching_entries() -> None:
    first = decided(node(), schedule({"a-0": 60}))
    shrunk = decided(node(available=50), first)
    assert reasons(shrunk)["OverCommitted"] == "OverCommitted"
    assert shrunk.status.replicas == first.status.replicas
    assert reasons(decided(node(), shrunk))["OverCommitted"] == "WithinLimit"


def test_a_disk_that_is_pulled_keeps_its_entries_and_has_them_when_it_returns() -> None:
    first = decided(node(), schedule({"a-0": 60}))
    away = decided(first)
    assert away.status.replicas == first.status.replicas
    assert away.status.storage_available == 100
    condition = find(away.status.conditions, Schedulable)
    assert condition is not None
    assert condition.reason == "DiskNotFound"
    assert condition.message.endswith("it still has a-0")
    back = decided(node(), away)
    assert (reasons(back)["Schedulable"], states(back)) == ("Schedulable", {"a-0": ("scheduled", 60)})


def test_a_request_to_a_disk_that_is_not_there_is_rejected() -> None:
    after = decided(schedule({"a-0": 1}))
    assert after.status.replicas["a-0"].reason == "DiskNotFound"


def test_a_disk_that_is_moved_takes_its_ledger_along_before_anything_else_is_decided() -> None:
    ledger = replace(schedule({"a-0": 1, "b-0": 1}), status=DiskScheduleStatus(replicas={"a-0": granted(1)}))
    plan = looked(ledger, node("n2", disk="moved"))
    (write,) = plan.steps
    assert isinstance(write, Patch)
    assert (write.patch, write.if_unchanged) == ({"spec": {"nodeID": "n2", "name": "moved"}}, True)
    assert [event.reason for event in plan.events] == ["DiskMoved"]
    after = decided(write.intended, node("n2", disk="moved"))
    assert states(after) == {"a-0": ("scheduled", 1), "b-0": ("scheduled", 1)}


def test_a_second_disk_of_the_same_uuid_is_named_and_not_used() -> None:
    after = decided(schedule(), node("n1"), node("n2"))
    condition = find(after.status.conditions, Schedulable)
    assert condition is not None
    assert condition.message == "disk data on node n1 is used; disk data on node n2 with the same UUID is not"


@pytest.mark.parametrize(
    ("ledger", "nodes", "write"),
    [
        (schedule(), [], Delete),
        (deleting(schedule()), [], ReleaseFinalizer),
        (deleting(schedule()), [node()], ReleaseFinalizer),
        (replace(schedule(), metadata=replace(schedule().metadata, finalizers=())), [node()], AddFinalizer),
    ],
)
def test_a_ledger_goes_when_its_disk_is_gone_and_nothing_is_in_it(
    ledger: DiskSchedule, nodes: list[Node], write: type[object]
) -> None:
    (found,) = looked(ledger, *nodes).steps
    assert type(found) is write
    assert not isinstance(found, Create)
    assert found.if_unchanged, "somebody may be asking at this moment"


@pytest.mark.parametrize("nodes", [[], [node()]])
@pytest.mark.parametrize(
    "ledger",
    [
        schedule({"a-0": 1}),
        schedule(images={"i": 1}),
        replace(schedule(), status=DiskScheduleStatus(replicas={"a-0": granted(1)})),
    ],
)
def test_a_ledger_with_anything_in_it_stays_and_takes_nothing_new_while_it_is_deleted(
    ledger: DiskSchedule, nodes: list[Node]
) -> None:
    plan = looked(deleting(ledger), *nodes)
    assert plan.steps == (plan.status,)
    assert reasons(status_written(plan))["Schedulable"] == "Deleting"


def test_m30_a_rejection_stands_while_the_same_size_is_asked_for_although_there_is_room_by_now() -> None:
    full = decided(node(available=10), schedule({"a-0": 20}))
    roomy = decided(node(available=1000), full)
    assert roomy.status.replicas["a-0"] == full.status.replicas["a-0"]
    asked = replace(roomy, spec=replace(roomy.spec, replicas={"a-0": Bytes(21)}))
    asked = replace(asked, metadata=replace(asked.metadata, generation=2))
    assert states(decided(node(available=1000), asked)) == {"a-0": ("scheduled", 21)}


def test_m31_bytes_stay_granted_until_the_logical_volume_is_gone() -> None:
    first = decided(node(), schedule({"a-0": 60}))
    withdrawn = replace(first, spec=replace(first.spec, replicas={"b-0": Bytes(60)}))
    withdrawn = replace(withdrawn, metadata=replace(withdrawn.metadata, generation=2))
    volume = logical_volume(names.logical_volume("a-0", "data"), size=60)
    plan = looked(node(), withdrawn, volume)
    held = status_written(plan)
    assert states(held) == {"a-0": ("scheduled", 60), "b-0": ("rejected", 0)}
    assert plan.requeue_after == LOOK_AGAIN
    assert states(decided(node(), held)) == {"b-0": ("rejected", 0)}


def test_m31_a_volume_that_is_larger_than_was_asked_for_counts_as_it_is() -> None:
    ledger = replace(schedule({"a-0": 30}), status=DiskScheduleStatus(replicas={"a-0": granted(60)}))
    volume = logical_volume(names.logical_volume("a-0", "data"), size=50)
    volume = replace(volume, spec=replace(volume.spec, size=Quantity("40")))
    assert states(decided(node(), ledger, volume)) == {"a-0": ("scheduled", 50)}


def test_low_space_is_told_and_warned_of_where_somebodys_writes_may_fail() -> None:
    low = node(verdicts=(Ready.READY(), Schedulable.LOW_SPACE("1 %"), LowSpace.LOW_SPACE("1 %")))
    used = decided(node(), schedule({"a-0": 60}))
    plan = looked(low, used)
    assert reasons(status_written(plan))["LowSpace"] == "LowSpace"
    assert {(event.reason, event.warning) for event in plan.events} == {("LowSpace", True)}
    empty = looked(low, decided(node(), schedule()))
    assert reasons(status_written(empty))["LowSpace"] == "LowSpace"
    assert len(empty.events) == 1, "only that it takes nothing new"


def test_people_hear_of_rejections_and_of_conditions_that_flip_and_of_nothing_else() -> None:
    quiet = looked(node(), schedule({"a-0": 60}))
    assert quiet.events == ()
    refused = looked(node(), schedule({"a-0": 101}))
    assert [(event.reason, event.warning) for event in refused.events] == [("Rejected", True)]
    again = looked(node(), status_written(refused))
    assert again.events == ()


class Unreadable(Mapping[str, Any]):
    """A map whose keys can be compared, and that fails when anybody goes through its values."""

    def __init__(self, inner: Mapping[str, Any]) -> None:
        self._inner = inner

    def __getitem__(self, key: str) -> Any:
        raise AssertionError(f"looked at {key}")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("went through the entries")

    def __len__(self) -> int:
        return len(self._inner)

    def keys(self) -> Any:
        return self._inner.keys()


def test_a_pass_without_news_looks_at_no_entry_and_writes_nothing() -> None:
    ledger = observed(decided(node(), schedule({f"r{number}-0": 1 for number in range(90)})))
    hidden = replace(
        ledger,
        spec=replace(ledger.spec, replicas=Unreadable(ledger.spec.replicas)),
        status=replace(ledger.status, replicas=Unreadable(ledger.status.replicas)),
    )
    assert looked(node(), hidden, now=NOW + timedelta(days=1)).steps == ()


def test_ledgers_elsewhere_and_nodes_without_news_of_disks_wake_nobody() -> None:
    watches = {watch.cls: watch for watch in SCHEDULE_CONTROLLER.watches}
    elsewhere = replace(schedule(), metadata=replace(schedule().metadata, namespace="elsewhere"))
    assert list(watches[DiskSchedule].keys(elsewhere)) == []
    when = watches[Node].when
    assert when is not None
    assert not when(node(), replace(node(), spec=replace(node().spec, tags=("x",))))
    assert when(node(), node(available=7))
    assert [key.name for key in watches[Node].keys(node())] == [LEDGER]
