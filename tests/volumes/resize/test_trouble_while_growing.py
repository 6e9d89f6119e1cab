"""Links and power that are lost at any step of a growth: I/O goes on, nothing acknowledged is lost, no copy is.

Steps are what the nodes' own hardware shows: how large each disk is, how large DRBD is on it, whether its metadata have
an activity log. Trouble comes as soon as a step is seen, one step after the other until the growth has no further one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from quorate.api.storage import DRBDResourceOperation, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel import BlockDevice, Kernel
from quorate.lab.kernel.io import IoState
from tests.volumes.attach.stories import FIVE, NAMES, Story
from tests.volumes.laboratory import volume_lab
from tests.volumes.resize.test_in_the_lab import LARGE, MIB, blocks_that_differ, until_grown

D = ReplicaType.DISKFUL
ONE, TIE, TWO, THREE = Replication
CASES = [
    pytest.param(level, attached, thin, id=f"{NAMES[level]}-{'at' if attached else 'de'}tached-{sort}")
    for level, attached, thin in (
        (ONE, True, False),
        (TWO, False, True),  # in use it does not grow
        (TIE, True, False),
        (THREE, False, False),
        (THREE, True, False),
        (THREE, True, True),
    )
    for sort in ("thin" if thin else "thick",)
]
#: Seconds between two looks: for the next step, and at what becomes of it.
LOOK, WATCH = 0.02, 0.2


@dataclass
class Growth:
    """What is seen of one."""

    story: Story
    nodes: list[str]
    states: list[tuple[tuple[int, int, bool], ...]] = field(default_factory=list)
    #: Seconds for which the volume stood still where it is in use.
    stood: float = 0.0

    def look(self) -> int:
        """Which step it is at."""
        self.story.lab.cluster.driver.catch_up()
        state = tuple(self.state(node) for node in self.nodes)
        if not self.states or self.states[-1] != state:
            self.states.append(state)
        return len(self.states) - 1

    def state(self, node: str) -> tuple[int, int, bool]:
        disk, shown = self._disk(node), self._kernel(node).status("v")
        found = disk.metadata.get(disk.size) if disk is not None else None
        size = int(shown[0]["devices"][0]["size"]) if shown else 0
        return (disk.size if disk is not None else 0), size, found is not None and found.has_log

    @property
    def all_disks_are_larger(self) -> bool:
        """And DRBD is not: from here on it grows by itself when links come back."""
        return all(backing > LARGE > size * 1024 for backing, size, _ in self.states[-1])

    def disk_state(self, node: str) -> str:
        return str(self._kernel(node).status("v")[0]["devices"][0]["disk-state"])

    def lose_log(self, node: str) -> None:
        """As a growth leaves it that nobody looked after: what was active stays so."""
        disk = self._disk(node)
        assert disk is not None
        disk.metadata[disk.size].has_log = False

    def _is_standing(self, node: str) -> bool:
        return any(each["role"] == "Primary" and each["suspended"] for each in self._kernel(node).status("v"))

    def _disk(self, node: str) -> BlockDevice | None:
        shown = self._kernel(node).show("v")
        path = shown[0]["_this_host"]["volumes"][0].get("backing-disk", "none") if shown else "none"
        return self.story.lab.cluster.node(node).host.block_device(path)

    def _kernel(self, node: str) -> Kernel:
        return self.story.lab.cluster.node(node).host.kernel

    async def watch(self, seconds: float) -> None:
        for _ in range(int(seconds / WATCH)):
            self.look()
            self.stood += WATCH if any(self._is_standing(node) for node in self.nodes) else 0.0
            await self.story.lab.sleep(WATCH)


async def begun(story: Story, *, attached: bool) -> Growth:
    """A volume with data that is asked to grow; in use on the last member, while the first tells DRBD to grow."""
    nodes = await story.nodes(D)
    await story.attach(nodes[-1])
    await story.until_primary(nodes[-1])
    assert await story.write(nodes[-1], "kept", 60 * MIB)
    if not attached:
        await story.detach(nodes[-1])
        await story.until_primary()
    await story.lab.sleep(30)
    growth = Growth(story, nodes)
    growth.look()
    await story.resize("128Mi")
    return growth


async def reaches(growth: Growth, step: int) -> bool:
    for _ in range(int(20 / LOOK)):
        if growth.look() >= step:
            return True
        await growth.story.lab.sleep(LOOK)
    return False


async def ends_well(growth: Growth) -> None:
    story = growth.story
    await until_grown(story, patience=900.0)
    await story.lab.until_ready(patience=900.0)
    await story.lab.sleep(60)
    assert blocks_that_differ(story) == []
    assert set(story.copies(60 * MIB).values()) == {"kept"}
    assert (await story.volume()).status.growing_to is None
    nodes = await story.nodes(D)
    assert all(Growth(story, nodes).state(node)[2] for node in nodes), "some disk would not survive a power loss"


def each_step(trouble: object) -> int:
    """Run it for one step after the other; how many there were."""
    step = 1
    while run(lambda sim: trouble(sim, step), seed=step):  # type: ignore[operator]  # noqa: B023 - called at once
        step += 1
    return step - 1


@pytest.mark.parametrize(("replication", "attached", "thin"), CASES[1:])
def test_links_that_break_at_any_step_and_come_back_stop_nobody(
    replication: Replication, attached: bool, thin: bool
) -> None:
    """Of a member that is not in use. The bounded exception: all disks have grown, and DRBD was not told yet."""
    stops: list[float] = []

    async def main(sim: Simulation, step: int) -> bool:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication, thin=thin)
            growth = await begun(story, attached=attached)
            if not await reaches(growth, step):
                return False
            others = growth.nodes[:-1]
            lab.cluster.inject(faults.Isolate(others[step % len(others)]))
            await growth.watch(15)
            exception = growth.all_disks_are_larger
            lab.cluster.inject(faults.Heal())
            await growth.watch(30)
            if exception or growth.stood:
                stops.append(growth.stood)
                assert exception, f"stood still for {growth.stood:.1f} s at step {step}: {growth.states}"
            await ends_well(growth)
            return True

    assert each_step(main) >= 2
    assert len(stops) <= 1
    assert all(each < 10 for each in stops)


@pytest.mark.parametrize(
    ("replication", "attached", "thin", "everybody"),
    [
        pytest.param(*each.values, everybody, id=f"{each.id}-{'all' if everybody else 'one'}")
        for each, everybody in itertools.product(CASES, (False, True))
        # The longest, and nobody is there who could be refused.
        if not (each.id == "3D-detached-thick" and not everybody)
    ],
)
def test_power_that_is_lost_at_any_step_costs_no_copy(
    replication: Replication, attached: bool, thin: bool, everybody: bool
) -> None:
    """Not even if DRBD has grown, it is in use, and nothing was written since: a log is there before."""

    async def main(sim: Simulation, step: int) -> bool:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, replication, thin=thin)
            growth = await begun(story, attached=attached)
            if not await reaches(growth, step):
                return False
            lost = growth.nodes if everybody else [growth.nodes[step % len(growth.nodes)]]
            for node in lost:
                lab.cluster.inject(faults.NodeDown(node))
            await lab.sleep(20)
            for node in lost:
                lab.cluster.inject(faults.NodeUp(node))
            await lab.sleep(20)
            errors = [each.status.drbd.errors.last_adjustment_error for each in await lab.replicas()]
            assert not any(error is not None and error.reason == "MetadataUnusable" for error in errors), errors
            assert await story.nodes(D) == growth.nodes, "a copy was replaced"
            await ends_well(growth)
            return True

    assert each_step(main) >= 2


@pytest.mark.parametrize("attached", [True, False], ids=["attached", "detached"])
def test_members_that_grew_under_an_older_version_are_found_and_mended_one_at_a_time(attached: bool) -> None:
    """They have no log, and nothing says that they ever had one."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            story = await Story.of(lab, THREE)
            growth = await begun(story, attached=attached)
            await until_grown(story)
            await lab.sleep(30)
            for node in growth.nodes:
                growth.lose_log(node)
            for replica in await lab.replicas():
                patch = {"drbd": {"actual": {"activityLogAt": None}}}
                await lab.store.patch_status(ReplicatedVolumeReplica, replica.name, patch=patch)
            away = 0
            for at in range(600):
                user = growth.nodes[-1]
                if attached:
                    assert story.begin_write(user, f"{at}", 4096 * (at % 64)).state is IoState.DONE
                states = [growth.disk_state(node) for node in growth.nodes]
                away = max(away, sum(state != "UpToDate" for state in states))
                if all(growth.state(node)[2] for node in growth.nodes):
                    break
                await lab.sleep(0.5)
            assert all(growth.state(node)[2] for node in growth.nodes)
            assert away <= (1 if attached else 0)
            await lab.sleep(120)
            assert not (await lab.store.list(DRBDResourceOperation)).items
            assert not any(each.status.drbd.actual.activity_log_missing for each in await lab.replicas())

    run(main, seed=3)
