"""A small world for whole-engine tests: widgets that have gadgets, gadgets that get ready, and numbers given to them.

- ``widgets``: a Widget has ``spec.high`` Gadgets. Finalizer first; formation begins with a transition; children next;
  its own status last; on deletion the children go first and the finalizer after them.
- ``gadgets``: a Gadget becomes Ready a second after it was first seen.
- ``numbers``: every Gadget gets a number that no other has, from one reconciler with one key and one worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import TypeVar, overload

from quorate.api.core import Event, Lease
from quorate.api.kind import Kind
from quorate.api.meta import ObjectMeta, OwnerReference
from quorate.api.struct import replace
from quorate.engine.controller import Controller, Watch
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.index import Index
from quorate.engine.keys import Key
from quorate.engine.plan import (
    AddFinalizer,
    Create,
    Delete,
    NoneLeft,
    PatchStatus,
    Plan,
    PlanEvent,
    ReleaseFinalizer,
)
from quorate.engine.reader import Reader
from quorate.engine.selectors import equals
from quorate.engine.simulation import Simulation
from tests.support.kinds import Gadget, Widget, WidgetSpec

StoreT = TypeVar("StoreT", bound=EmbeddedStore)

KINDS: tuple[Kind, ...] = (Widget.KIND, Gadget.KIND, Lease.KIND, Event.KIND)
NAMESPACE = "test"
FINALIZER = "test.quorate.io/widgets"
READY_AFTER = 1.0


@overload
async def open_store(sim: Simulation, *, kinds: tuple[Kind, ...] = KINDS) -> EmbeddedStore: ...
@overload
async def open_store(sim: Simulation, cls: type[StoreT], *, kinds: tuple[Kind, ...] = KINDS) -> StoreT: ...
async def open_store(
    sim: Simulation, cls: type[EmbeddedStore] = EmbeddedStore, *, kinds: tuple[Kind, ...] = KINDS
) -> EmbeddedStore:
    """A store in memory, closed when the simulation is over."""
    store = await cls.open(None, kinds=kinds, clock=sim.clock, random=sim.random("store"), inline=True)
    sim.cleanup.push_async_callback(store.close)
    return store


def widget(name: str, gadgets: int) -> Widget:
    return Widget(metadata=ObjectMeta(name=name), spec=WidgetSpec(owner="somebody", high=gadgets))


def parents(gadget: Gadget) -> Iterable[str]:
    yield gadget.metadata.labels["widget"]


@dataclass(frozen=True)
class WidgetSnapshot:
    widget: Widget
    gadgets: tuple[Gadget, ...]


def observe_widget(reader: Reader, key: Key) -> WidgetSnapshot | None:
    found = reader.get(Widget, key.name)
    return WidgetSnapshot(found, reader.find(Gadget, "widget", key.name)) if found else None


def decide_widget(snapshot: WidgetSnapshot, now: datetime, random: Random) -> Plan:
    this = snapshot.widget
    if this.deleting:
        return _remove(snapshot)
    if FINALIZER not in this.metadata.finalizers:
        return Plan(writes=(AddFinalizer(this, FINALIZER),))
    if this.status.phase is None:
        forming = replace(this, status=replace(this.status, phase="Forming"))
        return Plan(
            transition=PatchStatus(this, forming, if_unchanged=True),
            events=(PlanEvent(this, "Forming", f"making {this.spec.high} gadgets"),),
        )
    intended = [f"{this.name}-{number}" for number in range(this.spec.high or 0)]
    present = {gadget.name: gadget for gadget in snapshot.gadgets}
    creates = tuple(Create(_gadget(this, name)) for name in intended if name not in present)
    deletes = tuple(
        Delete(gadget) for gadget in snapshot.gadgets if gadget.name not in intended and not gadget.deleting
    )
    ready = [name for name in intended if name in present and present[name].status.phase == "Ready"]
    phase = "Ready" if len(ready) == len(intended) else "Forming"
    status = replace(this.status, phase=phase, count=len(ready), observed_generation=this.metadata.generation)
    return Plan(writes=(*creates, *deletes), status=PatchStatus(this, replace(this, status=status)))


def _remove(snapshot: WidgetSnapshot) -> Plan:
    this = snapshot.widget
    if snapshot.gadgets:
        return Plan(writes=tuple(Delete(gadget) for gadget in snapshot.gadgets if not gadget.deleting))
    children = NoneLeft(Gadget, namespace=NAMESPACE, labels=equals(widget=this.name))
    return Plan(writes=(ReleaseFinalizer(this, FINALIZER, after=(children,)),))


def _gadget(parent: Widget, name: str) -> Gadget:
    owner = OwnerReference(
        api_version=Widget.KIND.api_version, kind="Widget", name=parent.name, uid=parent.metadata.uid, controller=True
    )
    metadata = ObjectMeta(namespace=NAMESPACE, name=name, labels={"widget": parent.name}, owner_references=(owner,))
    return Gadget(metadata=metadata, spec=WidgetSpec(owner="widgets"))


def observe_gadget(reader: Reader, key: Key) -> Gadget | None:
    return reader.get(Gadget, key.name, key.namespace)


def decide_gadget(gadget: Gadget, now: datetime, random: Random) -> Plan:
    created = gadget.metadata.creation_timestamp
    assert created is not None
    age = (now - created).total_seconds()
    if gadget.status.phase == "Ready":
        return Plan()
    if age < READY_AFTER:
        return Plan(requeue_after=READY_AFTER - age)
    status = replace(gadget.status, phase="Ready")
    return Plan(status=PatchStatus(gadget, replace(gadget, status=status)))


ONE_KEY = Key("", "all")


def observe_numbers(reader: Reader, key: Key) -> tuple[Gadget, ...]:
    return reader.list(Gadget)


def decide_numbers(gadgets: tuple[Gadget, ...], now: datetime, random: Random) -> Plan:
    used = {gadget.status.count for gadget in gadgets}
    writes = []
    number = 0
    for gadget in gadgets:
        if gadget.status.count is None and not gadget.deleting:
            while number in used:
                number += 1
            used.add(number)
            status = replace(gadget.status, count=number)
            writes.append(PatchStatus(gadget, replace(gadget, status=status), if_unchanged=True))
    return Plan(writes=tuple(writes))


def one_key(_: Gadget) -> Iterable[Key]:
    return (ONE_KEY,)


def parent_key(gadget: Gadget) -> Iterable[Key]:
    return (Key("", name) for name in parents(gadget))


WIDGETS = Controller(
    name="widgets",
    watches=(Watch(Widget), Watch(Gadget, parent_key)),
    indexes=(Index(Gadget, "widget", parents),),
    observe=observe_widget,
    decide=decide_widget,
)
GADGETS = Controller(name="gadgets", watches=(Watch(Gadget),), observe=observe_gadget, decide=decide_gadget)
NUMBERS = Controller(
    name="numbers", watches=(Watch(Gadget, one_key),), observe=observe_numbers, decide=decide_numbers, workers=1
)
CONTROLLERS = (WIDGETS, GADGETS, NUMBERS)
