"""A user without a disk acknowledges nothing with fewer copies than promised, but for what is written in a moment.

The lab plays the kernel of the recording e4_hidden_primary_detach: when one of two disks goes under such a user, it
goes on with the other, or stands still and hangs up.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from quorate.api import conditions
from quorate.api.conditions.rv import Resilient
from quorate.api.conditions.rvr import DiskIOSuspended, VolumeAccessReady
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel import Io
from quorate.lab.kernel.io import IoState
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

D = ReplicaType.DISKFUL
#: Seconds between two writes: several within the time that a hold may take.
PACE = 0.01
#: Seconds from the kernel's event to I/O that stands: what is promised.
WINDOW = 0.1


class Writer:
    """Writes one block after another, one in flight, for as long as it lives."""

    def __init__(self, story: Story, node: str) -> None:
        self.story, self.node = story, node
        #: By offset: what was acknowledged, and when.
        self.acknowledged: dict[int, tuple[str, float]] = {}
        self.last: Io | None = None

    async def go_on(self) -> None:
        lab, offset = self.story.lab, 0
        while True:
            io = self.last = self.story.begin_write(self.node, f"block {offset}", offset * 4096)
            while io.state is IoState.BLOCKED:
                await lab.sleep(PACE)
                lab.cluster.driver.catch_up()
            if io.state is IoState.DONE:
                self.acknowledged[offset] = (f"block {offset}", lab.sim.clock.monotonic())
            offset += 1
            await lab.sleep(PACE)

    def since(self, moment: float) -> list[int]:
        """The blocks that were acknowledged since then."""
        return [offset for offset, (_, at) in self.acknowledged.items() if at > moment]


async def used_without_a_disk(
    lab: VolumeLab, replication: Replication, comes: Literal["first", "last", "by-chance"]
) -> tuple[Story, str, list[str], Writer]:
    story = await Story.of(lab, replication)
    copies, user = await story.nodes(D), await story.free_node()
    await story.attach(user)
    await story.until_primary(user)
    await story.until_calm()
    lab.cluster.inject(faults.QuorumNews(comes=comes))
    return story, user, copies, Writer(story, user)


async def healthy(lab: VolumeLab) -> bool:
    return conditions.is_true((await lab.volume()).status.conditions, Resilient)


def detach(lab: VolumeLab, node: str) -> float:
    """Take the disk from the kernel by force, as by hand; returns when."""
    lab.cluster.driver.catch_up()
    kernel = lab.cluster.node(node).host.kernel
    minor = int(kernel.status("v")[0]["devices"][0]["minor"])
    assert kernel.detach(minor, force=True).ok
    lab.cluster.driver.touch()
    return lab.sim.clock.monotonic()


def suspended(lab: VolumeLab, node: str) -> bool:
    lab.cluster.driver.catch_up()
    return bool(lab.cluster.node(node).host.kernel.status("v")[0]["suspended-user"])


@pytest.mark.parametrize("comes", ["first", "last"])
@pytest.mark.parametrize("seed", range(1, 4))
def test_2d_nothing_is_acknowledged_with_one_copy_but_for_a_moment(comes: Literal["first", "last"], seed: int) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, user, copies, writer = await used_without_a_disk(lab, Replication.CONSISTENCY, comes)
            writing = sim.loop.create_task(writer.go_on())
            await lab.sleep(1)
            assert writer.acknowledged
            # Nothing brings the disk back for a while: what its agent does is late.
            lab.cluster.inject(faults.Hang(node=copies[1], command="drbdadm"))
            gone = detach(lab, copies[1])
            await lab.sleep(12)
            late = [each for each in writer.since(gone) if writer.acknowledged[each][1] > gone + WINDOW]
            assert late == []
            assert suspended(lab, user)
            replica = await story.replica_on(user)
            assert replica is not None
            assert replica.status.drbd.actual.held_for_copies
            said = conditions.find(replica.status.conditions, DiskIOSuspended)
            assert said is not None
            assert said.reason == "DiskIOSuspendedForCopies"
            assert "1 of 2" in said.message
            seen = conditions.find(replica.status.conditions, VolumeAccessReady)
            assert seen is not None
            assert seen.reason == "IOSuspendedForCopies"
            # What such an accident leaves behind is brought back, and nothing of what was acknowledged is lost.
            lab.cluster.inject(faults.Release())
            await lab.until("it is whole again", lambda: healthy(lab), 120)
            before = len(writer.acknowledged)
            await lab.sleep(5)
            assert len(writer.acknowledged) > before + 10
            assert not suspended(lab, user)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await lab.sleep(5)
            for offset, (tag, _) in writer.acknowledged.items():
                assert set(story.copies(offset * 4096).values()) == {tag}
            replica = await story.replica_on(user)
            assert replica is not None
            assert not replica.status.drbd.actual.held_for_copies

    run(main, seed=seed)


def test_a_disk_that_is_refused_is_taken_where_the_users_agent_does_nothing() -> None:
    """Nobody holds the user, which goes on and refuses the disk (-10): the disk's own agent finds the way."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            _, user, copies, writer = await used_without_a_disk(lab, Replication.CONSISTENCY, "last")
            writing = sim.loop.create_task(writer.go_on())
            lab.cluster.inject(faults.Hang(node=user, command="drbdsetup suspend-io"))
            lab.cluster.inject(faults.Hang(node=user, command="drbdsetup disconnect"))
            detach(lab, copies[1])

            async def copied() -> bool:
                replica = next(each for each in await lab.replicas() if each.spec.node_name == copies[1])
                status = replica.status.drbd.status
                return status is not None and status.devices[0].disk_state == "UpToDate"

            await lab.until("the disk is taken, and good", copied, 60)
            lab.cluster.inject(faults.Release())
            await lab.until("it is whole again", lambda: healthy(lab), 120)
            before = len(writer.acknowledged)
            await lab.sleep(5)
            assert len(writer.acknowledged) > before
            writing.cancel()

    run(main, seed=2)


@pytest.mark.parametrize("replication", [Replication.NONE, Replication.AVAILABILITY])
def test_one_copy_is_promised_and_one_is_enough(replication: Replication) -> None:
    """1D and 2D+1TB: the kernel itself acknowledges nothing that is on no copy, so nobody is held."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            _, user, copies, writer = await used_without_a_disk(lab, replication, "last")
            writing = sim.loop.create_task(writer.go_on())
            await lab.sleep(1)
            for node in copies:
                lab.cluster.inject(faults.Hang(node=node, command="drbdadm"))
            gone = detach(lab, copies[-1])
            await lab.sleep(5)
            assert not suspended(lab, user)
            assert bool(writer.since(gone + 1)) is (len(copies) > 1)
            for node in copies[:-1]:
                gone = detach(lab, node)
            await lab.sleep(1)
            assert writer.since(gone) == []
            writing.cancel()

    run(main, seed=3)


def test_3d_is_held_when_two_of_three_are_gone() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            _, user, copies, writer = await used_without_a_disk(lab, Replication.CONSISTENCY_AND_AVAILABILITY, "last")
            writing = sim.loop.create_task(writer.go_on())
            await lab.sleep(1)
            for node in copies:
                lab.cluster.inject(faults.Hang(node=node, command="drbdadm"))
            gone = detach(lab, copies[2])
            await lab.sleep(3)
            assert writer.since(gone + 2)
            gone = detach(lab, copies[1])
            await lab.sleep(12)
            assert [each for each in writer.since(gone) if writer.acknowledged[each][1] > gone + WINDOW] == []
            assert suspended(lab, user)
            lab.cluster.inject(faults.Release())
            await lab.until("it is whole again", lambda: healthy(lab), 180)
            before = len(writer.acknowledged)
            await lab.sleep(5)
            assert len(writer.acknowledged) > before
            writing.cancel()

    run(main, seed=4)


def test_a_user_whose_own_disk_fails_is_held_too() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, Replication.CONSISTENCY)
            copies = await story.nodes(D)
            await story.attach(copies[0])
            await story.until_primary(copies[0])
            writer = Writer(story, copies[0])
            writing = sim.loop.create_task(writer.go_on())
            await lab.sleep(1)
            lab.cluster.inject(faults.Hang(node=copies[0], command="drbdadm"))
            lab.cluster.inject(faults.DriveFail(node=copies[0], drive="1"))
            gone = sim.clock.monotonic()
            await lab.sleep(12)
            assert [each for each in writer.since(gone) if writer.acknowledged[each][1] > gone + WINDOW] == []
            assert suspended(lab, copies[0])
            lab.cluster.inject(faults.Release())
            lab.cluster.inject(faults.DriveMend(node=copies[0], drive="1"))
            await lab.until("it is whole again", lambda: healthy(lab), 300)
            before = len(writer.acknowledged)
            await lab.sleep(5)
            assert len(writer.acknowledged) > before
            writing.cancel()

    run(main, seed=5)


def test_an_agent_without_api_holds_and_one_that_is_started_meanwhile_lets_go() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            _, user, copies, writer = await used_without_a_disk(lab, Replication.CONSISTENCY, "last")
            writing = sim.loop.create_task(writer.go_on())
            lab.cluster.inject(faults.CutApi(node=user))
            lab.cluster.inject(faults.Hang(node=copies[1], command="drbdadm"))
            lab.cluster.inject(faults.AgentKill(node=user))
            await lab.sleep(5)
            gone = detach(lab, copies[1])
            await lab.sleep(5)
            assert [each for each in writer.since(gone) if writer.acknowledged[each][1] > gone + WINDOW] == []
            assert suspended(lab, user)
            lab.cluster.inject(faults.AgentKill(node=user))
            await lab.sleep(5)
            assert suspended(lab, user)
            lab.cluster.inject(faults.Release())
            lab.cluster.inject(faults.Heal())
            await lab.until("it is whole again", lambda: healthy(lab), 120)
            await lab.sleep(5)
            assert not suspended(lab, user)
            writing.cancel()

    run(main, seed=6)


@pytest.mark.parametrize("comes", ["first", "last"])
@pytest.mark.parametrize("seconds", [1.0, 3.0, 6.0])
def test_a_suspension_that_comes_when_the_copies_are_back_is_resumed(
    comes: Literal["first", "last"], seconds: float
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            _, user, copies, writer = await used_without_a_disk(lab, Replication.CONSISTENCY, comes)
            writing = sim.loop.create_task(writer.go_on())
            await lab.sleep(1)
            lab.cluster.inject(faults.Slow(node=user, command="drbdsetup suspend-io", seconds=seconds))
            detach(lab, copies[1])
            await lab.sleep(40)
            assert await healthy(lab)
            assert not suspended(lab, user)
            assert writer.since(sim.clock.monotonic() - 1)
            writing.cancel()

    run(main, seed=1)


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.3, 0.8])
def test_an_agent_that_is_started_anew_while_it_holds_lets_go(seconds: float) -> None:
    """With the API at hand: what a config says is known before the note of the hold has been read."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            _, user, copies, writer = await used_without_a_disk(lab, Replication.CONSISTENCY, "last")
            writing = sim.loop.create_task(writer.go_on())
            await lab.sleep(1)
            detach(lab, copies[1])
            await lab.sleep(seconds)
            lab.cluster.inject(faults.AgentKill(node=user))
            await lab.sleep(40)
            assert await healthy(lab)
            assert not suspended(lab, user)
            assert writer.since(sim.clock.monotonic() - 1)
            writing.cancel()

    run(main, seed=1)


def test_what_somebody_else_has_suspended_is_not_resumed() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story, user, copies, _ = await used_without_a_disk(lab, Replication.CONSISTENCY, "last")
            kernel = lab.cluster.node(user).host.kernel
            assert kernel.suspend_io(story.minor(user)).ok
            lab.cluster.driver.touch()
            await lab.sleep(5)
            detach(lab, copies[1])
            await lab.until("it is whole again", lambda: healthy(lab), 120)
            await lab.sleep(30)
            assert suspended(lab, user)
            lab.cluster.inject(faults.AgentKill(node=user))
            await lab.sleep(30)
            assert suspended(lab, user)

    run(main, seed=7)
