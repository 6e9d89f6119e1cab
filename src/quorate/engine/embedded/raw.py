"""The embedded engine's verbs on JSON: what the REST facade serves, and the typed Store is made of.

``read``, ``read_page`` and ``subscribe`` show what is committed. ``*_raw`` take objects as trees and answer when
the write is on the disk.
"""

from __future__ import annotations

import asyncio
import random as randomness
import uuid
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from quorate.api.kind import Kind
from quorate.api.meta import Resource
from quorate.engine.clock import Clock
from quorate.engine.embedded import metadata, namespaces, pages, semantics, subscriptions
from quorate.engine.embedded.admission import Admit, Attempt, everybody
from quorate.engine.embedded.committer import InlineCommitter, ThreadCommitter
from quorate.engine.embedded.database import Database
from quorate.engine.embedded.expiry import Expiry, expires
from quorate.engine.embedded.loading import load
from quorate.engine.embedded.record import (
    Change,
    Deleted,
    FieldValidation,
    Key,
    Page,
    Record,
    Tree,
    Written,
    at_version,
)
from quorate.engine.embedded.selection import Selection
from quorate.engine.embedded.semantics import KindRules
from quorate.engine.embedded.state import Collection, Entry, HistoryLimits, State
from quorate.engine.embedded.subscriptions import Subscribers, Subscription
from quorate.engine.embedded.writing import Write, WriteQueue
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import EventType
from quorate.errors import ApiError, Expired, InternalError, NotFound, StorageFailure

#: Without vowels and look-alikes, so that no word comes out; as Kubernetes has it.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
#: A generated name is at most as long as a DNS label.
_PREFIX_LIMIT = 63 - _SUFFIX_LENGTH
#: Seconds after which a commit is called stuck; the slowest disk takes less.
_STUCK = 10.0
#: Objects of a namespace that are deleted before others go on.
_DELETED_AT_ONCE = 100


class RawStore:
    """A store in this process. Open it with :meth:`open`, on the event loop that will use it."""

    def __init__(
        self,
        database: Database,
        rules: Iterable[KindRules],
        *,
        clock: Clock,
        random: randomness.Random,
        inline: bool,
        limits: HistoryLimits,
    ) -> None:
        """For :meth:`open`: reads the database."""
        self._database = database
        self._rules = {one.kind: one for one in rules}
        self._clock = clock
        self._random = random
        self._limits = limits
        self._state: State = load(database, self._rules.values())
        self._state.forget(limits, clock.now().timestamp())
        self._subscribers = Subscribers(self._rules, limits.buffer)
        self._committer = InlineCommitter(database) if inline else ThreadCommitter(database)
        self._queue = WriteQueue(self._state, self._committer, self._committed, inline=inline)
        self._namespaces = next((kind for kind in self._rules if namespaces.is_namespace(kind)), None)
        self._emptying: Counter[str] = Counter()
        self._expiry = next(
            (Expiry(self._state.collections[kind], clock) for kind in self._rules if expires(kind)), None
        )
        self._bookmarked = clock.monotonic()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        path: Path | None,
        *,
        kinds: Iterable[Kind],
        clock: Clock,
        random: randomness.Random,
        inline: bool = False,
        limits: HistoryLimits = HistoryLimits(),  # noqa: B008 - frozen
        accept_loss: bool = False,
    ) -> Self:
        """Open a file, or create it; without a path, everything is in memory and gone at the end.

        ``inline`` commits in the calling task instead of a thread: the order of events is then a function of the
        program alone. Raises StorageLocked, StorageDamaged or StorageFailure, and leaves the file as it was.
        ``accept_loss`` goes on where acknowledged changes are missing: without them, and above their versions.
        """
        database = Database(path, accept_loss=accept_loss)
        try:
            rules = [KindRules(kind) for kind in kinds]
            store = cls(database, rules, clock=clock, random=random, inline=inline, limits=limits)
        except BaseException:
            database.close()
            raise
        try:
            store._expire()
            if store._namespaces is not None:
                await store._set_up_namespaces(store._namespaces)
        except BaseException:
            await store.close()
            raise
        return store

    # Reading.

    @property
    def resource_version(self) -> int:
        """The version of everything that is committed."""
        return self._state.version

    def problems(self) -> tuple[str, ...]:
        """Why writes fail, or what was lost sight of, for whoever asks whether this store can be used."""
        found = []
        if self._queue.failure is not None:
            found.append(f"the last write failed: {self._queue.failure}")
        since = self._queue.waiting_since
        if since is not None and (waited := asyncio.get_running_loop().time() - since) > _STUCK:
            found.append(f"a write has waited for the disk for {waited:.0f} s: {self._database.name}")
        if self._database.problem:
            found.append(self._database.problem)
        return tuple(found)

    def read(self, kind: Kind, name: str, namespace: str = "") -> Record:
        """The object as it is committed; NotFound if there is none."""
        record = self._collection(kind).objects.get((namespace, name))
        if record is None:
            raise semantics.not_found(kind, name)
        return record

    def read_page(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
        limit: int = 0,
        continue_token: str = "",
    ) -> Page:
        """A list, sorted by namespace and name; with a limit, its beginning and a token for the rest.

        All pages show the version of the first one; Expired when the history no longer reaches back to it.
        """
        return pages.at_once(self._page(kind, namespace, labels, fields, limit, continue_token))

    async def read_page_in_turns(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
        limit: int = 0,
        continue_token: str = "",
    ) -> Page:
        """The same, as things are now; others go on while a long list is read."""
        return await pages.in_turns(self._page(kind, namespace, labels, fields, limit, continue_token))

    def _page(
        self, kind: Kind, namespace: str, labels: Selector, fields: Selector, limit: int, token: str
    ) -> Generator[None, None, Page]:
        return pages.read_page(
            self._collection(kind),
            Selection(kind, namespace, labels, fields),
            namespace=namespace,
            version=self._state.version,
            floor=self._state.floor,
            limit=max(limit, 0),
            token=token,
        )

    def subscribe(
        self,
        kind: Kind,
        *,
        resource_version: int | None,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
        initial_events: bool = False,
    ) -> Subscription:
        """Every change after a version, in order, until it is closed.

        Without a version (or 0) the current state comes first, as additions; with ``initial_events`` too, and a
        bookmark marks its end. Iterating raises Expired when the history does not reach back to the version, when it
        has not come to it yet, or when the reader is too slow.
        """
        collection = self._collection(kind)
        selection = Selection(kind, namespace, labels, fields)
        begin = resource_version or 0
        if initial_events or not begin:
            version = self._state.version
            subscription = self._subscribers.add(kind, selection, version)
            records = tuple(collection.in_order())
            subscription.begin(subscriptions.initial(records, selection, version, marked=initial_events))
            return subscription
        subscription = self._subscribers.add(kind, selection, self._state.version)
        if begin < self._state.floor:
            subscription.fail(Expired(f"too old resource version: {begin} ({self._state.floor})"))
        elif begin > self._state.version:
            # Of another history: the store was put back. What was written since under these versions it never saw.
            subscription.fail(Expired(f"too large resource version: {begin} ({self._state.version})"))
        else:
            subscription.begin(subscriptions.replay(collection, collection.since(begin), selection))
        return subscription

    # Writing.

    async def create_raw(
        self,
        kind: Kind,
        body: Tree,
        *,
        namespace: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation = FieldValidation.WARN,
        problems: tuple[str, ...] = (),
        admit: Admit = everybody,
    ) -> Written:
        """Store a new object. ``problems`` are complaints from parsing it, treated as unknown fields are."""
        rules = self._writable(kind)
        received = semantics.received(rules, body, validation=field_validation, problems=problems)
        meta = semantics.scoped(kind, received.tree["metadata"], namespace)
        meta = self._named(kind, meta)
        key = (meta.get("namespace", ""), meta.get("name", ""))
        if key[0] and self._namespaces is not None:
            space = self._queue.current(self._namespaces, ("", key[0]))
            namespaces.check_creation(kind, key[1], key[0], space)
        now = self._clock.now()
        try:
            record = semantics.created(
                rules,
                {**received.tree, "metadata": meta},
                version=0 if dry_run else self._queue.next_version,
                now=now,
                uid=str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            )
        except (UnicodeEncodeError, RecursionError) as error:
            raise semantics.unwritable(kind, error) from error
        if meta.get("resourceVersion", "0") != "0" and not dry_run:
            raise InternalError("resourceVersion should not be set on objects to be created")
        admit(Attempt(None, record))
        existing = self._queue.current(kind, key)
        if existing is not None:
            await self._queue.settle(kind, key)
            raise semantics.already_exists(existing)
        if not dry_run:
            await self._store(EventType.ADDED, record, None)
        return Written(record, (*received.warnings, *metadata.finalizer_warnings(meta, {})))

    async def update_raw(
        self,
        kind: Kind,
        name: str,
        change: Callable[[Tree], Any],
        *,
        namespace: str = "",
        subresource: str = "",
        resource_version: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation = FieldValidation.WARN,
        patch: bool = False,
        problems: tuple[str, ...] = (),
        admit: Admit = everybody,
    ) -> Written:
        """Replace an object by what ``change`` makes of it: a PUT's body, or the result of a patch.

        ``change`` gets the current object as a tree that it must not alter, and gives the whole new one; what it
        leaves alone it should share. ``patch`` tells a patch from a PUT where Kubernetes answers them differently.
        Removing the last finalizer of an object that is being deleted deletes it.
        """
        return await self._update(
            kind,
            (namespace, name),
            lambda tree, _: change(tree),
            subresource=subresource,
            resource_version=resource_version,
            dry_run=dry_run,
            validation=field_validation,
            patch=patch,
            problems=problems,
            admit=admit,
        )

    async def _update(
        self,
        kind: Kind,
        key: Key,
        change: Callable[[Tree, Resource], Any],
        *,
        subresource: str,
        resource_version: str | None,
        dry_run: bool,
        validation: FieldValidation,
        patch: bool,
        problems: tuple[str, ...] = (),
        changed: frozenset[str] = frozenset(),
        fields: Container[str] | None = None,
        admit: Admit = everybody,
    ) -> Written:
        """As :meth:`update_raw`. What a ``change`` surely leaves alone, outside of ``changed``, is not even parsed."""
        rules = self._writable(kind)
        if subresource and not (subresource == "status" and kind.status_subresource):
            raise _no_such_resource()
        try:
            old = self._queue.current(kind, key)
            if old is None:
                raise semantics.not_found(kind, key[1])
            if resource_version is not None and resource_version != str(old.version):
                raise semantics.stale(kind, key[1])
            parts = rules.schema.read_with(changed) if changed else None
            before = old.tree if parts is None else old.tree_of(parts, fields)
            received = semantics.received(
                rules, change(before, old.typed), before, patch=patch, validation=validation, problems=problems
            )
            record = semantics.updated(
                rules,
                old,
                before,
                received.tree,
                version=old.version if dry_run else self._queue.next_version,
                status=subresource == "status",
                patch=patch,
            )
            admit(Attempt(old, record or old, status=subresource == "status"))
        except ApiError:
            await self._queue.settle(kind, key)
            raise
        except (UnicodeEncodeError, RecursionError) as error:
            raise semantics.unwritable(kind, error, patch=patch) from error
        if record is None:
            await self._queue.settle(kind, key)
            return Written(old, received.warnings)
        warnings = received.warnings
        if not subresource:
            warnings += tuple(metadata.finalizer_warnings(received.tree["metadata"], before["metadata"]))
        if not dry_run:
            if record.typed.deleting and not self._held(record):
                await self._store(EventType.DELETED, at_version(old, record.version), old)
                # The object without its last finalizer was never stored, so no version is its own.
                record = at_version(record, old.version)
            else:
                await self._store(EventType.MODIFIED, record, old)
        return Written(record, warnings)

    async def delete_raw(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str = "",
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
        admit: Admit = everybody,
    ) -> Deleted:
        """Delete an object, or ask for it when finalizers hold it. What it owns is nobody's business here.

        There is no garbage collector: whatever propagation policy a client names, dependents stay.
        """
        self._writable(kind)
        key = (namespace, name)
        try:
            old = self._queue.current(kind, key)
            if old is None:
                raise semantics.not_found(kind, name)
            semantics.check_deletion(old, uid=uid, resource_version=resource_version)
            if namespaces.is_namespace(kind):
                namespaces.check_deletion(name)
            admit(Attempt(old, None))
        except ApiError:
            await self._queue.settle(kind, key)
            raise
        if dry_run:
            version, now = old.version, self._clock.now()
            marked = semantics.marked_deleted(self._rules[kind], old, version=version, now=now)
            return Deleted(marked or old, gone=not self._held(old))
        write = self._delete(old)
        if kind is self._namespaces:
            await self._empty(name)
        if write is None:
            await self._queue.settle(kind, key)
            return Deleted(old, gone=False)
        await write.committed()
        return Deleted(write.record, gone=write.type is EventType.DELETED)

    async def compact(self) -> None:
        """Forget, now, the history that the limits no longer cover, and erase it from the file."""
        if self._closed:
            return
        self._state.forget(self._limits, self._clock.now().timestamp())
        await self._queue.erase_dead()

    async def close(self) -> None:
        """Finish the writes that were begun, end all subscriptions, and let go of the file."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        # Of all who ask, one may lose patience; the file is let go of all the same.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._queue.drain()
        await self._committer.stop()
        self._subscribers.end()
        self._database.close()

    # Inside.

    @property
    def _closed(self) -> bool:
        return self._closing is not None

    def _collection(self, kind: Kind) -> Collection:
        try:
            return self._state.collections[kind]
        except KeyError:
            raise _no_such_resource() from None

    def _writable(self, kind: Kind) -> KindRules:
        if self._closed:
            raise StorageFailure(f"{self._database.name} is closed")
        if kind not in self._rules:
            raise _no_such_resource()
        return self._rules[kind]

    def _named(self, kind: Kind, meta: Tree) -> Tree:
        """Metadata with a name, generated if it has only the beginning of one."""
        prefix = meta.get("generateName", "")
        if meta.get("name") or not prefix:
            return meta
        while True:
            suffix = "".join(self._random.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))
            name = prefix[:_PREFIX_LIMIT] + suffix
            if self._queue.current(kind, (meta.get("namespace", ""), name)) is None:
                return {**meta, "name": name}

    async def _store(self, event: EventType, record: Record, before: Record | None) -> None:
        await self._add(event, record, before).committed()

    def _add(self, event: EventType, record: Record, before: Record | None) -> Write:
        write = self._queue.add(event, record, before, self._clock.now().timestamp())
        if event is EventType.DELETED and record.namespace:
            self._release_namespace(record.namespace)
        return write

    def _delete(self, old: Record) -> Write | None:
        """Remove an object, or mark it when something holds it; None when it is marked already."""
        version = self._queue.next_version
        if not self._held(old):
            return self._add(EventType.DELETED, at_version(old, version), old)
        marked = semantics.marked_deleted(self._rules[old.kind], old, version=version, now=self._clock.now())
        return None if marked is None else self._add(EventType.MODIFIED, marked, old)

    def _held(self, record: Record) -> bool:
        """Whether an object outlives its deletion: finalizers hold it, or a namespace what is in it."""
        return semantics.held(record) or (
            record.kind is self._namespaces and next(self._content(record.name), None) is not None
        )

    def _content(self, namespace: str) -> Iterator[Record]:
        for kind in self._rules:
            if kind.namespaced:
                yield from self._queue.current_in(kind, namespace)

    async def _set_up_namespaces(self, kind: Kind) -> None:
        """Finish the deletions that the end of the last process cut short, and create what must be there."""
        for space in tuple(self._state.collections[kind].in_order()):
            if space.typed.deleting:
                await self._empty(space.name)
        for name in namespaces.FIRST:
            if self._queue.current(kind, ("", name)) is None:
                await self.create_raw(kind, namespaces.new(kind, name))

    async def _empty(self, namespace: str) -> None:
        """Delete everything in a namespace, which takes nothing new meanwhile."""
        self._emptying[namespace] += 1
        try:
            for number, record in enumerate(tuple(self._content(namespace)), 1):
                current = self._queue.current(record.kind, (record.namespace, record.name))
                if current is not None:
                    self._delete(current)
                if number % _DELETED_AT_ONCE == 0:
                    await asyncio.sleep(0)
        finally:
            self._emptying[namespace] -= 1
        self._release_namespace(namespace)

    def _release_namespace(self, name: str) -> None:
        """A namespace whose deletion waits for its content goes with the last of it."""
        # Not after each of many: every time, the rest would be looked for.
        if self._namespaces is not None and not self._emptying[name]:
            space = self._queue.current(self._namespaces, ("", name))
            if space is not None and space.typed.deleting and not self._held(space):
                self._delete(space)

    def _expire(self) -> None:
        """Delete what has expired, whatever holds it; not what is about to change."""
        for old in () if self._expiry is None or self._closed else self._expiry.sweep():
            if self._queue.current(old.kind, (old.namespace, old.name)) is old:
                self._add(EventType.DELETED, at_version(old, self._queue.next_version), old)

    def _committed(self, writes: Sequence[Write]) -> None:
        """Make committed writes visible."""
        if writes:
            # Before anybody hears of them: those who wait wake only after this.
            self._database.acknowledge(writes[-1].record.version)
        published: dict[Kind, list[subscriptions.Published]] = {}
        for write in writes:
            record, kind = write.record, write.record.kind
            replaced = write.before.version if write.before is not None else 0
            gone = write.type is EventType.DELETED
            self._state.collections[kind].put(write.key, None if gone else record, write.at)
            self._state.remember(kind, Entry(record.version, write.type.value, write.key, replaced, write.at))
            change = Change(write.type, record, record.version)
            published.setdefault(kind, []).append((change, write.before))
        for kind, changes in published.items():
            self._subscribers.publish(kind, changes)
        self._state.forget(self._limits, self._clock.now().timestamp())
        if self._clock.monotonic() - self._bookmarked >= self._limits.bookmarks:
            self._bookmarked = self._clock.monotonic()
            self._subscribers.bookmark(self._state.version)
        if self._expiry is not None and self._expiry.due():
            # Not here: inline, a write is committed at once, and this commit is not finished.
            asyncio.get_running_loop().call_soon(self._expire)


def _no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource")
