"""One agent per node: who may begin, who must wait, who must go, and what the Lease shows meanwhile."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from quorate.agent.lease import Heartbeat, Identity
from quorate.agent.lock import AgentLock, look
from quorate.api import labels, names
from quorate.api.cluster_config import AgentSettings
from quorate.api.core import Lease
from quorate.api.duration import Duration
from quorate.api.meta import NodeName
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Process, Simulation, for_each_seed, run
from quorate.errors import AnotherAgent, ConfigError, NotLeader
from tests.support.faults import Faults, FaultyStore, Sent, bad
from tests.support.widgets import open_store

NODE = NodeName("n1")
LEASE = names.agent_lease(NODE)
DURATION = AgentSettings().lease_duration.seconds
INTERVAL = AgentSettings().renew_interval.seconds


@dataclass
class Agent:
    """A heartbeat that is acquired and then held, in a process of its own."""

    heartbeat: Heartbeat
    process: Process
    task: asyncio.Task[None]


class World:
    """A store and the agents that want the same node."""

    def __init__(self, sim: Simulation, store: EmbeddedStore) -> None:
        self.sim = sim
        self.store = store
        self.network = sim.process("network")
        self.agents: list[Agent] = []
        self.writes: list[Sent] = []

    @classmethod
    async def begin(cls, sim: Simulation) -> World:
        return cls(sim, await open_store(sim, kinds=(Lease.KIND,)))

    def start(self, place: str, faults: Faults | None = None) -> Agent:
        name = f"{place}/{len(self.agents)}"
        random = self.sim.random(name)
        store = FaultyStore(
            self.store,
            self.sim,
            sender=name,
            faults=faults or Faults(latency=0.01),
            network=self.network,
            reached=self.writes.append,
        )
        identity = Identity.new(place, random)
        heartbeat = Heartbeat(store, node=NODE, identity=identity, clock=self.sim.clock, random=random)

        async def live() -> None:
            await heartbeat.acquire()
            await heartbeat.hold()

        process = self.sim.process(name)
        agent = Agent(heartbeat, process, process.spawn(live()))
        self.agents.append(agent)
        return agent

    async def lease(self) -> Lease:
        return await self.store.get(Lease, LEASE, names.NAMESPACE)

    async def holder(self) -> str | None:
        return (await self.lease()).spec.holder_identity


def test_a_free_node_is_taken_and_the_lease_says_by_whom() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        agent = world.start("here")
        assert not agent.heartbeat.held
        with pytest.raises(NotLeader):
            agent.heartbeat.check()
        await sim.clock.sleep(1)
        agent.heartbeat.check()
        lease = await world.lease()
        assert lease.spec.holder_identity == str(agent.heartbeat.identity)
        assert lease.spec.lease_duration_seconds == DURATION
        assert lease.metadata.labels == {labels.NODE: NODE}

    run(story, seed=1)


def test_the_lease_changes_at_least_once_in_every_interval() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        world.start("here")
        await sim.clock.sleep(1)
        seen = set()
        for _ in range(20):
            seen.add((await world.lease()).spec.renew_time)
            await sim.clock.sleep(INTERVAL + 0.1)
        assert len(seen) == 20

    run(story, seed=1)


def test_other_timings_hold_at_once() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        agent = world.start("here")
        await sim.clock.sleep(1)
        agent.heartbeat.timings = AgentSettings(lease_duration=Duration("7s"), renew_interval=Duration("1s"))
        await sim.clock.sleep(0.1)
        first = await world.lease()
        await sim.clock.sleep(1.1)
        second = await world.lease()
        assert first.spec.lease_duration_seconds == second.spec.lease_duration_seconds == 7
        assert first.spec.renew_time != second.spec.renew_time

    run(story, seed=1)


def test_an_agent_elsewhere_that_lives_is_seen_to_and_named_in_the_refusal() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        first = world.start("here")
        await sim.clock.sleep(3)
        second = world.start("there")
        began = sim.clock.monotonic()
        with pytest.raises(AnotherAgent, match=f"{first.heartbeat.identity} is an agent of node n1 and lives"):
            await second.task
        assert sim.clock.monotonic() - began < 2 * INTERVAL
        assert first.heartbeat.held
        assert await world.holder() == str(first.heartbeat.identity)

    for_each_seed(story)


def test_an_abandoned_lease_is_taken_over_when_it_has_not_changed_for_its_duration() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        first = world.start("here")
        await sim.clock.sleep(15)
        first.process.kill()
        second = world.start("there")
        await sim.clock.sleep(DURATION - 0.5)
        assert await world.holder() == str(first.heartbeat.identity)
        await sim.clock.sleep(5)
        assert await world.holder() == str(second.heartbeat.identity)
        assert (await world.lease()).spec.lease_transitions == 2
        assert second.heartbeat.held

    for_each_seed(story)


def test_the_time_in_the_lease_means_nothing_to_who_judges_it() -> None:
    """A holder whose clock is a day behind is alive; one whose clock is a day ahead may be dead."""

    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        sim.clock.jump(-86_400)
        first = world.start("here")
        await sim.clock.sleep(1)
        sim.clock.jump(2 * 86_400)
        second = world.start("there")
        with pytest.raises(AnotherAgent):
            await second.task
        first.process.kill()
        sim.clock.jump(-86_400)
        third = world.start("there")
        await sim.clock.sleep(DURATION + 5)
        assert third.heartbeat.held

    run(story, seed=1)


def test_the_lease_of_a_dead_predecessor_in_the_same_place_is_taken_at_once() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        world.start("here").process.kill()
        first = world.start("here")
        await sim.clock.sleep(1)
        first.process.kill()
        second = world.start("here")
        await sim.clock.sleep(0.1)
        assert await world.holder() == str(second.heartbeat.identity)

    for_each_seed(story)


def test_a_released_lease_is_free_for_anybody_at_once() -> None:
    """Also when a renewal was under way: it takes a second or two here."""

    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        first = world.start("here", Faults(latency=1.0))
        await sim.clock.sleep(sim.random("when").uniform(3, 14))
        first.task.cancel()
        await asyncio.wait((first.task,))
        await sim.clock.sleep(sim.random("pause").uniform(0, 1))
        await first.heartbeat.release()
        assert await world.holder() is None
        assert not first.heartbeat.held
        second = world.start("there")
        await sim.clock.sleep(0.1)
        assert second.heartbeat.held

    for_each_seed(story, range(60))


def test_a_lease_counts_from_when_its_renewal_was_sent_not_answered() -> None:
    """Others have seen it no later than it arrived, and count from there."""

    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        faults = Faults(latency=1.5)
        agent = world.start("here", faults)
        while len(world.writes) < 4:
            await sim.clock.sleep(0.1)
        faults.unreachable = 1.0
        arrived = world.writes[-1].at
        await sim.clock.sleep(arrived + DURATION - 4.0 - 1.6 - sim.clock.monotonic())
        before = agent.heartbeat.held
        await sim.clock.sleep(1.6)
        assert (before, agent.heartbeat.held) == (True, False)

    for_each_seed(story)


def test_of_agents_that_race_for_a_node_one_wins_and_the_others_go() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        racers = [world.start(f"place{number}") for number in range(3)]
        await sim.clock.sleep(3 * INTERVAL)
        winners = [agent for agent in racers if agent.heartbeat.held]
        assert len(winners) == 1
        for agent in racers:
            if agent not in winners:
                assert isinstance(agent.task.exception(), AnotherAgent)

    for_each_seed(story)


def test_an_agent_that_was_asleep_while_another_took_its_node_writes_nothing_and_goes() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        first = world.start("here")
        await sim.clock.sleep(1)
        first.process.pause()
        second = world.start("there")
        await sim.clock.sleep(DURATION + 5)
        assert second.heartbeat.held
        first.process.resume()
        assert not first.heartbeat.held
        with pytest.raises(AnotherAgent, match=f"was taken from us by {second.heartbeat.identity}"):
            await first.task
        assert not first.heartbeat.held

    for_each_seed(story)


def test_an_agent_keeps_its_lease_through_failures_of_the_store() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        faults = Faults(latency=0.01)
        agent = world.start("here", faults)
        await sim.clock.sleep(1)
        faults.unreachable = 1.0
        await sim.clock.sleep(3600)
        assert not agent.task.done()
        assert not agent.heartbeat.held  # others need not believe us any more
        faults.end()
        await sim.clock.sleep(5)
        assert agent.heartbeat.held

    for_each_seed(story)


def test_a_lease_that_a_person_has_deleted_is_made_anew() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        agent = world.start("here")
        await sim.clock.sleep(1)
        await world.store.delete(Lease, LEASE, names.NAMESPACE)
        await sim.clock.sleep(INTERVAL)
        assert await world.holder() == str(agent.heartbeat.identity)

    run(story, seed=1)


def test_a_person_who_edits_a_lease_does_not_stop_its_agent() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        agent = world.start("here")
        await sim.clock.sleep(1)
        await world.store.patch(Lease, LEASE, names.NAMESPACE, patch={"metadata": {"annotations": {"a": "b"}}})
        await sim.clock.sleep(2 * INTERVAL)
        assert agent.heartbeat.held

    run(story, seed=1)


def test_never_do_two_agents_hold_one_node_whatever_the_network_does() -> None:
    async def story(sim: Simulation) -> None:
        world = await World.begin(sim)
        random = sim.random("faults")
        here: dict[str, Agent] = {}
        holders = set[str]()
        for _ in range(12):
            place = random.choice("abc")
            if place in here:
                here[place].process.kill()  # whoever starts has the place's lock: nobody else of it lives
            here[place] = world.start(place, bad())
            asleep = None
            if random.random() < 0.5:
                asleep = random.choice(list(here.values()))
                asleep.process.pause()
            for _ in range(random.randrange(20, 700)):
                await sim.clock.sleep(0.1)
                holding = [agent.heartbeat for agent in here.values() if agent.process.running and agent.heartbeat.held]
                assert len(holding) <= 1
                holders.update(str(heartbeat.identity) for heartbeat in holding)
            if asleep is not None and not asleep.process.killed:
                asleep.process.resume()
        assert len(holders) > 1
        for agent in world.agents:
            if agent.task.done():
                assert isinstance(agent.task.exception(), AnotherAgent)

    for_each_seed(story)


# The lock.


def test_a_place_has_one_agent_and_the_refusal_names_it(tmp_path: Path) -> None:
    lock = AgentLock(tmp_path / "state", random=Random(1))
    with pytest.raises(AnotherAgent, match=rf"process {os.getpid()} is an agent on this machine"):
        AgentLock(tmp_path / "state", random=Random(2))
    lock.release()
    AgentLock(tmp_path / "state", random=Random(3)).release()


def test_looking_at_a_lock_tells_who_has_it_and_takes_nothing(tmp_path: Path) -> None:
    assert look(tmp_path) == ("", "")
    lock = AgentLock(tmp_path, random=Random(1))
    assert look(tmp_path) == (lock.id, str(os.getpid()))
    lock.release()
    assert look(tmp_path) == (lock.id, "")
    AgentLock(tmp_path, random=Random(1)).release()


def test_the_id_of_a_place_outlives_its_agents_and_is_no_other_places(tmp_path: Path) -> None:
    ids: list[str] = []
    for directory in ("a", "a", "b"):
        lock = AgentLock(tmp_path / directory, random=Random(len(ids)))
        ids.append(lock.id)
        lock.release()
    assert ids[0] == ids[1] != ids[2]


def test_a_killed_agent_leaves_no_lock_behind(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom random import Random\n"
        "from quorate.agent.lock import AgentLock\n"
        "lock = AgentLock(Path(sys.argv[1]), random=Random(1)); print('locked', flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(AnotherAgent, match=f"process {holder.pid} "):
            AgentLock(tmp_path, random=Random(1))
        holder.kill()
    AgentLock(tmp_path, random=Random(1)).release()


def test_a_state_directory_that_cannot_be_made_is_an_error_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        AgentLock(tmp_path / "file" / "state", random=Random(1))
