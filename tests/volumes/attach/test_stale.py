"""An acknowledged write is never lost: a primary is cut off, a write waits, the links heal, and somebody else is next.

The lab's kernel does what DRBD 9.2.9 does (``facts/drbd9-races``, E2): the write is acknowledged without the peer that
comes second, and all three say UpToDate and Established.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from quorate.api import conditions
from quorate.api.conditions.rv import Resilient
from quorate.api.conditions.rvr import InSync
from quorate.api.meta import ConditionStatus
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.host import Host
from quorate.lab.kernel import Io
from quorate.lab.kernel.io import IoState
from quorate.lab.kernel.races import Wrong
from tests.volumes.attach.stories import FIVE, Story
from tests.volumes.laboratory import VolumeLab, volume_lab

THREE, TIE = Replication.CONSISTENCY_AND_AVAILABILITY, Replication.AVAILABILITY
#: Seconds after which whoever is next is asked for.
MOMENTS = (0.0, 0.3, 1.0, 3.0, 8.0, 30.0)


class CutOff:
    """The first node uses the volume, idle; it is cut off from the others, and then writes."""

    def __init__(self, lab: VolumeLab, story: Story, nodes: list[str]) -> None:
        self.lab, self.story, self.nodes = lab, story, nodes
        self.io: Io | None = None
        self._ran: list[tuple[float, str]] = []
        for node in lab.cluster.nodes.values():
            self._listen(node.host)

    def _listen(self, host: Host) -> None:
        start = host.start

        def heard(argv: Sequence[str], *rest: Any, **more: Any) -> Any:
            self._ran.append((self.lab.sim.clock.monotonic(), " ".join(argv)))
            return start(argv, *rest, **more)

        host.start = heard  # type: ignore[method-assign, assignment]

    @classmethod
    async def of(cls, lab: VolumeLab, replication: Replication) -> CutOff:
        story = await Story.of(lab, replication)
        nodes = await story.nodes(ReplicaType.DISKFUL)
        nodes += await story.nodes(ReplicaType.TIE_BREAKER)
        await story.attach(nodes[0])
        await story.until_primary(nodes[0])
        await lab.sleep(20)
        return cls(lab, story, nodes)

    def cut(self) -> None:
        for other in self.nodes[1:]:
            self.lab.cluster.inject(faults.Cut(self.nodes[0], other))
        self.io = self.story.begin_write(self.nodes[0], "blocked")

    async def heal(self, first: int = 1, apart: float = 0.0) -> None:
        self.lab.cluster.inject(faults.Heal(self.nodes[0], self.nodes[first]))
        await self.lab.sleep(apart)
        self.lab.cluster.inject(faults.Heal())

    async def until_acknowledged(self) -> None:
        async def check() -> bool:
            self.lab.cluster.driver.catch_up()
            assert self.io is not None
            return self.io.state is IoState.DONE

        await self.lab.until("the write is acknowledged", check, 60)

    async def move(self, node: str) -> None:
        """Somebody else is next; what it reads is its own copy."""
        await self.story.detach(self.nodes[0])
        await self.story.attach(node)
        await self.story.until_primary(node, patience=900)
        assert self.story.copies()[node] == "blocked"

    def end_agent(self, node: str) -> None:
        """The agent dies, and is not started again."""
        self.lab.cluster.node(node)._end_process()

    def start_agent(self, node: str) -> None:
        self.lab.cluster.node(node)._spawn()

    async def until_lost(self) -> float:
        """When the kernel says that it has no quorum."""

        for _ in range(30_000):
            self.lab.cluster.driver.catch_up()
            found = self.lab.cluster.node(self.nodes[0]).host.kernel.status("v")
            if found[0]["suspended-quorum"]:
                return self.lab.sim.clock.monotonic()
            await self.lab.sleep(0.001)
        raise AssertionError("it has quorum still")

    def timed(self) -> list[tuple[float, str]]:
        """Every command of the agents, and when."""
        return sorted(self._ran)

    def commands(self) -> list[str]:
        return [argv for _, argv in self.timed()]

    def accidents(self) -> list[Wrong]:
        return [each.wrong for each in self.lab.cluster.world.accidents]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("agent", ["alive", "dead", "killed", "late"])
def test_on_3d_whoever_is_next_has_what_was_acknowledged(agent: str, moment: float) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            first = told.nodes[0]
            if agent == "dead":
                told.end_agent(first)
            if agent == "late":
                lab.cluster.inject(faults.Slow(first, "drbdsetup new-current-uuid", 30.0))
            told.cut()
            await lab.sleep(2 if agent == "killed" else 10)
            if agent == "killed":
                lab.cluster.inject(faults.AgentKill(first))
                await lab.sleep(8)
            await told.heal(apart=10.0 if moment else 0.0)
            await told.until_acknowledged()
            await lab.sleep(moment)
            if agent == "dead":
                told.start_agent(first)
            lab.cluster.inject(faults.Release())
            await told.move(told.nodes[2])
            assert told.story.copies(0)[told.nodes[2]] == "blocked"
            await lab.sleep(20)
            await told.story.until_calm(600)
            assert set(told.story.copies().values()) == {"blocked"}
            # Without the agent the kernel does lose it: that is what is survived.
            assert (Wrong.MARK_ERASED in told.accidents()) == (agent in ("dead", "late"))

    run(main, seed=3)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("agent", ["alive", "dead"])
@pytest.mark.parametrize("first", [1, 2])
def test_on_2d_with_a_tie_breaker_whoever_is_next_has_what_was_acknowledged(
    first: int, agent: str, moment: float
) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, TIE)
            if agent == "dead":
                told.end_agent(told.nodes[0])
            told.cut()
            await lab.sleep(10)
            await told.heal(first, apart=10.0 if moment else 0.0)
            await told.until_acknowledged()
            await lab.sleep(moment)
            if agent == "dead":
                told.start_agent(told.nodes[0])
            await told.move(told.nodes[1])
            await lab.sleep(20)
            await told.story.until_calm(600)
            assert set(told.story.copies().values()) == {"blocked"}
            assert not any("new-current-uuid" in argv for argv in told.commands())

    run(main, seed=4)


@pytest.mark.parametrize("who", ["the API is away", "the controllers are killed"])
def test_a_loss_of_quorum_is_known_of_although_nobody_could_be_told(who: str) -> None:
    """Its agent is late, so that only the comparison can find the missing write; and it is killed in the end."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            user = told.nodes[0]
            lab.cluster.inject(faults.Slow(user, "drbdsetup new-current-uuid", 30.0))
            if who == "the API is away":
                for node in told.nodes:
                    lab.cluster.inject(faults.CutApi(node))
            else:
                lab.kill()
            told.cut()
            await lab.sleep(10)
            for node in told.nodes[1:]:
                lab.cluster.inject(faults.Heal(user, node))
                await lab.sleep(10)
            await told.until_acknowledged()
            lab.cluster.inject(faults.AgentKill(user))
            await lab.sleep(5)
            lab.cluster.inject(faults.Release())
            lab.cluster.inject(faults.Heal())
            if lab.controller is None:
                lab.start()
            await told.move(told.nodes[2])
            await lab.sleep(20)
            await told.story.until_calm(600)
            assert set(told.story.copies().values()) == {"blocked"}

    run(main, seed=5)


@pytest.mark.parametrize("who", ["the API is away", "the controllers are killed"])
def test_a_user_that_goes_on_and_is_demoted_before_anybody_looks_has_gone_on(who: str) -> None:
    """Its detachment waits for the quorum (F1); the marks are erased by one more cut before anybody could see them."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            user, first, stale = told.nodes
            lab.cluster.inject(faults.Slow(user, "drbdsetup new-current-uuid", 60.0))
            told.cut()
            await lab.sleep(10)
            await told.story.detach(user)
            await lab.sleep(3)
            if who == "the API is away":
                for node in told.nodes:
                    lab.cluster.inject(faults.CutApi(node))
            else:
                lab.kill()
            for node in (first, stale):
                lab.cluster.inject(faults.Heal(user, node))
                await lab.sleep(4)
            await told.until_acknowledged()
            await lab.sleep(3)
            for node in (user, first):
                lab.cluster.inject(faults.Cut(stale, node))
            await lab.sleep(10)
            lab.cluster.inject(faults.Heal())
            await lab.sleep(10)
            lab.cluster.inject(faults.Release())
            if lab.controller is None:
                lab.start()
            await told.story.attach(stale)
            await told.story.until_primary(stale, patience=900)
            assert told.story.copies()[stale] == "blocked"
            await told.story.until_calm(600)
            assert set(told.story.copies().values()) == {"blocked"}

    run(main, seed=9)


def test_a_comparison_goes_on_when_another_good_copy_is_used_meanwhile() -> None:
    """It was begun from the copy that was used last, and copies to nobody while another is in use."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            user, _, good = told.nodes
            lab.cluster.inject(faults.Slow(user, "drbdsetup new-current-uuid", 60.0))
            told.cut()
            await lab.sleep(10)
            await told.story.detach(user)
            await lab.sleep(3)
            lab.kill()
            await told.heal()
            await told.until_acknowledged()
            await lab.sleep(5)
            lab.cluster.inject(faults.Release())
            lab.start()
            await told.story.attach(good)
            await told.story.until_primary(good, patience=900)
            await told.story.until_calm(300)
            assert set(told.story.copies().values()) == {"blocked"}
            await lab.until_condition(Resilient)

    run(main, seed=3)


def test_an_agent_that_is_started_tells_at_once_of_marks_that_it_finds() -> None:
    """It is the only one who shows them, and somebody else is asked for within a second of its start."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            user, stale, third = told.nodes
            told.end_agent(user)
            told.end_agent(third)
            told.cut()
            await lab.sleep(10)
            await told.heal(first=2, apart=8.0)
            await told.until_acknowledged()
            await lab.sleep(10)
            assert told.story.copies()[stale] != "blocked"
            await told.story.detach(user)
            await told.story.attach(third)
            told.start_agent(user)
            told.start_agent(third)
            await told.story.until_primary(third)
            await told.story.detach(third)
            await told.story.attach(stale)
            await told.story.until_primary(stale, patience=900)
            assert told.story.copies()[stale] == "blocked"

    run(main, seed=10)


def test_a_new_generation_is_made_at_once_and_once_per_loss() -> None:
    """Before the links can heal, which try every three seconds; also for the second loss, and again for none."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            for cut in (1, 2):
                told.cut()
                lost = await told.until_lost()
                await lab.sleep(30)
                made = [at for at, argv in told.timed() if "new-current-uuid" in argv]
                assert len(made) == cut
                assert 0 <= made[-1] - lost < 0.2
                await told.heal()
                await told.until_acknowledged()
                await lab.sleep(60)
            assert len([at for at, argv in told.timed() if "new-current-uuid" in argv]) == 2
            await told.story.until_calm(600)

    run(main, seed=6)


def test_a_stale_copy_is_seen_and_told_within_seconds_and_cured_and_no_link_is_touched_meanwhile() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            lab.cluster.inject(faults.Slow(told.nodes[0], "drbdsetup new-current-uuid", 60.0))
            lab.cluster.inject(faults.Slow(told.nodes[0], "drbdsetup verify", 9.0))
            told.cut()
            await lab.sleep(8)
            await told.heal(apart=8.0)
            stale = await told.story.replica_on(told.nodes[2])
            assert stale is not None
            began = sim.clock.monotonic()

            async def seen() -> bool:
                found = conditions.find((await told.story.volume()).status.conditions, Resilient)
                return found is not None and found.reason == Resilient.STALE_COPY.code

            await lab.until("the stale copy is told of", seen, 15)
            assert sim.clock.monotonic() - began < 10
            found = conditions.find((await told.story.volume()).status.conditions, Resilient)
            assert found is not None
            assert found.status is ConditionStatus.FALSE
            assert stale.name in found.message
            assert "4 KiB" in found.message
            replica = await lab.store.get(type(stale), stale.name)
            in_sync = conditions.find(replica.status.conditions, InSync)
            assert in_sync is not None
            assert in_sync.reason == InSync.STALE.code
            assert (await told.story.volume()).status.effective_layout.up_to_date_voters < 3
            # Options that change meanwhile are not adjusted to: that could make links anew.
            before = len(told.timed())
            await told.story.until_calm(600)
            parting = {"disconnect", "connect", "adjust", "down"}
            assert not [argv for _, argv in told.timed()[before:] if parting & set(argv.split())]
            assert set(told.story.copies().values()) == {"blocked"}
            await lab.until_condition(Resilient)

    run(main, seed=7)


def test_a_user_that_dies_for_good_is_followed_as_fast_as_ever() -> None:
    """What it could not write was acknowledged to nobody, so nothing has to be compared."""

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, FIVE) as lab:
            told = await CutOff.of(lab, THREE)
            told.cut()
            await lab.sleep(10)
            lab.cluster.inject(faults.NodeDown(told.nodes[0]))
            await told.story.detach(told.nodes[0])
            await told.story.attach(told.nodes[2])
            await told.story.until_primary(told.nodes[2], patience=90)
            assert await told.story.write(told.nodes[2], "new", 4096)

    run(main, seed=8)
