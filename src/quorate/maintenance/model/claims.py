"""Which permission, notification or stored request locks which items.

What they name may appear, move or go away later: a host gets another node, a drive another path. So a claim remembers
the names that it depends on, and is looked up again when one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model.items import Item
from quorate.maintenance.model.locks import Announced, Held, Lock, Queued, Rank
from quorate.maintenance.moments import FOREVER, later
from quorate.maintenance.nouns import parse_device

Entry = PermissionEntry | NotificationEntry | RequestEntry
#: How many retry times of silence are borne.
SILENT_RETRIES: Final = 3

Find = Callable[[Action], Iterable[Item]]


@dataclass(slots=True)
class Claim:
    """An entry and the locks that it has."""

    entry: Entry
    #: Every lock once, as a set that keeps its order.
    locks: dict[tuple[Item, Lock], None] = field(default_factory=dict)
    names: frozenset[Hashable] = frozenset()


class Claims:
    """All claims, by the entry's id and by the names that they depend on."""

    def __init__(self) -> None:
        self._by_id: dict[str, Claim] = {}
        self._by_name: dict[Hashable, dict[str, None]] = {}

    def get(self, identity: str) -> Claim | None:
        """A claim."""
        return self._by_id.get(identity)

    def put(self, entry: Entry, find: Find) -> set[Item]:
        """Lock what an entry names, and only that; the items whose locks changed."""
        claim = self._by_id.get(entry.id)
        if claim is None:
            claim = self._by_id[entry.id] = Claim(entry)
        claim.entry = entry
        self._name(claim, frozenset(name for action in _actions(entry) for name in _names(action)))
        return self._settle(claim, dict.fromkeys(_locks(entry, find)))

    def remove(self, identity: str) -> set[Item]:
        """Unlock what an entry named."""
        claim = self._by_id.pop(identity, None)
        if claim is None:
            return set()
        self._name(claim, frozenset())
        return self._settle(claim, {})

    def renew(self, names: Iterable[Hashable], find: Find) -> set[Item]:
        """Look up again what depends on these names."""
        changed: set[Item] = set()
        for identity in {found for name in names for found in self._by_name.get(name, ())}:
            claim = self._by_id[identity]
            changed |= self._settle(claim, dict.fromkeys(_locks(claim.entry, find)))
        return changed

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def _settle(self, claim: Claim, locks: dict[tuple[Item, Lock], None]) -> set[Item]:
        changed: set[Item] = set()
        for item, lock in [held for held in claim.locks if held not in locks]:
            item.remove_lock(lock)
            changed.add(item)
        for item, lock in [held for held in locks if held not in claim.locks]:
            item.add_lock(lock)
            changed.add(item)
        claim.locks = locks
        return changed

    def _name(self, claim: Claim, names: frozenset[Hashable]) -> None:
        for name in claim.names - names:
            claims = self._by_name[name]
            del claims[claim.entry.id]
            if not claims:
                del self._by_name[name]
        for name in names - claim.names:
            self._by_name.setdefault(name, {})[claim.entry.id] = None
        claim.names = names


def rank(entry: RequestEntry) -> Rank:
    """A request's place: Priority first, then first come, first served."""
    return Rank(entry.priority, entry.order)


def silent_from(entry: RequestEntry, retry: int) -> int:
    """From then on a stored request blocks nobody, unless it is renewed; ``retry`` is DefaultRetryTime."""
    if entry.object_uid:
        return FOREVER
    return later(max(entry.renewed_at, entry.last_deadline), SILENT_RETRIES * retry)


def _actions(entry: Entry) -> tuple[Action, ...]:
    return (entry.action,) if isinstance(entry, PermissionEntry) else entry.actions


def _locks(entry: Entry, find: Find) -> Iterable[tuple[Item, Lock]]:
    if isinstance(entry, PermissionEntry) and entry.lapsed:
        return
    for action in _actions(entry):
        lock = _lock(entry, action)
        for item in find(action):
            yield item, lock


def _lock(entry: Entry, action: Action) -> Lock:
    duration = action.duration or 0
    if isinstance(entry, PermissionEntry):
        return Held(entry.id, entry.owner, entry.deadline, duration)
    if isinstance(entry, NotificationEntry):
        return Announced(entry.id, entry.owner, entry.time, later(entry.time, duration))
    return Queued(entry.id, entry.owner, rank(entry))


def _names(action: Action) -> Iterable[Hashable]:
    """What an action's items depend on; devices by their ids, which no host or tenant is mistaken for."""
    if action.host:
        yield "host", action.host
    if action.tenant:
        yield "tenant", action.tenant
    yield from (identity for name in action.devices if (identity := parse_device(name)) is not None)
