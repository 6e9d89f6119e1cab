"""The thread that waits for the disk: when it begins, and whom it keeps waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import cast

import pytest

from quorate.engine.embedded import Database
from quorate.engine.embedded import committer as committer_module
from quorate.engine.embedded.committer import Batch, ThreadCommitter
from quorate.engine.embedded.database import Row
from quorate.errors import StorageFailure

ROW = Row.make(1, "widgets", "", "w", "ADDED", 0.0, b"{}")


class SlowDatabase:
    """Commits, and does its housekeeping, only when it is let."""

    name = "slow"
    unsynced = False

    def __init__(self) -> None:
        self.may_commit, self.may_tidy = threading.Event(), threading.Event()
        self.tidying = threading.Event()
        self.untidy = True

    def append(self, rows: Sequence[Row]) -> None:
        self.may_commit.wait()

    def checkpoint(self, _mode: str) -> None:
        self.tidying.set()
        self.may_tidy.wait()


def commit(committer: ThreadCommitter) -> asyncio.Future[StorageFailure | None]:
    reported: asyncio.Future[StorageFailure | None] = asyncio.get_running_loop().create_future()
    committer.submit(Batch([ROW]), reported.set_result)
    return reported


async def test_an_idle_thread_has_begun_when_the_event_loop_goes_on_and_a_busy_one_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_module, "BEGINNING", 3600.0)
    database = SlowDatabase()
    committer = ThreadCommitter(cast("Database", database))
    first = commit(committer)
    assert committer._queue.empty()
    database.may_commit.set()
    assert await first is None
    await asyncio.to_thread(database.tidying.wait)
    second = commit(committer)  # would take an hour, if it waited for the housekeeping
    assert not committer._queue.empty()
    database.may_tidy.set()
    assert await second is None
    await committer.stop()
