"""From the store to the machine and back: whose replicas are touched, and what garbage does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from quorate.agent import address, looks, operations, replica
from quorate.agent.lvm.seen import SeenVolumes
from quorate.agent.machine import Completed
from quorate.agent.node import Node
from quorate.agent.replica.controller import Replicas
from quorate.agent.replica.here import file_of
from quorate.agent.steps import LVM, Run, lvm_of
from quorate.api import all_kinds, labels
from quorate.api.codec import to_builtins
from quorate.api.finalizers import AGENT
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.drbdrop import ByteRange, CreateNewUUID, DRBDResourceOperationSpec, OperationType
from quorate.api.storage.rvr import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import ScriptedMachine, scripted_node
from tests.agent.replica.builders import DISKLESS, LLV, SECRET, config, view, volume

HERE, THERE = "n0", "n1"


@dataclass
class Agent:
    sim: Simulation
    node: Node
    machine: ScriptedMachine
    store: EmbeddedStore
    registry: CollectorRegistry

    async def create(self, name: str, node: str = HERE, **changes: Any) -> None:
        """A replica without a disk, with a complete config."""
        volume = VolumeName(name.rpartition("-")[0])
        await self.store.create(
            ReplicatedVolumeReplica(
                metadata=ObjectMeta(name=name, labels={labels.NODE: node}, finalizers=(AGENT,)),
                spec=ReplicatedVolumeReplicaSpec(
                    replicated_volume_name=volume, type=ReplicaType.TIE_BREAKER, node_name=NodeName(node)
                ),
            )
        )
        patch = {"drbd": {"config": to_builtins(config(**{**DISKLESS, **changes}))}}
        await self.store.patch_status(ReplicatedVolumeReplica, name, patch=patch)

    async def replica(self, name: str) -> ReplicatedVolumeReplica:
        return await self.store.get(ReplicatedVolumeReplica, name)

    def panics(self) -> float:
        metrics = [metric for metric in self.registry.collect() if "panic" in metric.name]
        assert metrics
        return sum(sample.value for metric in metrics for sample in metric.samples if sample.name.endswith("_total"))


@asynccontextmanager
async def agent(sim: Simulation, *, files: Mapping[str, bytes] | None = None) -> AsyncIterator[Agent]:
    node, machine = scripted_node(sim.clock)
    machine.answers["drbdsetup status"] = Completed(0, "[]")
    machine.files |= {"/proc/crypto": b"name : sha256\n", **(files or {})}
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    registry = CollectorRegistry()
    controllers = (*replica.controllers(node), *operations.controllers(node), *address.controllers(node))
    manager = Manager(
        store, controllers, clock=sim.clock, random=sim.random("manager"), identity=HERE, registry=registry
    )
    tasks = [sim.loop.create_task(work) for work in replica.tasks(node)]
    managing = sim.loop.create_task(manager.run())
    yield Agent(sim, node, machine, store, registry)
    manager.stop()
    await managing
    await node.hands.close()
    for task in tasks:
        task.cancel()
    await store.close()


def kernel_json(name: str) -> dict[str, object]:
    device = {"volume": 0, "minor": 1000, "disk-state": "Diskless", "client": True, "quorum": True, "size": 0}
    links: list[object] = [
        {"peer-node-id": each, "name": f"n{each}", "connection-state": "Connected", "peer_devices": []}
        for each in (1, 2)
    ]
    return {"name": name, "node-id": 0, "role": "Secondary", "devices": [device], "connections": links}


def test_only_the_nodes_own_replicas_are_touched() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            await here.create("pvc-1-0")
            await here.create("pvc-2-1", THERE)
            await sim.clock.sleep(10)
            assert any("pvc-1" in said for said in here.machine.ran)
            assert not any("pvc-2" in said for said in here.machine.ran)

    run(main, seed=1)


def test_a_resource_that_belongs_to_nobody_here_is_left_alone() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            here.machine.answers["drbdsetup status"] = Completed(0, json.dumps([kernel_json("somebody-elses")]))
            await sim.clock.sleep(1)
            here.machine.streams[0].put_nowait("2030 change resource name:somebody-elses role:Primary")
            await sim.clock.sleep(1000)
            ran = {said for said in here.machine.ran if "events2" not in said and not said.startswith("modprobe ")}
            assert ran == {"drbdsetup status --json"}

    run(main, seed=1)


def test_of_a_volume_that_has_left_the_node_nothing_is_remembered() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            await here.create("pvc-1-0")
            await sim.clock.sleep(10)
            stream = here.machine.streams[0]
            stream.put_nowait("2030 change connection name:pvc-1 peer-node-id:1 conn-name:n1 connection:Connecting")
            stream.put_nowait("2030 change peer-device name:pvc-1 peer-node-id:1 conn-name:n1 volume:0 done:1.00")
            await sim.clock.sleep(10)
            memory = here.node.memory
            assert set(memory.kernel) == set(memory.link_losses) == set(memory.progress_looked) == {"pvc-1"}
            await here.store.delete(ReplicatedVolumeReplica, "pvc-1-0")
            await sim.clock.sleep(60)
            stream.put_nowait("2030 destroy resource name:pvc-1")
            await sim.clock.sleep(1000)
            kept = (memory.kernel, memory.link_losses, memory.progress_looked, memory.files, memory.paths)
            assert [set(each) - {"/proc/crypto"} for each in kept] == [set()] * 5
            assert not [work for work in memory.works() if "pvc-1" in work]

    run(main, seed=1)


def test_a_range_whose_zeroing_an_earlier_agent_began_is_given_up() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            here.machine.answers["drbdsetup status"] = Completed(0, json.dumps([kernel_json("pvc-1")]))
            await here.create("pvc-1-0")
            spec = DRBDResourceOperationSpec(
                node_name=NodeName(HERE),
                drbd_resource_name=ReplicaName("pvc-1-0"),
                type=OperationType.ZERO_RANGE,
                range=ByteRange(start=0, end=4096),
            )
            metadata = ObjectMeta(name="pvc-1-zero", labels={labels.NODE: HERE})
            await here.store.create(DRBDResourceOperation(metadata=metadata, spec=spec))
            await here.store.patch_status(DRBDResourceOperation, "pvc-1-zero", patch={"phase": "Running"})
            await sim.clock.sleep(60)
            found = await here.store.get(DRBDResourceOperation, "pvc-1-zero")
            assert (found.status.phase, found.status.message[:12]) == ("Failed", "interrupted:")
            assert not [said for said in here.machine.ran if said.startswith("dd ")]

    run(main, seed=1)


def test_the_file_holds_the_secret_and_nothing_else_shows_it() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            here.machine.answers["drbdadm"] = Completed(1, f"--shared-secret={SECRET} is bad")
            await here.create("pvc-1-0")
            await sim.clock.sleep(10)
            assert SECRET.encode() in here.machine.files[f"{file_of(here.node, 'pvc-1')}_tmp"]
            assert not any(SECRET in said for said in here.machine.ran)
            error = (await here.replica("pvc-1-0")).status.drbd.errors.last_config_error
            assert error is not None
            assert SECRET not in repr(error)
            assert SECRET not in repr(here.node.memory.outcomes("drbd/pvc-1"))

    run(main, seed=1)


def test_a_second_replica_of_a_volume_on_the_node_takes_nothing_from_the_first() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            await here.create("pvc-1-0")
            await sim.clock.sleep(5)
            await here.create("pvc-1-3", node_id=3)
            await sim.clock.sleep(5)
            error = (await here.replica("pvc-1-3")).status.drbd.errors.last_config_error
            assert error is not None
            assert "pvc-1-0" in error.output
            before = len(here.machine.ran)
            await here.store.delete(ReplicatedVolumeReplica, "pvc-1-3")
            await sim.clock.sleep(5)
            assert not any("down" in said for said in here.machine.ran[before:])
            found = (await here.store.list(ReplicatedVolumeReplica)).items
            assert [each.name for each in found] == ["pvc-1-0"]

    run(main, seed=1)


Started = tuple[list[str], list[str]]


class TestOnDisk:
    """What takes a disk into use begins only while nobody else changes it, and on what still holds."""

    def start(self, sim: Simulation, *, growing: bool = False, marked: str = "", seen: bool = False) -> Started:
        """What was run, and who was woken, by a plan to attach."""
        node, machine = scripted_node(sim.clock)
        looks.register(node)
        woken: list[str] = []
        known = node.memory.logical_volumes
        known.saw(SeenVolumes((volume(),)), moment=known.moment)
        node.volumes.subscribe(lambda key: woken.append(key.name))
        plan = Replicas(node).decide((view(shown=None),), sim.clock.now(), sim.random("test"))
        if growing:
            node.hands.start(f"lvm/{LLV}", (Run(("lvextend",), "extend"),), lambda: None)
        if marked:
            node.memory.mark(marked)
        if seen:
            known.saw(SeenVolumes((volume(tags=()),)), moment=known.moment)
        for effect in plan.effects:
            effect()
        return machine.ran, woken

    def test_it_begins_when_nobody_else_has_the_disk(self) -> None:
        async def main(sim: Simulation) -> None:
            ran, _ = self.start(sim)
            await sim.clock.sleep(1)
            assert ran[0].endswith(" up pvc-1")

        run(main, seed=1)

    def test_it_does_not_begin_while_the_disk_grows_and_is_decided_anew_afterwards(self) -> None:
        async def main(sim: Simulation) -> None:
            ran, woken = self.start(sim, growing=True)
            await sim.clock.sleep(1)
            assert ran == ["lvextend"]
            assert woken == ["pvc-1"]

        run(main, seed=1)

    def test_it_begins_although_something_was_done_to_another_disk_meanwhile(self) -> None:
        async def main(sim: Simulation) -> None:
            ran, _ = self.start(sim, marked=lvm_of("vg0/another"))
            await sim.clock.sleep(1)
            assert ran[0].endswith(" up pvc-1")

        run(main, seed=1)

    @pytest.mark.parametrize("meanwhile", [{"marked": LVM}, {"marked": lvm_of(f"vg0/{LLV}")}, {"seen": True}])
    def test_it_does_not_begin_on_what_holds_no_more(self, meanwhile: dict[str, Any]) -> None:
        async def main(sim: Simulation) -> None:
            ran, woken = self.start(sim, **meanwhile)
            await sim.clock.sleep(1)
            assert ran == []
            assert woken == ["pvc-1"]

        run(main, seed=1)


ANSWERS = st.builds(
    Completed, st.sampled_from([0, 1, 5, 10, 11, 17, 20, 255]), st.text(max_size=60), st.text(max_size=20)
)
JSONLIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "devices", "connections", "node-id", "size", "role"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(
    status=ANSWERS | JSONLIKE.map(lambda tree: Completed(0, json.dumps(tree))),
    anything=ANSWERS,
    lines=st.lists(st.text(max_size=60), max_size=5),
    file=st.binary(max_size=40),
)
def test_garbage_from_any_command_is_a_reported_error_and_never_an_exception(
    status: Completed, anything: Completed, lines: list[str], file: bytes
) -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            here.machine.answers["drbdsetup status"] = status
            here.machine.answers["drbd"] = anything
            here.machine.files[file_of(here.node, "pvc-1")] = file
            here.machine.files["/proc/crypto"] = file
            await here.create("pvc-1-0")
            await here.store.create(
                DRBDResourceOperation(
                    metadata=ObjectMeta(name="pvc-1-formation", labels={labels.NODE: HERE}),
                    spec=DRBDResourceOperationSpec(
                        node_name=NodeName(HERE),
                        drbd_resource_name=ReplicaName("pvc-1-0"),
                        type=OperationType.CREATE_NEW_UUID,
                        create_new_uuid=CreateNewUUID(clear_bitmap=True),
                    ),
                )
            )
            await sim.clock.sleep(1)
            for line in lines:
                here.machine.streams[0].put_nowait(line)
            await sim.clock.sleep(120)
            assert here.panics() == 0
            said = [
                outcome.output
                for work in here.node.memory.works()
                for outcome in here.node.memory.outcomes(work).values()
            ]
            assert not any("mistake of the agent" in each for each in said)
            errors = (await here.replica("pvc-1-0")).status.drbd.errors
            failing = status.exit_code not in (0, 10) or anything.exit_code != 0
            assert errors != type(errors)() or not failing
            # Whatever is wrong is tried again with patience, not as fast as possible.
            assert len(here.machine.ran) < 150

    run(main, seed=1)
