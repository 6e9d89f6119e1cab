"""Who waits for the disk: a thread of its own, or the caller.

One batch is committed at a time; everything that arrives meanwhile is the next batch, so any number of writers
share an fsync (group commit). After a batch has been reported comes the file's housekeeping, which therefore
delays nobody but the next batch.

Inline there is no thread: a batch is committed before ``submit`` returns. That is for virtual time, where a
thread would make the order of events depend on the machine.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

from quorate.engine.embedded.database import Database, Row
from quorate.engine.embedded.mark import LAG
from quorate.errors import StorageFailure

#: The most seconds that an event loop waits for the thread to begin. It takes 0.1 ms where a processor is free.
BEGINNING = 0.001


@dataclass(frozen=True, slots=True)
class Batch:
    """What is committed together."""

    rows: Sequence[Row]
    #: Versions to erase afterwards, and the floor that the history then has.
    dead: Sequence[int] = ()
    floor: int = 0


#: Told, on the event loop, how a batch went: None, or why it was not committed.
Report = Callable[[StorageFailure | None], None]


class Committer(Protocol):
    """Commits one batch at a time."""

    def submit(self, batch: Batch, report: Report) -> None:
        """Commit; the next batch may be submitted after the report."""
        ...

    async def stop(self) -> None:
        """Finish, housekeeping included."""
        ...


class InlineCommitter:
    """Commits in the caller's time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def submit(self, batch: Batch, report: Report) -> None:
        report(_commit(self._database, batch))
        if _makes_work(self._database, batch):
            _keep_house(self._database, batch)

    async def stop(self) -> None:
        return


class ThreadCommitter:
    """Commits in a thread. It may die with the process at any time: the file survives that.

    The thread needs the interpreter lock to begin, and a busy event loop gives that up only every 5 ms: the commit
    would come after what the loop does next instead of beside it. So the loop waits for a thread that has nothing else
    to do to begin.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[Batch, Report] | None] = SimpleQueue()
        #: An entry for every batch that the thread has begun.
        self._begun: SimpleQueue[None] = SimpleQueue()
        self._keeping_house = False
        #: When the mark was last brought to the disk, by the loop's clock.
        self._synced = 0.0
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="quorate-commit", daemon=True)
        self._thread.start()

    def submit(self, batch: Batch, report: Report) -> None:
        while not self._begun.empty():
            self._begun.get()
        self._queue.put((batch, report))
        if not self._keeping_house:
            with suppress(Empty):
                self._begun.get(timeout=BEGINNING)

    async def stop(self) -> None:
        self._queue.put(None)
        await self._stopped.wait()
        self._thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            self._begun.put(None)
            batch, report = work
            failure = _commit(self._database, batch)
            self._keeping_house = _makes_work(self._database, batch)
            self._loop.call_soon_threadsafe(report, failure)
            if self._keeping_house:
                _keep_house(self._database, batch)
                self._keeping_house = False
        self._loop.call_soon_threadsafe(self._stopped.set)

    def _next(self) -> tuple[Batch, Report] | None:
        """What to do next. Meanwhile the mark of what was acknowledged reaches the disk, not long after the fact."""
        while self._database.unsynced:
            left = self._synced + LAG - self._loop.time()
            if left <= 0:
                self._synced = self._loop.time()
                self._database.sync_mark()
                continue
            with suppress(Empty):
                return self._queue.get(timeout=left)
        return self._queue.get()


def _commit(database: Database, batch: Batch) -> StorageFailure | None:
    try:
        if batch.rows:
            database.append(batch.rows)
    except StorageFailure as error:
        return error
    except Exception as error:  # somebody waits for an answer, whatever happened
        return StorageFailure(f"{database.name} could not be written: {error!r}")
    return None


def _makes_work(database: Database, batch: Batch) -> bool:
    """Whether there is housekeeping to do after a batch."""
    return bool(batch.dead) or database.untidy


def _keep_house(database: Database, batch: Batch) -> None:
    # Rows that could not be erased are found again at the next start.
    with suppress(StorageFailure):
        if batch.dead:
            database.erase(batch.dead, batch.floor)
    if database.untidy:
        database.checkpoint("PASSIVE")
