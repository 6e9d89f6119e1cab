"""What we know of one kind: the server's objects as the watch tells of them, and our own writes at once.

Three sources say what an object is: lists, watch events, and the answers to our own writes. They arrive in any order,
so each is weighed by its resourceVersion (a number that only grows across all objects of a kind):

- ``version`` is how far the lists and the watch have come. An event, or the answer to a write, that is not newer says
  nothing new: an object of it that we do not have has been deleted since.
- An answer that is newer goes in at once, and neither a late event nor an older list undoes it.
- A deletion of ours has no version of its own. So the grave is marked, with the uid and the last version that we knew,
  until the watch or a list has passed it; nothing with that uid, and nothing older, gets in before.
- An answer that is outside the selection takes the object out, and leaves a mark that keeps only older states out.

So the cache never shows an older state after a newer one, and never shows what we know is gone. Everything here is
synchronous and without I/O; ``engine.reflector`` feeds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from quorate.api.meta import Resource
from quorate.engine.index import Index, IndexTable, SortedTable
from quorate.engine.keys import Key, key_of
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import EventType, ObjectList, WatchEvent

R = TypeVar("R", bound=Resource)

#: Called after each change with the object's key, and the object before and after it; None is "not there".
Handler = Callable[[Key, R | None, R | None], None]
#: Called soon after changes, with the keys of all that has changed meanwhile.
Follower = Callable[[Collection[Key]], None]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind to keep; all, unless told otherwise."""

    namespace: str = ""
    labels: Selector = EVERYTHING

    def includes(self, obj: Resource) -> bool:
        """Whether this object is one of them."""
        metadata = obj.metadata
        return self.namespace in ("", metadata.namespace) and self.labels.matches(metadata.labels)


@dataclass(frozen=True, slots=True)
class _Grave:
    """An object that we deleted, or took out of the selection, as we last knew it."""

    #: Empty if it still exists, and may come back.
    uid: str
    version: int

    def admits(self, obj: Resource) -> bool:
        """Whether an object of this name is a later one."""
        return obj.metadata.uid != self.uid and _version_of(obj) > self.version

    def passed_by(self, version: int, listed: Resource | None) -> bool:
        """Whether a list was made after the deletion: it would know the object, if it were still there."""
        return version > self.version and (listed is None or listed.metadata.uid != self.uid)

    def ended_by(self, obj: Resource, version: int) -> bool:
        """Whether this is the event that tells of it."""
        return obj.metadata.uid == self.uid if self.uid else version >= self.version


class Cache(Generic[R]):
    """The objects of one kind. Readers get frozen objects, so nothing is ever copied."""

    def __init__(
        self,
        cls: type[R],
        *,
        selection: Selection | None = None,
        indexes: Iterable[Index[R]] = (),
        panicked: Callable[[], None] = lambda: None,
    ) -> None:
        """Empty; ``panicked`` counts exceptions in index functions."""
        self.cls = cls
        self.selection = selection or Selection()
        #: Set once the first list is in.
        self.synced = asyncio.Event()
        #: Objects that exist but do not fit our type. What we last knew of them stays.
        self.undecodable: tuple[Key, ...] = ()
        self._version = -1
        self._objects: SortedTable[R] = SortedTable()
        #: The object with this key (an equal pair will do), if there is one.
        self.get = self._objects.get
        self._indexes = {index.name: IndexTable(index, panicked) for index in indexes}
        self._graves: dict[Key, _Grave] = {}
        self._handlers: list[Handler[R]] = []
        self._followers: list[Follower] = []
        #: What the followers are still to be told of, in the order of the changes.
        self._news: dict[Key, None] = {}

    # Reading

    def list(self, namespace: str = "") -> tuple[R, ...]:
        """All objects, or those of one namespace, sorted by namespace and name."""
        return self._objects.values_in(namespace) if namespace else self._objects.values()

    def find(self, index: str, value: str) -> tuple[R, ...]:
        """The objects that an index has under this value, sorted by namespace and name."""
        try:
            return self._indexes[index].find(value)
        except KeyError:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise LookupError(f"{self.cls.__name__} has no index {index!r}; it has: {known}") from None

    @property
    def version(self) -> str:
        """How far lists and watch have come: where a watch goes on. Only after the first list."""
        return str(self._version)

    def subscribe(self, handler: Handler[R]) -> Callable[[], None]:
        """Call ``handler`` on every change from now on; the returned function ends that."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Tell ``follower`` which keys have changed, from now on; the returned function ends that.

        Changes come in bursts, as writers share a commit. Who only has to look again is told once of all that came in
        one turn of the event loop: telling 25 queues of each change by itself was a quarter of what a write cost.
        """
        self._followers.append(follower)
        return lambda: self._followers.remove(follower)

    def __len__(self) -> int:
        return len(self._objects)

    # What the server says

    def replace(self, listing: ObjectList[R]) -> None:
        """Take in a list. One that the watch has overtaken while it was under way is already known: nothing to do."""
        version = int(listing.resource_version)
        if version < self._version:
            return
        self._version = version
        listed = {key_of(item): item for item in listing.items}
        self.undecodable = tuple(Key(*names) for names in listing.undecodable)
        for key, item in listed.items():
            if self._admits(key, item):
                self._put_if_newer(key, item)
        keep = {*listed, *self.undecodable}
        for key in self._objects.in_order():
            known = self._objects.get(key)
            if key not in keep and known is not None and _version_of(known) <= version:
                self._change(key, known, None)
        self._graves = {
            key: grave for key, grave in self._graves.items() if not grave.passed_by(version, listed.get(key))
        }
        self.synced.set()

    def start_over(self, listing: ObjectList[R]) -> None:
        """Take a list as it is: the server's history was set back, as by restoring a backup.

        Versions of the old history say nothing about the new one, so nothing of it may stay to be compared.
        """
        for key in self._objects.in_order():
            self._change(key, self._objects.get(key), None)
        self._graves.clear()
        self._version = -1
        self.replace(listing)

    def observe(self, event: WatchEvent[R]) -> None:
        """Take in one watch event, or a bookmark."""
        version = int(event.resource_version)
        if version <= self._version:
            return
        self._version = version
        if event.undecodable is not None and Key(*event.undecodable) not in self.undecodable:
            self.undecodable = (*self.undecodable, Key(*event.undecodable))
        obj = event.object
        if obj is None:
            return
        key = key_of(obj)
        if key in self.undecodable:
            self.undecodable = tuple(other for other in self.undecodable if other != key)
        if event.type is EventType.DELETED:
            grave = self._graves.get(key)
            if grave is not None and grave.ended_by(obj, version):
                del self._graves[key]
            known = self._objects.get(key)
            if known is not None and _version_of(known) <= version:
                self._change(key, known, None)
        elif self._admits(key, obj):
            self._put_if_newer(key, obj)

    # What we did ourselves

    def wrote(self, obj: R) -> None:
        """Take in the answer to a write of ours, or to a read past the cache."""
        key = key_of(obj)
        if _version_of(obj) <= self._version or not self._admits(key, obj):
            return
        if self.selection.includes(obj):
            self._put_if_newer(key, obj)
            return
        known = self._objects.get(key)
        if known is not None and _version_of(known) < _version_of(obj):
            self._graves[key] = _Grave("", _version_of(obj))
            self._change(key, known, None)

    def deleted(self, key: Key, uid: str) -> None:
        """Take in that the object with this uid is gone for good."""
        known = self._objects.get(key)
        if known is not None and known.metadata.uid == uid:
            self._graves[key] = _Grave(uid, _version_of(known))
            self._change(key, known, None)

    # Changing

    def _admits(self, key: Key, obj: R) -> bool:
        grave = self._graves.get(key)
        return grave is None or grave.admits(obj)

    def _put_if_newer(self, key: Key, obj: R) -> None:
        known = self._objects.get(key)
        if known is None or _version_of(known) < _version_of(obj):
            self._change(key, known, obj)

    def _change(self, key: Key, old: R | None, new: R | None) -> None:
        if new is None:
            self._objects.remove(key)
        else:
            self._objects.put(key, new)
        for index in self._indexes.values():
            index.update(key, old, new)
        for handler in tuple(self._handlers):
            handler(key, old, new)
        if self._followers:
            if not self._news:
                asyncio.get_running_loop().call_soon(self._tell)
            self._news[key] = None

    def _tell(self) -> None:
        news, self._news = self._news, {}
        for follower in tuple(self._followers):
            follower(news)


def _version_of(obj: Resource) -> int:
    return int(obj.metadata.resource_version)
