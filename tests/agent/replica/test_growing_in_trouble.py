"""Disks grow while links blip, agents are killed and nodes lose their power, at every command that changes a disk.

Whatever happens, no metadata are lost, nothing that was written is, and what the disks grew by is zero on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.drbd.metadata import usable_size
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.node import SimulatedNode
from tests.agent.replica.builders import MIB
from tests.agent.replica.test_life import MINOR, Commands, expect_quiet, spied, stored, until_whole, with_volume, write
from tests.lab.handmade import HandMadeVolume
from tests.lab.laboratory import Laboratory

FIRST, SECOND = 192 * MIB, 256 * MIB
CHANGES = ("lvchange", "lvcreate", "lvremove", "lvextend", "lvreduce", "blkdiscard", "dmsetup")
BLIP, KILL, POWER, POWER_AND_STATE, ALL_POWER_AND_STATE = "blip", "kill", "power", "power, state", "all power, state"
TROUBLES = (BLIP, KILL, POWER, POWER_AND_STATE, ALL_POWER_AND_STATE)


@dataclass
class Trouble:
    """Something happens at the n-th chance: before or after a command that changes a disk, on any node."""

    lab: Laboratory
    kind: str
    at: int
    random: Random
    chances: int = 0
    happened: list[str] = field(default_factory=list)

    def chance(self, node: str, said: str) -> None:
        if not said.startswith(CHANGES) and " resize" not in said:
            return
        if self.chances == self.at:
            self.happened.append(f"{self.kind} on {node} about {said}")
            # A command takes a few milliseconds before it acts, and as much again until its end is known.
            self.lab.sim.loop.call_later(self.random.choice((0.0, 0.001, 0.004, 0.02)), self._happen(node))
        self.chances += 1

    def _happen(self, node: str) -> Callable[[], None]:
        nodes = list(self.lab.cluster.nodes.values())
        if self.kind == BLIP:
            return self._blip
        if self.kind == KILL:
            return self.lab.cluster.node(node).kill_agent
        hit = nodes if self.kind == ALL_POWER_AND_STATE else [self.lab.cluster.node(node)]
        return partial(lose_power, *hit, state=self.kind != POWER)

    def _blip(self) -> None:
        for one, other in (("node-1", "node-2"), ("node-2", "node-3"), ("node-1", "node-3")):
            self.lab.cluster.inject(faults.Cut(one, other))
        self.lab.sim.loop.call_later(10.0, self.lab.cluster.inject, faults.Heal())


def lose_power(*nodes: SimulatedNode, state: bool) -> None:
    """For a moment; and with it perhaps what DRBD knew of its disk."""
    for node in nodes:
        node.power_off()
        for path in [path for path in node.host.paths() if state and path.startswith("/var/lib/drbd/")]:
            del node.host.files[path]
    for node in nodes:
        node.power_on()


async def ask(volume: HandMadeVolume, size: int) -> None:
    for number in volume.diskful:
        patch = {"spec": {"size": Quantity.of_bytes(size).text}}
        await volume.store.patch(LVMLogicalVolume, volume.logical_volume_name(number), patch=patch)


async def until_grown(volume: HandMadeVolume, size: int) -> None:
    async def grown(number: int) -> bool:
        status = (await volume.store.get(LVMLogicalVolume, volume.logical_volume_name(number))).status
        return status.phase is LogicalVolumePhase.CREATED and int(status.actual_size or 0) >= size

    # The first one's agent tells DRBD to grow: its disk grows with that.
    for number in volume.diskful[1:] or volume.diskful:
        await volume.until(f"disk {number} has grown", grown, number)


async def take_into_use(volume: HandMadeVolume, size: int) -> None:
    usable = usable_size(Bytes(size))
    await volume.configure(size=str(usable))
    await volume.until_configured()
    for number in volume.diskful:
        await volume.until_replica(number, "it has grown", lambda replica: shown(replica) >= usable)


def shown(replica: ReplicatedVolumeReplica) -> int:
    status = replica.status.drbd.status
    return status.devices[0].size * 1024 if status is not None and status.devices else 0


def beyond(lab: Laboratory, volume: HandMadeVolume, size: int) -> set[Any]:
    """What is on the disks where they grew, apart from what metadata left behind."""
    found = set()
    for number in volume.diskful:
        host = lab.cluster.node(volume.members[number][0]).host
        device = host.block_device(f"/dev/quorate-1/{volume.logical_volume_name(number)}")
        assert device is not None
        for _, _, tag in device.contents.runs(size // 4096, device.size // 4096):
            found.add(tag[0] if isinstance(tag, tuple) else tag)
    return found - {"former metadata"}


async def soil(lab: Laboratory) -> None:
    """Leave something on every extent that nobody has yet."""
    for node in lab.cluster.nodes.values():
        host = node.host
        assert host.execute(["lvcreate", "-y", "-n", "old", "-L", "600M", "quorate-1"]).exit_code == 0
        device = host.block_device("/dev/quorate-1/old")
        assert device is not None
        device.write(0, device.size, "somebody's")
        assert host.execute(["lvremove", "-y", "quorate-1/old"]).exit_code == 0


def grow_in_trouble(monkeypatch: pytest.MonkeyPatch, kind: str, at: int, seed: int, *, used: bool) -> Trouble:
    """Two growths; ``used``: the first is in use before the second begins."""
    troubles: list[Trouble] = []

    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                trouble = Trouble(lab, kind, at, Random(seed))
                troubles.append(trouble)
                await volume.form()
                await soil(lab)
                await volume.promote(0)
                await write(lab, "node-1", "a")
                if kind not in (BLIP, KILL):
                    await volume.promote(0, primary=False)
                commands.before = commands.after = trouble.chance
                await ask(volume, FIRST)
                await until_grown(volume, FIRST)
                if used:
                    await until_whole(volume)
                    await take_into_use(volume, FIRST)
                await ask(volume, SECOND)
                await until_grown(volume, SECOND)
                await until_whole(volume)
                await take_into_use(volume, SECOND)
                await lab.sleep(30)
                await until_whole(volume)
                await end(lab, volume, commands)

            await with_volume(sim, story, members=2)

    run(main, seed=seed)
    return troubles[0]


async def end(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
    """Everything is there, and is found again after all nodes have lost their power and DRBD's own notes."""
    assert stored(lab, volume) == ["a", "a"]
    assert beyond(lab, volume, 128 * MIB) == {None}
    await volume.promote(0, primary=False)
    assert not [tag for _, _, tags in disks(lab, volume) for tag in tags if "growing" in tag or "end" in tag]
    assert not [name for name, _, _ in disks(lab, volume) if "spare" in name]
    ran = len(commands.ran)
    lose_power(*lab.cluster.nodes.values(), state=True)
    await lab.sleep(60)
    await until_whole(volume)
    assert not [said for _, said in commands.ran[ran:] if said.startswith(("lvreduce", "lvextend"))]
    assert {size for name, size, _ in disks(lab, volume) if name.startswith("pvc-1")} == {SECOND}
    await expect_quiet(lab, commands)


def disks(lab: Laboratory, volume: HandMadeVolume) -> list[tuple[str, int, set[str]]]:
    groups = [lab.cluster.node(volume.members[number][0]).host.lvm.groups["quorate-1"] for number in volume.diskful]
    return [(each.name, each.size, each.tags) for group in groups for each in group.volumes.values()]


@pytest.mark.parametrize("kind", TROUBLES)
@pytest.mark.parametrize("used", [True, False], ids=["used", "not used"])
def test_whatever_happens_at_a_command_of_a_growth_nothing_is_lost(
    kind: str, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Random(f"{kind} {used}").randrange(16)
    assert grow_in_trouble(monkeypatch, kind, at, at, used=used).happened


def test_a_size_that_a_peer_has_put_to_use_unheard_is_never_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """DRBD uses the first growth, the API does not know, the second is asked for, and power and state are lost."""

    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await volume.promote(0)
                await write(lab, "node-1", "a")
                await ask(volume, FIRST)
                await until_grown(volume, FIRST)
                lab.cluster.inject(faults.CutApi("node-2"))
                await volume.configure(size=str(usable_size(Bytes(FIRST))))
                await lab.sleep(20)
                lab.cluster.driver.catch_up()
                lab.cluster.node("node-1").host.kernel.write(MINOR, 150 * MIB, 4096, "beyond")
                lab.cluster.driver.touch()
                await lab.sleep(1)
                assert (await volume.replica(1)).status.drbd.actual.backing_size is not None
                await volume.store.patch(
                    LVMLogicalVolume, volume.logical_volume_name(1), patch={"spec": {"size": "256Mi"}}
                )
                lose_power(lab.cluster.node("node-2"), state=True)
                lab.cluster.inject(faults.Heal())
                await lab.sleep(150)
                assert not [said for _, said in commands.ran if said.startswith("lvreduce")]
                await until_whole(volume)
                device = lab.cluster.node("node-2").host.block_device(f"/dev/quorate-1/{volume.logical_volume_name(1)}")
                assert device is not None
                assert (device.size, device.read(150 * MIB)) == (256 * MIB, "beyond")

            await with_volume(sim, story, members=2)

    run(main, seed=2)


def test_metadata_that_are_nowhere_leave_the_disk_as_it_is_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:

            async def story(lab: Laboratory, volume: HandMadeVolume) -> None:
                await volume.form()
                await ask(volume, FIRST)
                await until_grown(volume, FIRST)
                node = lab.cluster.node("node-2")
                device = node.host.block_device(f"/dev/quorate-1/{volume.logical_volume_name(1)}")
                assert device is not None
                node.power_off()
                device.metadata.clear()
                node.power_on()
                await ask(volume, SECOND)
                await lab.sleep(100)
                ran = len(commands.ran)
                await lab.sleep(1000)
                changing = ("lvreduce", "lvextend", "lvcreate", "blkdiscard", "dd")
                assert not [said for where, said in commands.ran[ran:] if said.startswith(changing)]
                assert not [said for where, said in commands.ran if said.startswith("lvreduce")]
                assert not [said for where, said in commands.ran[ran:] if "create-md" in said]
                assert device.size == FIRST
                error = (await volume.replica(1)).status.drbd.errors.last_metadata_error
                assert error is not None
                assert error.reason == "MetadataMissing"
                assert not node.host.mappings

            await with_volume(sim, story, members=2)

    run(main, seed=3)
