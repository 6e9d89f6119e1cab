"""Events are best effort: counted instead of repeated, limited, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry

from quorate.api.core import Event
from quorate.api.meta import ObjectMeta, Resource
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.metrics import EngineMetrics
from quorate.engine.plan import PlanEvent
from quorate.engine.recorder import BUFFER, BURST, REFILL_SECONDS, TOGETHER, Recorder
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.errors import StoreUnreachable
from tests.support.kinds import Gadget, Widget, WidgetSpec
from tests.support.widgets import NAMESPACE, open_store, widget


class Setup:
    def __init__(self, sim: Simulation, store: EmbeddedStore, obj: Widget) -> None:
        self.sim, self.store, self.obj = sim, store, obj
        self.registry = CollectorRegistry()
        self.recorder = self.make(self.registry)

    def make(self, registry: CollectorRegistry) -> Recorder:
        metrics = EngineMetrics(registry, self.sim.clock)
        return Recorder(self.store, component="quorate", instance="quorate-1", clock=self.sim.clock, metrics=metrics)

    def dropped(self, reason: str) -> float:
        return self.registry.get_sample_value("quorate_events_dropped_total", {"reason": reason}) or 0.0

    async def events(self) -> tuple[Event, ...]:
        return (await self.store.list(Event)).items


def story(tell: Callable[[Setup], Awaitable[None]], seeds: int = 3) -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        setup = Setup(sim, store, await store.create(widget("w", 1)))
        task = asyncio.create_task(setup.recorder.run())
        await tell(setup)
        task.cancel()

    for_each_seed(main, range(seeds))


def test_an_event_has_what_kubectl_describe_looks_for() -> None:
    async def tell(setup: Setup) -> None:
        setup.recorder.record(PlanEvent(setup.obj, "NoSpace", "three nodes are full", warning=True))
        await setup.recorder.flush()
        (event,) = await setup.events()
        about = event.involved_object
        assert (about.api_version, about.kind, about.namespace, about.name) == ("test.quorate.io/v1", "Widget", "", "w")
        assert about.uid == setup.obj.metadata.uid
        assert (event.type, event.reason, event.message) == ("Warning", "NoSpace", "three nodes are full")
        assert event.namespace == "default", "events of cluster-scoped objects go there"
        assert event.name.startswith("w.")
        assert event.first_timestamp == event.last_timestamp is not None
        assert event.source.component == event.reporting_component == "quorate"
        assert event.reporting_instance == "quorate-1"

    story(tell)


def test_an_event_of_a_namespaced_object_is_beside_it() -> None:
    async def tell(setup: Setup) -> None:
        gadget: Resource = await setup.store.create(
            Gadget(metadata=ObjectMeta(name="g", namespace=NAMESPACE), spec=WidgetSpec(owner="me"))
        )
        setup.recorder.record(PlanEvent(gadget, "Made", "made"))
        await setup.recorder.flush()
        (event,) = await setup.events()
        assert (event.namespace, event.involved_object.namespace) == (NAMESPACE, NAMESPACE)

    story(tell)


def test_the_same_again_is_counted_also_by_the_next_process() -> None:
    async def tell(setup: Setup) -> None:
        for _ in range(3):
            setup.recorder.record(PlanEvent(setup.obj, "Waiting", "for space"))
            await setup.sim.clock.sleep(60)
        restarted = setup.make(CollectorRegistry())
        task = asyncio.create_task(restarted.run())
        restarted.record(PlanEvent(setup.obj, "Waiting", "for space"))
        restarted.record(PlanEvent(setup.obj, "Waiting", "for nodes"))
        await restarted.flush()
        task.cancel()
        events = {event.message: event for event in await setup.events()}
        assert {message: event.count for message, event in events.items()} == {"for space": 4, "for nodes": 1}
        again = events["for space"]
        assert again.first_timestamp is not None
        assert again.last_timestamp is not None
        assert (again.last_timestamp - again.first_timestamp).total_seconds() == 180

    story(tell)


def test_the_same_many_times_at_once_is_one_event_with_their_number() -> None:
    async def tell(setup: Setup) -> None:
        for _ in range(5):
            setup.recorder.record(PlanEvent(setup.obj, "Waiting", "for space"))
        setup.recorder.record(PlanEvent(setup.obj, "Waiting", "for nodes"))
        await setup.recorder.flush()
        assert {event.message: event.count for event in await setup.events()} == {"for space": 5, "for nodes": 1}

    story(tell)


def test_a_slow_store_is_asked_to_write_several_at_a_time() -> None:
    async def tell(setup: Setup) -> None:
        waiting, create = 0, setup.store.create

        async def slowly(event: Event) -> Event:
            nonlocal waiting
            waiting += 1
            at_once.append(waiting)
            await setup.sim.clock.sleep(1)
            waiting -= 1
            return await create(event)

        at_once: list[int] = []
        setup.store.create = slowly  # type: ignore[method-assign, assignment]
        for number in range(TOGETHER + 1):
            setup.recorder.record(PlanEvent(setup.obj, "Many", f"number {number}"))
        await setup.recorder.flush()
        assert at_once == [*range(1, TOGETHER + 1), 1]
        assert len(await setup.events()) == TOGETHER + 1

    story(tell)


def test_an_event_that_the_server_has_forgotten_is_made_anew() -> None:
    async def tell(setup: Setup) -> None:
        setup.recorder.record(PlanEvent(setup.obj, "Waiting", "for space"))
        await setup.recorder.flush()
        (event,) = await setup.events()
        await setup.store.delete(Event, event.name, event.namespace)
        setup.recorder.record(PlanEvent(setup.obj, "Waiting", "for space"))
        await setup.recorder.flush()
        assert [event.count for event in await setup.events()] == [1]

    story(tell)


def test_an_object_that_says_too_much_is_cut_short_and_others_are_not() -> None:
    async def tell(setup: Setup) -> None:
        other = await setup.store.create(widget("other", 1))
        for number in range(3 * BURST):
            setup.recorder.record(PlanEvent(setup.obj, "Chatter", f"number {number}"))
        setup.recorder.record(PlanEvent(other, "Calm", "one word"))
        await setup.recorder.flush()
        names = [event.involved_object.name for event in await setup.events()]
        assert (names.count("w"), names.count("other")) == (BURST, 1)
        assert setup.dropped("rate") == 2 * BURST
        await setup.sim.clock.sleep(2 * REFILL_SECONDS)
        for number in range(5):
            setup.recorder.record(PlanEvent(setup.obj, "Chatter", f"later {number}"))
        await setup.recorder.flush()
        assert len(await setup.events()) == BURST + 1 + 2

    story(tell)


def test_recording_never_waits_and_what_cannot_be_written_is_counted() -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        objects = [await store.create(widget(f"w{number}", 1)) for number in range(BUFFER // BURST + 1)]
        setup = Setup(sim, store, objects[0])
        for obj in objects:
            for number in range(BURST):
                setup.recorder.record(PlanEvent(obj, "Many", f"number {number}"))
        assert setup.dropped("full") == BURST
        store.create = unreachable  # type: ignore[method-assign, assignment]
        task = asyncio.create_task(setup.recorder.run())
        await setup.recorder.flush()
        assert setup.dropped("error") == BUFFER
        task.cancel()

    run(main, seed=1)


async def unreachable(*_: object) -> None:
    raise StoreUnreachable("no route")


def test_long_names_and_messages_are_cut_to_what_kubernetes_allows() -> None:
    async def tell(setup: Setup) -> None:
        obj = await setup.store.create(widget("w" * 253, 1))
        setup.recorder.record(PlanEvent(obj, "Long", "m" * 5000))
        await setup.recorder.flush()
        (event,) = await setup.events()
        assert len(event.name) <= 253
        assert len(event.message) == 1024
        assert event.message.endswith("…")

    story(tell, seeds=1)
