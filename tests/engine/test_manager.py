"""A manager comes up and does its work: terms, events, finalizers, selections, and what it shows in numbers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import TypeVar

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from quorate.api.core import Event, Lease
from quorate.api.core.lease import LeaseSpec
from quorate.api.meta import MicroTime, ObjectMeta, Resource
from quorate.api.struct import replace
from quorate.engine.cache import Selection
from quorate.engine.controller import Controller, Watch, no_keys
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.freshness import HEARING
from quorate.engine.index import Index
from quorate.engine.manager import Election
from quorate.engine.plan import NoneLeft, Plan, PlanEvent, ReleaseFinalizer
from quorate.engine.selectors import EVERYTHING, Selector, equals
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.engine.store import ObjectList
from quorate.errors import InternalError, StoreUnreachable
from tests.engine.managers import finish, manager, observe
from tests.support.kinds import Gadget, Widget
from tests.support.widgets import CONTROLLERS, NAMESPACE, open_store, widget

R = TypeVar("R", bound=Resource)


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
        frozen, often = gc.get_freeze_count(), gc.get_threshold()
        running = manager(sim, await open_store(sim), freeze_gc=True)
        task = asyncio.create_task(running.run())
        await sim.clock.sleep(1)
        running.stop()
        await task
        assert gc.get_freeze_count() > frozen
        assert gc.get_threshold() > often

    thresholds = gc.get_threshold()
    try:
        run(main, seed=1)
    finally:
        gc.set_threshold(*thresholds)
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
