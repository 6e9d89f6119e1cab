"""Backing images: one step at a time, and whole lives on a bad network."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from quorate.api import all_kinds, annotation_keys, core, finalizers, labels, names
from quorate.api.annotation_keys import Process
from quorate.api.baremetal import Volume
from quorate.api.baremetal.volume import LocationType, VolumeSpec
from quorate.api.conditions import find
from quorate.api.conditions.backing_image import Ready
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.merging import merge
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.backing_image import BackingImageStatus, CopyState, DiskFileSpec, DiskFileStatus
from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus, DiskScheduleStatus
from quorate.api.longhorn.node import DiskSpec, DiskStatus, NodeSpec, NodeStatus
from quorate.api.meta import Bytes, NodeName, ObjectMeta, Resource
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.struct import replace
from quorate.disks import CONTROLLERS
from quorate.disks.images.controller import IMAGE_CONTROLLER, LOOK_FOR_SPACE
from quorate.disks.images.copies import IMAGE_LABEL, logical_volume_name, reported
from quorate.disks.images.view import ImageView
from quorate.engine import AddFinalizer, Create, Delete, Patch, Plan, ReleaseFinalizer
from quorate.engine.manager import Election, Manager
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.errors import NotFound
from tests.disks.cluster import Agents, EveryVersion, ledger_of
from tests.disks.making import (
    GI,
    NOW,
    deleting,
    granted,
    image,
    inventory,
    logical_volume,
    machine,
    pass_over,
    rejected,
    schedule,
    status_written,
)
from tests.support.faults import FaultyStore, bad
from tests.support.widgets import open_store

OPEN = Schedulable.SCHEDULABLE()
MAP = {"U1": DiskFileSpec()}


def node(number: int, *, tags: tuple[str, ...] = (), disk_tags: tuple[str, ...] = ()) -> Node:
    """A node with one disk."""
    name = f"n{number}"
    spec = NodeSpec(tags=tags, disks={f"g{number}": DiskSpec(tags=disk_tags)} if disk_tags else {})
    disks = {f"g{number}": DiskStatus(disk_uuid=f"U{number}", extent_size=Bytes(4 * 1024**2))}
    return replace(inventory(name, spec), status=NodeStatus(disk_status=disks))


def ledger(
    number: int,
    asked: int | None = None,
    answer: DiskScheduledResourcesStatus | None = None,
    *,
    available: int = 10 * GI,
    scheduled: int = 0,
    verdict: Any = OPEN,
) -> DiskSchedule:
    made = schedule(
        images={} if asked is None else {"os": asked}, uuid=f"U{number}", disk=f"g{number}", node=f"n{number}"
    )
    status = DiskScheduleStatus(
        backing_images={} if answer is None else {"os": answer},
        storage_available=Bytes(available),
        storage_scheduled=Bytes(scheduled),
        conditions=merge((), [verdict], now=NOW),
    )
    return replace(made, status=status)


def copy(number: int, phase: LogicalVolumePhase | None = LogicalVolumePhase.CREATED, **status: Any) -> LVMLogicalVolume:
    made = logical_volume(
        logical_volume_name("os", f"g{number}"),
        phase=phase,
        labels={labels.NODE: f"n{number}", IMAGE_LABEL: "os"},
    )
    return replace(made, status=replace(made.status, **status))


def looked(*objects: Resource) -> Plan:
    return pass_over(IMAGE_CONTROLLER, "os", *objects)


def patches(plan: Plan) -> list[Any]:
    return [write.patch for write in plan.steps if isinstance(write, Patch)]


def verdict(plan: Plan) -> tuple[str, str]:
    condition = find(status_written(plan).status.conditions, Ready)
    assert condition is not None
    return condition.status.value, condition.reason


def test_the_finalizer_comes_before_everything() -> None:
    bare = replace(image(), metadata=replace(image().metadata, finalizers=()))
    (write,) = looked(bare, node(1), ledger(1)).steps
    assert isinstance(write, AddFinalizer)


def test_an_image_of_unknown_size_asks_for_nothing() -> None:
    plan = looked(image(size=None), node(1), ledger(1))
    assert plan.steps == (plan.status,)
    assert verdict(plan) == ("False", "SizeUnknown")


def test_an_image_elsewhere_is_told_where_it_should_be() -> None:
    elsewhere = replace(image(), metadata=replace(image().metadata, namespace="default"))
    plan = IMAGE_CONTROLLER.decide(ImageView(elsewhere), NOW, Random(0))
    assert verdict(plan) == ("False", "WrongNamespace")
    assert plan.steps == (plan.status,)


def test_a_disk_is_written_down_before_it_is_asked() -> None:
    plan = looked(image(), node(1), ledger(1))
    assert patches(plan) == [{"spec": {"diskFileSpecMap": {"U1": {}}}}]
    assert all(write.if_unchanged for write in plan.steps if isinstance(write, Patch)), "people write it too"
    asked = looked(image(disk_file_spec_map=MAP), node(1), ledger(1))
    assert patches(asked) == [{"spec": {"backingImages": {"os": GI}}}]


def test_what_is_asked_for_is_whole_extents() -> None:
    plan = looked(image(disk_file_spec_map=MAP, size=Quantity("1")), node(1), ledger(1))
    assert patches(plan) == [{"spec": {"backingImages": {"os": 4 * 1024**2}}}]


def test_copies_go_apart_first_and_then_where_most_room_is() -> None:
    plan = looked(
        image(min_number_of_copies=2, disk_file_spec_map=MAP),
        *(node(number) for number in (1, 2, 3)),
        ledger(1, GI, granted(GI)),
        ledger(2, available=5 * GI),
        ledger(3, available=6 * GI),
        copy(1),
    )
    assert patches(plan) == [{"spec": {"diskFileSpecMap": {"U3": {}}}}]


def test_a_second_disk_of_a_node_that_has_a_copy_comes_last_however_much_room_it_has() -> None:
    second = replace(ledger(4, available=9 * GI), spec=replace(ledger(4).spec, node_id=NodeName("n1")))
    disks = {**node(1).status.disk_status, **node(4).status.disk_status}
    both = replace(node(1), status=NodeStatus(disk_status=disks))
    found = image(min_number_of_copies=2, disk_file_spec_map=MAP)
    first = ledger(1, GI, granted(GI))
    plan = looked(found, both, node(2), first, second, ledger(2, available=2 * GI), copy(1))
    assert patches(plan) == [{"spec": {"diskFileSpecMap": {"U2": {}}}}]
    assert patches(looked(found, both, first, second, copy(1))) == [{"spec": {"diskFileSpecMap": {"U4": {}}}}]


@pytest.mark.parametrize(
    ("wishes", "chosen"),
    [
        ({"node_selector": ("ssd",)}, "U2"),
        ({"disk_selector": ("fast",)}, "U3"),
        ({"node_selector": ("ssd",), "disk_selector": ("fast",)}, None),
    ],
)
def test_only_nodes_and_disks_with_the_tags_are_chosen(wishes: Any, chosen: str | None) -> None:
    nodes = [node(1), node(2, tags=("ssd", "x")), node(3, disk_tags=("fast",))]
    plan = looked(image(**wishes), *nodes, *(ledger(number) for number in (1, 2, 3)))
    assert patches(plan) == ([] if chosen is None else [{"spec": {"diskFileSpecMap": {chosen: {}}}}])


@pytest.mark.parametrize(
    "refusing",
    [
        ledger(1, available=GI - 1),
        ledger(1, scheduled=10 * GI),
        ledger(1, verdict=Schedulable.DISABLED()),
        deleting(ledger(1)),
    ],
)
def test_with_no_room_anywhere_it_waits_asks_nobody_and_says_why(refusing: DiskSchedule) -> None:
    plan = looked(image(), node(1), refusing)
    assert patches(plan) == []
    assert verdict(plan) == ("False", "NoSpace")
    assert plan.requeue_after == LOOK_FOR_SPACE


def test_m33_what_was_granted_becomes_a_logical_volume_with_its_finalizers_and_its_source() -> None:
    found = image(disk_file_spec_map=MAP, source_path="/os.img", checksum="ab")
    plan = looked(found, node(1), ledger(1, GI, granted(GI)))
    (create,) = [write for write in plan.steps if isinstance(write, Create)]
    made = create.obj
    assert isinstance(made, LVMLogicalVolume)
    assert made.metadata.finalizers == finalizers.OF_A_NEW_LOGICAL_VOLUME
    assert made.metadata.labels[labels.NODE] == "n1"
    assert made.spec.source is not None
    assert (made.spec.source.path, made.spec.source.checksum, int(made.spec.size)) == ("/os.img", "ab", GI)
    assert (made.spec.lvm_volume_group_name, made.spec.thin) == ("g1", None)


def test_on_a_thin_pool_the_copy_is_thin() -> None:
    thin = replace(ledger(1, GI, granted(GI)), spec=replace(ledger(1, GI).spec, name="g1/pool"))
    plan = looked(image(disk_file_spec_map=MAP), node(1), thin)
    (made,) = [write.obj for write in plan.steps if isinstance(write, Create)]
    assert isinstance(made, LVMLogicalVolume)
    assert made.spec.thin is not None
    assert (made.spec.type, made.spec.thin.pool_name, made.spec.lvm_volume_group_name) == ("Thin", "pool", "g1")


def test_a_disk_that_rejects_is_withdrawn_from_given_up_and_replaced() -> None:
    full = ledger(1, GI, rejected(GI), scheduled=10 * GI)
    plan = looked(image(disk_file_spec_map=MAP), node(1), node(2), full, ledger(2))
    assert patches(plan) == [{"spec": {"diskFileSpecMap": None}}, {"spec": {"backingImages": None}}]
    after = looked(image(), node(1), node(2), ledger(1, scheduled=10 * GI), ledger(2))
    assert patches(after) == [{"spec": {"diskFileSpecMap": {"U2": {}}}}]


@pytest.mark.parametrize(
    ("found", "state", "reason"),
    [
        (copy(1), CopyState.READY, "Ready"),
        (copy(1, None), CopyState.IN_PROGRESS, "CopiesPending"),
        (copy(1, LogicalVolumePhase.PENDING), CopyState.IN_PROGRESS, "CopiesPending"),
        (copy(1, LogicalVolumePhase.FAILED, reason="SourceNotFound"), CopyState.FAILED, "CopyFailed"),
    ],
)
def test_a_copy_is_as_its_logical_volume_is(found: LVMLogicalVolume, state: CopyState, reason: str) -> None:
    plan = looked(image(disk_file_spec_map=MAP), node(1), ledger(1, GI, granted(GI)), found)
    status = status_written(plan).status
    assert status.disk_file_status_map["U1"].state is state
    assert verdict(plan)[1] == reason
    assert status.ready_copies == (1 if state is CopyState.READY else 0)


def test_a_copys_time_moves_only_with_its_state() -> None:
    first = reported(None, CopyState.PENDING, "", NOW)
    later = NOW + timedelta(minutes=1)
    assert reported(first, CopyState.PENDING, "more to say", later).last_state_transition_time == NOW
    ready = reported(first, CopyState.READY, "", later)
    assert (ready.last_state_transition_time, ready.progress) == (later, 100)


def test_a_failed_copy_is_replaced_elsewhere_and_given_up_when_there_are_enough() -> None:
    failed = copy(1, LogicalVolumePhase.FAILED)
    plan = looked(image(disk_file_spec_map=MAP), node(1), node(2), ledger(1, GI, granted(GI)), ledger(2), failed)
    assert patches(plan) == [{"spec": {"diskFileSpecMap": {"U2": {}}}}]
    both = image(disk_file_spec_map={**MAP, "U2": DiskFileSpec()})
    ledgers = [ledger(number, GI, granted(GI)) for number in (1, 2)]
    enough = looked(both, node(1), node(2), *ledgers, failed, copy(2))
    assert patches(enough) == [{"spec": {"diskFileSpecMap": {"U1": None}}}]


def test_only_so_many_disks_are_tried_in_vain() -> None:
    numbers = (1, 2, 3)
    tried = image(disk_file_spec_map={f"U{number}": DiskFileSpec() for number in numbers})
    failed = [copy(number, LogicalVolumePhase.FAILED) for number in numbers]
    ledgers = [ledger(number, GI, granted(GI)) for number in numbers]
    plan = looked(tried, *(node(number) for number in (1, 2, 3, 4)), *ledgers, ledger(4), *failed)
    assert patches(plan) == []
    assert verdict(plan)[1] == "CopyFailed"


@pytest.mark.parametrize(
    "why", [Schedulable.UNHEALTHY("d"), Schedulable.DISK_NOT_READY("n"), Schedulable.DELETING("g")]
)
def test_a_copy_on_a_disk_that_cannot_be_counted_on_is_made_again_elsewhere_and_left_alone(why: Any) -> None:
    leaving = ledger(1, GI, granted(GI), verdict=why)
    plan = looked(image(disk_file_spec_map=MAP), node(1), node(2), leaving, ledger(2), copy(1))
    assert patches(plan) == [{"spec": {"diskFileSpecMap": {"U2": {}}}}]
    assert not any(isinstance(write, Delete) for write in plan.steps)


def procedure(number: int, process: Process = Process.START, *, given_up: bool = True, deleted: bool = True) -> Volume:
    """What the procedure of the drive under a copy says of it."""
    name = logical_volume_name("os", f"g{number}")
    metadata = ObjectMeta(
        name=name,
        namespace=names.NAMESPACE,
        labels={IMAGE_LABEL: "os"},
        annotations={annotation_keys.RELEASE_PROCESS: process}
        | ({annotation_keys.GIVEN_UP: "true"} if given_up else {}),
        finalizers=(finalizers.VOLUME_CLEANUP,),
    )
    spec = VolumeSpec(id=name, location=f"g{number}", location_type=LocationType.LVM, node_id=NodeName(f"n{number}"))
    made = Volume(metadata=metadata, spec=spec)
    return deleting(made) if deleted else made


UNHEALTHY = Schedulable.UNHEALTHY("d")
GOING = (ledger(1, GI, granted(GI), verdict=UNHEALTHY), copy(1))


@pytest.mark.parametrize(
    ("copies", "objects", "goes"),
    [
        pytest.param(1, (*GOING, procedure(1), ledger(2, GI, granted(GI)), copy(2)), True, id="another one is good"),
        pytest.param(
            1, (*GOING, procedure(1, deleted=False), ledger(2, GI, granted(GI)), copy(2)), False, id="not asked"
        ),
        pytest.param(
            1,
            (*GOING, procedure(1, given_up=False), ledger(2, GI, granted(GI)), copy(2)),
            False,
            id="somebody else deleted its Volume",
        ),
        pytest.param(2, (*GOING, procedure(1), ledger(2, GI, granted(GI)), copy(2)), False, id="too few others"),
        pytest.param(1, (*GOING, procedure(1), ledger(2, GI, granted(GI)), copy(2, None)), False, id="not made yet"),
        pytest.param(
            1,
            (*GOING, procedure(1), ledger(2, GI, granted(GI), verdict=Schedulable.DISK_NOT_READY("n")), copy(2)),
            False,
            id="the other one has gone since",
        ),
        pytest.param(
            1,
            (*GOING, procedure(1, Process.STOP), ledger(2, GI, granted(GI)), copy(2)),
            False,
            id="the drive stays after all",
        ),
        pytest.param(
            1,
            (ledger(1, GI, granted(GI)), copy(1), procedure(1), ledger(2, GI, granted(GI)), copy(2), procedure(2)),
            False,
            id="both are asked to go",
        ),
    ],
)
def test_a_copy_on_a_drive_that_is_removed_goes_only_while_there_are_enough_elsewhere(
    copies: int, objects: tuple[Resource, ...], goes: bool
) -> None:
    both = image(disk_file_spec_map={**MAP, "U2": DiskFileSpec()}, min_number_of_copies=copies)
    plan = looked(both, node(1), node(2), *objects)
    assert patches(plan) == ([{"spec": {"diskFileSpecMap": {"U1": None}}}] if goes else [])
    assert not any(isinstance(write, Delete) for write in plan.steps)


@pytest.mark.parametrize(("given_up", "goes"), [(True, True), (False, False)])
def test_a_copy_that_is_not_intended_stays_until_a_person_is_ready_whoever_deletes_its_volume(
    given_up: bool, goes: bool
) -> None:
    only_the_other = image(disk_file_spec_map={"U2": DiskFileSpec()}, min_number_of_copies=1)
    others = (ledger(2, GI, granted(GI)), copy(2))
    plan = looked(only_the_other, node(1), node(2), *GOING, procedure(1, given_up=given_up), *others)
    assert any(isinstance(write, Delete) for write in plan.steps) is goes


def first_step(*objects: Resource) -> Any:
    """The first step of letting go."""
    return looked(*objects).steps[0]


def test_a_copy_goes_volume_first_then_the_ledgers_entry_then_the_finalizer() -> None:
    gone = deleting(image(disk_file_spec_map=MAP))
    held = ledger(1, GI, granted(GI))
    assert isinstance(first_step(gone, node(1), held, copy(1), machine("n1")), Delete)
    let_go = first_step(gone, node(1), held, deleting(copy(1)), machine("n1"))
    assert isinstance(let_go, ReleaseFinalizer)
    assert let_go.finalizer == finalizers.CONTROLLER
    agents = deleting(copy(1))
    agents = replace(agents, metadata=replace(agents.metadata, finalizers=(finalizers.AGENT,)))
    waiting = looked(gone, node(1), held, agents, machine("n1"))
    assert waiting.steps == (waiting.status,), "the agent's turn"
    assert patches(looked(gone, node(1), held)) == [{"spec": {"backingImages": None}}]
    last = first_step(gone, node(1), ledger(1))
    assert isinstance(last, ReleaseFinalizer)
    assert last.finalizer == finalizers.LONGHORN
    assert [left.cls for left in last.after] == [LVMLogicalVolume]


def test_only_for_a_machine_that_is_gone_do_we_let_go_in_the_agents_stead() -> None:
    agents = deleting(copy(1))
    agents = replace(agents, metadata=replace(agents.metadata, finalizers=(finalizers.AGENT,)))
    write = first_step(deleting(image(disk_file_spec_map=MAP)), node(1), ledger(1, GI, granted(GI)), agents)
    assert isinstance(write, ReleaseFinalizer)
    assert write.finalizer == finalizers.AGENT
    assert [left.cls for left in write.after] == [core.Node]


@pytest.mark.parametrize(
    "found",
    [
        image(disk_file_spec_map=MAP),
        replace(image(), status=BackingImageStatus(disk_file_status_map={"U1": DiskFileStatus()})),
        image(),
    ],
)
def test_it_is_deallocated_wherever_either_map_or_a_ledger_says_so(found: BackingImage) -> None:
    assert patches(looked(deleting(found), node(1), ledger(1, GI, granted(GI)))) == [{"spec": {"backingImages": None}}]


def test_a_copy_that_a_person_takes_off_the_map_is_removed() -> None:
    plan = looked(image(disk_file_spec_map={"U2": DiskFileSpec()}), ledger(1, GI, granted(GI)), node(1), copy(1))
    assert any(isinstance(write, Delete) for write in plan.steps)


def test_a_logical_volume_whose_disk_has_moved_away_does_not_hold_the_image_for_ever() -> None:
    assert isinstance(first_step(deleting(image()), copy(1), machine("n1")), Delete)


def test_replicas_entries_wake_no_image() -> None:
    (watch,) = [watch for watch in IMAGE_CONTROLLER.watches if watch.cls is DiskSchedule]
    before = ledger(1, GI)
    after = replace(before, spec=replace(before.spec, replicas={"v-0": Bytes(1)}))
    assert watch.when is not None
    assert not watch.when(before, after)
    assert [key.name for key in watch.keys(before)] == ["os"]


def test_an_image_and_a_replica_never_share_a_logical_volume() -> None:
    assert logical_volume_name("v-0", "g1") != names.logical_volume("v-0", "g1")


async def life(sim: Simulation) -> None:
    store = await open_store(sim, kinds=all_kinds())
    agents, eye, faults = Agents(store, sim.clock), EveryVersion(store), bad()
    for number in (1, 2, 3):
        await agents.install(f"n{number}", f"g{number}", 2 * GI)
    sim.process("agents").spawn(agents.run())
    sim.process("eye").spawn(eye.run())
    link = FaultyStore(store, sim, sender="a", faults=faults, network=sim.process("network"))
    manager = Manager(
        link,
        CONTROLLERS,
        clock=sim.clock,
        random=sim.random("a"),
        identity="a",
        election=Election("disks", names.NAMESPACE),
    )
    sim.process("a").spawn(manager.run())
    spec = image(min_number_of_copies=2).spec
    for name in ("a", "b", "c", "d"):
        await store.create(BackingImage(metadata=ObjectMeta(name=name, namespace=names.NAMESPACE), spec=spec))
    await sim.clock.sleep(200)
    faults.end()
    await sim.clock.sleep(400)
    await eye.caught_up()
    found = (await store.list(BackingImage)).items
    assert sum(each.status.ready_copies for each in found) == 6, (
        "six copies fit on three disks, and eight are asked for"
    )
    assert len((await store.list(LVMLogicalVolume)).items) == 6
    for each in found:
        condition = find(each.status.conditions, Ready)
        assert condition is not None
        assert condition.reason == ("Ready" if each.status.ready_copies == 2 else "NoSpace")
    # One goes: those that wait get its place.
    (first, *_) = [each for each in found if each.status.ready_copies == 2]
    await store.delete(BackingImage, first.name, names.NAMESPACE)
    await sim.clock.sleep(120)
    assert [each.status.ready_copies for each in (await store.list(BackingImage)).items] == [2, 2, 2]
    with pytest.raises(NotFound):
        await store.get(BackingImage, first.name, names.NAMESPACE)
    # All go, and nothing is left.
    for each in (await store.list(BackingImage)).items:
        await store.delete(BackingImage, each.name, names.NAMESPACE)
    await sim.clock.sleep(120)
    assert (await store.list(BackingImage)).items == ()
    assert (await store.list(LVMLogicalVolume)).items == ()
    for number in (1, 2, 3):
        left = await store.get(DiskSchedule, ledger_of(f"g{number}"), names.NAMESPACE)
        assert (left.status.storage_scheduled, left.spec.backing_images) == (0, {})
    await eye.caught_up()


def test_images_come_wait_for_room_and_go_on_a_bad_network() -> None:
    for_each_seed(life, range(6))
