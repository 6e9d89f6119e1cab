"""A whole agent over a store and a machine: what it may see and write, who ends it, and how it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from datetime import datetime
from random import Random
from typing import Any

import pytest

from quorate.agent.lease import Identity
from quorate.agent.machine import CommandHung, Completed
from quorate.agent.node import Node
from quorate.agent.own_objects import LABELLED, OwnObjects
from quorate.agent.process import Agent, run_agent
from quorate.agent.steps import Run
from quorate.api import all_kinds, labels, names
from quorate.api import core as core_kinds
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.core import Lease
from quorate.api.meta import NodeName, ObjectMeta, Resource
from quorate.api.storage import LVMVolumeGroup, ReplicatedVolume
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec, VolumeGroupPhase
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, Reader, Watch
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.selectors import EVERYTHING, match
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.errors import AnotherAgent, Forbidden, NotFound, NotLeader
from tests.support.widgets import open_store

HERE, THERE = NodeName("n1"), NodeName("n2")


class NoMachine:
    """A machine that knows its name, and on which everything else hangs that is not a file."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    async def run(self, *argv: str, silence: float, stdin: object = None) -> Completed:
        if argv == ("uname", "-n"):
            return Completed(0, "n1.example.org\n")
        self.ran.append(argv)
        await asyncio.sleep(silence)
        raise CommandHung("it hangs", still_there=lambda: True)

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        await asyncio.Event().wait()
        yield ""

    async def read_file(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    async def write_file(self, path: str, content: bytes) -> None: ...
    async def move_file(self, source: str, destination: str) -> None: ...
    async def remove_file(self, path: str) -> None: ...
    async def list_directory(self, path: str) -> tuple[str, ...]:
        return ()

    async def port_is_free(self, address: str, port: int) -> bool:
        return True


class Reporter:
    """A part that reports every volume group it can see as Ready, and does what it is told beside that."""

    def __init__(self, task: Callable[[Node], Coroutine[Any, Any, None]] | None = None, effect: bool = False) -> None:
        self._task = task
        self._effect = effect
        self.seen: set[str] = set()

    def controllers(self, node: Node) -> tuple[Controller[Any], ...]:
        def observe(reader: Reader, key: Key) -> LVMVolumeGroup | None:
            return reader.get(LVMVolumeGroup, key.name)

        def decide(group: LVMVolumeGroup, _now: datetime, _random: Random) -> Plan:
            self.seen.add(group.name)
            if group.status.phase == "Ready":
                return NOTHING
            patched = PatchStatus(group, _ready(group))
            work = node.work("w", (Run(("sleep", "9"), purpose="hang"),), node.disks, Key("", group.name))
            return Plan(status=patched, effects=(work,) if self._effect else ())

        watch = Watch(LVMVolumeGroup)
        return (Controller(name="reporter", watches=(watch,), observe=observe, decide=decide, signals=(node.disks,)),)

    def tasks(self, node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
        return (self._task(node),) if self._task is not None else ()


def _ready(group: LVMVolumeGroup) -> LVMVolumeGroup:
    return replace(group, status=replace(group.status, phase=VolumeGroupPhase.READY))


def group(name: str, node: NodeName) -> LVMVolumeGroup:
    spec = LVMVolumeGroupSpec(local=LocalGroup(node_name=node), actual_vg_name_on_the_node=name)
    return LVMVolumeGroup(metadata=ObjectMeta(name=name, labels={labels.NODE: node}), spec=spec)


async def begin(sim: Simulation) -> EmbeddedStore:
    store = await open_store(sim, kinds=all_kinds())
    for name, node in (("mine", HERE), ("theirs", THERE)):
        await store.create(group(name, node))
    return store


def make(sim: Simulation, store: EmbeddedStore, part: Reporter, *, place: str = "here") -> Agent:
    random = sim.random(f"agent {place}")
    return Agent(
        store,
        NoMachine(),
        node_name=HERE,
        identity=Identity.new(place, random),
        clock=sim.clock,
        random=random,
        parts=(part,),
    )


async def phase(store: EmbeddedStore, name: str) -> str | None:
    return (await store.get(LVMVolumeGroup, name)).status.phase


async def holder(store: EmbeddedStore) -> str | None:
    return (await store.get(Lease, names.agent_lease(HERE), names.NAMESPACE)).spec.holder_identity


def test_an_agent_sees_and_writes_its_own_nodes_objects_only() -> None:
    async def story(sim: Simulation) -> None:
        store, part = await begin(sim), Reporter()
        agent = make(sim, store, part)
        assert agent.health().not_ready == ("waiting for the node's Lease",)
        running = sim.process("agent").spawn(agent.run())
        await sim.clock.sleep(5)
        assert agent.health().ready
        assert part.seen == {"mine"}
        assert (await phase(store, "mine"), await phase(store, "theirs")) == ("Ready", None)
        await store.create(group("later", HERE))
        await sim.clock.sleep(1)
        assert await phase(store, "later") == "Ready"
        agent.stop()
        await running
        assert await holder(store) is None

    for_each_seed(story, range(5))


def test_a_task_that_fails_ends_the_agent_with_its_error() -> None:
    async def fail(node: Node) -> None:
        await node.clock.sleep(3)
        raise ValueError("broken")

    async def story(sim: Simulation) -> None:
        store = await begin(sim)
        with pytest.raises(ExceptionGroup) as failed:
            await make(sim, store, Reporter(fail)).run()
        assert [str(error) for error in failed.value.exceptions] == ["broken"]
        assert await holder(store) is None

    run(story, seed=1)


def test_a_task_that_ends_ends_the_agent() -> None:
    async def end(node: Node) -> None:
        await node.clock.sleep(3)

    async def story(sim: Simulation) -> None:
        with pytest.raises(ExceptionGroup) as failed:
            await make(sim, await begin(sim), Reporter(end)).run()
        assert "never should" in str(failed.value.exceptions[0])

    run(story, seed=1)


def test_an_agent_whose_node_is_taken_stops_loudly() -> None:
    async def story(sim: Simulation) -> None:
        store = await begin(sim)
        running = sim.process("agent").spawn(make(sim, store, Reporter()).run())
        await sim.clock.sleep(5)
        thief = {"spec": {"holderIdentity": "thief_1"}}
        await store.patch(Lease, names.agent_lease(HERE), names.NAMESPACE, patch=thief)
        with pytest.raises(ExceptionGroup) as failed:
            await running
        (error,) = failed.value.exceptions
        assert isinstance(error, AnotherAgent)
        assert "thief_1" in str(error)
        assert await holder(store) == "thief_1"

    run(story, seed=1)


def test_a_second_agent_does_nothing_at_all() -> None:
    async def story(sim: Simulation) -> None:
        store, part = await begin(sim), Reporter()
        first = make(sim, store, Reporter())
        sim.process("first").spawn(first.run())
        await sim.clock.sleep(5)
        with pytest.raises(AnotherAgent):
            await make(sim, store, part, place="there").run()
        assert not part.seen

    run(story, seed=1)


def test_an_agent_that_waits_for_its_lease_can_be_stopped() -> None:
    async def story(sim: Simulation) -> None:
        store = await begin(sim)
        first = sim.process("first")
        first.spawn(make(sim, store, Reporter()).run())
        await sim.clock.sleep(5)
        first.kill()
        second = make(sim, store, Reporter(), place="there")
        running = sim.process("second").spawn(second.run())
        await sim.clock.sleep(5)
        second.stop()
        async with asyncio.timeout(1):
            await running

    run(story, seed=1)


def test_a_command_that_hangs_does_not_hold_the_stop_up() -> None:
    async def story(sim: Simulation) -> None:
        store = await begin(sim)
        agent = make(sim, store, Reporter(effect=True))
        running = sim.process("agent").spawn(agent.run())
        await sim.clock.sleep(2)
        assert agent.node.hands.busy("w")
        agent.stop()
        async with asyncio.timeout(30):
            await running

    for_each_seed(story, range(5))


def test_the_clusters_settings_hold_at_once_and_after_every_change() -> None:
    async def story(sim: Simulation) -> None:
        store = await begin(sim)
        config = ClusterConfig(metadata=ObjectMeta(name=names.CLUSTER), spec=ClusterConfigSpec())
        await store.create(config)
        patch = {"spec": {"agent": {"leaseDuration": "9s", "renewInterval": "3s"}, "timeouts": {"command": "7s"}}}
        await store.patch(ClusterConfig, names.CLUSTER, patch=patch)
        agent = make(sim, store, Reporter())
        sim.process("agent").spawn(agent.run())
        await sim.clock.sleep(0.1)
        lease = await store.get(Lease, names.agent_lease(HERE), names.NAMESPACE)
        assert lease.spec.lease_duration_seconds == 9
        assert agent.node.hands.silence == 7
        await store.patch(ClusterConfig, names.CLUSTER, patch={"spec": {"timeouts": {"command": "30s"}}})
        await sim.clock.sleep(1)
        assert agent.node.hands.silence == 30
        await store.patch(ClusterConfig, names.CLUSTER, patch={"spec": {"timeouts": {"command": "0s"}}})
        await store.delete(ClusterConfig, names.CLUSTER)
        await sim.clock.sleep(1)
        assert agent.node.hands.silence == 10

    run(story, seed=1)


async def test_the_same_agent_runs_on_the_real_loop() -> None:
    clock, random = SystemClock(), Random(1)
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random)
    await store.create(group("mine", HERE))
    running = asyncio.create_task(
        run_agent(
            store,
            NoMachine(),
            node_name=HERE,
            identity=Identity.new("here", random),
            clock=clock,
            random=random,
            parts=(Reporter(),),
        )
    )
    async with asyncio.timeout(30):
        while await phase(store, "mine") is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert await holder(store) is None
    await store.close()


# What is the node's own.


async def own(sim: Simulation, *, held: bool = True) -> tuple[EmbeddedStore, OwnObjects]:
    def check() -> None:
        if not held:
            raise NotLeader("not held")

    store = await begin(sim)
    for name in (HERE, THERE):
        await store.create(core_kinds.Node(metadata=ObjectMeta(name=name)))
    return store, OwnObjects(store, HERE, check=check)


def test_another_nodes_object_is_neither_shown_nor_written() -> None:
    async def story(sim: Simulation) -> None:
        _, objects = await own(sim)
        assert [found.name for found in (await objects.list(LVMVolumeGroup)).items] == ["mine"]
        assert [found.name for found in (await objects.list(core_kinds.Node)).items] == [HERE]
        refused: list[Coroutine[Any, Any, Any]] = [
            objects.get(LVMVolumeGroup, "theirs"),
            objects.patch(LVMVolumeGroup, "theirs", patch={}),
            objects.patch_status(LVMVolumeGroup, "theirs", patch={}),
            objects.delete(LVMVolumeGroup, "theirs"),
            objects.create(group("new", THERE)),
            objects.create(LVMVolumeGroup(metadata=ObjectMeta(name="bare"), spec=group("x", HERE).spec)),
            objects.get(core_kinds.Node, THERE),
            objects.patch_status(core_kinds.Node, THERE, patch={}),
            objects.create(core_kinds.Node(metadata=ObjectMeta(name="n3"))),
            objects.list(ReplicatedVolume),
            objects.get(Lease, names.agent_lease(THERE), names.NAMESPACE),
            objects.delete(ClusterConfig, names.CLUSTER),
            objects.create(ClusterConfig(metadata=ObjectMeta(name=names.CLUSTER), spec=ClusterConfigSpec())),
        ]
        for request in refused:
            with pytest.raises(Forbidden, match="the agent of node n1 may not"):
                await request

    run(story, seed=1)


def test_its_own_objects_are_read_and_written_as_ever() -> None:
    async def story(sim: Simulation) -> None:
        store, objects = await own(sim)
        with pytest.raises(Forbidden):
            await objects.patch_status(LVMVolumeGroup, "mine", patch={"phase": "Ready"})  # not seen yet
        await objects.get(LVMVolumeGroup, "mine")
        await objects.patch_status(LVMVolumeGroup, "mine", patch={"phase": "Ready"})
        assert await phase(store, "mine") == "Ready"
        await objects.create(group("new", HERE))
        await objects.patch(LVMVolumeGroup, "new", patch={"metadata": {"annotations": {"a": "b"}}})
        await objects.delete(LVMVolumeGroup, "new")
        await objects.patch(core_kinds.Node, HERE, patch={"metadata": {"annotations": {"a": "b"}}})
        with pytest.raises(NotFound):
            await objects.get(ClusterConfig, names.CLUSTER)

    run(story, seed=1)


def test_a_name_that_has_gone_to_another_node_is_no_longer_its_own() -> None:
    async def story(sim: Simulation) -> None:
        store, objects = await own(sim)
        await objects.list(LVMVolumeGroup)
        await store.delete(LVMVolumeGroup, "mine")
        await store.create(group("mine", THERE))
        await objects.list(LVMVolumeGroup)
        with pytest.raises(Forbidden):
            await objects.patch_status(LVMVolumeGroup, "mine", patch={"phase": "Ready"})

    run(story, seed=1)


def test_a_name_that_a_watch_has_seen_to_go_is_no_longer_its_own() -> None:
    async def story(sim: Simulation) -> None:
        store, objects = await own(sim)
        listing = await objects.list(LVMVolumeGroup)
        events: Any = objects.watch(LVMVolumeGroup, resource_version=listing.resource_version)
        async with aclosing(events):
            await store.delete(LVMVolumeGroup, "mine")
            await store.create(group("mine", THERE))
            await store.create(group("new", HERE))
            seen = [(event.type, event.object.name) async for event in until_new(events)]
        assert seen == [("DELETED", "mine"), ("ADDED", "new")]
        await objects.patch_status(LVMVolumeGroup, "new", patch={"phase": "Ready"})
        with pytest.raises(Forbidden):
            await objects.patch_status(LVMVolumeGroup, "mine", patch={"phase": "Ready"})

    run(story, seed=1)


async def until_new(events: Any) -> AsyncGenerator[Any, None]:
    async for event in events:
        if event.object is not None:
            yield event
            if event.object.name == "new":
                return


def test_without_the_lease_nothing_is_written() -> None:
    async def story(sim: Simulation) -> None:
        store, objects = await own(sim, held=False)
        await objects.list(LVMVolumeGroup)
        for request in (
            objects.patch_status(LVMVolumeGroup, "mine", patch={"phase": "Ready"}),
            objects.create(group("new", HERE)),
            objects.patch(core_kinds.Node, HERE, patch={}),
        ):
            with pytest.raises(NotLeader):
                await request
        assert await phase(store, "mine") is None

    run(story, seed=1)


def test_a_selector_of_the_callers_is_kept() -> None:
    selectors: list[tuple[str, str]] = []

    class Recording:
        async def list(self, _cls: type[Resource], **options: Any) -> Any:
            selectors.append((str(options["labels"]), str(options["fields"])))
            raise NotFound("enough")

    async def story(_: Simulation) -> None:
        objects = OwnObjects(Recording(), HERE, check=lambda: None)  # type: ignore[arg-type]
        mine = match({labels.NODE: HERE})
        for cls, selector in ((LABELLED[0], match({"a": "b"})), (LABELLED[0], mine), (core_kinds.Node, EVERYTHING)):
            with pytest.raises(NotFound):
                await objects.list(cls, labels=selector)
        assert selectors == [
            ("a=b,quorate.io/node=n1", ""),
            ("quorate.io/node=n1", ""),
            ("", "metadata.name=n1"),
        ]

    run(story, seed=1)


def test_an_agent_learns_what_its_machine_calls_itself() -> None:
    async def story(sim: Simulation) -> None:
        agent = make(sim, await begin(sim), Reporter())
        running = sim.process("agent").spawn(agent.run())
        await sim.clock.sleep(5)
        assert (agent.node.name, agent.node.host_name) == (HERE, "n1.example.org")
        agent.stop()
        await running

    run(story, seed=1)
