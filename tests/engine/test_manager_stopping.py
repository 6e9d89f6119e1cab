"""A manager that is stopped goes down in order: passes end, leases are given back, nothing is left on the wire."""

from __future__ import annotations

import asyncio
from datetime import datetime
from random import Random
from typing import Any, TypeVar

import pytest

from quorate.api.core import Lease
from quorate.api.meta import Resource
from quorate.engine.controller import Controller, Watch
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.keys import Key
from quorate.engine.manager import GRACE, Election
from quorate.engine.plan import Plan
from quorate.engine.reader import Reader
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.engine.store import ObjectList
from quorate.engine.writer import REQUEST_TIMEOUT
from quorate.errors import Forbidden, StoreUnreachable
from tests.engine.managers import FINISHER, SlowStore, finish, manager, observe
from tests.support.faults import Faults
from tests.support.kinds import Widget
from tests.support.widgets import NAMESPACE, open_store, widget
from tests.support.world import World

R = TypeVar("R", bound=Resource)


def test_a_stop_lets_workers_finish_their_pass_and_begin_no_other() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, SlowStore)
        for number in range(20):
            await store.create(widget(f"w{number}", 1))
        this = manager(sim, store)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(1)
        this.stop()
        await running
        assert sim.clock.monotonic() == pytest.approx(2, abs=0.1)
        done = [found.name for found in (await store.list(Widget)).items if found.status.phase == "Done"]
        assert len(done) == FINISHER.workers

    for_each_seed(main, range(5))


def test_a_stop_does_not_wait_for_ever() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, SlowStore)
        store.seconds = 1e6
        await store.create(widget("w", 1))
        stuck = Controller(name="stuck", watches=(Watch(Widget),), observe=observe, decide=finish, timeout=1e6)
        this = manager(sim, store, stuck)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(1)
        this.stop()
        await running
        assert sim.clock.monotonic() <= 1 + GRACE + 1

    for_each_seed(main, range(3))


class ListsOnce(EmbeddedStore):
    """Fills the caches, and fails whoever wants to refresh them."""

    lists = 0

    async def list(self, cls: type[R], **options: Any) -> ObjectList[R]:
        self.lists += 1
        if self.lists > 1:
            raise StoreUnreachable("down")
        return await super().list(cls, **options)


async def hopeless(_: int) -> None:
    raise Forbidden("the ledger is not ours")


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (ListsOnce, {}),
        (ListsOnce, {"election": Election("test", NAMESPACE)}),
        (EmbeddedStore, {"election": Election("test", NAMESPACE), "on_elected": [hopeless]}),
    ],
)
def test_a_stop_does_not_wait_for_a_term_that_cannot_begin(cls: type[EmbeddedStore], options: dict[str, Any]) -> None:
    async def main(sim: Simulation) -> None:
        this = manager(sim, await open_store(sim, cls), **options)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(60)
        assert not this.leading
        this.stop()
        await running
        assert sim.clock.monotonic() - 60 < REQUEST_TIMEOUT + 0.1

    for_each_seed(main, range(3))


class WireStore(EmbeddedStore):
    """A status write is on the wire for a while, and arrives whatever becomes of its sender."""

    def begin(self) -> None:
        self.arrived_at: list[float] = []
        self.released_at: list[float] = []

    async def patch(self, cls: type[R], name: str, namespace: str = "", **options: Any) -> R:
        answer = await super().patch(cls, name, namespace, **options)
        if isinstance(answer, Lease) and answer.spec.holder_identity is None:
            self.released_at.append(asyncio.get_running_loop().time())
        return answer

    async def patch_status(self, cls: type[R], name: str, namespace: str = "", **options: Any) -> R:
        async def travel() -> R:
            await asyncio.sleep(3.5)
            answer = await EmbeddedStore.patch_status(self, cls, name, namespace, **options)
            self.arrived_at.append(asyncio.get_running_loop().time())
            return answer

        return await asyncio.shield(asyncio.ensure_future(travel()))


def test_the_lease_is_not_given_back_while_a_write_of_a_cancelled_worker_is_on_the_wire() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, WireStore)
        store.begin()
        for number in range(9):
            await store.create(widget(f"w{number}", 1))

        def finish_all(widgets: tuple[Widget, ...], now: datetime, random: Random) -> Plan:
            plans = [finish(this, now, random) for this in widgets]
            return Plan(writes=tuple(plan.status for plan in plans if plan.status is not None))

        def observe_all(reader: Reader, key: Key) -> tuple[Widget, ...] | None:
            return reader.list(Widget) if key.name == "w0" else None

        slow: Controller[Any] = Controller(
            name="slow", watches=(Watch(Widget),), observe=observe_all, decide=finish_all
        )
        this = manager(sim, store, slow, election=Election("test", NAMESPACE))
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(2)
        this.stop()
        await running
        assert sim.clock.monotonic() - 2 < 25
        await sim.clock.sleep(30)
        assert len(store.arrived_at) > 3
        assert len(store.released_at) == 1
        assert max(store.arrived_at) < store.released_at[0]

    for_each_seed(main, range(5))


def test_a_term_that_was_cancelled_leaves_no_alarm_behind() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))
        later = Controller(
            name="later", watches=(Watch(Widget),), observe=observe, decide=lambda *_: Plan(requeue_after=1000.0)
        )
        this = manager(sim, store, later, election=Election("test", NAMESPACE))
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(5)
        (worker,) = this._workers
        set_for_later = worker.queue._alarm
        assert set_for_later is not None
        await store.delete(Lease, "test", NAMESPACE)
        await sim.clock.sleep(5)
        assert worker not in this._workers
        assert set_for_later.cancelled()
        this.stop()
        await running

    for_each_seed(main, range(3))


@pytest.mark.parametrize("when", [0.0, 0.1, 0.5, 1.0, 20.0])
def test_a_stop_at_any_time_ends_cleanly_and_a_leader_gives_its_lease_back(when: float) -> None:
    async def main(sim: Simulation) -> None:
        world = await World.begin(sim, Faults(latency=0.3))
        running = world.start("a")
        await world.store.create(widget("w", 2))
        await sim.clock.sleep(when)
        led = running.manager.leading
        running.manager.stop()
        await running.task
        assert not running.manager.leading
        assert not running.manager.health().ready
        holders = [lease.spec.holder_identity for lease in (await world.store.list(Lease)).items]
        assert led or when < 20
        assert holders == [None] or not led
        world.expect_safe()

    for_each_seed(main, range(8))
