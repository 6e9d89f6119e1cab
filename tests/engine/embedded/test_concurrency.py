"""Many writers at once: nothing is lost, commits are shared, and a failure takes down exactly what waited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from quorate.engine.embedded import Database, EmbeddedStore
from quorate.engine.embedded.committer import Batch, Report, ThreadCommitter
from quorate.engine.embedded.database import MAX_BATCH, Row
from quorate.errors import AlreadyExists, Conflict, StorageFull
from tests.engine.embedded.support import WIDGET, open_store, widget
from tests.support.kinds import Widget

WRITERS = 64


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    opened = await open_store(tmp_path / "db", kinds=[WIDGET], inline=False)
    yield opened
    await opened.close()


async def increment(store: EmbeddedStore, name: str) -> None:
    """Read, add one, write if nobody wrote meanwhile; else again."""
    while True:
        seen = await store.get(Widget, name)
        version = seen.metadata.resource_version
        try:
            count = (seen.status.count or 0) + 1
            await store.patch_status(Widget, name, patch={"count": count}, resource_version=version)
        except Conflict:
            continue
        return


async def test_with_a_precondition_no_update_is_lost(store: EmbeddedStore) -> None:
    await store.create_raw(WIDGET, widget())
    await asyncio.gather(*(increment(store, "w") for _ in range(WRITERS)))
    assert (await store.get(Widget, "w")).status.count == WRITERS


async def test_without_one_every_write_is_made_on_the_last(store: EmbeddedStore) -> None:
    """The change is applied to the head: nobody's read is old."""

    def add_one(current: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
        return {**current, "status": {"count": current.get("status", {}).get("count", 0) + 1}}

    await store.create_raw(WIDGET, widget())
    begin = store.resource_version
    await asyncio.gather(*(store.update_raw(WIDGET, "w", add_one, subresource="status") for _ in range(WRITERS)))
    assert (await store.get(Widget, "w")).status.count == WRITERS
    assert store.resource_version == begin + WRITERS


async def test_one_of_many_creators_wins(store: EmbeddedStore) -> None:
    results = await asyncio.gather(
        *(store.create_raw(WIDGET, widget()) for _ in range(WRITERS)), return_exceptions=True
    )
    assert sum(isinstance(result, AlreadyExists) for result in results) == WRITERS - 1


async def test_one_of_many_who_saw_the_same_version_wins(store: EmbeddedStore) -> None:
    version = str((await store.create_raw(WIDGET, widget())).record.version)
    results = await asyncio.gather(
        *(store.patch(Widget, "w", patch={"spec": {"low": low}}, resource_version=version) for low in range(WRITERS)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Conflict) for result in results) == WRITERS - 1


class WatchedDatabase:
    """Looks at, or spoils, what is committed."""

    def __init__(self, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[int] = []
        self.before_commit: Callable[[], None] = lambda: None
        append = Database.append

        def watched(database: Database, rows: list[Row]) -> None:
            self.batches.append(len(rows))
            self.before_commit()
            append(database, rows)

        monkeypatch.setattr(Database, "append", watched)


async def test_writers_share_commits(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedDatabase(store, monkeypatch)
    await asyncio.gather(*(store.create_raw(WIDGET, widget(f"w{i}")) for i in range(3 * MAX_BATCH)))
    assert sum(watched.batches) == 3 * MAX_BATCH
    assert len(watched.batches) <= 4


async def test_what_writers_write_next_is_submitted_before_anything_that_readers_of_the_last_commit_set_off(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the disk would rest while controllers work, and they while it does."""
    order: list[str] = []
    submit = ThreadCommitter.submit

    def submitted(committer: ThreadCommitter, batch: Batch, report: Report) -> None:
        order.append("submitted")
        submit(committer, batch, report)

    async def write_twice() -> None:
        for count in range(2):
            await store.patch_status(Widget, "w", patch={"count": count})

    async def read() -> None:
        async for _ in store.watch(Widget, resource_version=str(begin)):
            asyncio.get_running_loop().call_soon(order.append, "set off")

    begin = (await store.create_raw(WIDGET, widget())).record.version
    monkeypatch.setattr(ThreadCommitter, "submit", submitted)
    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    await write_twice()
    reader.cancel()
    assert order[:3] == ["submitted", "submitted", "set off"]


async def test_nothing_shows_before_it_is_committed(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedDatabase(store, monkeypatch)
    subscription = store.subscribe(WIDGET, resource_version=None)
    shown: list[bool] = []

    def look() -> None:
        # In the committing thread, while the loop waits.
        shown.append(bool(store.read_page(WIDGET).records))

    watched.before_commit = look
    await store.create_raw(WIDGET, widget())
    assert shown == [False]
    assert (await anext(subscription)).version == store.resource_version


async def test_a_failed_commit_fails_everybody_who_built_on_it(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create_raw(WIDGET, widget())
    before = store.read_page(WIDGET)
    watched = WatchedDatabase(store, monkeypatch)

    def fail() -> None:
        raise StorageFull("no space")

    watched.before_commit = fail
    subscription = store.subscribe(WIDGET, resource_version=before.resource_version)
    results = await asyncio.gather(
        *(store.patch(Widget, "w", patch={"spec": {"low": low}}) for low in range(5)),
        store.patch(Widget, "w", patch={"spec": {"low": 4}}),  # changes nothing, once the others are made
        store.create_raw(WIDGET, widget("new")),
        store.create_raw(WIDGET, widget("new")),  # exists already, once the other is made
        store.delete(Widget, "w"),
        store.patch(Widget, "w", patch={"spec": {"low": 1}}),  # not found, once it is deleted
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [StorageFull] * 10
    assert store.read_page(WIDGET) == before
    watched.before_commit = lambda: None
    await store.patch(Widget, "w", patch={"spec": {"low": 9}})
    change = await anext(subscription)
    assert (change.version, change.version) == (before.resource_version + 1, store.resource_version)


async def test_a_failed_commit_fails_those_who_wait_behind_it_too(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = WatchedDatabase(store, monkeypatch)
    loop, committing, more = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def fail() -> None:
        loop.call_soon_threadsafe(committing.set)
        more.wait()
        raise StorageFull("no space")

    watched.before_commit = fail
    first = asyncio.create_task(store.create_raw(WIDGET, widget("first")))
    await committing.wait()
    second = asyncio.create_task(store.create_raw(WIDGET, widget("second")))
    await asyncio.sleep(0)
    more.set()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert ([type(result) for result in results], watched.batches) == ([StorageFull, StorageFull], [1])
    watched.before_commit = lambda: None
    await store.create_raw(WIDGET, widget("first"))
    assert [record.name for record in store.read_page(WIDGET).records] == ["first"]


async def test_a_writer_that_is_cancelled_disturbs_nobody(store: EmbeddedStore) -> None:
    await store.create_raw(WIDGET, widget())
    doomed = asyncio.create_task(store.patch(Widget, "w", patch={"spec": {"low": 1}}))
    await asyncio.sleep(0)
    same = asyncio.create_task(store.patch(Widget, "w", patch={"spec": {"low": 1}}))
    await asyncio.sleep(0)
    doomed.cancel()
    assert (await same).spec.low == 1


async def test_closing_waits_for_the_writes_that_were_begun(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "db", kinds=[WIDGET], inline=False)
    writes = [asyncio.create_task(store.create_raw(WIDGET, widget(f"w{i}"))) for i in range(500)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*writes)
    store = await open_store(tmp_path / "db", kinds=[WIDGET])
    assert len(store.read_page(WIDGET).records) == 500
    await store.close()
