"""Many writers at once: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio

from quorate.engine.store import Store
from quorate.errors import AlreadyExists, Conflict, NotFound
from tests.conformance.making import changes, version_now, widget
from tests.support.kinds import Widget

WRITERS = 16


async def test_counting_with_the_version_loses_no_update(store: Store) -> None:
    await store.create(widget("a"))

    async def count() -> int:
        conflicts = 0
        while True:
            seen = await store.get(Widget, "a")
            number = (seen.status.count or 0) + 1
            try:
                await store.patch_status(
                    Widget, "a", patch={"count": number}, resource_version=seen.metadata.resource_version
                )
                return conflicts
            except Conflict:
                conflicts += 1

    start = await version_now(store)
    conflicts = sum(await asyncio.gather(*(count() for _ in range(WRITERS))))
    assert (await store.get(Widget, "a")).status.count == WRITERS
    assert conflicts > 0, "else nothing was proven"
    events = await changes(store, start, WRITERS)
    assert [event.object.status.count for event in events if event.object] == list(range(1, WRITERS + 1))


async def test_writers_of_different_fields_do_not_disturb_each_other(store: Store) -> None:
    await store.create(widget("a"))
    await asyncio.gather(
        *(store.patch(Widget, "a", patch={"spec": {"weights": {f"k{n}": n}}}) for n in range(WRITERS)),
        *(store.patch(Widget, "a", patch={"metadata": {"labels": {f"l{n}": "x"}}}) for n in range(WRITERS)),
        *(store.patch_status(Widget, "a", patch={"phase": f"p{n}"}) for n in range(WRITERS)),
    )
    found = await store.get(Widget, "a")
    assert found.spec.weights == {f"k{n}": n for n in range(WRITERS)}
    assert found.metadata.labels == {f"l{n}": "x" for n in range(WRITERS)}
    assert found.metadata.generation == 1 + WRITERS


async def test_a_name_is_given_to_one_of_many(store: Store) -> None:
    results = await asyncio.gather(
        *(store.create(widget("a", low=number)) for number in range(WRITERS)), return_exceptions=True
    )
    made = [result for result in results if isinstance(result, Widget)]
    assert len(made) == 1
    assert sum(isinstance(result, AlreadyExists) for result in results) == WRITERS - 1
    assert await store.get(Widget, "a") == made[0]


async def test_an_object_is_deleted_by_one_of_many(store: Store) -> None:
    await store.create(widget("a"))
    start = await version_now(store)
    results = await asyncio.gather(*(store.delete(Widget, "a") for _ in range(WRITERS)), return_exceptions=True)
    assert results.count(None) == 1
    assert sum(isinstance(result, NotFound) for result in results) == WRITERS - 1
    await store.create(widget("marker"))
    events = await changes(store, start, 2)
    assert [event.type.value for event in events] == ["DELETED", "ADDED"]


async def test_a_write_and_a_delete_from_the_same_version_do_not_both_happen(store: Store) -> None:
    for number in range(WRITERS):
        made = await store.create(widget(f"w{number}"))
        version = made.metadata.resource_version
        written, deleted = await asyncio.gather(
            store.patch(Widget, made.name, patch={"spec": {"low": 1}}, resource_version=version),
            store.delete(Widget, made.name, resource_version=version),
            return_exceptions=True,
        )
        if isinstance(written, Widget):
            assert isinstance(deleted, Conflict)
        else:
            assert isinstance(written, Conflict | NotFound)
            assert deleted is None
