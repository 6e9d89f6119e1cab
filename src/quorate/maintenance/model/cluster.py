"""The cluster, as the broker decides on it: what there is, and who has what.

Locks cost what they touch, as events do. Time enters through ``advance`` only, and may be moved back as well as forth:
a permission's deadline decides where its nodes stand.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model.claims import Claims, Entry, rank, silent_from
from quorate.maintenance.model.inventory import Inventory
from quorate.maintenance.model.items import Item, NodeItem
from quorate.maintenance.model.locks import Rank
from quorate.maintenance.model.lookup import claimed


class ClusterModel(Inventory):
    """Nodes, drives, replicas, groups and rings, with everybody's locks on them."""

    def __init__(self, settings: BrokerConfigSpec) -> None:
        super().__init__()
        self.settings = settings
        self._claims = Claims()
        self._now = 0
        #: Of permissions, by when they end; and places in the queue, the first one first.
        self._deadlines: list[tuple[int, str]] = []
        self._queue: list[tuple[Rank, str]] = []
        self._ranks: dict[str, Rank] = {}

    def configure(self, settings: BrokerConfigSpec) -> None:
        """Other limits and durations."""
        self.settings = settings
        self.version += 1

    def hold(self, permission: PermissionEntry) -> None:
        """A permission was granted, or changed."""
        self._untime(permission.id)
        insort(self._deadlines, (permission.deadline, permission.id))
        self._claim(permission)

    def release(self, permission_id: str) -> None:
        """A permission is over."""
        self._untime(permission_id)
        self._unclaim(permission_id)

    def announce(self, notification: NotificationEntry) -> None:
        """Work was announced."""
        self._claim(notification)

    def withdraw(self, notification_id: str) -> None:
        """And withdrawn, or is over."""
        self._unclaim(notification_id)

    def queue(self, request: RequestEntry, *, blocking: bool) -> None:
        """A request is stored, or changed. One that nobody asks about any more keeps its place, but blocks nobody."""
        self._unrank(request.id)
        if not blocking:
            self._unclaim(request.id)
            return
        self._ranks[request.id] = rank(request)
        insort(self._queue, (rank(request), request.id))
        self._claim(request)

    def renew(self, request: RequestEntry) -> None:
        """A stored request was only asked about: it will block for longer, if it does."""
        if (claim := self._claims.get(request.id)) is not None:
            claim.entry = request

    def dequeue(self, request_id: str) -> None:
        """A request is not stored any more."""
        self._unrank(request_id)
        self._unclaim(request_id)

    def advance(self, now: int) -> None:
        """It is now then."""
        if now == self._now:
            return
        low, high = min(now, self._now), max(now, self._now)
        self._now = now
        first, last = (bisect_right(self._deadlines, moment, key=_deadline) for moment in (low, high))
        for _, permission_id in self._deadlines[first:last]:
            if (claim := self._claims.get(permission_id)) is not None:
                self._stand(item for item, _ in claim.locks)

    @contextmanager
    def without(self, permission_id: str) -> Iterator[None]:
        """As if a permission were not there, for a moment."""
        claim, version = self._claims.get(permission_id), self.version
        if claim is None or not isinstance(claim.entry, PermissionEntry):
            yield
            return
        self.release(permission_id)
        try:
            yield
        finally:
            self.hold(claim.entry)
            self.version = version

    def queue_before(self, place: Rank) -> bool:
        """Somebody is in the queue who goes first."""
        return bool(self._queue) and self._queue[0][0] < place

    def rank_of(self, request_id: str) -> Rank:
        """A blocking request's place in the queue."""
        return self._ranks[request_id]

    def blocks_until(self, request_id: str) -> int:
        """When a blocking request falls silent, if nobody asks about it."""
        claim = self._claims.get(request_id)
        assert claim is not None
        assert isinstance(claim.entry, RequestEntry)
        return silent_from(claim.entry, self.settings.default_retry_time.microseconds)

    def blocks(self, request_id: str) -> bool:
        """A stored request has a place in the queue, and others wait for it."""
        return request_id in self._ranks

    # Keeping it together.

    def _claim(self, entry: Entry) -> None:
        self._stand(self._claims.put(entry, self._find))
        self.version += 1

    def _unclaim(self, identity: str) -> None:
        self._stand(self._claims.remove(identity))
        self.version += 1

    def _renew(self, names: Iterable[Hashable]) -> None:
        if self._claims:
            self._stand(self._claims.renew(names, self._find))

    def _find(self, action: Action) -> tuple[Item, ...]:
        return claimed(self, action)

    def _stand(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, NodeItem):
                item.stand(item.standing_at(self._now))

    def _untime(self, permission_id: str) -> None:
        claim = self._claims.get(permission_id)
        if claim is not None and isinstance(claim.entry, PermissionEntry):
            self._deadlines.remove((claim.entry.deadline, permission_id))

    def _unrank(self, request_id: str) -> None:
        if (place := self._ranks.pop(request_id, None)) is not None:
            self._queue.remove((place, request_id))


def _deadline(entry: tuple[int, str]) -> int:
    return entry[0]
