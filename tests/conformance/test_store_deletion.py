"""delete: finalizers, preconditions, and the end."""

from __future__ import annotations

import pytest

from quorate.engine.store import Store
from quorate.errors import Conflict, Invalid, NotFound
from tests.conformance.making import changes, told, version_now, widget
from tests.support.kinds import Widget

HOLD, OTHER = "test.quorate.io/hold", "test.quorate.io/other"


async def test_an_object_without_finalizers_is_gone_at_once(store: Store) -> None:
    await store.create(widget("a"))
    assert await store.delete(Widget, "a") is None
    with pytest.raises(NotFound):
        await store.get(Widget, "a")
    with pytest.raises(NotFound):
        await store.delete(Widget, "a")


async def test_a_finalizer_holds_it_until_it_is_removed(store: Store) -> None:
    made = await store.create(widget("a", finalizers=(HOLD, OTHER)))
    before = await version_now(store)
    held = await store.delete(Widget, "a")
    assert held is not None
    assert held.deleting
    assert held.metadata.generation == made.metadata.generation + 1
    assert await store.get(Widget, "a") == held
    assert await store.delete(Widget, "a") == held, "a second time changes nothing"
    one_less = await store.patch(Widget, "a", patch={"metadata": {"finalizers": [OTHER]}})
    assert one_less.metadata.finalizers == (OTHER,)
    last = await store.patch(Widget, "a", patch={"metadata": {"finalizers": []}})
    assert last.metadata.finalizers == ()
    with pytest.raises(NotFound):
        await store.get(Widget, "a")
    events = await changes(store, before, 3)
    assert told(events) == [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_dying_object_can_be_changed_but_not_held_by_more(store: Store) -> None:
    await store.create(widget("a", finalizers=(HOLD,)))
    await store.delete(Widget, "a")
    changed = await store.patch(Widget, "a", patch={"spec": {"low": 1}})
    assert (changed.spec.low, changed.deleting) == (1, True)
    assert (await store.patch_status(Widget, "a", patch={"phase": "x"})).status.phase == "x"
    with pytest.raises(Invalid):
        await store.patch(Widget, "a", patch={"metadata": {"finalizers": [HOLD, OTHER]}})
    with pytest.raises(Invalid) as caught:
        await store.patch(Widget, "a", patch={"metadata": {"finalizers": [OTHER]}})
    assert {(cause.field, cause.reason) for cause in caught.value.causes} == {
        ("metadata.finalizers", "FieldValueForbidden")
    }


async def test_deletion_cannot_be_taken_back(store: Store) -> None:
    await store.create(widget("a", finalizers=(HOLD,)))
    held = await store.delete(Widget, "a")
    assert held is not None
    after = await store.patch(Widget, "a", patch={"metadata": {"deletionTimestamp": None}})
    assert after.metadata.deletion_timestamp == held.metadata.deletion_timestamp


async def test_another_uid_or_version_is_a_conflict(store: Store) -> None:
    made = await store.create(widget("a"))
    changed = await store.patch(Widget, "a", patch={"spec": {"low": 1}})
    with pytest.raises(Conflict):
        await store.delete(Widget, "a", uid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(Conflict):
        await store.delete(Widget, "a", resource_version=made.metadata.resource_version)
    assert await store.get(Widget, "a") == changed
    uid, version = changed.metadata.uid, changed.metadata.resource_version
    assert await store.delete(Widget, "a", uid=uid, resource_version=version) is None


async def test_the_name_is_free_afterwards(store: Store) -> None:
    first = await store.create(widget("a"))
    await store.delete(Widget, "a")
    second = await store.create(widget("a"))
    assert second.metadata.uid != first.metadata.uid
    with pytest.raises(Conflict):
        await store.delete(Widget, "a", uid=first.metadata.uid)


async def test_a_dry_run_deletes_nothing(store: Store) -> None:
    made = await store.create(widget("a"))
    held = await store.create(widget("b", finalizers=(HOLD,)))
    await store.delete(Widget, "a", dry_run=True)
    await store.delete(Widget, "b", dry_run=True)
    with pytest.raises(NotFound):
        await store.delete(Widget, "c", dry_run=True)
    assert (await store.list(Widget)).items == (made, held)
