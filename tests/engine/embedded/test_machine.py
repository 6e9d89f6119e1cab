"""The store against a plain model, through any sequence of writes, restarts and compactions."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorate.engine.embedded import EmbeddedStore, HistoryLimits, Record, Subscription
from quorate.engine.store import EventType
from quorate.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound
from tests.engine.embedded.support import WIDGET, ManualClock, open_store, widget
from tests.support.kinds import Widget

T = TypeVar("T")

NAMES = st.sampled_from("abc")
LOWS = st.integers(0, 3)
FINALIZERS = st.frozensets(st.sampled_from(["x.io/1", "x.io/2"]))
LIMITS = HistoryLimits(events=12)


@dataclass(frozen=True)
class Model:
    """What a person would keep of a widget on paper."""

    version: int
    generation: int = 1
    low: int | None = None
    count: int | None = None
    finalizers: frozenset[str] = frozenset()
    deleting: bool = False

    @classmethod
    def of(cls, record: Record) -> Model:
        obj = record.typed
        assert isinstance(obj, Widget)
        assert obj.metadata.resource_version == str(record.version)
        return cls(
            version=record.version,
            generation=obj.metadata.generation,
            low=obj.spec.low,
            count=obj.status.count,
            finalizers=frozenset(obj.metadata.finalizers),
            deleting=obj.deleting,
        )


State = dict[str, Model]


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        self.store: EmbeddedStore = self.opened()
        self.model: State = {}
        self.version = self.store.resource_version
        #: The model at every version, for resuming a watch.
        self.past: dict[int, State] = {self.version: {}}
        self.mirror: State = {}
        self.watch = self.store.subscribe(WIDGET, resource_version=self.version)

    def teardown(self) -> None:
        self.do(self.store.close())
        self.loop.close()
        shutil.rmtree(self.directory)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def opened(self) -> EmbeddedStore:
        return self.do(open_store(self.directory / "db", kinds=[WIDGET], clock=self.clock, limits=LIMITS))

    def expect(self, name: str, state: Model | None) -> None:
        """A write happened: this is the object's next state."""
        self.version += 1
        if state is None:
            del self.model[name]
        else:
            self.model[name] = replace(state, version=self.version)
        self.past[self.version] = dict(self.model)

    @rule(name=NAMES, low=st.none() | LOWS, finalizers=FINALIZERS)
    def create(self, name: str, low: int | None, finalizers: frozenset[str]) -> None:
        body = widget(name, {"owner": "me", "low": low}, metadata={"finalizers": sorted(finalizers)})
        if name in self.model:
            with pytest.raises(AlreadyExists):
                self.do(self.store.create_raw(WIDGET, body))
            return
        self.do(self.store.create_raw(WIDGET, body))
        self.expect(name, Model(0, low=low, finalizers=finalizers))

    @rule(name=NAMES, low=LOWS, stale=st.booleans())
    def change_spec(self, name: str, low: int, stale: bool) -> None:
        old = self.model.get(name)
        version = str(old.version - 1 if stale else old.version) if old else "1"
        work = self.store.patch(Widget, name, patch={"spec": {"low": low}}, resource_version=version)
        if old is None:
            with pytest.raises(NotFound):
                self.do(work)
        elif stale:
            with pytest.raises(Conflict):
                self.do(work)
        else:
            self.do(work)
            if old.low != low:
                self.expect(name, replace(old, low=low, generation=old.generation + 1))

    @rule(name=NAMES, count=LOWS)
    def change_status(self, name: str, count: int) -> None:
        work = self.store.patch_status(Widget, name, patch={"count": count})
        old = self.model.get(name)
        if old is None:
            with pytest.raises(NotFound):
                self.do(work)
            return
        self.do(work)
        if old.count != count:
            self.expect(name, replace(old, count=count))

    @rule(name=NAMES, finalizers=FINALIZERS)
    def change_finalizers(self, name: str, finalizers: frozenset[str]) -> None:
        work = self.store.patch(Widget, name, patch={"metadata": {"finalizers": sorted(finalizers)}})
        old = self.model.get(name)
        if old is None:
            with pytest.raises(NotFound):
                self.do(work)
        elif old.deleting and finalizers - old.finalizers:
            with pytest.raises(Invalid):
                self.do(work)
        else:
            self.do(work)
            if old.deleting and not finalizers:
                self.expect(name, None)
            elif finalizers != old.finalizers:
                self.expect(name, replace(old, finalizers=finalizers))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        work = self.store.delete(Widget, name)
        old = self.model.get(name)
        if old is None:
            with pytest.raises(NotFound):
                self.do(work)
            return
        left = self.do(work)
        assert (left is not None) == bool(old.finalizers)
        if not old.finalizers:
            self.expect(name, None)
        elif not old.deleting:
            self.expect(name, replace(old, deleting=True, generation=old.generation + 1))

    @rule()
    def restart(self) -> None:
        self.follow()
        self.do(self.store.close())
        self.store = self.opened()
        self.watch = self.store.subscribe(WIDGET, resource_version=self.version)

    @rule()
    def compact(self) -> None:
        self.do(self.store.compact())

    @precondition(lambda self: len(self.past) > 1)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        """From any version in reach, the replay leads from what was to what is."""
        begin = data.draw(st.sampled_from(sorted(self.past)))
        state = dict(self.past[begin])
        watch = self.store.subscribe(WIDGET, resource_version=begin)
        if self.version - begin > LIMITS.events:
            with pytest.raises(Expired):
                self.do(anext(watch))
        else:
            self.advance(watch, state, begin)
            assert state == self.model
        self.do(watch.aclose())

    def advance(self, watch: Subscription, state: State, begin: int) -> None:
        version = begin
        while version < self.version:
            change = self.do(anext(watch))
            assert change.record is not None
            assert change.version == version + 1, "every version is one event, in order"
            version = change.version
            name = change.record.name
            assert (change.type is EventType.ADDED) == (name not in state)
            if change.type is EventType.DELETED:
                assert Model.of(change.record) == replace(state.pop(name), version=version)
            else:
                state[name] = Model.of(change.record)

    @invariant()
    def reads_show_the_model(self) -> None:
        page = self.store.read_page(WIDGET)
        assert {record.name: Model.of(record) for record in page.records} == self.model
        assert page.resource_version == self.version

    @invariant()
    def follow(self) -> None:
        """Whoever watches has the same state, too."""
        self.advance(self.watch, self.mirror, max(self.mirrored, min(self.past)))
        self.mirrored = self.version
        assert self.mirror == self.model

    mirrored = 0


StoreMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestStore = StoreMachine.TestCase
