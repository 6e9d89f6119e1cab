"""What a pass sees of a volume, gathered from caches; and which objects wake which volumes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from quorate.api import core, labels, longhorn, names
from quorate.api.conditions.inventory import Ready as InventoryReady
from quorate.api.conditions.merging import merge
from quorate.api.conditions.rv import AllReplicasReady
from quorate.api.conditions.rvr import Ready as ReplicaReady
from quorate.api.core.lease import LeaseSpec
from quorate.api.core.node import NodeCondition, NodeStatus
from quorate.api.longhorn.node import NodeStatus as InventoryStatus
from quorate.api.meta import NodeName, ObjectMeta, Resource, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeAttachment, ReplicatedVolumeReplica
from quorate.api.storage.datamesh import EffectiveLayout, FormationPhase, PendingTransition
from quorate.api.storage.drbd import Connection, ConnectionState, Device, DiskState, DrbdStatus
from quorate.api.storage.rv import ReplicatedVolumeSpec
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.api.struct import replace
from quorate.engine import Index, Key, Reader, Signal, Watch
from quorate.engine.cache import Cache
from quorate.engine.store import ObjectList
from quorate.volumes.controllers import controllers
from quorate.volumes.fanning import fan_out
from quorate.volumes.observe import observe
from quorate.volumes.watches import BURST, OF_VOLUMES, UNTIL_LOST, WATCHES
from tests.volumes.volume.making import (
    NOW,
    granted,
    group,
    group_name,
    ledger,
    lower,
    members_of,
    name,
    node,
    piece,
    pool,
    preconfigured,
    rejected,
    status,
    storage_class,
    unscheduled,
    volume,
)
from tests.volumes.volume.making import C as THREE


class FixedReader(Reader):
    """Reads what it was given, with the indexes of the real controllers."""

    def __init__(self, objects: Sequence[Resource], silent: Mapping[str, float]) -> None:
        indexes: defaultdict[type[Resource], dict[str, Index[Any]]] = defaultdict(dict)
        found = controllers()
        for controller in found:
            for index in controller.indexes:
                indexes[index.cls][index.name] = index
        caches = []
        for cls in {watch.cls for controller in found for watch in controller.watches}:
            cache: Cache[Any] = Cache(cls, indexes=indexes[cls].values())
            cache.replace(ObjectList(tuple(obj for obj in objects if type(obj) is cls), "1"))
            caches.append(cache)
        super().__init__(caches)
        self._silent = silent

    def silent_for(self, cls: type[Resource], name: str, namespace: str = "") -> float | None:
        return self._silent.get(name.removeprefix(names.agent_lease(NodeName(""))))


def lease(number: int, holder: str | None = "an agent") -> core.Lease:
    return core.Lease(
        metadata=ObjectMeta(name=names.agent_lease(node(number)), namespace=names.NAMESPACE),
        spec=LeaseSpec(holder_identity=holder),
    )


def machine(number: int, **metadata: Any) -> core.Node:
    return core.Node(metadata=ObjectMeta(name=node(number), **metadata))


@dataclass
class World:
    objects: list[Resource] = field(default_factory=list)
    silent: dict[str, float] = field(default_factory=dict)

    def reader(self) -> Reader:
        return FixedReader(self.objects, self.silent)


def formed_world() -> World:
    """A formed volume of three on n0 to n2, and everything that belongs to it."""
    members = members_of(THREE)
    world = World(silent={node(number): 1.0 for number in range(5)})
    world.objects = [volume(status(None, members=members)), storage_class(), pool()]
    for number in range(5):
        world.objects += [machine(number), lease(number), group(number)]
    for number in range(3):
        found = preconfigured(number)
        world.objects += [found.replica, *found.volumes, *found.ledgers]
    return world


def test_everything_of_a_volume_is_gathered_and_nothing_of_others() -> None:
    world = formed_world()
    metadata = replace(
        piece(4).metadata, name=names.logical_volume("w-0", "g4"), labels={labels.REPLICATED_VOLUME: "w"}
    )
    stranger = replace(piece(4), metadata=metadata)
    view = observe(FixedReader([*world.objects, stranger, ledger(4, {"w-0": granted()})], world.silent), "v")
    assert view is not None
    assert view.rsc is not None
    assert view.rsp is not None
    assert [each.name for each in view.replicas] == [name(number) for number in range(3)]
    for each in view.replicas:
        assert each.member is not None
        assert each.fresh
        assert each.logical_volume is not None
        assert each.group is not None
        assert len(each.ledgers) == 1
    assert len(view.pieces) == len(view.ledgers) == 3
    assert set(view.nodes) == {node(0), node(1), node(2)}
    assert view.disks == {}


@pytest.mark.parametrize(
    ("silence", "holder", "fresh"),
    [
        (0.0, "an agent", True),
        (40.0, "an agent", True),
        (40.1, "an agent", False),
        # Whoever let go of it is not there, however lately that was.
        (0.0, None, False),
        (0.0, "", False),
        (None, "an agent", False),
    ],
)
def test_an_agent_is_fresh_while_its_lease_is_held_and_renewed(
    silence: float | None, holder: str | None, fresh: bool
) -> None:
    world = formed_world()
    world.objects = [each for each in world.objects if each.name != names.agent_lease(node(0))] + [lease(0, holder)]
    world.silent.pop(node(0))
    if silence is not None:
        world.silent[node(0)] = silence
    view = observe(world.reader(), "v")
    assert view is not None
    assert [each.fresh for each in view.replicas] == [fresh, True, True]


@pytest.mark.parametrize(("silence", "gone"), [(1.0, False), (41.0, True)])
def test_a_node_without_a_core_node_is_gone_once_its_agent_is_silent(silence: float, gone: bool) -> None:
    world = formed_world()
    world.objects = [each for each in world.objects if each.name != node(0)]
    world.silent[node(0)] = silence
    view = observe(world.reader(), "v")
    assert view is not None
    assert view.is_gone(node(0)) is gone


def test_the_disks_of_the_pool_are_looked_at_only_while_a_replica_has_no_place() -> None:
    world = formed_world()
    world.objects += [unscheduled(3).replica, ledger(3), ledger(4)]
    view = observe(world.reader(), "v")
    assert view is not None
    assert set(view.disks) == {group_name(number) for number in range(5)}
    assert {disk.extent for disk in view.disks.values()} == {4 << 20}


def test_a_disk_that_was_carried_to_another_node_is_not_that_nodes() -> None:
    world = formed_world()
    moved = ledger(3)
    world.objects += [unscheduled(3).replica, replace(moved, spec=replace(moved.spec, node_id=node(9)))]
    view = observe(world.reader(), "v")
    assert view is not None
    assert group_name(3) not in view.disks


def test_what_is_kept_of_a_ledger_is_never_used_for_another_version_of_it() -> None:
    world = formed_world()
    world.objects += [unscheduled(3).replica, ledger(3)]
    before = observe(world.reader(), "v")
    world.objects[-1] = ledger(3, available=1)
    after = observe(world.reader(), "v")
    assert before is not None
    assert after is not None
    assert before.disks[group_name(3)].room.free > after.disks[group_name(3)].room.free == 1
    assert before.disks[group_name(0)] is after.disks[group_name(0)]


def test_nothing_is_seen_of_a_volume_of_which_nothing_is_left() -> None:
    assert observe(World().reader(), "v") is None
    left = World([piece(0)])
    found = observe(left.reader(), "v")
    assert found is not None
    assert found.rv is None


# Waking.


def woken(obj: Resource) -> set[str]:
    """Volumes that an object wakes directly."""
    watch = next(each for each in WATCHES if each.cls is type(obj))
    return {key.name for key in watch.keys(obj)}


@pytest.mark.parametrize(
    ("obj", "volumes"),
    [
        (volume(), {"v"}),
        (unscheduled(0).replica, {"v"}),
        (piece(0), {"v"}),
        (
            ReplicatedVolumeAttachment(
                metadata=ObjectMeta(name="a"),
                spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VolumeName("v"), node_name=NodeName("n")),
            ),
            {"v"},
        ),
        (pool(), set()),
        # A ledger wakes those whose request is not answered as asked.
        (ledger(0, {"v-0": lower(), "w-1": granted()}), {"v"}),
        (ledger(0, {"v-0": granted(), "w-1": rejected()}), {"w"}),
        (ledger(0, {"v-0": granted(), "w-1": granted()}), set()),
    ],
)
def test_an_object_that_names_its_volume_wakes_it(obj: Resource, volumes: set[str]) -> None:
    assert woken(obj) == volumes


def test_a_ledger_wakes_also_those_whose_space_is_on_its_way_back() -> None:
    returned = ledger(0, {"v-0": granted(), "w-0": granted()})
    assert woken(replace(returned, spec=replace(returned.spec, replicas={"w-0": granted().requested_size}))) == {"v"}


def fanned_out(world: World, topic: str, subject: str) -> set[str]:
    """Volumes that are woken by a look at a subject."""
    found: set[str] = set()
    signal = Signal()
    signal.subscribe(lambda key: found.add(key.name))
    controller = fan_out(signal)
    seen = controller.observe(world.reader(), Key(topic, subject))
    if seen is not None:
        plan = controller.decide(seen, NOW, Random(1))
        assert plan.steps == ()
        for effect in plan.effects:
            effect()
    return found


def named(name_: str, **spec: Any) -> ReplicatedVolume:
    asked = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="class")
    return ReplicatedVolume(metadata=ObjectMeta(name=name_), spec=replace(asked, **spec))


def test_a_class_concerns_its_volumes() -> None:
    world = formed_world()
    world.objects += [named("w"), named("x", replicated_storage_class_name="other")]
    assert fanned_out(world, "class", "class") == {"v", "w"}


def test_a_node_concerns_volumes_that_are_there_or_are_to_be() -> None:
    world = formed_world()
    world.objects += [named("w", publish_on=(node(4),)), named("x")]
    assert fanned_out(world, "node", node(0)) == {"v"}
    assert fanned_out(world, "node", node(4)) == {"w"}
    assert fanned_out(world, "node", node(3)) == set()


def test_a_pool_concerns_only_volumes_that_change_or_wait() -> None:
    world = formed_world()
    assert fanned_out(world, "pool", "pool") == set()
    forming = replace(volume(status(FormationPhase.PRECONFIGURE)), metadata=ObjectMeta(name="w"))
    world.objects.append(forming)
    assert fanned_out(world, "pool", "pool") == {"w"}
    world.objects.append(unscheduled(3).replica)
    assert fanned_out(world, "pool", "pool") == {"v", "w"}
    assert fanned_out(world, "pool", "other") == set()


def test_a_disk_with_more_room_concerns_those_who_wait_for_a_place_in_its_pool() -> None:
    world = formed_world()
    assert fanned_out(world, "disk", group_name(0)) == set()
    world.objects.append(unscheduled(3).replica)
    assert fanned_out(world, "disk", group_name(0)) == {"v"}
    assert fanned_out(world, "disk", "elsewhere") == set()


def heard(before: Resource | None, after: Resource | None) -> bool:
    """Whether a change of an object concerns many."""
    cls = type(after if after is not None else before)
    watch = next(each for each in fan_out(Signal()).watches if each.cls is cls)
    assert watch.when is not None
    return watch.when(before, after)


def with_room(scheduled: int, available: int) -> longhorn.DiskSchedule:
    found = ledger(0, available=available)
    return replace(found, status=replace(found.status, storage_scheduled=scheduled))


def ready(value: str) -> core.Node:
    return replace(machine(0), status=NodeStatus(conditions=(NodeCondition(type="Ready", status=value),)))


def inventory(reason: Any) -> longhorn.Node:
    found = merge((), [reason()], now=NOW)
    return longhorn.Node(metadata=ObjectMeta(name=node(0)), status=InventoryStatus(conditions=found))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (with_room(5, 10), with_room(4, 10), True),
        (with_room(5, 10), with_room(5, 11), True),
        (with_room(5, 10), with_room(6, 10), False),
        (with_room(5, 10), with_room(5, 10), False),
        (None, with_room(0, 10), True),
        (with_room(0, 10), None, False),
        (storage_class(), storage_class(generation=2), True),
        (storage_class(), storage_class(message="words"), False),
        (pool(), pool((0, 1)), True),
        (pool(), pool(), False),
        (ready("True"), ready("Unknown"), True),
        (ready("True"), ready("True"), False),
        (machine(0), machine(0, annotations={"a": "b"}), True),
        (machine(0), None, True),
        (lease(0), lease(0, "another"), False),
        (lease(0), lease(0, None), True),
        (inventory(InventoryReady.READY), inventory(InventoryReady.AGENT_NOT_READY), True),
        (inventory(InventoryReady.READY), inventory(InventoryReady.READY), False),
    ],
)
def test_only_changes_that_a_volume_cares_about_are_heard(
    before: Resource | None, after: Resource | None, expected: bool
) -> None:
    assert heard(before, after) is expected


# What is only said of a volume and its replicas wakes neither of their reconcilers.


def matters(watches: tuple[Watch[Any], ...], before: Resource, after: Resource) -> bool:
    watch = next(each for each in watches if each.cls is type(before))
    return watch.when is None or watch.when(before, after)


def said_of_volume(**said: Any) -> ReplicatedVolume:
    found = volume(status(None, members=members_of(THREE)))
    return replace(found, status=replace(found.status, **said))


def said_of_replica(**said: Any) -> ReplicatedVolumeReplica:
    found = preconfigured(0).replica
    return replace(found, status=replace(found.status, **said))


WORDS = merge((), [AllReplicasReady.REPLICAS_NOT_READY("not ready: [1]")], now=NOW)
READY = merge((), [ReplicaReady.READY()], now=NOW)
SILENT = merge((), [ReplicaReady.AGENT_NOT_READY()], now=NOW)


@pytest.mark.parametrize(
    ("before", "after", "heard"),
    [
        (said_of_volume(), said_of_volume(message="m", conditions=WORDS), False),
        (said_of_volume(), said_of_volume(effective_layout=EffectiveLayout(stale_agents=1)), False),
        (said_of_volume(), said_of_volume(datamesh_revision=9), True),
        (said_of_volume(), said_of_volume(published_on=(node(1),)), True),
        (said_of_replica(), said_of_replica(message="m", size=Quantity("1Gi")), False),
        (said_of_replica(), said_of_replica(conditions=READY), True),
        (said_of_replica(conditions=READY), said_of_replica(conditions=SILENT), False),
        (said_of_replica(conditions=SILENT), said_of_replica(conditions=READY), True),
        (said_of_replica(), said_of_replica(datamesh_revision=9), True),
        (said_of_replica(), said_of_replica(datamesh_pending_transition=PendingTransition(member=True)), True),
    ],
)
def test_words_alone_wake_nobody_and_everything_else_does(before: Resource, after: Resource, heard: bool) -> None:
    renamed = replace(after, metadata=replace(after.metadata, resource_version="9"))
    assert matters(OF_VOLUMES, before, renamed) is heard


@pytest.mark.parametrize("found", [said_of_volume(), said_of_replica()])
def test_a_change_of_metadata_or_of_the_spec_is_heard(found: Resource) -> None:
    deleting = replace(found, metadata=replace(found.metadata, deletion_timestamp=NOW))
    annotated = replace(found, metadata=replace(found.metadata, annotations={"a": "b"}))
    for after in (deleting, annotated):
        assert matters(OF_VOLUMES, found, after)


# A node that is lost is told of by many, and looked at once.


def linked(*states: str, quorum: bool = True, disk: str = DiskState.UP_TO_DATE) -> ReplicatedVolumeReplica:
    """A replica whose links to its peers are so."""
    found = preconfigured(0).replica
    links = tuple(Connection(peer_node_id=number + 1, connection_state=state) for number, state in enumerate(states))
    report = DrbdStatus(
        name="v", role="Secondary", devices=(Device(disk_state=disk, quorum=quorum),), connections=links
    )
    return replace(found, status=replace(found.status, drbd=replace(found.status.drbd, status=report)))


CONNECTED, CONNECTING, FAILED = (
    ConnectionState.CONNECTED,
    ConnectionState.CONNECTING,
    ConnectionState.NETWORK_FAILURE,
)


def generation(number: int, found: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    return replace(found, metadata=replace(found.metadata, generation=number))


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        (linked(CONNECTED, CONNECTED), linked(FAILED, CONNECTED), UNTIL_LOST),
        (linked(FAILED, CONNECTED), linked(CONNECTING, CONNECTED), UNTIL_LOST),
        (linked(CONNECTED, CONNECTED), linked(FAILED, FAILED), UNTIL_LOST),
        # Who waits for a link waits no longer than until the other end has noticed it too.
        (linked(CONNECTING, CONNECTED), linked(CONNECTED, CONNECTED), BURST),
        (linked(CONNECTING, CONNECTED), linked(CONNECTED, CONNECTING), BURST),
        # So does whoever waits for anything else.
        (linked(CONNECTED, CONNECTED), linked(FAILED, CONNECTED, quorum=False), BURST),
        (linked(CONNECTED, CONNECTED), linked(FAILED, CONNECTED, disk=DiskState.FAILED), BURST),
        (linked(CONNECTED, CONNECTED), linked(CONNECTED), BURST),
        (said_of_replica(), said_of_replica(conditions=READY), BURST),
        # What people and controllers do is looked at now.
        (None, linked(FAILED, CONNECTED), 0.0),
        (linked(FAILED, CONNECTED), None, 0.0),
        (linked(CONNECTED), generation(2, linked(CONNECTED)), 0.0),
    ],
)
def test_what_agents_say_can_wait_for_the_others_and_a_lost_link_for_all_who_notice(
    before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None, waits: float
) -> None:
    watch = next(each for each in OF_VOLUMES if each.cls is ReplicatedVolumeReplica)
    assert watch.patience is not None
    assert watch.patience(before, after) == waits


def test_a_new_volume_is_looked_at_once_it_has_its_minor() -> None:
    watch = next(each for each in OF_VOLUMES if each.cls is ReplicatedVolume)
    assert watch.patience is not None
    new, numbered = volume(), volume(status(None))
    assert watch.patience(None, new) == BURST
    assert watch.patience(new, numbered) == 0.0
    assert watch.patience(None, numbered) == 0.0
    assert watch.patience(new, None) == 0.0


def test_a_ledger_wakes_whom_it_owes_an_answer_in_each_of_its_states() -> None:
    watch = next(each for each in WATCHES if each.cls is longhorn.DiskSchedule)
    asked = ledger(0, {"v-0": granted(), "w-1": 5})
    told = ledger(0, {"v-0": granted(), "w-1": granted()})
    for state, expected in ((asked, ["w"]), (told, []), (asked, ["w"]), (told, []), (ledger(0), [])):
        assert [each.name for each in watch.keys(state)] == expected
