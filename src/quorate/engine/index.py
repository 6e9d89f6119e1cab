"""Objects in order, and by what they say: the two ways a cache is read besides by name.

Both are kept up to date on every change instead of being computed on reading: a read costs what it returns, not what
the cluster holds. Whatever is returned is sorted by namespace and name, so that a decision cannot depend on the order
of arrival.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from quorate.api.meta import Resource
from quorate.engine.keys import Key
from quorate.engine.logs import get_logger

log = get_logger(__name__)

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True)
class Index(Generic[R]):
    """A named way to find objects: ``values`` gives everything under which one can be found, possibly nothing."""

    cls: type[R]
    name: str
    values: Callable[[R], Iterable[str]]


class SortedTable(Generic[R]):
    """Objects by key, read in order."""

    __slots__ = ("_listed", "_objects", "_order", "get")

    #: The object with this key (an equal pair will do), if it is here: the dict's own method, for speed.
    get: Callable[[tuple[str, str]], R | None]

    def __init__(self) -> None:
        self._objects: dict[Key, R] = {}
        self.get = cast("Callable[[tuple[str, str]], R | None]", self._objects.get)
        self._order: list[Key] = []
        #: The last answer of values(), until something changes: most reads find it.
        self._listed: tuple[R, ...] | None = ()

    def values(self) -> tuple[R, ...]:
        """All objects, in order."""
        if self._listed is None:
            self._listed = tuple([self._objects[key] for key in self._order])
        return self._listed

    def values_in(self, namespace: str) -> tuple[R, ...]:
        """Objects of one namespace, in order."""
        start = bisect_left(self._order, (namespace, ""))
        end = bisect_left(self._order, (namespace + "\0", ""), lo=start)
        return tuple([self._objects[key] for key in self._order[start:end]])

    def put(self, key: Key, obj: R) -> None:
        """Add or replace."""
        if key not in self._objects:
            insort(self._order, key)
        self._objects[key] = obj
        self._listed = None

    def remove(self, key: Key) -> None:
        """Take out; the key must be here."""
        del self._objects[key]
        del self._order[bisect_left(self._order, key)]
        self._listed = None

    def in_order(self) -> tuple[Key, ...]:
        """All keys, in order."""
        return tuple(self._order)

    def __len__(self) -> int:
        return len(self._objects)


class IndexTable(Generic[R]):
    """One index over the objects of a cache.

    An object at which the index function fails is found under nothing. One such object must not end the process, which
    would meet it again at its next start.
    """

    __slots__ = ("_buckets", "_panicked", "_unindexed", "index")

    def __init__(self, index: Index[R], panicked: Callable[[], None]) -> None:
        self.index = index
        self._panicked = panicked
        self._buckets: dict[str, SortedTable[R]] = {}
        #: Keys of the objects at which the function failed.
        self._unindexed: set[Key] = set()

    def find(self, value: str) -> tuple[R, ...]:
        """The objects that can be found under this value, in order."""
        bucket = self._buckets.get(value)
        return bucket.values() if bucket is not None else ()

    def update(self, key: Key, old: R | None, new: R | None) -> None:
        """Follow one change."""
        # dict.fromkeys: distinct, and unlike a set in an order that no hash seed changes.
        before: dict[str, Any] = {}
        if old is not None and key not in self._unindexed:
            before = dict.fromkeys(self.index.values(old))
        after: dict[str, Any] = {}
        self._unindexed.discard(key)
        if new is not None:
            try:
                after = dict.fromkeys(self.index.values(new))
            except Exception:
                log.exception("exception in an index", kind=new.KIND.name, name=str(key), index=self.index.name)
                self._panicked()
                self._unindexed.add(key)
        for value in before:
            if value not in after:
                self._remove(value, key)
        if new is not None:
            for value in after:
                bucket = self._buckets.get(value)
                if bucket is None:
                    bucket = self._buckets[value] = SortedTable()
                bucket.put(key, new)

    def _remove(self, value: str, key: Key) -> None:
        bucket = self._buckets[value]
        bucket.remove(key)
        if not len(bucket):
            del self._buckets[value]
