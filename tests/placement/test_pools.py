"""The controller of pools: what it says, what wakes it, and its life with nodes that come, go and flap."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace as but
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from quorate.api import all_kinds, annotation_keys, core, names
from quorate.api.cluster_config import ClusterConfigSpec
from quorate.api.conditions import find
from quorate.api.conditions.rsp import Ready, VolumeGroupsLeft
from quorate.api.core import Event, Lease
from quorate.api.duration import Duration
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.storage.configuration import EligibleNodesPolicy
from quorate.api.storage.lvg import LVMVolumeGroup, ThinPoolStatus, VolumeGroupPhase
from quorate.api.storage.rsc import ReplicatedStorageClass
from quorate.api.storage.rsp import LabelSelector, ReplicatedStoragePool, StoragePoolPhase
from quorate.api.struct import replace
from quorate.engine import PatchStatus, Plan
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.errors import NotFound
from quorate.nodes import CONTROLLERS as NODE_CONTROLLERS
from quorate.placement import CONTROLLERS
from quorate.placement.eligibility import Machine
from quorate.placement.pools import POOLS, Ground, decide, observe
from quorate.placement.selector import flaw
from tests.placement.objects import NOW, group, lease, machine, meta, pool, storage_class
from tests.support.faults import FaultyStore, bad
from tests.support.widgets import open_store

UNUSABLE = LabelSelector(match_labels={"a b": ""})


def ground(
    *pools: ReplicatedStoragePool,
    groups: tuple[LVMVolumeGroup, ...] = (),
    nodes: tuple[core.Node, ...] = (),
    silent_for: float | None = 0.0,
    classes: tuple[ReplicatedStorageClass, ...] = (),
) -> Ground:
    machines = tuple(Machine(node, silent_for, has_agent=True) for node in nodes)
    return Ground(pools, classes, {found.name: found for found in groups}, machines, ClusterConfigSpec())


def decided(found: Ground, now: datetime = NOW) -> Plan:
    return decide(found, now, Random(0))


def reported(found: Ground, now: datetime = NOW) -> ReplicatedStoragePool:
    """The one pool after its status has been written as decided; as it was if nothing was to be written."""
    for write in decided(found, now).steps:
        assert isinstance(write, PatchStatus)
        assert isinstance(write.intended, ReplicatedStoragePool)
        return write.intended
    (only,) = found.pools
    return only


def test_what_was_taken_out_is_told_of_until_nothing_is_there() -> None:
    before = reported(ground(pool("a"), groups=(group("a", "n1"),), nodes=(machine("n1"),)))
    here = {before.name: {("gone", None): ("v-0", "w-1"), ("thin", "t"): ()}}
    leaving = reported(but(ground(before, groups=(group("a", "n1"),), nodes=(machine("n1"),)), leaving=here))
    assert [(each.name, each.thin_pool_name, each.replicas) for each in leaving.status.leaving_volume_groups] == [
        ("gone", None, 2)
    ]
    said = find(leaving.status.conditions, VolumeGroupsLeft)
    assert said is not None
    assert (said.status, said.reason) == ("False", "Leaving")
    assert "gone: 2 (v-0, w-1)" in leaving.status.message
    assert leaving.status.phase is StoragePoolPhase.READY
    empty = but(
        ground(leaving, groups=(group("a", "n1"),), nodes=(machine("n1"),)), leaving={before.name: {("gone", None): ()}}
    )
    assert reported(empty).status.leaving_volume_groups == ()
    assert [event.reason for event in decided(empty).events] == ["Left"]
    # Taken in again: nothing is told of as done.
    assert not decided(ground(leaving, groups=(group("a", "n1"),), nodes=(machine("n1"),))).events


@pytest.mark.parametrize(
    ("found", "reason", "phase", "message"),
    [
        (ground(pool("g"), groups=(group("g", "n"),)), "Ready", StoragePoolPhase.READY, ""),
        (
            ground(pool("g", "h")),
            "LVMVolumeGroupNotFound",
            StoragePoolPhase.WAITING_FOR_LVM_VOLUME_GROUPS,
            "LVMVolumeGroups that do not exist: g, h",
        ),
        (
            ground(pool(*(f"g{number}" for number in range(8)))),
            "LVMVolumeGroupNotFound",
            StoragePoolPhase.WAITING_FOR_LVM_VOLUME_GROUPS,
            "LVMVolumeGroups that do not exist: g0, g1, g2, g3, g4 and 3 more",
        ),
        (
            ground(pool("g/t"), groups=(group("g", "n"),)),
            "InvalidLVMVolumeGroup",
            StoragePoolPhase.INVALID_CONFIGURATION,
            "thin pools that do not exist: g/t",
        ),
        (ground(pool("g/t"), groups=(group("g", "n", planned=["t"]),)), "Ready", StoragePoolPhase.READY, ""),
        (
            ground(pool("g/t"), groups=(group("g", "n", thin=[ThinPoolStatus(name="t")]),)),
            "Ready",
            StoragePoolPhase.READY,
            "",
        ),
        (
            ground(pool("g", node_label_selector=UNUSABLE), groups=(group("g", "n"),)),
            "InvalidNodeLabelSelector",
            StoragePoolPhase.INVALID_CONFIGURATION,
            f"spec.nodeLabelSelector: {flaw(UNUSABLE)}",
        ),
    ],
)
def test_a_pool_says_whether_it_can_be_used(found: Ground, reason: str, phase: StoragePoolPhase, message: str) -> None:
    status = reported(found).status
    condition = find(status.conditions, Ready)
    assert condition is not None
    assert (condition.reason, status.phase, status.message) == (reason, phase, message)
    assert condition.observed_generation == status.observed_generation == 1
    (event,) = decided(found).events
    assert (event.reason, event.warning) == (reason, reason != "Ready")


def test_nodes_are_offered_although_a_group_is_missing() -> None:
    found = ground(pool("g", "missing"), groups=(group("g", "n"),), nodes=(machine("n"),))
    assert [node.node_name for node in reported(found).status.eligible_nodes] == ["n"]


def test_nothing_is_offered_by_a_selector_that_cannot_be_used() -> None:
    found = ground(pool("g", node_label_selector=UNUSABLE), groups=(group("g", "n"),), nodes=(machine("n"),))
    assert reported(found).status.eligible_nodes == ()


def test_a_pool_names_the_classes_that_use_it() -> None:
    classes = (storage_class(name="z"), storage_class(name="a"))
    assert reported(ground(pool("g"), classes=classes)).status.used_by.replicated_storage_class_names == ("a", "z")


def test_the_revision_moves_exactly_when_the_list_does() -> None:
    found = ground(pool("g"), groups=(group("g", "n"),), nodes=(machine("n"),))
    first = reported(found)
    assert first.status.eligible_nodes_revision == 1
    again = ground(first, groups=(group("g", "n"),), nodes=(machine("n"),))
    assert decided(again, NOW + timedelta(days=1)).steps == (), "nothing new is nothing to write"
    cordoned = ground(first, groups=(group("g", "n"),), nodes=(machine("n", unschedulable=True),))
    assert reported(cordoned).status.eligible_nodes_revision == 2
    used = ground(first, groups=(group("g", "n"),), nodes=(machine("n"),), classes=(storage_class(),))
    assert reported(used).status.eligible_nodes_revision == 1, "who uses it is not part of the list"


def test_more_nodes_than_can_be_listed_are_counted() -> None:
    nodes = tuple(machine(f"n{number:04}") for number in range(1003))
    status = reported(ground(pool("g"), groups=(group("g", "n0000"),), nodes=nodes)).status
    assert status.message == "3 more nodes fit than the 1000 that can be listed."


def policy(text: str) -> EligibleNodesPolicy:
    return EligibleNodesPolicy(not_ready_grace_period=Duration(text))


@pytest.mark.parametrize(
    ("own", "of_class", "listed_for"),
    [
        (None, None, "10m"),
        ("1m", None, "1m"),
        ("1h", None, "1h"),
        (None, "1h", "1h"),
        (None, "1m", "10m"),
        ("1m", "5m", "5m"),
        ("20m", "5m", "20m"),
    ],
)
def test_a_lost_node_is_listed_for_as_long_as_anybody_waits_for_it(
    own: str | None, of_class: str | None, listed_for: str
) -> None:
    gone = machine("n", ready="False")
    made = pool("g", eligible_nodes_policy=policy(own) if own else EligibleNodesPolicy())
    user = storage_class(eligible_nodes_policy=policy(of_class) if of_class else EligibleNodesPolicy())
    found = ground(made, groups=(group("g", "n"),), nodes=(gone,), classes=(user,), silent_for=None)
    until = NOW + Duration(listed_for).timedelta
    assert reported(found, until - timedelta(seconds=1)).status.eligible_nodes
    assert not reported(found, until).status.eligible_nodes
    assert decided(found).requeue_after == Duration(listed_for).seconds


@pytest.mark.parametrize(
    ("silent_for", "look_again"), [(0.0, 35.0), (10.0, 25.0), (39.9, 0.5), (41.0, 40.0), (None, None)]
)
def test_it_looks_again_when_an_agent_could_fall_silent_or_be_back(
    silent_for: float | None, look_again: float | None
) -> None:
    assert decided(ground(pool("g"), nodes=(machine("n"),), silent_for=silent_for)).requeue_after == look_again


# What wakes it.


def woken(cls: type[Any], old: Any, new: Any) -> bool:
    watch = next(watch for watch in POOLS.watches if watch.cls is cls)
    return (watch.when is None or watch.when(old, new)) and bool({*watch.keys(old), *watch.keys(new)})


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        (machine("n"), machine("n", generation=2), False),
        (machine("n"), machine("n", ready="Unknown"), True),
        (machine("n"), machine("n", unschedulable=True), True),
        (machine("n"), machine("n", annotations={annotation_keys.EVACUATE: "true"}), True),
        (machine("n"), machine("n", "zone"), True),
        (group("g", "n"), group("g", "n", generation=2), False),
        (group("g", "n"), group("g", "n", phase=VolumeGroupPhase.NOT_READY), True),
        (group("g", "n"), group("g", "n", thin=[ThinPoolStatus(name="t")]), True),
        (group("g", "n"), group("g", "n", annotations={annotation_keys.UNSCHEDULABLE: ""}), True),
        (storage_class(), storage_class(generation=2), False),
        (storage_class(), storage_class(eligible_nodes_policy=policy("1m")), True),
        (lease("n", NOW), lease("n", NOW + timedelta(seconds=10)), False),
        (lease("n", NOW), lease("n", NOW + timedelta(seconds=41)), True),
        (lease("n", NOW), lease("n", NOW + timedelta(seconds=10), holder=None), True),
        (lease("n", NOW), lease("n", NOW + timedelta(seconds=10), holder="other"), True),
    ],
)
def test_it_is_woken_by_what_can_change_a_list_and_not_by_renewals(old: Any, new: Any, matters: bool) -> None:
    assert woken(type(old), old, new) is matters


def test_a_lease_that_is_not_an_agents_wakes_nobody() -> None:
    foreign = Lease(metadata=ObjectMeta(name="leader", namespace=names.NAMESPACE))
    assert not woken(Lease, foreign, replace(foreign, metadata=meta("leader")))


def test_an_agent_that_let_go_of_its_lease_is_not_ready_at_once() -> None:
    """A process that ends releases its Lease; waiting for silence would be a minute of placing replicas there."""

    class Leases:
        def get(self, cls: type, name: str, namespace: str = "") -> Any:
            return lease("n", NOW, holder=None) if cls is Lease else None

        def list(self, cls: type, namespace: str = "") -> tuple[Any, ...]:
            return (machine("n"),) if cls is core.Node else (pool("g"),) if cls is ReplicatedStoragePool else ()

        def silent_for(self, cls: type, name: str, namespace: str = "") -> float:
            return 0.0

    found = observe(Leases(), next(iter(POOLS.watches[0].keys(pool("g")))))  # type: ignore[arg-type]
    assert found is not None
    assert [(known.agent_silent_for, known.has_agent) for known in found.machines] == [(None, True)]


# Its life.


class Cluster:
    """Nodes with agents that renew their Leases until they are stopped."""

    def __init__(self, sim: Simulation, store: EmbeddedStore) -> None:
        self.sim = sim
        self.store = store
        self.agents: dict[str, asyncio.Task[None]] = {}

    async def add(self, name: str, zone: str) -> None:
        made = machine(name, zone, since=self.sim.clock.now(), labels={"quorate.io/registered-by": "agent"})
        await self.store.create(replace(made, metadata=ObjectMeta(name=name, labels=made.metadata.labels)))
        await self.store.patch_status(core.Node, name, patch=_status(made))
        lvg = group(f"{name}-vg", name)
        await self.store.create(replace(lvg, metadata=ObjectMeta(name=lvg.name)))
        await self.store.patch_status(LVMVolumeGroup, lvg.name, patch={"status": {"phase": "Ready"}})
        await self.start(name)

    async def start(self, name: str) -> None:
        with suppress(NotFound):
            await self.store.delete(Lease, names.agent_lease(NodeName(name)), namespace=names.NAMESPACE)
        await self.store.create(lease(name, self.sim.clock.now()))
        self.agents[name] = asyncio.create_task(self._renew(name))

    def silence(self, name: str) -> None:
        self.agents.pop(name).cancel()

    async def _renew(self, name: str) -> None:
        while True:
            await self.sim.clock.sleep(10)
            renewed = lease(name, self.sim.clock.now()).spec.renew_time
            patch = {"spec": {"renewTime": renewed}}
            await self.store.patch(Lease, names.agent_lease(NodeName(name)), namespace=names.NAMESPACE, patch=patch)

    async def pool(self) -> ReplicatedStoragePool:
        return await self.store.get(ReplicatedStoragePool, "pool")

    async def listed(self) -> dict[str, tuple[bool, bool]]:
        return {
            node.node_name: (node.node_ready, node.agent_ready) for node in (await self.pool()).status.eligible_nodes
        }


def _status(made: core.Node) -> dict[str, Any]:
    (ready,) = made.status.conditions
    at = ready.last_transition_time
    assert at is not None
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"status": {"conditions": [{"type": "Ready", "status": ready.status, "lastTransitionTime": stamp}]}}


def in_a_cluster(story: Callable[[Cluster], Awaitable[None]], seeds: range = range(3)) -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, kinds=all_kinds())
        faults = bad()
        link = FaultyStore(store, sim, sender="manager", faults=faults, network=sim.process("network"))
        manager = Manager(
            link,
            [*CONTROLLERS, *NODE_CONTROLLERS],
            clock=sim.clock,
            random=sim.random("manager"),
            identity="manager",
        )
        running = asyncio.create_task(manager.run())
        cluster = Cluster(sim, store)
        for name in ("n1", "n2", "n3"):
            await cluster.add(name, f"zone-{name}")
        made = pool("n1-vg", "n2-vg", "n3-vg")
        await store.create(replace(made, metadata=ObjectMeta(name="pool")))
        await sim.clock.sleep(60)
        faults.end()
        await sim.clock.sleep(330)
        await story(cluster)
        for agent in cluster.agents.values():
            agent.cancel()
        manager.stop()
        await running

    for_each_seed(main, seeds)


WELL = (True, True)


def test_a_silent_node_is_kept_for_its_grace_then_dropped_and_listed_again_when_it_is_back() -> None:
    async def story(cluster: Cluster) -> None:
        clock = cluster.sim.clock
        assert await cluster.listed() == {"n1": WELL, "n2": WELL, "n3": WELL}
        revision = (await cluster.pool()).status.eligible_nodes_revision
        cluster.silence("n2")
        await clock.sleep(25)
        assert (await cluster.listed())["n2"] == WELL, "not before its Lease is stale"
        await clock.sleep(30)
        assert (await cluster.listed())["n2"] == (False, False)
        await clock.sleep(570)
        assert "n2" in await cluster.listed(), "within its grace"
        await clock.sleep(30)
        assert "n2" not in await cluster.listed()
        assert (await cluster.pool()).status.eligible_nodes_revision > revision
        await cluster.start("n2")
        await clock.sleep(5)
        assert (await cluster.listed())["n2"] == WELL

    in_a_cluster(story)


def test_a_node_that_flaps_within_its_grace_is_never_dropped_and_its_grace_begins_anew() -> None:
    async def story(cluster: Cluster) -> None:
        clock = cluster.sim.clock
        for _ in range(4):
            cluster.silence("n1")
            for _ in range(10):
                await clock.sleep(45)
                assert "n1" in await cluster.listed()
            await cluster.start("n1")
            await clock.sleep(30)
            assert (await cluster.listed())["n1"] == WELL

    in_a_cluster(story, range(2))


def test_a_cordon_is_heard_at_once_and_does_not_unlist() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.store.patch(core.Node, "n3", patch={"spec": {"unschedulable": True}})
        await cluster.sim.clock.sleep(1)
        nodes = (await cluster.pool()).status.eligible_nodes
        assert {node.node_name: node.unschedulable for node in nodes} == {"n1": False, "n2": False, "n3": True}

    in_a_cluster(story)


def test_with_nothing_changing_pool_and_class_stand_still() -> None:
    async def story(cluster: Cluster) -> None:
        made = storage_class()
        await cluster.store.create(replace(made, metadata=ObjectMeta(name="class")))
        await cluster.sim.clock.sleep(5)
        before = await cluster.pool()
        assert before.status.used_by.replicated_storage_class_names == ("class",)
        kept = await cluster.store.get(ReplicatedStorageClass, "class")
        assert kept.status.configuration is not None
        events = len((await cluster.store.list(Event)).items)
        await cluster.sim.clock.sleep(3600)
        assert await cluster.pool() == before
        assert await cluster.store.get(ReplicatedStorageClass, "class") == kept
        assert len((await cluster.store.list(Event)).items) <= events

    in_a_cluster(story)
