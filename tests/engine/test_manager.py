"""A manager comes up, does its work, says how it is, and goes down in order; what fails in it is not silent."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import Any, TypeVar

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from quorate.api.core import Event, Lease
from quorate.api.core.lease import LeaseSpec
from quorate.api.meta import MicroTime, ObjectMeta, Resource
from quorate.api.struct import replace
from quorate.engine.cache import Selection
from quorate.engine.controller import Controller, Watch, no_keys
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.index import Index
from quorate.engine.keys import Key
from quorate.engine.manager import GRACE, HEARING, RESYNC_CHECK, RESYNC_INTERVAL, Election, Manager
from quorate.engine.plan import NoneLeft, PatchStatus, Plan, PlanEvent, ReleaseFinalizer
from quorate.engine.reader import Reader
from quorate.engine.selectors import EVERYTHING, Selector, equals
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.engine.store import MergePatch, ObjectList
from quorate.engine.worker import PASSES_IN_A_SLICE
from quorate.engine.writer import REQUEST_TIMEOUT
from quorate.errors import Forbidden, InternalError, StoreUnreachable
from tests.support.faults import Faults
from tests.support.kinds import Gadget, Widget
from tests.support.widgets import CONTROLLERS, NAMESPACE, open_store, widget
from tests.support.world import World

R = TypeVar("R", bound=Resource)


def observe(reader: Reader, key: Key) -> Widget | None:
    return reader.get(Widget, key.name)


def finish(this: Widget, now: datetime, random: Random) -> Plan:
    return Plan(status=PatchStatus(this, replace(this, status=replace(this.status, phase="Done"))))


FINISHER = Controller(name="finisher", watches=(Watch(Widget),), observe=observe, decide=finish)


def manager(sim: Simulation, store: EmbeddedStore, *controllers: Controller[Widget], **options: object) -> Manager:
    return Manager(
        store,
        controllers or (FINISHER,),
        clock=sim.clock,
        random=sim.random("manager"),
        identity="test",
        **options,  # type: ignore[arg-type]
    )


class SlowStore(EmbeddedStore):
    """Takes its time for every status write."""

    seconds = 2.0

    async def patch_status(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        await asyncio.sleep(self.seconds)
        return await super().patch_status(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
        )


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


def test_a_component_that_crashes_stops_the_manager_with_its_error() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        this = manager(sim, store)

        def explode(*_: object) -> None:
            raise ZeroDivisionError("a bug in the engine")

        this.caches[Widget].subscribe(explode)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(1)
        assert not running.done()
        await store.create(widget("w", 1))
        with pytest.raises(ExceptionGroup) as caught:
            await running
        assert caught.value.subgroup(ZeroDivisionError) is not None

    for_each_seed(main, range(3))


def test_a_component_that_ends_when_it_should_not_stops_the_manager() -> None:
    async def main(sim: Simulation) -> None:
        this = manager(sim, await open_store(sim))

        async def gives_up() -> None:
            await sim.clock.sleep(1)

        this._recorder.run = gives_up  # type: ignore[method-assign]
        with pytest.raises(ExceptionGroup) as caught:
            await this.run()
        assert "the recorder ended, which it never should" in str(caught.value.exceptions[0])

    for_each_seed(main, range(3))


def test_it_is_ready_when_every_cache_is_filled_and_says_which_is_not() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        this = manager(sim, store)
        assert this.health().not_ready == ("Widget has not been listed yet",)
        running = asyncio.create_task(this.run())
        await sim.clock.sleep(1)
        assert this.health().ready
        assert this.health().live
        assert this.leading
        this.stop()
        assert this.health().not_ready == ("stopping",)
        await running

    for_each_seed(main, range(3))


def test_it_is_not_live_when_the_loop_is_blocked_or_a_pass_never_ends() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim, SlowStore)
        store.seconds = 1e6
        await store.create(widget("w", 1))
        slow = Controller(name="slow", watches=(Watch(Widget),), observe=observe, decide=finish, timeout=60.0)
        this = manager(sim, store, slow)
        process = sim.process("manager")
        process.spawn(this.run())
        await sim.clock.sleep(100)
        assert this.health().live, "each attempt is given up in time"
        for worker in this._workers:
            worker.queue.keys.taken()[Key("", "w")] = sim.clock.monotonic() - 121
        assert this.health().not_live == ("slow has been working on w for 121 s, allowed are 120 s",)
        process.pause()
        await sim.clock.sleep(60)
        assert any("event loop has been blocked" in reason for reason in this.health().not_live)

    for_each_seed(main, range(2))


def test_everything_is_looked_at_again_every_twenty_hours() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))
        passes: list[float] = []

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            passes.append(sim.clock.monotonic())
            return Plan()

        always = Key("", "always")
        looked: list[Key] = []

        def look(reader: Reader, key: Key) -> Widget | None:
            looked.append(key)
            return observe(reader, key)

        this = Controller(
            name="looks", watches=(Watch(Widget),), observe=look, decide=decide, always=(always,), workers=1
        )
        running = manager(sim, store, this)
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(2.5 * RESYNC_INTERVAL)
        running.stop()
        await task
        assert passes == [pytest.approx(number * RESYNC_INTERVAL, abs=1) for number in range(3)]
        assert looked.count(always) == 3

    run(main, seed=1, limit=10 * RESYNC_INTERVAL)


def test_a_changed_interval_holds_within_a_minute() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))
        passes: list[float] = []
        interval = RESYNC_INTERVAL

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            passes.append(sim.clock.monotonic())
            return Plan()

        this = Controller(name="looks", watches=(Watch(Widget),), observe=observe, decide=decide, workers=1)
        running = manager(sim, store, this, resync_interval=lambda _: interval)
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(3600)
        assert len(passes) == 1
        interval = 1800.0
        await sim.clock.sleep(RESYNC_CHECK + 1)
        assert len(passes) == 2
        await sim.clock.sleep(1800)
        assert len(passes) == 3
        running.stop()
        await task

    run(main, seed=1, limit=RESYNC_INTERVAL)


def test_fresh_events_are_decided_promptly_while_a_resync_of_thousands_is_under_way() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        for number in range(2000):
            await store.create(widget(f"w{number:04}", 1))
        order: list[str] = []

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            order.append(this.name)
            if len(order) == 100:
                fresh.set()
            return Plan()

        fresh = asyncio.Event()
        this = Controller(name="slow", watches=(Watch(Widget),), observe=observe, decide=decide, workers=1)
        running = manager(sim, store, this)
        task = asyncio.create_task(running.run())
        await fresh.wait()
        await store.patch(Widget, "w1900", patch={"metadata": {"labels": {"touched": "yes"}}})
        await sim.clock.sleep(10)
        running.stop()
        await task
        # We and the reflector must each get a turn before the worker can know of it; then it goes first.
        assert 100 <= order.index("w1900") <= 100 + 10 * PASSES_IN_A_SLICE
        assert len(order) == 2000

    for_each_seed(main, range(5))


def test_a_new_term_starts_with_its_hooks_then_a_list_of_every_kind_then_decisions() -> None:
    async def main(sim: Simulation) -> None:
        order: list[str] = []

        class NotingStore(EmbeddedStore):
            async def list(
                self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
            ) -> ObjectList[R]:
                order.append(f"list {cls.__name__}")
                if order.count(f"list {cls.__name__}") == 2:
                    raise InternalError("not now")
                return await super().list(cls, namespace=namespace, labels=labels, fields=fields)

        store = await open_store(sim, NotingStore)
        await store.create(widget("w", 1))
        attempts = 0

        async def hook(epoch: int) -> None:
            nonlocal attempts
            attempts += 1
            order.append(f"hook {epoch}")
            if attempts == 1:
                raise StoreUnreachable("not yet")

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            order.append("decide")
            return Plan()

        this = Controller(name="c", watches=(Watch(Widget), Watch(Gadget, no_keys)), observe=observe, decide=decide)
        running = manager(sim, store, this, election=Election("test", NAMESPACE), on_elected=[hook])
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(10)
        running.stop()
        await task
        assert sorted(order[:2]) == ["list Gadget", "list Widget"]
        assert order[2:] == [
            "hook 1",
            "hook 1",
            "list Gadget",
            "list Gadget",
            "list Widget",
            "list Widget",
            "decide",
        ]

    for_each_seed(main, range(3))


def test_events_are_recorded_with_what_changed_and_not_again_when_nothing_does() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("w", 1))

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            plan = finish(this, now, random)
            return Plan(status=plan.status, events=(PlanEvent(this, "Finished", "it is done"),), requeue_after=1.0)

        running = manager(sim, store, Controller(name="c", watches=(Watch(Widget),), observe=observe, decide=decide))
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(100)
        running.stop()
        await task
        (event,) = (await store.list(Event)).items
        assert (event.reason, event.message, event.count) == ("Finished", "it is done", 1)

    for_each_seed(main, range(3))


def test_a_finalizer_stays_while_the_store_has_children_that_the_cache_does_not_show() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        children = NoneLeft(Gadget, namespace=NAMESPACE, labels=equals(widget="w"))
        attempts: list[float] = []

        def decide(this: Widget, now: datetime, random: Random) -> Plan:
            attempts.append(sim.clock.monotonic())
            return Plan(
                writes=(ReleaseFinalizer(this, "test.quorate.io/x", after=(children,)),) if this.deleting else ()
            )

        running = manager(sim, store, Controller(name="c", watches=(Watch(Widget),), observe=observe, decide=decide))
        task = asyncio.create_task(running.run())
        this = widget("w", 1)
        await store.create(replace(this, metadata=replace(this.metadata, finalizers=("test.quorate.io/x",))))
        metadata = replace(this.metadata, name="child", namespace=NAMESPACE, labels={"widget": "w"})
        await store.create(Gadget(metadata=metadata, spec=this.spec))
        await store.delete(Widget, "w")
        await sim.clock.sleep(10)
        assert [found.name for found in (await store.list(Widget)).items] == ["w"]
        assert len(attempts) > 3
        await store.delete(Gadget, "child", NAMESPACE)
        await sim.clock.sleep(60)
        assert (await store.list(Widget)).items == ()
        assert running.reader.list(Widget) == ()
        running.stop()
        await task

    for_each_seed(main, range(3))


def test_a_selection_limits_what_is_cached_and_decided() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        for name, node in (("a", "n1"), ("b", "n2")):
            this = widget(name, 1)
            await store.create(replace(this, metadata=replace(this.metadata, labels={"node": node})))
        running = manager(sim, store, selections={Widget: Selection(labels=equals(node="n1"))})
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(1)
        running.stop()
        await task
        assert [found.status.phase for found in (await store.list(Widget)).items] == ["Done", None]

    for_each_seed(main, range(2))


def test_two_controllers_that_mean_different_things_by_one_index_are_refused() -> None:
    async def main(sim: Simulation) -> None:
        def one(_: Widget) -> Iterable[str]:
            return ()

        def other(_: Widget) -> Iterable[str]:
            return ()

        controllers = [
            Controller(
                name=str(number),
                watches=(Watch(Widget),),
                observe=observe,
                decide=finish,
                indexes=(Index(Widget, "node", values),),
            )
            for number, values in enumerate((one, other))
        ]
        with pytest.raises(ValueError, match="different things by index 'node' of Widget"):
            manager(sim, await open_store(sim), *controllers)

    run(main, seed=1)


def test_the_garbage_collector_is_spared_the_caches_when_asked() -> None:
    async def main(sim: Simulation) -> None:
        frozen = gc.get_freeze_count()
        running = manager(sim, await open_store(sim), freeze_gc=True)
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(1)
        running.stop()
        await task
        assert gc.get_freeze_count() > frozen

    try:
        run(main, seed=1)
    finally:
        gc.unfreeze()


def test_the_metrics_have_the_names_that_dashboards_of_controller_runtime_ask_for() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        registry = CollectorRegistry()
        running = manager(sim, store, *CONTROLLERS, registry=registry, election=Election("test", NAMESPACE))  # type: ignore[arg-type]
        task = asyncio.create_task(running.run())
        await store.create(widget("w", 2))
        await sim.clock.sleep(5)
        text = generate_latest(registry).decode()
        for line in (
            'controller_runtime_reconcile_total{controller="widgets",result="success"}',
            'controller_runtime_reconcile_total{controller="widgets",result="error"} 0.0',
            'controller_runtime_reconcile_errors_total{controller="widgets"} 0.0',
            'controller_runtime_reconcile_panics_total{controller="widgets"} 0.0',
            'controller_runtime_reconcile_timeouts_total{controller="widgets"} 0.0',
            'controller_runtime_reconcile_time_seconds_count{controller="widgets"}',
            'controller_runtime_max_concurrent_reconciles{controller="widgets"} 4.0',
            'controller_runtime_active_workers{controller="widgets"} 0.0',
            'workqueue_depth{controller="widgets",name="widgets",priority="0"} 0.0',
            'workqueue_adds_total{controller="widgets",name="widgets"}',
            'workqueue_retries_total{controller="widgets",name="widgets"} 0.0',
            'workqueue_queue_duration_seconds_count{controller="widgets",name="widgets"}',
            'workqueue_work_duration_seconds_count{controller="widgets",name="widgets"}',
            'workqueue_unfinished_work_seconds{controller="widgets",name="widgets"} 0.0',
            'workqueue_longest_running_processor_seconds{controller="widgets",name="widgets"} 0.0',
            'leader_election_master_status{name="test"} 1.0',
            'quorate_store_writes_total{kind="Gadget",result="ok",verb="create"} 2.0',
            'quorate_cache_objects{kind="Gadget"} 2.0',
            'quorate_cache_undecodable_objects{kind="Gadget"} 0.0',
        ):
            assert line in text
        running.stop()
        await task
        assert 'leader_election_master_status{name="test"} 0.0' in generate_latest(registry).decode()

    run(main, seed=1)


def test_how_long_an_agent_has_been_silent_is_judged_by_when_we_saw_its_lease_change() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        watcher = Controller(
            name="watcher", watches=(Watch(Widget),), observe=observe, decide=finish, freshness=(Lease,)
        )
        running = manager(sim, store, watcher)
        task = asyncio.create_task(running.run())
        # A clock that is a day behind, and one that is ahead: neither matters.
        for name, renewed in (("behind", "2029-12-31T00:00:00.000000Z"), ("ahead", "2031-01-01T00:00:00.000000Z")):
            metadata = ObjectMeta(name=name, namespace=NAMESPACE)
            await store.create(Lease(metadata=metadata, spec=LeaseSpec(renew_time=MicroTime(renewed))))
        await sim.clock.sleep(30)
        patch = {"spec": {"renewTime": "2029-12-31T00:00:10.000000Z"}}
        await store.patch(Lease, "behind", NAMESPACE, patch=patch)
        await sim.clock.sleep(10)
        for name, seconds in (("behind", 10), ("ahead", 40)):
            silent = running.reader.silent_for(Lease, name, NAMESPACE)
            assert silent is not None
            assert seconds - HEARING <= silent + 0.1 <= seconds + 0.2
        assert running.reader.silent_for(Lease, "nobody", NAMESPACE) is None
        await store.delete(Lease, "ahead", NAMESPACE)
        await sim.clock.sleep(1)
        assert running.reader.silent_for(Lease, "ahead", NAMESPACE) is None
        with pytest.raises(LookupError, match="nobody follows how fresh Widget is"):
            running.reader.silent_for(Widget, "w")
        running.stop()
        await task

    for_each_seed(main, range(2))
