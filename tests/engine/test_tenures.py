"""What goes along with a term: when it is told what, and what becomes of a leader that somebody refuses."""

from __future__ import annotations

import asyncio
from datetime import datetime
from random import Random

import pytest

from quorate.api.core.lease import Lease
from quorate.engine.controller import Controller, Watch
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Election, Manager
from quorate.engine.plan import Plan
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.errors import EpochPassed, NotLeader, StoreUnreachable
from tests.engine.managers import FINISHER, observe
from tests.support.kinds import Widget
from tests.support.widgets import NAMESPACE, open_store, widget

ELECTION = Election("test", NAMESPACE)


class Diary:
    """A tenure that notes what it is told."""

    def __init__(self, *troubles: Exception) -> None:
        self.lines: list[str] = []
        self._troubles = list(troubles)

    async def begin(self, epoch: int) -> None:
        self.lines.append(f"begin {epoch}")
        if self._troubles:
            raise self._troubles.pop(0)

    async def caught_up(self) -> None:
        self.lines.append("caught up")

    def end(self) -> None:
        self.lines.append("end")


def noting(diary: Diary) -> Controller[Widget]:
    def decide(this: Widget, now: datetime, random: Random) -> Plan:
        diary.lines.append("decide")
        return Plan()

    return Controller(name="c", watches=(Watch(Widget),), observe=observe, decide=decide)


def manager(
    sim: Simulation,
    store: EmbeddedStore,
    tenure: Diary,
    controller: Controller[Widget] = FINISHER,
    *,
    identity: str = "one",
    election: Election | None = ELECTION,
) -> Manager:
    return Manager(
        store,
        (controller,),
        clock=sim.clock,
        random=sim.random(identity),
        identity=identity,
        election=election,
        tenures=(tenure,),
    )


def leads(this: Manager) -> bool:
    return this.leading


async def lease(store: EmbeddedStore) -> Lease:
    return await store.get(Lease, "test", NAMESPACE)


@pytest.mark.parametrize("elected", [True, False])
def test_a_tenure_begins_before_and_ends_after_everything_that_is_decided(elected: bool) -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))
        diary = Diary(StoreUnreachable("not yet"))
        this = manager(sim, store, diary, noting(diary), election=ELECTION if elected else None)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(10)
        epoch = int(elected)
        assert diary.lines == [f"begin {epoch}", f"begin {epoch}", "caught up", "decide"]
        this.stop()
        await running
        assert diary.lines[4:] == ["end"]

    for_each_seed(main, range(2))


def test_a_tenure_ends_when_the_lease_is_lost_and_begins_again_with_the_next_term() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        diary = Diary()
        this = manager(sim, store, diary)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(5)
        await store.patch(Lease, "test", NAMESPACE, patch={"spec": {"holderIdentity": "a person"}})
        await sim.clock.sleep(60)
        assert diary.lines == ["begin 1", "caught up", "end", "begin 2", "caught up"]
        this.stop()
        await running

    for_each_seed(main, range(2))


def test_who_is_refused_an_epoch_steps_down_says_so_and_is_above_it_the_next_time() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        diary = Diary(EpochPassed("the ledger is of epoch 57", known=57))
        this = manager(sim, store, diary)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(6)
        assert not leads(this)
        assert diary.lines == ["begin 1", "end"]
        assert (await lease(store)).spec.holder_identity is None
        await sim.clock.sleep(10)
        assert leads(this)
        assert diary.lines[2:] == ["begin 58", "caught up"]
        assert (await lease(store)).spec.lease_transitions == 58
        this.stop()
        await running

    for_each_seed(main, range(2))


def test_who_is_refused_lets_another_lead() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        refused, other = Diary(*(NotLeader("another leads") for _ in range(9))), Diary()
        one = manager(sim, store, refused, identity="one")
        running = [asyncio.create_task(one.run())]
        await sim.clock.sleep(1)
        two = manager(sim, store, other, identity="two")
        running.append(asyncio.create_task(two.run()))
        await sim.clock.sleep(20)
        assert leads(two)
        assert not leads(one)
        assert refused.lines == ["begin 1", "end"]
        for each in (one, two):
            each.stop()
        await asyncio.gather(*running)

    for_each_seed(main, range(3))


def test_a_leader_that_steps_down_finishes_and_hands_over() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        diary, other = Diary(), Diary()
        one = manager(sim, store, diary, identity="one")
        running = [asyncio.create_task(one.run())]
        await sim.clock.sleep(5)
        two = manager(sim, store, other, identity="two")
        running.append(asyncio.create_task(two.run()))
        await sim.clock.sleep(5)
        assert leads(one)
        one.step_down("somebody else wrote the ledger")
        one.step_down("and again")
        await sim.clock.sleep(6)
        assert leads(two)
        assert not leads(one)
        assert diary.lines == ["begin 1", "caught up", "end"]
        assert other.lines == ["begin 2", "caught up"]
        for each in (one, two):
            each.stop()
        await asyncio.gather(*running)
        one.step_down("there is nothing to step down from")

    for_each_seed(main, range(3))
