"""A primary that loses quorum is given a new generation at once, once, and only where that helps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from quorate.agent import looks
from quorate.agent.kernel_watch import KernelWatch
from quorate.agent.machine import Completed
from quorate.agent.node import Node, resource_work
from quorate.agent.replica.quorum_loss import QuorumLoss, QuorumLossWatch, gains_from_new_generation, note_of, stands
from quorate.agent.steps import Run
from quorate.api.storage.drbd import DrbdConfig, DrbdStatus, ReplicaType
from quorate.api.struct import replace
from quorate.engine import Key
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import ScriptedMachine, scripted_node
from tests.agent.replica.builders import DISKLESS, config, decided, kernel, link, peer, view

ALONE = (link(1, "Connecting", flow="Off", disk="DUnknown"), link(2, "Connecting", flow="Off", disk="DUnknown"))
LOST = replace(kernel(role="Primary", quorum=False, links=ALONE), suspended=True, suspended_quorum=True)
TIE, ACCESS = ReplicaType.TIE_BREAKER, ReplicaType.ACCESS
NEW = "drbdsetup new-current-uuid 1000"
EVENT = "2026-11-18T08:00:00.1+00:00 change device name:pvc-1 volume:0 minor:1000 disk:UpToDate quorum:no"
AT = datetime(2026, 11, 18, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "gains"),
    [
        (config(), True),
        (config(peers=(peer(1), peer(2), peer(3))), True),
        # Nobody comes second who has data.
        (config(peers=(peer(1),)), False),
        (config(peers=(peer(1), peer(2, TIE))), False),
        (config(peers=(peer(1), peer(2, hidden=True))), False),
        (config(peers=()), False),
        # There is no generation to renew, or somebody else's counts.
        (config(**DISKLESS), False),
        (config(hidden=True), False),
        (config(allow_two_primaries=True), False),
        (config(yields=True), False),
    ],
)
def test_three_copies_gain_and_nobody_else(given: DrbdConfig, gains: bool) -> None:
    assert gains_from_new_generation(given) is gains


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        (LOST, True),
        (replace(LOST, role="Secondary"), False),
        (replace(LOST, suspended_quorum=False), False),
        (replace(LOST, devices=(replace(LOST.devices[0], quorum=True),)), False),
        (replace(LOST, devices=(replace(LOST.devices[0], disk_state="Diskless"),)), False),
        (replace(LOST, devices=()), False),
        (None, False),
    ],
)
def test_only_a_primary_with_a_disk_that_waits_for_quorum_has_lost_it(status: DrbdStatus | None, lost: bool) -> None:
    assert stands(status) is lost


@pytest.mark.parametrize("loss", [QuorumLoss(AT), QuorumLoss(AT, standing=False), QuorumLoss(AT, prevented=True)])
def test_a_note_is_read_as_it_was_written(loss: QuorumLoss) -> None:
    assert QuorumLoss.read(loss.note) == loss
    assert QuorumLoss.read(loss.note[:-1]) is None


@pytest.mark.parametrize("torn", ["", "lost", "lost \n", "lost yesterday\n", "lost 2026-11-18T08:00:00\n", "\0\0\n"])
def test_a_torn_note_says_nothing(torn: str) -> None:
    assert QuorumLoss.read(torn) is None


def json_of(status: DrbdStatus) -> str:
    return json.dumps(
        [
            {
                "name": "pvc-1",
                "node-id": 0,
                "role": status.role,
                "suspended": status.suspended,
                "suspended-quorum": status.suspended_quorum,
                "devices": [
                    {"minor": 1000, "disk-state": each.disk_state, "quorum": each.quorum} for each in status.devices
                ],
                "connections": [],
            }
        ]
    )


class Watched:
    """A node whose kernel shows what it is told to."""

    def __init__(self, node: Node, machine: ScriptedMachine) -> None:
        self.node, self.machine = node, machine
        self.kernel = KernelWatch(node)

    def shows(self, status: DrbdStatus) -> None:
        self.machine.answers["drbdsetup status"] = Completed(0, json_of(status))

    def hear(self, line: str = EVENT) -> None:
        self.kernel.heard(line)

    @property
    def made(self) -> int:
        return self.machine.ran.count(NEW)


@asynccontextmanager
async def watched(
    sim: Simulation, files: dict[str, bytes] | None = None, shown: DrbdStatus | None = None
) -> AsyncIterator[Watched]:
    node, machine = scripted_node(sim.clock)
    looks.register(node)
    found = Watched(node, machine)
    found.shows(shown or kernel(role="Primary"))
    machine.files.update(files or {})
    node.memory.renewable.add("pvc-1")
    keeping = asyncio.create_task(QuorumLossWatch(node).keep())
    await sim.clock.sleep(1)
    try:
        yield found
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


def note(machine: ScriptedMachine, node: Node) -> str:
    return machine.files[note_of(node, "pvc-1")].decode()


def test_it_is_made_at_once_beside_work_that_hangs_and_once_per_loss() -> None:
    async def main(sim: Simulation) -> None:
        async with watched(sim) as found:
            node, machine = found.node, found.machine
            machine.hanging.add("drbdadm adjust pvc-1")
            hung = Run(("drbdadm", "adjust", "pvc-1"), "adjust")
            node.hands.start(resource_work("pvc-1"), (hung,), lambda: None)
            for number in (1, 2):
                found.shows(LOST)
                found.hear()
                await sim.clock.sleep(0.1)
                assert found.made == number
                for _ in range(5):
                    found.hear()
                    await sim.clock.sleep(2)
                assert found.made == number
                assert "standing prevented" in note(machine, node)
                assert node.memory.quorum_losses["pvc-1"].prevented
                found.shows(kernel(role="Primary"))
                found.hear("change resource name:pvc-1 suspended:no")
                node.quorum.wake(Key("", "pvc-1"))
                await sim.clock.sleep(1)
                assert "standing" not in note(machine, node)
            machine.hanging.clear()

    run(main, seed=1)


@pytest.mark.parametrize(
    "status",
    [
        replace(LOST, role="Secondary"),
        replace(LOST, suspended_quorum=False),
        replace(LOST, devices=(replace(LOST.devices[0], disk_state="Diskless"),)),
    ],
)
def test_nothing_is_made_where_nothing_waits(status: DrbdStatus) -> None:
    async def main(sim: Simulation) -> None:
        async with watched(sim) as found:
            found.shows(status)
            found.hear()
            await sim.clock.sleep(5)
            assert found.made == 0
            assert found.node.memory.quorum_losses == {}

    run(main, seed=1)


def test_a_loss_is_kept_in_mind_where_nothing_can_be_made() -> None:
    async def main(sim: Simulation) -> None:
        async with watched(sim) as found:
            found.node.memory.renewable.clear()
            found.shows(LOST)
            found.hear()
            await sim.clock.sleep(5)
            assert found.made == 0
            assert not found.node.memory.quorum_losses["pvc-1"].prevented
            assert "standing\n" in note(found.machine, found.node)

    run(main, seed=1)


def test_one_that_came_too_late_prevents_nothing() -> None:
    """The kernel has gone on by the time that the command has ended."""

    async def main(sim: Simulation) -> None:
        async with watched(sim) as found:
            found.machine.slow[NEW] = 4.0
            found.shows(LOST)
            found.hear()
            await sim.clock.sleep(1)
            found.shows(kernel(role="Primary"))
            await sim.clock.sleep(10)
            loss = found.node.memory.quorum_losses["pvc-1"]
            assert not loss.prevented
            assert not loss.standing

    run(main, seed=1)


@pytest.mark.parametrize("prevented", [True, False])
def test_an_agent_that_is_started_anew_does_not_take_a_loss_for_the_one_that_it_finds_noted(prevented: bool) -> None:
    """Quorum may have come back while nobody looked, and be lost again: what was done the first time is no good."""

    async def main(sim: Simulation) -> None:
        before = QuorumLoss(AT, prevented=prevented)
        file = note_of(scripted_node(sim.clock)[0], "pvc-1")
        async with watched(sim, {file: before.note.encode()}, LOST) as found:
            found.hear()
            await sim.clock.sleep(5)
            assert found.made == 1
            loss = found.node.memory.quorum_losses["pvc-1"]
            assert loss.at != AT
            assert loss.prevented

    run(main, seed=1)


def test_a_second_loss_is_another_one_although_no_look_came_in_between() -> None:
    """The kernel's events tell that quorum was there; the looks are late."""

    async def main(sim: Simulation) -> None:
        async with watched(sim) as found:
            found.shows(LOST)
            found.hear()
            await sim.clock.sleep(5)
            first = found.node.memory.quorum_losses["pvc-1"]
            found.hear("change device name:pvc-1 volume:0 minor:1000 quorum:yes")
            found.hear()
            await sim.clock.sleep(5)
            assert found.made == 2
            second = found.node.memory.quorum_losses["pvc-1"]
            assert second.at > first.at
            assert second.prevented

    run(main, seed=1)


def test_a_note_that_cannot_be_written_keeps_nothing_from_being_made_and_is_tried_again() -> None:
    async def main(sim: Simulation) -> None:
        async with watched(sim) as found:
            whole, full = found.machine.write_file, [True]

            async def write(path: str, content: bytes) -> None:
                if full[0]:
                    raise OSError(28, "No space left on device")
                await whole(path, content)

            found.machine.write_file = write  # type: ignore[method-assign]
            found.shows(LOST)
            found.hear()
            await sim.clock.sleep(1)
            assert found.made == 1
            full[0] = False
            await sim.clock.sleep(10)
            assert "prevented" in note(found.machine, found.node)

    run(main, seed=1)


def test_a_loss_is_reported_and_stays_reported() -> None:
    told = decided(view(quorum_loss=QuorumLoss(AT, prevented=True))).status.drbd.actual
    assert (told.quorum_lost_at, told.quorum_loss_prevented) == (AT, True)
