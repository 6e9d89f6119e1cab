"""Two managers, one leader: under load, with leaders that are paused and wake up believing they still lead.

``World.reached`` looks at every write that reaches the store: none may come from a term after the first decision of a
later one, and no number may be given out twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest
from prometheus_client import CollectorRegistry

from quorate.api.core import Lease, Namespace
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.leader import Elector, Timings
from quorate.engine.metrics import EngineMetrics
from quorate.engine.simulation import SimulatedClock, Simulation, for_each_seed, run
from quorate.engine.simulation.clock import EPOCH
from quorate.errors import NotLeader
from tests.support.faults import Faults, FaultyStore
from tests.support.kinds import Gadget, Widget
from tests.support.widgets import KINDS, NAMESPACE, open_store, widget
from tests.support.world import World

# Each way; with both a request stays below the four seconds after which it is given up.
SLOW = 1.9


async def keep_people_busy(world: World, until: float) -> dict[str, int]:
    """Create, resize and delete widgets; what is left in the end."""
    sim, random = world.sim, world.sim.random("people")
    intended: dict[str, int] = {}
    number = 0
    while sim.clock.monotonic() < until:
        await sim.clock.sleep(random.uniform(0, 4))
        if len(intended) < 4:
            number += 1
            intended[f"w{number}"] = random.randrange(1, 4)
            await world.store.create(widget(f"w{number}", intended[f"w{number}"]))
        else:
            name = random.choice(sorted(intended))
            if random.random() < 0.5:
                del intended[name]
                await world.store.delete(Widget, name)
            else:
                intended[name] = random.randrange(1, 4)
                await world.store.patch(Widget, name, patch={"spec": {"high": intended[name]}})
    return intended


def test_a_paused_leader_that_wakes_up_writes_nothing_after_its_successor_has_decided() -> None:
    successions = 0

    async def main(sim: Simulation) -> None:
        nonlocal successions
        world = await World.begin(sim, Faults(latency=SLOW, watch_latency=SLOW))
        world.start("a")
        world.start("b")
        people = asyncio.create_task(keep_people_busy(world, until=400))
        random = sim.random("pauses")
        while sim.clock.monotonic() < 400:
            await sim.clock.sleep(random.uniform(5, 30))
            paused = [world.managers[name].process for name in world.leaders()]
            for process in paused:
                process.pause()
            await sim.clock.sleep(random.uniform(5, 60))
            for process in paused:
                process.resume()
        intended = await people
        await sim.clock.sleep(120)
        await world.expect_settled(intended)
        await world.expect_quiet(60)
        successions += world.decided_epoch - 1

    for_each_seed(main, range(15))
    assert successions > 15, "hardly ever did anybody take over: the test shows nothing"


def test_a_manager_that_stops_hands_over_at_once_and_one_that_dies_is_replaced_when_its_lease_runs_out() -> None:
    async def main(sim: Simulation) -> None:
        world = await World.begin(sim, Faults(latency=0.01))
        first = world.start("a")
        await sim.clock.sleep(5)
        world.start("b")
        assert world.leaders() == ["a"]
        await world.store.create(widget("w", 2))
        await sim.clock.sleep(5)
        first.manager.stop()
        await first.task
        await sim.clock.sleep(3)
        assert world.leaders() == ["b"]
        world.start("c")
        await sim.clock.sleep(5)
        world.kill("b")
        await sim.clock.sleep(10)
        assert world.leaders() == []
        await sim.clock.sleep(10)
        assert world.leaders() == ["c"]
        await world.expect_settled({"w": 2})

    for_each_seed(main, range(10))


def test_a_new_leader_has_seen_everything_that_was_written_before_its_election() -> None:
    """Its watch is deaf from the start: only the list made at its election and its own writes can tell it anything."""

    async def main(sim: Simulation) -> None:
        world = await World.begin(sim, Faults(latency=0.01))
        world.start("a")
        await sim.clock.sleep(5)
        world.start("b", faults=Faults(latency=0.01, watch_latency=1e6))
        await sim.clock.sleep(5)
        for name in ("w1", "w2"):
            await world.store.create(widget(name, 2))
        await sim.clock.sleep(5)
        await world.expect_settled({"w1": 2, "w2": 2})
        before = len(world.decisions())
        world.kill("a")
        await sim.clock.sleep(30)
        assert world.leaders() == ["b"]
        assert world.decisions()[before:] == [], "it decided on something that was long past"
        world.expect_safe()

    for_each_seed(main, range(10))


@pytest.mark.parametrize(
    ("forge", "violation"),
    [
        (
            lambda ghost: ghost.patch(Widget, "w", patch={"spec": {"high": 2}}),
            "of term 0 after the first decision of 1",
        ),
        (
            lambda ghost: ghost.patch_status(Gadget, "w-0", NAMESPACE, patch={"count": 1}),
            "w-1 and w-0: same number",
        ),
        (
            lambda ghost: ghost.patch(Widget, "w", patch={"metadata": {"finalizers": None}}),
            "w-0 before its parent's finalizer",
        ),
    ],
)
def test_what_must_never_happen_fails_a_test_when_it_does(
    forge: Callable[[FaultyStore], Awaitable[object]], violation: str
) -> None:
    async def main(sim: Simulation) -> None:
        world = await World.begin(sim, Faults(latency=0.01))
        running = world.start("a")
        await world.store.create(widget("w", 2))
        await sim.clock.sleep(10)
        await world.expect_settled({"w": 2})
        ghost = FaultyStore(
            world.store, sim, sender="a@0", faults=Faults(), network=world.network, reached=world.reached
        )
        running.process.pause()
        await forge(ghost)
        with pytest.raises(AssertionError, match=violation):
            await world.expect_settled({"w": 2})
        with pytest.raises(AssertionError, match=violation):
            await world.expect_quiet(0)

    run(main, seed=1)


def elector(
    sim: Simulation, store: EmbeddedStore | FaultyStore, identity: str, clock: SimulatedClock | None = None
) -> Elector:
    clock = clock or sim.clock
    return Elector(
        store,
        name="leader",
        namespace=NAMESPACE,
        identity=identity,
        clock=clock,
        random=sim.random(identity),
        metrics=EngineMetrics(CollectorRegistry(), clock),
    )


def test_every_term_has_a_higher_epoch_also_when_the_same_process_leads_again() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        one = elector(sim, store, "one")
        epochs = [await one.acquire()]
        holding = asyncio.create_task(one.hold())
        await sim.clock.sleep(60)
        assert one.may_write()
        holding.cancel()
        await sim.clock.sleep(10.5)
        assert not one.may_write()
        epochs.append(await one.acquire())
        await one.release()
        epochs.append(await elector(sim, store, "two").acquire())
        assert epochs == [1, 2, 3]

    for_each_seed(main, range(5))


def test_an_epoch_is_never_used_again_by_those_who_knew_a_lease_that_somebody_deleted() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        one, two = elector(sim, store, "one"), elector(sim, store, "two")
        epochs = []
        for this in (one, two, one):
            epochs.append(await this.acquire())
            await this.release()
        await store.delete(Lease, "leader", NAMESPACE)
        epochs.append(await one.acquire())
        assert epochs == [1, 2, 3, 4]
        lease = await store.get(Lease, "leader", NAMESPACE)
        assert lease.spec.lease_transitions == 4

    for_each_seed(main, range(3))


def test_the_namespace_of_the_lease_is_created_where_it_is_missing() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, kinds=(*KINDS, Namespace.KIND))
        assert NAMESPACE not in [found.name for found in (await store.list(Namespace)).items]
        electors = [elector(sim, store, name) for name in ("one", "two")]
        waiting = [asyncio.create_task(this.acquire()) for this in electors]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert sum(this.may_write() for this in electors) == 1
        assert sim.clock.monotonic() < 1
        assert (await store.get(Namespace, NAMESPACE)).name == NAMESPACE

    for_each_seed(main, range(5))


def test_wall_clocks_that_disagree_or_jump_do_not_matter() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        ahead, behind = SimulatedClock(sim.loop, skew=86_400), SimulatedClock(sim.loop, skew=-86_400)
        holder, challenger = elector(sim, store, "ahead", ahead), elector(sim, store, "behind", behind)
        assert await holder.acquire() == 1
        holding = asyncio.create_task(holder.hold())
        waiting = asyncio.create_task(challenger.acquire())
        for _ in range(20):
            await sim.clock.sleep(7)
            ahead.jump(-100_000 if ahead.skew > 0 else 100_000)
            assert holder.may_write()
            assert not waiting.done()
        holding.cancel()
        lost_at = sim.clock.monotonic()
        assert await waiting == 2
        assert 12.5 <= sim.clock.monotonic() - lost_at <= 20
        assert not holder.may_write()

    for_each_seed(main, range(5))


def test_a_renewal_that_nobody_can_see_does_not_count() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        stopped = StoppedClock(sim.loop)
        holder = elector(sim, store, "holder", stopped)
        await holder.acquire()
        holding = asyncio.create_task(holder.hold())
        challenger = asyncio.create_task(elector(sim, store, "challenger").acquire())
        await sim.clock.sleep(10)
        assert not holder.may_write()
        await challenger
        await holding

    for_each_seed(main, range(3))


class StoppedClock(SimulatedClock):
    """A wall clock that shows the same time for ever."""

    def now(self) -> datetime:
        return EPOCH


def test_there_is_never_more_than_one_that_may_write_whatever_happens_to_requests() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        faults = Faults(latency=SLOW, conflict=0.1, unreachable=0.1, lost_answer=0.2, lost_request=0.2)
        network = sim.process("network")
        electors = []
        for name in "abc":
            link = FaultyStore(store, sim, sender=name, faults=faults, network=network)
            electors.append(elector(sim, link, name))
        terms = []

        async def campaign(this: Elector) -> None:
            while True:
                epoch = await this.acquire()
                terms.append(epoch)
                await this.hold()

        tasks = [asyncio.create_task(campaign(this)) for this in electors]
        for _ in range(6000):
            await sim.clock.sleep(0.1)
            assert sum(this.may_write() for this in electors) <= 1
        assert terms == sorted(set(terms))
        for task in tasks:
            task.cancel()

    for_each_seed(main, range(15))


def test_a_lease_that_somebody_deletes_ends_the_term_and_is_not_taken_before_the_holder_must_have_stopped() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        holder, challenger = elector(sim, store, "holder"), elector(sim, store, "challenger")
        await holder.acquire()
        holding = asyncio.create_task(holder.hold())
        waiting = asyncio.create_task(challenger.acquire())
        await sim.clock.sleep(30)
        await store.delete(Lease, "leader", NAMESPACE)
        deleted_at = sim.clock.monotonic()
        await holding
        assert sim.clock.monotonic() - deleted_at < 3
        await waiting
        assert sim.clock.monotonic() - deleted_at >= 15

    for_each_seed(main, range(5))


def test_a_person_who_annotates_the_lease_does_not_end_the_term() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        holder = elector(sim, store, "holder")
        await holder.acquire()
        holding = asyncio.create_task(holder.hold())
        for number in range(10):
            await store.patch(Lease, "leader", NAMESPACE, patch={"metadata": {"annotations": {"n": str(number)}}})
            await sim.clock.sleep(5)
            assert holder.may_write()
        holding.cancel()

    for_each_seed(main, range(5))


def test_who_does_not_lead_is_told_so() -> None:
    async def main(sim: Simulation) -> None:
        with pytest.raises(NotLeader, match="somebody does not lead"):
            elector(sim, await open_store(sim), "somebody").check()

    for_each_seed(main, range(1))


@pytest.mark.parametrize(
    ("timings", "complaint"),
    [
        ({"request": 5.0}, "a write could outlive the leadership"),
        ({"duration": 13.9}, "a write could outlive the leadership"),
        ({"retry": 10.0}, "retry period"),
        ({"retry": 0.0}, "retry period"),
    ],
)
def test_timings_that_could_let_two_lead_are_refused(timings: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Timings(**timings)
