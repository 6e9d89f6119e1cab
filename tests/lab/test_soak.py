"""Whatever happens to nodes, links and agents: when it is over, volumes are healthy and hold what was acknowledged."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from quorate.engine.simulation import Simulation, for_each_seed
from quorate.lab import faults
from quorate.lab.errors import FaultRefused
from quorate.lab.faults import Fault
from quorate.lab.kernel import Kernel
from quorate.lab.layout import Layout
from quorate.lab.truth import truth_of
from tests.lab.handmade import TB, D, HandMadeVolume
from tests.lab.laboratory import Laboratory, laboratory

ROUNDS = 15
#: Seconds: what failed for long, for want of the API say, is tried again after five minutes at the latest.
PATIENCE = 400.0
#: A primary without a disk goes on with one of two copies, while the other is connected to that one only.
DISKLESS_PRIMARY_MEETS_ONE_OF_TWO = 154
#: A member is met while its disk is away: what it lacks stays marked, also for those that learn of it later.
DISK_COMES_BACK_AFTER_THE_MEETING = 378


@dataclass
class Writer:
    """Somebody who uses a volume on one node whenever it can, and remembers what was acknowledged."""

    lab: Laboratory
    volume: HandMadeVolume
    written: int = 0
    acknowledged: str | None = None
    #: What was sent after that and not answered: it may be there or not.
    unanswered: set[str] = field(default_factory=set)

    def kernel(self) -> Kernel | None:
        """The kernel that has the device at present."""
        host = self.lab.cluster.node(self.volume.members[0][0]).host
        self.lab.cluster.driver.catch_up()
        return host.kernel if host.powered else None

    async def write(self) -> None:
        kernel = self.kernel()
        if kernel is None or not kernel.open(self.volume.minor, "writer", 7):
            return
        self.written += 1
        tag = f"{self.volume.name}/{self.written}"
        io = kernel.write(self.volume.minor, 0, 4096, tag)
        self.unanswered.add(tag)
        self.lab.cluster.driver.touch()
        await self.lab.sleep(2)
        self.lab.cluster.driver.catch_up()
        if not io.blocked and io.state.value == "done":
            self.acknowledged, self.unanswered = tag, set()
        if kernel is self.kernel() and not io.blocked:
            kernel.close(self.volume.minor, 7)

    def expect_kept(self) -> None:
        """Every copy holds the same, and nothing older than what was acknowledged last."""
        found = set()
        for number in self.volume.diskful:
            host = self.lab.cluster.node(self.volume.members[number][0]).host
            disk = host.lvm.find(f"quorate-1/{self.volume.logical_volume_name(number)}")
            assert disk is not None
            found.add(disk[1].device.read(0))
        assert len(found) == 1, f"{self.volume.name}: copies differ: {found}"
        assert found <= {self.acknowledged, *self.unanswered}, f"{found} instead of {self.acknowledged}"


def some_fault(chance: Random, nodes: list[str]) -> Fault:
    """Something that may happen."""
    one, other = chance.sample(nodes, 2)
    return chance.choice(
        (
            faults.NodeDown(one),
            faults.NodeUp(one),
            faults.NodeUp(other),
            faults.Reboot(one),
            faults.AgentKill(one),
            faults.Cut(one, other),
            faults.Cut(one, other, one_way=True),
            faults.Isolate(one),
            faults.CutApi(one),
            faults.Heal(one),
            faults.Heal(),
            faults.Slow(one, "drbdadm", 4.0),
            faults.Hang(one, "drbdsetup"),
            faults.Release(one),
            faults.DriveFail(one, "1"),
            faults.DriveMend(one, "1"),
        )
    )


def inject(lab: Laboratory, fault: Fault) -> None:
    with suppress(FaultRefused):  # it is so already
        lab.cluster.inject(fault)


async def well(lab: Laboratory, volume: HandMadeVolume) -> bool:
    """Whether every member is in its kernel, connected to all others and in sync."""
    nodes = {node.name: node for node in truth_of(lab.cluster).nodes}
    for name, type_ in volume.members:
        found = [one for one in nodes[name].replicas if one.resource == volume.name]
        disk = "UpToDate" if type_ is D else "Diskless"
        if len(found) != 1 or found[0].trouble or found[0].disk != disk or not found[0].quorum:
            return False
    return True


async def life(sim: Simulation) -> None:
    async with laboratory(sim, Layout(nodes=4, zones=2, drives=1)) as lab:
        nodes = list(lab.cluster.nodes)
        chance = sim.random("faults")
        volumes = [
            lab.volume("pvc-1", ("node-1", D), ("node-2", D), ("node-3", D), redundancy=2, minor=1001),
            lab.volume("pvc-2", ("node-2", D), ("node-3", D), ("node-4", TB), minor=1002),
            lab.volume("pvc-3", ("node-4", D), minor=1003),
        ]
        await asyncio.gather(*(volume.form() for volume in volumes))
        for volume in volumes:
            volume.patience = PATIENCE
        writers = [Writer(lab, volume) for volume in volumes]
        await asyncio.gather(*(volume.promote(0) for volume in volumes))
        for _ in range(ROUNDS):
            inject(lab, some_fault(chance, nodes))
            await asyncio.gather(*(writer.write() for writer in writers))
            await lab.sleep(chance.choice((0.1, 3.0, 20.0, 90.0)))
        for node in nodes:
            inject(lab, faults.Release(node))
            inject(lab, faults.DriveMend(node, "1"))
            inject(lab, faults.NodeUp(node))
        inject(lab, faults.Heal())
        for volume in volumes:
            # The kernels first: what the API says may be old until the agents have looked again.
            await volume.until(f"the kernels of {volume.name} are well", well, lab, volume)
        await asyncio.gather(*(volume.until_healthy() for volume in volumes))
        for writer in writers:
            writer.expect_kept()


def test_when_everything_is_mended_volumes_are_healthy_and_nothing_acknowledged_is_lost() -> None:
    for_each_seed(life, (*range(6), DISKLESS_PRIMARY_MEETS_ONE_OF_TWO, DISK_COMES_BACK_AFTER_THE_MEETING))
