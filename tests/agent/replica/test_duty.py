"""The duty to yield outlives the agent that took it on, and no config that withdraws it."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.agent.machine import Completed
from quorate.agent.replica.duty import Duty, note_of, recall
from quorate.api.codec import to_builtins
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import config, kernel, link, peer
from tests.agent.replica.test_controller import Agent, agent

NOTE = "/var/lib/quorate/drbd.d/pvc-1.yields"
YIELDING = {"primary": True, "yields": True, "allow_two_primaries": True}


@pytest.mark.parametrize(
    ("note", "lost", "broken"),
    [
        (Duty.of(config(**YIELDING)), 1, True),
        (Duty.of(config(**YIELDING, peers=(peer(1), peer(2, hidden=True)))), 2, False),
        (Duty.of(config(**YIELDING, peers=(peer(1, hidden=True),))), 1, False),
        ("", 2, True),  # torn: whoever the kernel has a link to may be one that counts
        ("peers 1", 2, True),
        ("something else\n", 1, True),
    ],
)
def test_an_agent_that_reads_a_note_knows_whom_its_resource_must_not_lose(
    note: Duty | str, lost: int, broken: bool
) -> None:
    async def main(sim: Simulation) -> None:
        node, machine = scripted_node(sim.clock)
        machine.files = {NOTE: (note if isinstance(note, str) else note.note).encode(), "/var/lib/quorate/x": b""}
        assert note_of(node, "pvc-1") == NOTE
        await recall(node)
        (duty,) = node.memory.duties.values()
        assert not duty.is_broken_by(kernel())
        links = tuple(link(each, "Connecting" if each == lost else "Connected") for each in (1, 2))
        assert duty.is_broken_by(kernel(links=links)) is broken

    run(main, seed=1)


async def configure(here: Agent, **changes: Any) -> None:
    patch = {"drbd": {"config": {"yields": None, **to_builtins(config(**changes))}}}
    await here.store.patch_status(ReplicatedVolumeReplica, "pvc-1-0", patch=patch)
    await here.sim.clock.sleep(10)


def test_a_duty_is_noted_while_a_config_asks_for_it_and_changes_with_it() -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            await here.create("pvc-1-0")
            await sim.clock.sleep(10)
            assert NOTE not in here.machine.files
            for peers, note in (((peer(1), peer(2)), b"peers 1 2\n"), ((peer(1), peer(2, hidden=True)), b"peers 1\n")):
                await configure(here, **YIELDING, peers=peers)
                assert here.machine.files[NOTE] == note
                assert set(here.node.memory.duties) == {"pvc-1"}
            await configure(here)
            assert NOTE not in here.machine.files
            assert not here.node.memory.duties

    run(main, seed=1)


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("exists", [False, True], ids=["no replica is left", "the replica does not yield"])
def test_a_note_that_nobody_needs_any_more_goes_when_the_api_has_been_read(exists: bool, seed: int) -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim, files={NOTE: b"peers 1 2\n"}) as here:
            if exists:
                await here.create("pvc-1-0")
            here.machine.answers["drbdsetup status --json pvc-1"] = Completed(10, "", "No such resource")
            await sim.clock.sleep(700)
            assert NOTE not in here.machine.files
            assert not here.node.memory.duties

    run(main, seed=seed)
