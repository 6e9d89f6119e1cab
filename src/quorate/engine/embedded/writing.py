"""Writes between their decision and their commit.

A write is decided on the *head*: the committed state with everything on top that waits for the disk. So writes to
one object queue behind each other and none is lost, and yet they share commits. Readers and watchers see only what
is committed. When a commit fails, the head built on it falls with it: every writer that waited is told why, and
the next write begins from what is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from quorate.api.kind import Kind
from quorate.engine.embedded.committer import Batch, Committer
from quorate.engine.embedded.database import MAX_BATCH, Row
from quorate.engine.embedded.record import Key, Record
from quorate.engine.embedded.state import State
from quorate.engine.store import EventType
from quorate.errors import StorageFailure

#: Old rows are erased this many at a time: that is a commit of its own, too dear to follow every other one, and
#: short enough (3 ms) for the next to wait.
_ERASED_AT_ONCE = 2 * MAX_BATCH


@dataclass(slots=True, eq=False)
class Write:
    """One decided change, on its way."""

    type: EventType
    #: The state that it makes; of a deletion, the last state under the version of the deletion.
    record: Record
    before: Record | None
    #: When, in seconds of the epoch.
    at: float
    #: Where the object is in its collection.
    key: Key
    _landed: bool = False
    _failure: StorageFailure | None = None
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    async def committed(self) -> None:
        """Wait for the disk; raises why when the change is not to be. Any number of tasks may wait."""
        if not self._landed:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self._failure is not None:
            # Each task its own: an exception remembers where it was raised.
            raise type(self._failure)(str(self._failure))

    def land(self, failure: StorageFailure | None) -> None:
        """Tell everybody who waits."""
        self._landed = True
        self._failure = failure
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def row(self) -> Row:
        """As the log has it."""
        record = self.record
        raw = b"" if self.type is EventType.DELETED else record.raw
        resource = record.kind.qualified_resource
        return Row.make(record.version, resource, record.namespace, record.name, self.type.value, self.at, raw)


#: Told of everything that was committed together, in order.
OnCommit = Callable[[Sequence[Write]], None]


class WriteQueue:
    """The head and the way from it to the disk."""

    def __init__(self, state: State, committer: Committer, on_commit: OnCommit, *, inline: bool) -> None:
        self._state = state
        self._committer = committer
        self._on_commit = on_commit
        self._inline = inline
        self._loop = asyncio.get_running_loop()
        self._head: dict[tuple[Kind, Key], Write] = {}
        self._version = state.version
        self._waiting: list[Write] = []
        self._committing: list[Write] | None = None
        self._scheduled = False
        self._landed: asyncio.Future[None] | None = None
        self._submitted_at = 0.0
        #: Why the last commit failed; None when it did not.
        self.failure: StorageFailure | None = None

    @property
    def waiting_since(self) -> float | None:
        """When the commit that is under way began, by the loop's clock."""
        return self._submitted_at if self._committing else None

    @property
    def next_version(self) -> int:
        """The version of the next write."""
        return self._version + 1

    def current(self, kind: Kind, key: Key) -> Record | None:
        """An object's state for a writer."""
        write = self._head.get((kind, key))
        if write is None:
            return self._state.collections[kind].objects.get(key)
        return None if write.type is EventType.DELETED else write.record

    def current_in(self, kind: Kind, namespace: str) -> Iterator[Record]:
        """The objects in a namespace for a writer."""
        committed = self._state.collections[kind].objects
        pending = (key for of, key in tuple(self._head) if of is kind and key not in committed)
        for key in (*committed, *pending):
            record = self.current(kind, key) if key[0] == namespace else None
            if record is not None:
                yield record

    def add(self, event: EventType, record: Record, before: Record | None, at: float) -> Write:
        """Take a write that was decided on the head, with ``next_version``."""
        write = Write(event, record, before, at, (record.namespace, record.name))
        self._version = record.version
        self._head[record.kind, write.key] = write
        self._waiting.append(write)
        if self._inline:
            self._flush()
        elif not self._scheduled and self._committing is None:
            # Not at once: every task that is ready to write now shall be in the same commit.
            self._scheduled = True
            self._loop.call_soon(self._flush)
        return write

    async def settle(self, kind: Kind, key: Key) -> None:
        """Wait until what a decision about this object was based on is committed; raises when it is not to be."""
        write = self._head.get((kind, key))
        if write is not None:
            await write.committed()

    async def drain(self) -> None:
        """Wait until nothing is on its way to the disk."""
        while self._committing is not None or self._waiting:
            if self._landed is None:
                self._flush()
            if self._landed is not None:
                await asyncio.wait([self._landed])

    async def erase_dead(self) -> None:
        """Erase from the log everything that can be, now."""
        # Batches are worked off in order: when an empty one has landed, the one before it is done entirely.
        more = True
        while more:
            await self.drain()
            more = self._state.dead > 0
            self._submit([], erase=more)
            if self._landed is not None:
                await asyncio.wait([self._landed])

    def _flush(self) -> None:
        self._scheduled = False
        if self._committing is None and self._waiting:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            self._submit(batch, erase=self._state.dead >= _ERASED_AT_ONCE)

    def _submit(self, writes: list[Write], *, erase: bool) -> None:
        self._committing = writes
        self._submitted_at = self._loop.time()
        self._landed = self._loop.create_future()
        dead, floor = self._state.take_dead(_ERASED_AT_ONCE if erase else 0)
        self._committer.submit(Batch([write.row() for write in writes], dead, floor), self._report)

    def _report(self, failure: StorageFailure | None) -> None:
        writes = self._committing or []
        self._committing = None
        if writes:
            self.failure = failure
        if failure is None:
            for write in writes:
                place = (write.record.kind, write.key)
                if self._head[place] is write:
                    del self._head[place]
        else:
            writes = writes + self._waiting
            self._waiting = []
            self._head.clear()
            self._version = self._state.version
        try:
            # Writers wake first: what they write next is then on its way to the disk while readers look at this.
            for write in writes:
                write.land(failure)
            if failure is None:
                self._on_commit(writes)
        finally:
            if self._landed is not None:
                self._landed.set_result(None)
                self._landed = None
            self._flush()
