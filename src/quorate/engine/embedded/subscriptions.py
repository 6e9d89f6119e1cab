"""Who is told of changes, and how far each has got.

A subscription first yields what it begins with: the current state as additions, or the history after a version.
Then it yields what is published, from a buffer that is bounded: who reads too slowly is cut off with Expired and
lists again, instead of holding the store's memory hostage.

With a selector, an object that a change brings into the selection is ADDED, and one that leaves it is DELETED,
shown as it last was in the selection and at the version of the change.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from quorate.api.kind import Kind
from quorate.engine.embedded.record import Change, Record, at_version
from quorate.engine.embedded.selection import Selection
from quorate.engine.embedded.state import Collection, Entry
from quorate.engine.store import EventType
from quorate.errors import Expired, QuorateError

#: Past changes, or objects, that do not concern a reader and are looked at before others go on.
_PASSED_AT_ONCE = 100

#: A change, and the object as it was before (None when there was none).
Published = tuple[Change, Record | None]


class Subscription(AsyncIterator[Change]):
    """One reader's stream of changes. It begins when it is made; close it when it is no longer read."""

    def __init__(self, subscribers: Subscribers, kind: Kind, selection: Selection, version: int, number: int) -> None:
        self._subscribers = subscribers
        self._kind = kind
        self._selection = selection
        #: Which one it is, in the order in which they came.
        self.number = number
        #: A label that all of its objects have, with this value.
        self.label = selection.label
        self._backlog: Iterator[Change | None] = iter(())
        self._buffer: deque[Change] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._failure: QuorateError | None = None
        self._closed = False
        #: The version up to which the reader has been told everything.
        self.reached = version

    def begin(self, backlog: Iterable[Change | None]) -> None:
        """Yield these before anything that is published; None is one that does not concern the reader."""
        self._backlog = iter(backlog)

    def publish(self, changes: Sequence[Published]) -> None:
        """Tell of changes, each with the object as it was before."""
        if self._selection.everything:
            self._push([change for change, _ in changes])
        else:
            seen = (_as_seen(self._selection, change, before) for change, before in changes)
            self._push([change for change in seen if change is not None])

    def bookmark(self, version: int) -> None:
        """Tell that nothing more up to this version concerns this subscription."""
        if version > self.reached:
            self._push([Change(EventType.BOOKMARK, None, version)])

    def _push(self, changes: Sequence[Change]) -> None:
        if not changes:
            return
        if len(self._buffer) + len(changes) > self._subscribers.buffer:
            self.fail(Expired(f"too old resource version: the watch fell {len(self._buffer)} events behind"))
            return
        self.reached = changes[-1].version
        self._buffer.extend(changes)
        self._wake()

    def fail(self, error: QuorateError) -> None:
        """End the stream with an error, in place of all that was not read."""
        self._failure = error
        self._buffer.clear()
        self._subscribers.remove(self._kind, self)
        self._wake()

    def end(self) -> None:
        """End the stream after what is in the buffer."""
        self._closed = True
        self._subscribers.remove(self._kind, self)
        self._wake()

    async def aclose(self) -> None:
        """Stop."""
        self._backlog = iter(())
        self._buffer.clear()
        self.end()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Change:
        passed = 0
        while True:
            if self._failure is not None:
                raise self._failure
            try:
                for change in self._backlog:
                    if change is not None:
                        return change
                    passed += 1
                    if passed % _PASSED_AT_ONCE == 0:
                        break
                else:
                    passed = 0
            except QuorateError as error:
                # Expired, or the file cannot be read: what follows would leave a gap.
                self.fail(error)
                raise
            if passed:
                # Looking through what does not concern one reader must not keep all others waiting.
                await asyncio.sleep(0)
                continue
            if self._buffer:
                return self._buffer.popleft()
            if self._closed:
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class _Subscriptions:
    """Those of one kind. Agents ask each for what has their node's label, so such are found by it."""

    def __init__(self) -> None:
        self.all: dict[Subscription, None] = {}
        self._general: dict[Subscription, None] = {}
        self._by_label: dict[str, dict[str, dict[Subscription, None]]] = {}

    def add(self, subscription: Subscription) -> None:
        self.all[subscription] = self._place(subscription)[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        self.all.pop(subscription, None)
        self._place(subscription).pop(subscription, None)
        if subscription.label is not None:
            key, value = subscription.label
            if not self._by_label[key][value]:
                del self._by_label[key][value]

    def publish(self, changes: Sequence[Published]) -> None:
        """In the order in which they came: the order in which subscribers wake is part of a simulation's history."""
        told: dict[Subscription, Sequence[Published]] = dict.fromkeys(self._general, changes)
        for key, by_value in self._by_label.items():
            found: dict[Subscription, list[Published]] = {}
            for published in changes:
                for value in _values(key, published):
                    for subscription in by_value.get(value, ()):
                        found.setdefault(subscription, []).append(published)
            told |= found
        for subscription in sorted(told, key=_number) if self._by_label else told:
            subscription.publish(told[subscription])

    def _place(self, subscription: Subscription) -> dict[Subscription, None]:
        if subscription.label is None:
            return self._general
        key, value = subscription.label
        return self._by_label.setdefault(key, {}).setdefault(value, {})


def _values(key: str, published: Published) -> Iterable[str]:
    """The values that a label has, before a change and after it."""
    change, before = published
    assert change.record is not None
    now = change.record.typed.metadata.labels.get(key)
    was = now if before is None else before.typed.metadata.labels.get(key)
    return [value for value in ((now,) if now == was else (now, was)) if value is not None]


def _number(subscription: Subscription) -> int:
    return subscription.number


class Subscribers:
    """All subscriptions, by kind."""

    def __init__(self, kinds: Iterable[Kind], buffer: int) -> None:
        self.buffer = buffer
        self._by_kind = {kind: _Subscriptions() for kind in kinds}
        self._count = 0

    def add(self, kind: Kind, selection: Selection, version: int) -> Subscription:
        """A new one, which is told of everything after ``version``."""
        self._count += 1
        subscription = Subscription(self, kind, selection, version, self._count)
        self._by_kind[kind].add(subscription)
        return subscription

    def remove(self, kind: Kind, subscription: Subscription) -> None:
        """Tell it no more."""
        self._by_kind[kind].remove(subscription)

    def publish(self, kind: Kind, changes: Sequence[Published]) -> None:
        """Tell everybody whom it concerns."""
        self._by_kind[kind].publish(changes)

    def bookmark(self, version: int) -> None:
        """Tell everybody else that nothing up to this version concerns them."""
        for subscriptions in self._by_kind.values():
            for subscription in tuple(subscriptions.all):
                subscription.bookmark(version)

    def end(self) -> None:
        """End all streams."""
        for subscriptions in self._by_kind.values():
            for subscription in tuple(subscriptions.all):
                subscription.end()


def replay(collection: Collection, entries: Iterable[Entry], selection: Selection) -> Iterator[Change | None]:
    """Past changes as they would have been published; raises Expired when they are forgotten meanwhile."""
    for entry in entries:
        before = collection.past(entry.key, entry.replaced) if entry.replaced else None
        if entry.type == EventType.DELETED:
            assert before is not None
            record = at_version(before, entry.version)
        else:
            record = collection.past(entry.key, entry.version)
        yield _as_seen(selection, Change(EventType(entry.type), record, entry.version), before)


def initial(records: Iterable[Record], selection: Selection, version: int, *, marked: bool) -> Iterator[Change | None]:
    """A state as additions, followed by a bookmark when its end is to be marked."""
    for record in records:
        yield Change(EventType.ADDED, record, record.version) if record in selection else None
    if marked:
        yield Change(EventType.BOOKMARK, None, version, initial_events_end=True)


def _as_seen(selection: Selection, change: Change, before: Record | None) -> Change | None:
    """A change as it looks through a selection; None when it does not concern it."""
    assert change.record is not None
    was_in = before is not None and before in selection
    if change.type is EventType.DELETED:
        return change if was_in else None
    if change.record in selection:
        return change if was_in or before is None else Change(EventType.ADDED, change.record, change.version)
    if was_in:
        assert before is not None
        return Change(EventType.DELETED, at_version(before, change.version), change.version)
    return None
