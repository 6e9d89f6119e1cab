"""The answer to a write is in the cache at once, whatever the watch has told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry

from quorate.api.meta import ObjectMeta
from quorate.engine.apply import apply
from quorate.engine.cache import Cache
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.keys import Key
from quorate.engine.metrics import EngineMetrics
from quorate.engine.plan import AddFinalizer, NoneLeft, Plan
from quorate.engine.simulation import Simulation, run
from quorate.engine.store import ObjectList
from quorate.engine.writer import REQUEST_TIMEOUT, Writer
from quorate.errors import Conflict, NotLeader, OutcomeUnknown, QuorateError, ServerTimeout, StoreUnreachable
from tests.support.kinds import Gadget, Widget, WidgetSpec
from tests.support.widgets import NAMESPACE, open_store, widget

KEY = Key("", "w")


class Desk:
    """A writer and its cache, which no watch feeds."""

    def __init__(self, sim: Simulation, store: EmbeddedStore, listing: ObjectList[Widget]) -> None:
        self.store = store
        self.cache = Cache(Widget)
        self.cache.replace(listing)
        self.leads = True
        self.registry = CollectorRegistry()
        metrics = EngineMetrics(self.registry, sim.clock)
        self.writer = Writer(store, [self.cache], check=self.check, clock=sim.clock, metrics=metrics)

    def check(self) -> None:
        if not self.leads:
            raise NotLeader("deposed")

    def seen(self) -> Widget | None:
        return self.cache.get(KEY)

    def count(self, verb: str, result: str) -> float | None:
        labels = {"kind": "Widget", "verb": verb, "result": result}
        return self.registry.get_sample_value("quorate_store_writes_total", labels)


def story(tell: Callable[[Desk], Awaitable[None]]) -> None:
    async def main(sim: Simulation) -> None:
        store = await open_store(sim)
        await store.create(widget("other", 1))
        await tell(Desk(sim, store, await store.list(Widget)))

    run(main, seed=1)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (OutcomeUnknown("reset"), 3.0),
        (ServerTimeout("slow"), 3.0),
        (Conflict("stale"), 0.0),
        (StoreUnreachable("no route"), 0.0),
        (asyncio.CancelledError(), 3.0),
        (None, 0.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_write_without_an_answer_is_unsettled_for_as_long_as_it_could_be_on_its_way(
    error: BaseException | None, seconds: float
) -> None:
    async def main(sim: Simulation) -> None:
        class Slow(EmbeddedStore):
            async def create(self, obj: Widget, *, dry_run: bool = False) -> Widget:  # type: ignore[override]
                await sim.clock.sleep(1)
                if error is not None:
                    raise error
                return await super().create(obj)

        store = await open_store(sim, Slow)
        desk = Desk(sim, store, await store.list(Widget))
        with suppress(QuorateError, asyncio.CancelledError):
            await desk.writer.create(widget("w", 1))
        assert max(0.0, desk.writer.unsettled_until - sim.clock.monotonic()) == pytest.approx(seconds)

    run(main, seed=1)


def test_what_was_created_and_patched_is_seen_at_once() -> None:
    async def tell(desk: Desk) -> None:
        created = await desk.writer.create(widget("w", 1))
        assert desk.seen() == created
        patched = await desk.writer.patch(created, {"spec": {"high": 2}}, if_unchanged=True)
        assert desk.seen() == patched
        reported = await desk.writer.patch_status(patched, {"phase": "Ready"}, if_unchanged=True)
        assert desk.seen() == reported
        assert (reported.spec.high, reported.status.phase) == (2, "Ready")
        assert [desk.count(verb, "ok") for verb in ("create", "patch", "patch_status")] == [1, 1, 1]

    story(tell)


def test_what_was_deleted_is_not_seen_any_more_and_what_finalizers_hold_is_seen_deleting() -> None:
    async def tell(desk: Desk) -> None:
        held = await desk.writer.patch(
            await desk.writer.create(widget("w", 1)), {"metadata": {"finalizers": ["a.b/c"]}}, if_unchanged=True
        )
        await desk.writer.delete(held, if_unchanged=True)
        deleting = desk.seen()
        assert deleting is not None
        assert deleting.deleting
        await desk.writer.patch(deleting, {"metadata": {"finalizers": None}}, if_unchanged=True)
        assert desk.seen() is None
        again = await desk.writer.create(widget("w", 1))
        assert desk.seen() == again
        await desk.writer.delete(again, if_unchanged=False)
        assert desk.seen() is None

    story(tell)


def test_a_write_if_unchanged_is_a_conflict_when_somebody_wrote_meanwhile() -> None:
    async def tell(desk: Desk) -> None:
        created = await desk.writer.create(widget("w", 1))
        await desk.store.patch(Widget, "w", patch={"spec": {"high": 5}})
        with pytest.raises(Conflict):
            await desk.writer.patch_status(created, {"phase": "Ready"}, if_unchanged=True)
        assert desk.count("patch_status", "Conflict") == 1
        assert desk.seen() == created
        reported = await desk.writer.patch_status(created, {"phase": "Ready"}, if_unchanged=False)
        assert reported.spec.high == 5

    story(tell)


def test_who_does_not_lead_sends_nothing() -> None:
    async def tell(desk: Desk) -> None:
        created = await desk.writer.create(widget("w", 1))
        desk.leads = False
        for write in (
            desk.writer.create(widget("x", 1)),
            desk.writer.patch(created, {"spec": {"high": 2}}, if_unchanged=False),
            desk.writer.patch_status(created, {"phase": "Ready"}, if_unchanged=False),
            desk.writer.delete(created, if_unchanged=False),
        ):
            with pytest.raises(NotLeader):
                await write
        assert await desk.store.get(Widget, "w") == created
        assert len((await desk.store.list(Widget)).items) == 2

    story(tell)


def test_a_deletion_means_exactly_the_object_that_was_seen() -> None:
    async def tell(desk: Desk) -> None:
        first = await desk.writer.create(widget("w", 1))
        await desk.store.delete(Widget, "w")
        second = await desk.store.create(widget("w", 1))
        with pytest.raises(Conflict):
            await desk.writer.delete(first, if_unchanged=False)
        assert await desk.store.get(Widget, "w") == second

    story(tell)


def test_no_answer_in_time_is_an_unknown_outcome_of_a_write_and_an_unreachable_store_for_a_read() -> None:
    async def tell(desk: Desk) -> None:
        async def never(*_: object, **__: object) -> object:
            return await asyncio.Event().wait()

        created = await desk.writer.create(widget("w", 1))
        loop = asyncio.get_running_loop()
        desk.store.patch_status = never  # type: ignore[method-assign, assignment]
        desk.store.get = never  # type: ignore[method-assign, assignment]
        desk.store.list = never  # type: ignore[method-assign, assignment]
        for attempt, error in (
            (desk.writer.patch_status(created, {"phase": "x"}, if_unchanged=False), OutcomeUnknown),
            (desk.writer.read_again(Widget, KEY), StoreUnreachable),
            (desk.writer.count(NoneLeft(Gadget)), StoreUnreachable),
        ):
            before = loop.time()
            with pytest.raises(error, match="no answer within 4 s"):
                await attempt
            assert loop.time() - before == REQUEST_TIMEOUT

    story(tell)


def test_reading_again_brings_the_cache_up_to_this_moment() -> None:
    async def tell(desk: Desk) -> None:
        await desk.store.create(widget("w", 1))
        await desk.writer.read_again(Widget, KEY)
        assert desk.seen() == await desk.store.get(Widget, "w")
        await desk.store.delete(Widget, "w")
        await desk.writer.read_again(Widget, KEY)
        assert desk.seen() is None
        await desk.writer.read_again(Gadget, Key(NAMESPACE, "not cached here"))

    story(tell)


def test_children_are_counted_in_the_store_itself_and_those_we_cannot_decode_count() -> None:
    async def tell(desk: Desk) -> None:
        metadata = ObjectMeta(name="g", namespace=NAMESPACE)
        await desk.store.create(Gadget(metadata=metadata, spec=WidgetSpec(owner="me")))
        assert await desk.writer.count(NoneLeft(Gadget, namespace=NAMESPACE)) == 1
        assert await desk.writer.count(NoneLeft(Gadget, namespace="elsewhere")) == 0

        async def listed(*_: object, **__: object) -> ObjectList[Gadget]:
            return ObjectList((), "1", undecodable=((NAMESPACE, "from-the-future"),))

        desk.store.list = listed  # type: ignore[method-assign, assignment]
        assert await desk.writer.count(NoneLeft(Gadget)) == 1

    story(tell)


def test_what_is_put_on_an_object_along_with_a_finalizer_is_one_write() -> None:
    async def tell(desk: Desk) -> None:
        before = await desk.store.get(Widget, "other")
        await apply(Plan(writes=(AddFinalizer(before, "test/mine", {"class": "fast"}),)), desk.writer, {})
        after = await desk.store.get(Widget, "other")
        assert after.metadata.finalizers == ("test/mine",)
        assert after.metadata.labels == {**before.metadata.labels, "class": "fast"}
        assert desk.count("patch", "ok") == 1

    story(tell)
