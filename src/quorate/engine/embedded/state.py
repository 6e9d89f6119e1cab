"""The committed state, and as much of its past as watchers may ask for.

Every current object is in memory, decoded. Of the past only an index is: which object changed at which version,
and which version that replaced. The bytes of a past state are read from the log when somebody resumes a watch or
pages through an old list, which is rare; in memory they would cost more than all that is current.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from quorate.api.kind import Kind
from quorate.engine.embedded.record import Key, Record, decode
from quorate.engine.store import EventType
from quorate.errors import Expired

#: The stored bytes of a version, None when they are no longer kept.
ReadRaw = Callable[[int], bytes | None]


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much of the past is kept, and how far a watcher may fall behind."""

    #: At most this many changes.
    events: int = 20_000
    #: None older than this, in seconds.
    age: float = 600.0
    #: A subscriber that leaves this many events unread is cut off.
    buffer: int = 10_000
    #: Seconds between bookmarks to subscribers that have seen nothing new.
    bookmarks: float = 60.0


class Entry(NamedTuple):
    """One change in the past."""

    version: int
    #: The value of an EventType: with a plain text in it, an entry costs the garbage collector nothing.
    type: str
    key: Key
    #: The version that it replaced; 0 for a new object.
    replaced: int
    #: When, in seconds of the epoch.
    at: float


class Collection:
    """The objects of one kind."""

    __slots__ = ("_keys", "_read_raw", "changed", "entries", "kind", "objects")

    def __init__(self, kind: Kind, read_raw: ReadRaw) -> None:
        self.kind = kind
        self.objects: dict[Key, Record] = {}
        #: When each object last changed, in seconds of the epoch, in the order of those changes.
        self.changed: dict[Key, float] = {}
        self.entries: deque[Entry] = deque()
        self._keys: list[Key] | None = None
        self._read_raw = read_raw

    def put(self, key: Key, record: Record | None, at: float) -> None:
        """Make this the object's state since ``at``; None when it is gone."""
        self.changed.pop(key, None)
        if record is None:
            del self.objects[key]
            self._keys = None
        else:
            if key not in self.objects:
                self._keys = None
            self.objects[key] = record
            self.changed[key] = at

    def keys(self) -> Sequence[Key]:
        """All keys, in order. Sorted anew only after one came or went."""
        if self._keys is None:
            self._keys = sorted(self.objects)
        return self._keys

    def in_order(self) -> Iterator[Record]:
        """All objects, in the order of their keys."""
        return map(self.objects.__getitem__, self.keys())

    def since(self, version: int) -> list[Entry]:
        """The changes after a version, oldest first. Costs what it returns, not what is kept."""
        found = []
        for entry in reversed(self.entries):
            if entry.version <= version:
                break
            found.append(entry)
        found.reverse()
        return found

    def as_of(self, version: int) -> tuple[Sequence[Key], Callable[[Key], Record]]:
        """The keys at a version, and how to get their records: as they were, also when others write meanwhile."""
        changed = {entry.key: entry.replaced for entry in reversed(self.since(version))}
        objects = self.objects.copy()
        if not changed:
            return self.keys(), objects.__getitem__
        present = {key for key, replaced in changed.items() if replaced}
        keys = sorted((objects.keys() - changed.keys()) | present)

        def record(key: Key) -> Record:
            return objects[key] if key not in changed else self.past(key, changed[key])

        return keys, record

    def past(self, key: Key, version: int) -> Record:
        """An object as it was at a version when it changed; Expired when that is forgotten."""
        current = self.objects.get(key)
        if current is not None and current.version == version:
            return current
        raw = self._read_raw(version)
        if raw is None:
            raise Expired(f"too old resource version: {version}")
        try:
            return decode(self.kind, *key, version, raw)
        except msgspec.DecodeError as error:
            # Written by another version of Quorate. Only what is current has to fit this one (see ``loading``).
            raise Expired(f"too old resource version: {version}") from error


class State:
    """All collections, the version they are at, and how far back their history goes."""

    def __init__(self, kinds: Iterable[Kind], read_raw: ReadRaw) -> None:
        self.collections = {kind: Collection(kind, read_raw) for kind in kinds}
        #: The last version that was given to a change.
        self.version = 0
        #: Everything after this version can be replayed.
        self.floor = 0
        # Which collection has the next oldest entry.
        self._timeline: deque[Collection] = deque()
        # Versions whose bytes nobody can ask for any more, each with the version from which that is so.
        self._dead: deque[tuple[int, int]] = deque()

    def remember(self, kind: Kind, entry: Entry) -> None:
        """Add a change to the history."""
        collection = self.collections[kind]
        collection.entries.append(entry)
        self._timeline.append(collection)
        self.version = entry.version

    def forget(self, limits: HistoryLimits, now: float) -> None:
        """Move the floor past what the limits no longer cover."""
        timeline, dead = self._timeline, self._dead
        while timeline:
            entries = timeline[0].entries
            oldest = entries[0]
            if len(timeline) <= limits.events and now - oldest.at <= limits.age:
                break
            timeline.popleft()
            entries.popleft()
            self.floor = oldest.version
            if oldest.replaced:
                dead.append((oldest.replaced, oldest.version))
            if oldest.type == EventType.DELETED:
                dead.append((oldest.version, oldest.version))

    def bury(self, version: int) -> None:
        """A version that is dead already, as found in the log."""
        self._dead.append((version, self.floor))

    @property
    def dead(self) -> int:
        """How many versions could be erased from the log."""
        return len(self._dead)

    def take_dead(self, limit: int) -> tuple[list[int], int]:
        """Up to ``limit`` versions to erase from the log, and the floor that the log then has."""
        taken = [self._dead.popleft() for _ in range(min(limit, len(self._dead)))]
        return [version for version, _ in taken], max((floor for _, floor in taken), default=0)
