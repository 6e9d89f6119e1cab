"""The one table in which the broker and the volumes reserve before either writes, so that neither passes the other.

A permission *holds* nodes, drives and replicas: they may go down. A step that changes a volume's votes, the copies it
needs or its size *claims* those of its members: they must stay. What is held is not claimed, what is claimed not held.

Both sides look and reserve in one breath, without an await, and only then send their write. So whoever comes second
sees the first, although the first one's write may still be under way and no cache shows it:

    broker    look at the model → hold → write the ledger → (failed for sure: let go)
    volumes   look at the table → claim → write the step → the outcome is known: give back; the step is in the caches

Nothing here is stored. After a restart the holds are those of the ledger, and a step that was begun is in its volume's
status: both are read before anybody decides. Things are named as their objects are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from quorate.api.meta import VolumeName
from quorate.errors import Conflict


class Sort(StrEnum):
    """What can be locked, by the name of its kind."""

    NODE = "Node"
    DRIVE = "Drive"
    REPLICA = "ReplicatedVolumeReplica"


class Thing(NamedTuple):
    """One object that may go down, or must not."""

    sort: Sort
    name: str

    def __str__(self) -> str:
        return f"{self.sort.lower()} {self.name}" if self.sort is not Sort.REPLICA else f"replica {self.name}"


@dataclass(frozen=True, slots=True)
class Hold:
    """A permission, given or just about to be."""

    permission_id: str
    owner: str
    #: None: it never ends by itself.
    until: datetime | None

    def __str__(self) -> str:
        lasts = f"until {self.until:%Y-%m-%d %H:%M:%S} UTC" if self.until is not None else "for good"
        return f"permission {self.permission_id} of {self.owner}, {lasts}"


@dataclass(frozen=True, slots=True)
class Change:
    """A step that a volume is about to begin."""

    volume: VolumeName
    #: For a person, such as ``Hide of pvc-1-2``.
    what: str


#: Told of each thing that is held, or let go of; and of each volume whose claim begins or ends.
HoldListener = Callable[[Thing], None]
ClaimListener = Callable[[VolumeName], None]


@dataclass(slots=True)
class _Places:
    """Who has which things."""

    by_owner: dict[str, frozenset[Thing]] = field(default_factory=dict)
    #: In the order in which they came.
    by_thing: dict[Thing, dict[str, None]] = field(default_factory=dict)

    def put(self, owner: str, things: frozenset[Thing]) -> None:
        self.by_owner[owner] = things
        for thing in things:
            self.by_thing.setdefault(thing, {})[owner] = None

    def drop(self, owner: str) -> frozenset[Thing]:
        things = self.by_owner.pop(owner, frozenset())
        for thing in things:
            owners = self.by_thing[thing]
            del owners[owner]
            if not owners:
                del self.by_thing[thing]
        return things

    def of(self, things: Iterable[Thing]) -> Iterable[tuple[Thing, str]]:
        return ((thing, owner) for thing in things for owner in self.by_thing.get(thing, ()))


class LockTable:
    """Of one process, for as long as it leads. Synchronous: nobody can come in between."""

    def __init__(self) -> None:
        self._held = _Places()
        self._claimed = _Places()
        self._holds: dict[str, Hold] = {}
        self._changes: dict[str, Change] = {}
        self._on_hold: list[HoldListener] = []
        self._on_claim: list[ClaimListener] = []

    # What is so

    def holds_on(self, things: Iterable[Thing]) -> tuple[tuple[Thing, Hold], ...]:
        """Every permission that holds one of these, and which."""
        if not self._holds:
            return ()
        return tuple((thing, self._holds[owner]) for thing, owner in self._held.of(things))

    def change_of(self, volume: VolumeName) -> Change | None:
        """The step that a volume is just beginning."""
        return self._changes.get(volume)

    # The broker's side

    def hold(self, hold: Hold, things: Collection[Thing]) -> None:
        """Reserve for a permission that is about to be given. Conflict: a volume's step has claimed one of them.

        One that holds something already is only changed: with another deadline, say. It was asked when it began.
        """
        if hold.permission_id in self._holds:
            self._put(hold, frozenset(things))
            return
        for thing, volume in self._claimed.of(things):
            change = self._changes[volume]
            raise Conflict(f"{thing} cannot go down: {change.what} of volume {change.volume} is just beginning")
        self._put(hold, frozenset(things))

    def let_go(self, permission_id: str) -> None:
        """The permission is over, or was not given after all."""
        if self._holds.pop(permission_id, None) is not None:
            self._tell(self._held.drop(permission_id))

    def set_holds(self, given: Mapping[str, tuple[Hold, frozenset[Thing]]]) -> None:
        """What the ledger says is in force, whatever was here before. It is so, and nobody is asked."""
        for permission_id in self._holds.keys() - given.keys():
            self.let_go(permission_id)
        for permission_id, (hold, things) in given.items():
            if self._holds.get(permission_id) != hold or self._held.by_owner[permission_id] != things:
                self._put(hold, things)

    # The volumes' side

    def claim(self, change: Change, things: Collection[Thing], *, known: Collection[str] = ()) -> Callable[[], None]:
        """Reserve for a step that is about to be written; the returned function gives it back.

        Conflict: a permission holds one of them which the decision does not know (``known``: ids of those that it does,
        and goes ahead all the same).
        """
        for thing, hold in self.holds_on(things):
            if hold.permission_id not in known:
                raise Conflict(f"{change.what} of volume {change.volume} must wait: {thing} is held by {hold}")
        self._give_back(change.volume)
        self._claimed.put(change.volume, frozenset(things))
        self._changes[change.volume] = change
        self._told_of(change.volume)
        return lambda: self._give_back_if(change)

    def forget_claims(self) -> None:
        """A new term begins: what was under way in the last one is in the caches, or never will be."""
        for volume in tuple(self._changes.values()):
            self._give_back(volume.volume)

    # Who wants to know

    def on_hold(self, listener: HoldListener) -> None:
        """Call it whenever a thing is held or let go of. It must not fail."""
        self._on_hold.append(listener)

    def on_claim(self, listener: ClaimListener) -> None:
        """Call it whenever a volume's claim begins or ends. It must not fail."""
        self._on_claim.append(listener)

    def _put(self, hold: Hold, things: frozenset[Thing]) -> None:
        before = self._held.drop(hold.permission_id)
        self._holds[hold.permission_id] = hold
        self._held.put(hold.permission_id, things)
        self._tell(before | things)

    def _give_back_if(self, change: Change) -> None:
        if self._changes.get(change.volume) is change:
            self._give_back(change.volume)

    def _give_back(self, volume: VolumeName) -> None:
        if self._changes.pop(volume, None) is not None:
            self._claimed.drop(volume)
            self._told_of(volume)

    def _tell(self, things: Iterable[Thing]) -> None:
        for thing in sorted(things):
            for listener in self._on_hold:
                listener(thing)

    def _told_of(self, volume: VolumeName) -> None:
        for listener in self._on_claim:
            listener(volume)
