"""What a node with five hundred replicas costs when nothing happens, and when one thing does."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quorate.agent import replica
from quorate.agent.machine import Completed
from quorate.agent.replica.controller import BURST
from quorate.agent.replica.here import file_of
from quorate.api import all_kinds, labels
from quorate.api.codec import to_builtins
from quorate.api.finalizers import AGENT
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage.drbd import DrbdConfig, ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.drbd.resource_file import render
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import ScriptedMachine, scripted_node
from tests.agent.replica.builders import config

REPLICAS = 500
RESYNC = 100.0
CHANGE = "2030-01-01T00:00:00.0+00:00 change connection name:pvc-7 peer-node-id:1 conn-name:n1 connection:Connected"


def kernel_json(number: int, connection: str = "Connected") -> dict[str, object]:
    volume = {"volume": 0, "replication-state": "Established", "peer-disk-state": "UpToDate", "percent-in-sync": 100.0}
    links = [
        {"peer-node-id": node_id, "name": f"n{node_id}", "connection-state": connection, "peer_devices": [volume]}
        for node_id in (1, 2)
    ]
    device = {"volume": 0, "minor": number, "disk-state": "UpToDate", "quorum": True, "size": 32724}
    return {"name": f"pvc-{number}", "node-id": 0, "role": "Secondary", "devices": [device], "connections": links}


def config_of(number: int) -> DrbdConfig:
    return config(device_minor=number, disk=f"/dev/vg0/pvc-{number}")


@asynccontextmanager
async def settled_node(sim: Simulation) -> AsyncIterator[ScriptedMachine]:
    """A node whose replicas are as they should be."""
    node, machine = scripted_node(sim.clock)
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    for number in range(REPLICAS):
        volume = VolumeName(f"pvc-{number}")
        await store.create(
            ReplicatedVolumeReplica(
                metadata=ObjectMeta(name=f"{volume}-0", labels={labels.NODE: "n0"}, finalizers=(AGENT,)),
                spec=ReplicatedVolumeReplicaSpec(
                    replicated_volume_name=volume, type=ReplicaType.DISKFUL, node_name=NodeName("n0")
                ),
            )
        )
        drbd = {"config": to_builtins(config_of(number)), "actual": {"activityLogAt": str(32724 * 1024)}}
        patch = {"lvmLogicalVolumeName": f"{volume}-0-x", "drbd": drbd}
        await store.patch_status(ReplicatedVolumeReplica, f"{volume}-0", patch=patch)
        machine.files[file_of(node, volume)] = render(volume, node.name, config_of(number)).encode()
        machine.answers[f"drbdsetup status --json pvc-{number} "] = Completed(0, json.dumps([kernel_json(number)]))
    machine.files["/proc/crypto"] = b"name : sha256\n"
    machine.answers["drbdsetup status --json pvc-7"] = Completed(0, json.dumps([kernel_json(7, "Connecting")]))
    everything = Completed(0, json.dumps([kernel_json(number) for number in range(REPLICAS)]))
    machine.answers["drbdsetup status --json"] = everything
    manager = Manager(
        store,
        replica.controllers(node),
        clock=sim.clock,
        random=sim.random("manager"),
        identity="n0",
        resync_interval=RESYNC,
    )
    tasks = [sim.loop.create_task(work) for work in replica.tasks(node)]
    managing = sim.loop.create_task(manager.run())
    await sim.clock.sleep(1)
    for number in range(REPLICAS):
        machine.streams[0].put_nowait(f"2030-01-01T00:00:00.0+00:00 exists resource name:pvc-{number} role:Secondary")
    machine.streams[0].put_nowait("2030-01-01T00:00:00.0+00:00 exists -")
    await sim.clock.sleep(RESYNC / 2)
    yield machine
    manager.stop()
    await managing
    for task in tasks:
        task.cancel()
    await store.close()


def test_starting_over_settled_replicas_costs_two_commands_beside_the_event_stream() -> None:
    async def main(sim: Simulation) -> None:
        async with settled_node(sim) as machine:
            looks = ["drbdsetup events2 --timestamps", *2 * ["drbdsetup status --json"]]
            assert sorted(machine.ran) == [*looks, "modprobe -q -a drbd drbd_transport_tcp"]

    run(main, seed=1)


def test_a_pass_over_all_replicas_that_finds_nothing_to_do_is_cheap() -> None:
    async def main(sim: Simulation) -> None:
        async with settled_node(sim) as machine:
            before = len(machine.ran)
            spent = []
            for _ in range(5):
                began = time.process_time()
                await sim.clock.sleep(RESYNC)
                spent.append(time.process_time() - began)
            assert len(machine.ran) - before <= 2
            # Measured at 30 ms on a busy machine. The bound of the specification is 50 ms.
            assert min(spent) < 0.05, spent

    run(main, seed=1)


def test_one_event_costs_one_look_at_one_resource() -> None:
    async def main(sim: Simulation) -> None:
        async with settled_node(sim) as machine:
            before = len(machine.ran)
            machine.streams[0].put_nowait(CHANGE)
            await sim.clock.sleep(10)
            assert machine.ran[before:] == ["drbdsetup status --json pvc-7"]

    run(main, seed=1)


def test_a_burst_of_events_costs_one_look() -> None:
    async def main(sim: Simulation) -> None:
        async with settled_node(sim) as machine:
            before = len(machine.ran)
            for _ in range(4):
                machine.streams[0].put_nowait(CHANGE)
                await sim.clock.sleep(BURST / 5)
            await sim.clock.sleep(10)
            assert machine.ran[before:] == ["drbdsetup status --json pvc-7"]

    run(main, seed=1)


def test_what_happens_while_a_look_is_under_way_is_looked_at_after_it() -> None:
    async def main(sim: Simulation) -> None:
        async with settled_node(sim) as machine:
            before = len(machine.ran)
            machine.slow["drbdsetup status --json pvc-7"] = 1.0
            machine.streams[0].put_nowait(CHANGE)
            await sim.clock.sleep(2 * BURST)
            machine.streams[0].put_nowait(CHANGE)
            await sim.clock.sleep(10)
            assert machine.ran[before:] == 2 * ["drbdsetup status --json pvc-7"]

    run(main, seed=1)
