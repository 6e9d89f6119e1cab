"""Events wake, status tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.agent import looks
from quorate.agent.kernel_watch import KernelWatch
from quorate.agent.machine import Completed
from quorate.agent.node import Node
from quorate.agent.steps import KERNEL, Look
from quorate.engine import Key
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import ScriptedMachine, scripted_node

CHANGE = "2030-01-01T00:00:00.000000+00:00 change connection name:{} peer-node-id:1 conn-name:n2 connection:Connected"
EXISTS = "2030-01-01T00:00:00.0+00:00 exists resource name:{} role:Secondary suspended:no"
END_OF_DUMP = "2030-01-01T00:00:00.0+00:00 exists -"
PROGRESS = (
    "2030-01-01T00:00:00.0+00:00 change peer-device name:r peer-node-id:1 conn-name:n2 volume:0 done:1.00 out-of-sync:5"
)
PATH = (
    "2030-01-01T00:00:00.0+00:00 {} path name:r peer-node-id:1 conn-name:n2"
    " local:ipv4:10.0.0.1:7000 peer:ipv4:10.0.0.2:7001 established:{}"
)


def status(*names: str, **more: Any) -> Completed:
    links = [{"peer-node-id": 1, "name": "n2", "connection-state": "Connected", "peer_devices": []}]
    return Completed(
        0,
        json.dumps(
            [
                {"name": name, "node-id": 0, "role": "Secondary", "devices": [], "connections": links, **more}
                for name in names
            ]
        ),
    )


def watched(sim: Simulation) -> tuple[Node, ScriptedMachine, KernelWatch, list[str]]:
    node, machine = scripted_node(sim.clock)
    looks.register(node)
    machine.answers["drbdsetup status"] = status()
    woken: list[str] = []
    node.volumes.subscribe(lambda key: woken.append(key.name))
    return node, machine, KernelWatch(node), woken


async def look(node: Node, sim: Simulation, subject: str = "") -> None:
    node.hands.start(f"test {subject}", (Look(KERNEL, subject),), lambda: None)
    await sim.clock.sleep(1)


def test_an_event_marks_its_resource_and_wakes_it() -> None:
    async def main(sim: Simulation) -> None:
        node, _, watch, woken = watched(sim)
        await look(node, sim, "r")
        assert node.memory.resource("r").current
        watch.heard(CHANGE.format("r"))
        assert not node.memory.resource("r").current
        assert woken == ["r"]

    run(main, seed=1)


@pytest.mark.parametrize("line", ["", "garbage", "\x00\xff", "2030 exists -", "change", "change resource", "name:r"])
def test_what_is_no_event_wakes_nobody(line: str) -> None:
    async def main(sim: Simulation) -> None:
        _, _, watch, woken = watched(sim)
        watch.heard(line)
        assert woken == []

    run(main, seed=1)


def test_progress_is_worth_a_look_every_five_seconds() -> None:
    async def main(sim: Simulation) -> None:
        _, _, watch, woken = watched(sim)
        for _ in range(100):
            watch.heard(PROGRESS)
            await sim.clock.sleep(0.1)
        assert len(woken) == 2

    run(main, seed=1)


def test_a_change_of_state_beside_progress_is_no_mere_progress() -> None:
    async def main(sim: Simulation) -> None:
        _, _, watch, woken = watched(sim)
        for _ in range(3):
            watch.heard(f"{PROGRESS} replication:Established")
        assert woken == ["r", "r", "r"]

    run(main, seed=1)


def test_each_start_of_the_stream_and_the_end_of_its_dump_look_at_everything_once_and_wake_all() -> None:
    async def main(sim: Simulation) -> None:
        node, machine, watch, woken = watched(sim)
        machine.answers["drbdsetup status"] = status("a", "b")
        node.memory.resource("gone")
        following = sim.loop.create_task(watch.follow())
        await sim.clock.sleep(1)
        assert machine.ran == ["drbdsetup events2 --timestamps", "drbdsetup status --json"]
        assert sorted(woken) == ["a", "b", "gone"]
        assert node.memory.resource("gone").current
        assert node.memory.resource("gone").value is None
        woken.clear()
        for line in (EXISTS.format("a"), EXISTS.format("b")):
            machine.streams[0].put_nowait(line)
        await sim.clock.sleep(1)
        assert woken == []
        machine.streams[0].put_nowait(END_OF_DUMP)
        await sim.clock.sleep(1)
        assert machine.ran.count("drbdsetup status --json") == 2
        assert sorted(woken) == ["a", "b", "gone"]
        machine.streams[0].put_nowait(None)
        await sim.clock.sleep(10)
        assert len(machine.streams) == 2
        assert machine.ran.count("drbdsetup status --json") == 3
        following.cancel()

    run(main, seed=1)


def test_a_stream_that_fails_is_started_again_with_growing_pauses() -> None:
    async def main(sim: Simulation) -> None:
        _, machine, watch, _ = watched(sim)
        following = sim.loop.create_task(watch.follow())
        for number in range(20):
            while len(machine.streams) <= number:
                await sim.clock.sleep(1)
            machine.streams[number].put_nowait(None)
        assert 20 * 15 < sim.clock.monotonic() < 20 * 40
        following.cancel()

    run(main, seed=1)


def test_paths_that_the_status_does_not_tell_come_from_events() -> None:
    async def main(sim: Simulation) -> None:
        node, machine, watch, _ = watched(sim)
        machine.answers["drbdsetup status"] = status("r")
        watch.heard(PATH.format("create", "no"))
        watch.heard(PATH.format("change", "yes"))
        await look(node, sim, "r")
        seen = node.memory.resource("r").value
        assert seen is not None
        (path,) = seen.connections[0].paths
        assert (path.this_host.port, path.remote_host.address, path.established) == (7000, "10.0.0.2", True)
        watch.heard(PATH.format("destroy", "no"))
        await look(node, sim, "r")
        seen = node.memory.resource("r").value
        assert seen is not None
        assert seen.connections[0].paths == ()

    run(main, seed=1)


@pytest.mark.parametrize(
    "answer",
    [
        Completed(0, "not json"),
        Completed(0, '{"a": 1}'),
        Completed(0, "[[[["),
        Completed(1, "[]", "cannot open netlink"),
        Completed(10, "", "something else"),
        OSError("no"),
    ],
)
def test_garbage_is_an_error_and_what_was_seen_holds_no_more(answer: Any) -> None:
    async def main(sim: Simulation) -> None:
        node, machine, _, _ = watched(sim)
        machine.answers["drbdsetup status"] = status("r")
        await look(node, sim, "r")
        assert node.memory.resource("r").current
        machine.answers["drbdsetup status"] = answer
        for subject in ("r", ""):
            await look(node, sim, subject)
        sighting = node.memory.resource("r")
        assert sighting.error
        assert not sighting.current
        assert sighting.value is not None

    run(main, seed=1)


def test_a_resource_that_cannot_be_read_does_not_blind_us_for_the_others() -> None:
    """Of somebody else, say, with node ids that ours never have."""

    async def main(sim: Simulation) -> None:
        node, machine, _, _ = watched(sim)
        ours = json.loads(status("ours").stdout)
        foreign = json.loads(status("foreign").stdout)
        foreign[0]["connections"][0]["peer-node-id"] = 30
        node.memory.resource("gone")
        machine.answers["drbdsetup status"] = Completed(0, json.dumps(foreign + ours))
        await look(node, sim)
        assert node.memory.whole_kernel.current
        assert node.memory.resource("ours").current
        assert node.memory.resource("ours").value is not None
        assert node.memory.resource("gone").current
        assert not node.memory.resource("foreign").current
        assert node.memory.resource("foreign").error

    run(main, seed=1)


def test_a_resource_without_a_name_might_be_ours_so_nothing_is_known_of_any() -> None:
    async def main(sim: Simulation) -> None:
        node, machine, _, _ = watched(sim)
        node.memory.resource("ours")
        machine.answers["drbdsetup status"] = Completed(0, json.dumps([{"role": "Primary"}]))
        await look(node, sim)
        assert node.memory.whole_kernel.error
        assert not node.memory.resource("ours").current

    run(main, seed=1)


def test_a_resource_that_the_kernel_has_not_got_is_seen_as_that() -> None:
    async def main(sim: Simulation) -> None:
        node, machine, _, _ = watched(sim)
        machine.answers["drbdsetup status"] = Completed(10, "[\n]\n\n", "pvc-1: No such resource")
        await look(node, sim, "r")
        assert node.memory.resource("r").current
        assert node.memory.resource("r").value is None
        assert Key("", "r") == ("", "r")

    run(main, seed=1)
