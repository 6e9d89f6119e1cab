"""What ends, or changes, by time alone.

- A permission lets go of its locks at its deadline, or if something that it locks is down then, once that is up (or its
  owner says it is done). It lets go for good: what goes down later is broken. It is forgotten twice its action's
  duration after the deadline, unless it still has its locks.
- An action of a notification is over at its end, the notification with its last action.
- A stored request that nobody asks about stops blocking, and is deleted in the end (``renewal``).

All of it follows from what is written, from the time and from what is down, so it is true at once, before the ledger is
written so; whatever is decided by it is in the same write or in a later one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.api.struct import replace
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.ports import Locks
from quorate.maintenance.broker.renewal import deleted_from
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.claims import silent_from
from quorate.maintenance.moments import FOREVER, later
from quorate.maintenance.rules import is_down


@dataclass(slots=True)
class Lapsed:
    """What has just ended."""

    permissions: list[PermissionEntry] = field(default_factory=list)
    #: These are still listed, but hold nothing any more.
    let_go: list[PermissionEntry] = field(default_factory=list)
    requests: list[RequestEntry] = field(default_factory=list)
    notifications: list[NotificationEntry] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.permissions or self.let_go or self.requests or self.notifications)


def forgotten_from(entry: PermissionEntry) -> int:
    """When a permission that has let go is forgotten."""
    return later(entry.deadline, 2 * (entry.action.duration or 0))


class Lapses:
    """Knows the next moment at which something ends, so that asking before it costs a comparison."""

    def __init__(self, model: ClusterModel, locks: Locks) -> None:
        self._model = model
        self._locks = locks
        #: Nothing happens before this, unless the cluster changes and something waits for that.
        self.next = 0
        self._retry = 0
        #: Permissions past their deadline whose hosts are down, and the model's version when that was last looked at.
        self._held_down: set[str] = set()
        self._seen = -1
        self._silent: set[str] = set()

    @property
    def held_down(self) -> frozenset[str]:
        """Ids of permissions that only have their locks because something is down."""
        return frozenset(self._held_down)

    def consider(self, entry: PermissionEntry | RequestEntry | NotificationEntry) -> None:
        """Something was added, or is not as it was: it may end sooner than anything else."""
        if isinstance(entry, PermissionEntry):
            coming = forgotten_from(entry) if entry.lapsed else entry.deadline
        elif isinstance(entry, RequestEntry):
            self._silent.discard(entry.id)
            coming = silent_from(entry, self._retry)
        else:
            coming = min((_end(entry, action.duration) for action in entry.actions), default=0)
        self.next = min(self.next, coming)

    def begin(self) -> None:
        """A ledger has been read; nothing is known of it."""
        self.next, self._seen = 0, -1
        self._held_down.clear()
        self._silent.clear()

    def run(self, book: Book, now: int, retry: int) -> Lapsed:
        """Take out of the book and of the model what has ended by now."""
        lapsed = Lapsed()
        if retry != self._retry:
            self._retry = retry
        elif now < self.next and not self._is_up_again(book):
            return lapsed
        coming = [
            FOREVER,
            *self._permissions(book, now, lapsed),
            *self._requests(book, now, lapsed),
            *self._notifications(book, now, lapsed),
        ]
        self.next = min(coming)
        self._seen = self._model.version
        return lapsed

    def _is_up_again(self, book: Book) -> bool:
        """What was down under one of these permissions is not any more, or the permission is not there."""
        if not self._held_down or self._seen == self._model.version:
            return False
        self._seen = self._model.version
        entries = (book.permissions.get(held) for held in self._held_down)
        return any(entry is None or not is_down(self._model, entry) for entry in entries)

    def _permissions(self, book: Book, now: int, lapsed: Lapsed) -> list[int]:
        coming = []
        self._held_down.clear()
        for entry in tuple(book.permissions.values()):
            if not entry.lapsed:
                if entry.deadline > now:
                    coming.append(entry.deadline)
                    continue
                if is_down(self._model, entry):
                    self._held_down.add(entry.id)
                    continue
            if (over := forgotten_from(entry)) <= now:
                del book.permissions[entry.id]
                self._model.release(entry.id)
                self._locks.drop(entry.id)
                lapsed.permissions.append(entry)
                continue
            coming.append(over)
            if not entry.lapsed:
                ended = book.permissions[entry.id] = replace(entry, lapsed=True)
                self._model.hold(ended)
                self._locks.drop(entry.id)
                lapsed.let_go.append(ended)
        return coming

    def _requests(self, book: Book, now: int, lapsed: Lapsed) -> list[int]:
        coming = []
        silent = set()
        for entry in tuple(book.requests.values()):
            if deleted_from(entry, self._retry) <= now:
                del book.requests[entry.id]
                self._model.dequeue(entry.id)
                lapsed.requests.append(entry)
            elif (quiet := silent_from(entry, self._retry)) <= now:
                silent.add(entry.id)
                if entry.id not in self._silent:
                    self._model.queue(entry, blocking=False)
                coming.append(deleted_from(entry, self._retry))
            else:
                if entry.id in self._silent:
                    self._model.queue(entry, blocking=True)
                coming.append(quiet)
        self._silent = silent
        return coming

    def _notifications(self, book: Book, now: int, lapsed: Lapsed) -> list[int]:
        coming = []
        for entry in tuple(book.notifications.values()):
            left = tuple(action for action in entry.actions if _end(entry, action.duration) > now)
            coming += [_end(entry, action.duration) for action in left]
            if len(left) == len(entry.actions):
                continue
            lapsed.notifications.append(entry)
            if left:
                rest = book.notifications[entry.id] = replace(entry, actions=left)
                self._model.announce(rest)
            else:
                del book.notifications[entry.id]
                self._model.withdraw(entry.id)
        return coming


def _end(entry: NotificationEntry, duration: int | None) -> int:
    return later(entry.time, duration or 0)
