"""Whole lives of replicas, with every part of an agent, on simulated nodes.

After whatever happens a volume comes back to what its objects say within bounded time, and then nothing more is done.
On no replica metadata are ever made once it has been up, and what was written before is on every disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest

from quorate.agent.kernel_watch import SECOND_LOOK
from quorate.agent.machine import Completed
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel.io import IoState
from quorate.lab.layout import Layout
from quorate.lab.machine import LabMachine
from tests.lab.handmade import HandMadeVolume, _connected, _quorate, _up_to_date
from tests.lab.laboratory import Laboratory, laboratory

D, TB = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER
MINOR = 1000
#: Seconds in which nobody does anything to a volume that is as it should be.
QUIET = 30.0

Hook = Callable[[str, str], None]


class Commands:
    """Every command of every agent, with what must never be among them."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []
        #: Node and resource.
        self.was_up: set[tuple[str, str]] = set()
        #: Called before and after each command.
        self.before: Hook = lambda node, said: None
        self.after: Hook = lambda node, said: None

    def on(self, node: str) -> list[str]:
        """What was done to DRBD there; looking is not doing."""
        return [said for where, said in self.ran if where == node and _does(said) and " status " not in f"{said} "]

    def done(self) -> list[tuple[str, str]]:
        return [(node, said) for node, said in self.ran if _does(said) and "events2" not in said]

    def check(self, node: str, said: str) -> None:
        if "create-md" in said:
            assert (node, said.split()[-1]) not in self.was_up, f"{node} had metadata: {said}"
        assert "primary --force" not in said
        assert "a secret of this test" not in said
        if said.startswith("drbdadm") and "/dev/null" not in said:
            assert said.split()[1] == "-c", said


def _does(said: str) -> bool:
    """Whether a command is DRBD's, or changes LVM."""
    return said.startswith(("drbd", "dmsetup", "dd ", "blkdiscard", "lv")) and not said.startswith("lvs ")


@contextmanager
def spied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Commands]:
    commands = Commands()
    original = LabMachine.run

    async def run_and_tell(machine: LabMachine, *argv: str, silence: float) -> Completed:
        node, said = machine._host.name, " ".join(argv)
        commands.check(node, said)
        commands.ran.append((node, said))
        commands.before(node, said)
        completed = await original(machine, *argv, silence=silence)
        if completed.exit_code == 0 and " up " in said:
            commands.was_up.add((node, argv[-1]))
        commands.after(node, said)
        return completed

    with monkeypatch.context() as patched:
        patched.setattr(LabMachine, "run", run_and_tell)
        yield commands


async def write(lab: Laboratory, node: str, tag: str) -> None:
    """Write to the volume as its user would; returns when it is acknowledged."""
    lab.cluster.driver.catch_up()
    io = lab.cluster.node(node).host.kernel.write(MINOR, 0, 4096, tag)
    lab.cluster.driver.touch()
    for _ in range(100):
        if io.state is not IoState.BLOCKED:
            break
        await lab.sleep(0.1)
    assert io.state is IoState.DONE


def stored(lab: Laboratory, volume: HandMadeVolume) -> list[object]:
    """What every disk of the volume has where it was written."""
    found = []
    for number in volume.diskful:
        host = lab.cluster.node(volume.members[number][0]).host
        device = host.block_device(f"/dev/quorate-1/{volume.logical_volume_name(number)}")
        assert device is not None
        found.append(device.read(0))
    return found


async def until_whole(volume: HandMadeVolume) -> None:
    """Every link is up, every disk UpToDate, and every member that counts has quorum.

    One without a disk follows its peers' quorum, and may not have noticed yet that they have it again.
    """
    await volume.until("all are connected", volume._all, _connected)
    await volume.until("every disk is UpToDate", volume._all, _up_to_date)
    for number in volume.diskful:
        await volume.until_replica(number, "it has quorum", _quorate)


async def expect_quiet(lab: Laboratory, commands: Commands, *, without_log: bool = False) -> None:
    """Nothing more is done, once those that have met have been looked at once more: that may be later than it seems.

    Who grew by hand has no activity log that an operation would make: it is looked for.
    """
    await lab.sleep(3)
    for _ in range(10):
        before = len(commands.done())
        await lab.sleep(SECOND_LOOK + 1)
        if len(commands.done()) == before:
            break
    before = len(commands.done())
    await lab.sleep(QUIET)
    looks = ("drbdsetup check-resize", "dd if=/dev/quorate-1/") if without_log else ()
    assert [each for each in commands.done()[before:] if not each[1].startswith(looks)] == []


async def with_volume(
    sim: Simulation, story: Callable[[Laboratory, HandMadeVolume], Awaitable[None]], members: int = 2
) -> None:
    async with laboratory(sim, Layout(nodes=3, drives=1)) as lab:
        await lab.sleep(20)
        kinds = (D, D, D) if members == 3 else (D, D, TB)
        volume = lab.volume("pvc-1", *((f"node-{number + 1}", kind) for number, kind in enumerate(kinds)))
        await story(lab, volume)


def test_a_volume_is_formed_served_and_deleted_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await volume.promote(0)
                await write(lab, "node-1", "a")
                assert stored(lab, volume) == ["a", "a"]
                await expect_quiet(lab, commands)
                await volume.promote(0, primary=False)
                await volume.delete()
                for node in lab.cluster.nodes.values():
                    assert node.host.kernel.resources() == []
                    assert not [path for path in node.host.paths() if "pvc-1" in path]

            await with_volume(sim, story)

    run(main, seed=1)


@pytest.mark.parametrize("power", [False, True], ids=["agent killed", "power lost"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_end_between_any_two_commands_of_a_formation_is_harmless(
    power: bool, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for every command that node-1 runs to form a volume."""
    number = 0
    while _formed_with_an_end_at(number, power, after, monkeypatch):
        number += 1
    assert number > 8


def _formed_with_an_end_at(number: int, power: bool, after: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether there was such a command."""
    hit = False

    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                left = number

                def end(node: str, said: str) -> None:
                    nonlocal left, hit
                    if node != "node-1" or hit or " events2" in said or not ("drbd" in said or "lvc" in said):
                        return
                    if left == 0:
                        hit = True
                        lab.cluster.inject(faults.Reboot(node) if power else faults.AgentKill(node))
                    left -= 1

                setattr(commands, "after" if after else "before", end)
                await volume.form()
                await volume.promote(1)
                await write(lab, "node-2", "a")
                await until_whole(volume)
                assert stored(lab, volume) == ["a", "a"]
                await expect_quiet(lab, commands)

            await with_volume(sim, story)

    run(main, seed=number)
    return hit


#: What somebody, or something, may do to a node behind the agent's back.
DEEDS = (
    "drbdsetup disconnect pvc-1 {peer}",
    "drbdsetup disconnect pvc-1 {peer} --force",
    "drbdsetup detach 1000",
    "drbdsetup detach 1000 --force",
    "drbdsetup down pvc-1",
    "drbdsetup del-peer pvc-1 {peer}",
    "drbdsetup secondary pvc-1",
    "drbdsetup primary pvc-1",
)


@pytest.mark.parametrize("seed", range(12))
def test_from_any_state_it_comes_back_to_what_its_objects_say_and_rests(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                random = Random(seed)
                await volume.form(force_resync=seed % 2 == 0)
                await volume.promote(0)
                await write(lab, "node-1", "a")
                await volume.promote(0, primary=False)
                for _ in range(12):
                    _something_happens(lab, random)
                    await lab.sleep(random.choice((0.001, 0.01, 0.1, 1.0, 10.0)))
                lab.cluster.inject(faults.Heal())
                for node in lab.cluster.nodes.values():
                    if not node.host.powered:
                        node.power_on()
                await until_whole(volume)
                await volume.until_configured()
                assert stored(lab, volume) == ["a"] * len(volume.diskful)
                await expect_quiet(lab, commands)
                for number in range(len(volume.members)):
                    replica = await volume.replica(number)
                    drbd = replica.status.drbd
                    assert drbd.errors == type(drbd.errors)(), drbd.errors
                    assert drbd.actual.initial_sync_completed

            await with_volume(sim, story, members=2 + seed % 2)

    run(main, seed=seed)


def _something_happens(lab: Laboratory, random: Random) -> None:
    name = random.choice(sorted(lab.cluster.nodes))
    node = lab.cluster.node(name)
    match random.randrange(6):
        case 0:
            node.kill_agent()
        case 1:
            node.power_off() if node.host.powered else node.power_on()
        case 2:
            other = random.choice([each for each in sorted(lab.cluster.nodes) if each != name])
            lab.cluster.inject(faults.Cut(name, other))
        case 3:
            lab.cluster.inject(faults.Heal())
        case _ if node.host.powered:
            lab.cluster.driver.catch_up()
            node.host.start(random.choice(DEEDS).format(peer=random.randrange(3)).split())
            lab.cluster.driver.touch()
