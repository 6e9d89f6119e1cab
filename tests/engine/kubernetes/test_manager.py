"""The same controllers, unchanged, on a real API server: nothing above the Store can tell the difference."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from quorate.api.core import Event, Lease
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore
from quorate.engine.manager import Election, Manager
from tests.support.kinds import Gadget, Widget
from tests.support.widgets import CONTROLLERS, NAMESPACE, widget

pytestmark = pytest.mark.apiserver

LEASE = "quorate-test"


def manager(store: KubernetesStore, name: str) -> Manager:
    return Manager(
        store,
        CONTROLLERS,
        clock=SystemClock(),
        random=Random(name),
        identity=name,
        election=Election(LEASE, NAMESPACE),
    )


async def seen_settled(this: Manager, gadgets: dict[str, int]) -> None:
    """Wait, on the manager's own caches, until these widgets are ready and there are no others."""
    settled = asyncio.Event()

    def look(*_: object) -> None:
        found = this.reader.list(Widget)
        if {one.name: one.status.count for one in found if one.status.phase == "Ready"} == gadgets and len(
            found
        ) == len(gadgets):
            settled.set()

    end = this.caches[Widget].subscribe(look)
    look()
    try:
        async with asyncio.timeout(20):
            await settled.wait()
    finally:
        end()


async def test_widgets_live_and_die_and_leadership_changes_hands(store: KubernetesStore) -> None:
    # Nobody has created the namespace of the Lease: that is up to whoever is elected first.
    first, second = manager(store, "first"), manager(store, "second")
    running = [asyncio.create_task(first.run())]
    for name in ("a", "b"):
        await store.create(widget(name, 3))
    await seen_settled(first, {"a": 3, "b": 3})
    assert first.leading

    running.append(asyncio.create_task(second.run()))
    await store.patch(Widget, "b", patch={"spec": {"high": 1}})
    await store.delete(Widget, "a")
    await seen_settled(first, {"b": 1})
    first.stop()
    await running[0]
    await store.create(widget("c", 2))
    await seen_settled(second, {"b": 1, "c": 2})
    assert second.leading

    numbers = [gadget.status.count for gadget in (await store.list(Gadget)).items]
    assert None not in numbers
    assert len(set(numbers)) == len(numbers) == 3
    lease = await store.get(Lease, LEASE, NAMESPACE)
    assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("second", 2)
    events = [event for event in (await store.list(Event, namespace="default")).items if event.reason == "Forming"]
    assert {event.involved_object.name for event in events} >= {"a", "b", "c"}

    version = (await store.list(Widget)).resource_version
    for name in ("b", "c"):
        await store.delete(Widget, name)
    await seen_settled(second, {})
    assert (await store.list(Widget)).resource_version != version
    assert (await store.list(Gadget)).items == ()
    second.stop()
    await running[1]
    lease = await store.get(Lease, LEASE, NAMESPACE)
    assert lease.spec.holder_identity is None
