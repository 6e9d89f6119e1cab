"""What a turn, or several that share a write, would change: a copy of the book, and what follows for the model.

More locks are in the model (and in the shared lock table) at once, fewer only after the write: whoever looks meanwhile
sees everything locked that is, or may come to be, in force. If the write fails, what was added is taken out again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from quorate.api.codec import to_builtins
from quorate.api.maintenance.log_record import RecordType
from quorate.api.names import broker_id
from quorate.api.names import notification as notification_name
from quorate.api.names import permission as permission_name
from quorate.api.struct import replace
from quorate.errors import Conflict
from quorate.maintenance.broker.answers import bare
from quorate.maintenance.broker.book import Book, marker_key
from quorate.maintenance.broker.ports import Locks
from quorate.maintenance.entries import (
    MarkerEntry,
    NotificationEntry,
    PermissionEntry,
    RequestEntry,
    ServedEntry,
    TaskEntry,
)
from quorate.maintenance.evaluation import Grant
from quorate.maintenance.messages import Action, Change, ChangeKind, ChangeVerb
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.lookup import device_label
from quorate.maintenance.moments import FOREVER, later
from quorate.maintenance.rules import is_down

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Record:
    """Something for the log, once it is true."""

    at: int
    record_type: RecordType
    message: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Savepoint:
    """How far a draft was."""

    undo: int
    after: int
    records: int
    changes: int
    changed: bool
    grew: bool
    granted: int


class Draft:
    """One write of the ledger in the making."""

    def __init__(self, book: Book, model: ClusterModel, locks: Locks, *, now: int) -> None:
        self.book = book.copy()
        self.now = now
        self.changed = False
        #: Something was added: refused when the ledger is full.
        self.grew = False
        #: Permissions given.
        self.granted = 0
        self.records: list[Record] = []
        self.changes: list[Change] = []
        #: Entries that are new or not as they were.
        self.touched: list[PermissionEntry | RequestEntry | NotificationEntry] = []
        self._model = model
        self._locks = locks
        self._undo: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []

    @property
    def unlocks(self) -> bool:
        """Whether the model will have fewer locks once this is written: a decision that weighs must wait for that."""
        return bool(self._after)

    # Permissions

    def grant(self, request: RequestEntry, given: Grant, *, request_id: str) -> PermissionEntry:
        """A new permission, with the next number. Conflict: something else has begun to disturb what it locks."""
        number = self.book.counters.permissions + 1
        entry = PermissionEntry(
            id=broker_id(request.owner, permission_name(number)),
            order=number,
            owner=request.owner,
            action=given.action,
            deadline=later(self.now, given.permission_duration),
            granted_at=self.now,
            availability_mode=request.availability_mode,
            tenant_policy=request.tenant_policy,
            request_id=request_id,
            reason=request.reason,
            cost=given.cost,
            object_uid=request.object_uid,
            run=request.run,
        )
        self._hold(entry)
        self._count(permissions=number)
        self._put(self.book.permissions, entry.id, entry)
        self.grew = True
        self.granted += 1
        by_force = f", by force: {given.cost}" if given.cost else ""
        told = f"{entry.id} granted: {describe(self._model, given.action)}{by_force}"
        self._record(RecordType.PERMISSION_GRANTED, told, permission_data(entry))
        self._tell(ChangeKind.PERMISSION, ChangeVerb.ADDED, entry)
        return entry

    def end(self, entry: PermissionEntry, why: str) -> None:
        """It is over: ``why`` is DONE, REJECT, …"""
        self._drop(self.book.permissions, entry.id)
        self._after.append(lambda: self._release(entry.id))
        self._record(
            RecordType.PERMISSION_ENDED,
            f"{entry.id} ended ({why}): {describe(self._model, entry.action)}",
            {**permission_data(entry), "why": why},
        )
        self._tell(ChangeKind.PERMISSION, ChangeVerb.ENDED, entry)

    def move(self, before: PermissionEntry, deadline: int) -> PermissionEntry:
        """Another deadline. If that has passed and nothing is down, its locks are over."""
        over = deadline <= self.now and (before.lapsed or not is_down(self._model, before))
        entry = replace(before, deadline=deadline, lapsed=over)
        if deadline > before.deadline and not over:
            self._locks.take(entry)
            self._model.hold(entry)
            self._undo.append(lambda: self._put_back(before))
        else:
            self._after.append(lambda: self._put_back(entry))
        self._put(self.book.permissions, entry.id, entry)
        self._tell(ChangeKind.PERMISSION, ChangeVerb.CHANGED, entry)
        return entry

    # Stored requests

    def store(self, entry: RequestEntry) -> None:
        """A new request in the queue."""
        self._model.queue(entry, blocking=True)
        self._undo.append(lambda: self._model.dequeue(entry.id))
        self._count(requests=entry.order)
        self._put(self.book.requests, entry.id, entry)
        self.grew = True
        self._tell(ChangeKind.REQUEST, ChangeVerb.ADDED, entry)

    def keep(self, entry: RequestEntry) -> None:
        """A stored request as it is now: less of it, another mode, renewed."""
        before = self.book.requests[entry.id]
        if entry == before:
            return
        self._put(self.book.requests, entry.id, entry)
        if _locks_the_same(before, entry) and self._model.blocks(entry.id):
            self._model.renew(entry)
            self._undo.append(lambda: self._model.renew(before))
        else:
            self._after.append(lambda: self._model.queue(entry, blocking=True))
        self.touched.append(entry)
        if replace(entry, renewed_at=0, last_deadline=0) != replace(before, renewed_at=0, last_deadline=0):
            self._tell(ChangeKind.REQUEST, ChangeVerb.CHANGED, entry)

    def drop(self, entry: RequestEntry) -> None:
        """A stored request is gone."""
        self._drop(self.book.requests, entry.id)
        self._after.append(lambda: self._model.dequeue(entry.id))
        self._tell(ChangeKind.REQUEST, ChangeVerb.ENDED, entry)

    # Notifications

    def announce(
        self, owner: str, actions: tuple[Action, ...], time: int, *, reason: str, object_uid: str
    ) -> NotificationEntry:
        """A new notification, with the next number."""
        number = self.book.counters.notifications + 1
        entry = NotificationEntry(
            id=broker_id(owner, notification_name(number)),
            order=number,
            owner=owner,
            actions=actions,
            time=time,
            reason=reason,
            object_uid=object_uid,
        )
        self._model.announce(entry)
        self._undo.append(lambda: self._model.withdraw(entry.id))
        self._count(notifications=number)
        self._put(self.book.notifications, entry.id, entry)
        self.grew = True
        self._tell(ChangeKind.NOTIFICATION, ChangeVerb.ADDED, entry)
        return entry

    def withdraw(self, entry: NotificationEntry) -> None:
        """A notification is taken back."""
        self._drop(self.book.notifications, entry.id)
        self._after.append(lambda: self._model.withdraw(entry.id))
        self._tell(ChangeKind.NOTIFICATION, ChangeVerb.ENDED, entry)

    # Tasks of Wall-E

    def put_task(self, task: TaskEntry) -> None:
        """A task, new or with another request or permissions."""
        new = task.id not in self.book.tasks
        self._put(self.book.tasks, task.id, task)
        self.grew = self.grew or new
        verb = ChangeVerb.ADDED if new else ChangeVerb.CHANGED
        self.changes.append(Change(kind=ChangeKind.TASK, verb=verb, id=task.id, owner=task.issuer))

    def drop_task(self, task: TaskEntry) -> None:
        """A task is gone."""
        self._drop(self.book.tasks, task.id)
        self.changes.append(Change(kind=ChangeKind.TASK, verb=ChangeVerb.ENDED, id=task.id, owner=task.issuer))

    # Kubernetes objects

    def serve(self, served: ServedEntry) -> None:
        """An object has its answer for good."""
        self._put(self.book.served, served.object_uid, served)
        self.grew = True

    def forget(self, object_uid: str) -> None:
        """An object is gone."""
        if object_uid in self.book.served:
            self._drop(self.book.served, object_uid)

    # Markers

    def mark(self, marker: MarkerEntry) -> None:
        """Instead of what its item was marked with by the same kind of hand."""
        self._put(self.book.markers, marker_key(marker), marker)
        self.grew = True
        self.changes.append(Change(kind=ChangeKind.MARKER, verb=ChangeVerb.CHANGED, id=marker.item, owner=marker.by))

    def unmark(self, marker: MarkerEntry) -> None:
        """The item is not marked so any more."""
        self._drop(self.book.markers, marker_key(marker))
        self.changes.append(Change(kind=ChangeKind.MARKER, verb=ChangeVerb.ENDED, id=marker.item, owner=marker.by))

    def record(self, record_type: RecordType, message: str, data: Mapping[str, Any]) -> None:
        """For the log."""
        self._record(record_type, message, data)

    # Numbers of the cluster's things

    def take_numbers(self, *, nodes: int, drives: int, groups: int) -> None:
        """So many have been given."""
        counters = self.book.counters
        self._count(nodes=counters.nodes + nodes, drives=counters.drives + drives, groups=counters.groups + groups)

    # Time

    def shift(self, by: int, then: Callable[[], None]) -> None:
        """Broker time moves: what is promised, and what is remembered, moves along. ``then``: once it is written.

        Announced work does not: it was told by the calendar.
        """
        for entry in tuple(self.book.permissions.values()):
            moved = replace(entry, deadline=_shifted(entry.deadline, by), granted_at=_shifted(entry.granted_at, by))
            self._put(self.book.permissions, entry.id, moved)
            self._after.append(partial(self._put_back, moved))
            self.touched.append(moved)
        for request in tuple(self.book.requests.values()):
            waiting = replace(
                request,
                stored_at=_shifted(request.stored_at, by),
                renewed_at=_shifted(request.renewed_at, by),
                last_deadline=_shifted(request.last_deadline, by),
            )
            self._put(self.book.requests, request.id, waiting)
            self._after.append(partial(self._model.queue, waiting, blocking=True))
            self.touched.append(waiting)
        self._after.append(then)
        self.now += by
        self.changed = True

    # Its life

    def savepoint(self) -> Savepoint:
        """To come back to."""
        return Savepoint(
            len(self._undo),
            len(self._after),
            len(self.records),
            len(self.changes),
            self.changed,
            self.grew,
            self.granted,
        )

    def roll_back(self, to: Savepoint) -> None:
        """Take back what came after."""
        while len(self._undo) > to.undo:
            self._undo.pop()()
        del self._after[to.after :]
        del self.records[to.records :]
        del self.changes[to.changes :]
        self.changed = to.changed
        self.grew = to.grew
        self.granted = to.granted

    def take_back(self) -> None:
        """It was not written: nothing of it remains in the model."""
        while self._undo:
            self._undo.pop()()

    def settle(self) -> None:
        """It is written: what is no longer locked may be seen to be free."""
        for follow in self._after:
            follow()
        self._after.clear()
        self._undo.clear()

    def _hold(self, entry: PermissionEntry) -> None:
        self._locks.take(entry)
        self._model.hold(entry)
        self._undo.append(lambda: self._release(entry.id))

    def _release(self, permission_id: str) -> None:
        self._model.release(permission_id)
        self._locks.drop(permission_id)

    def _put_back(self, entry: PermissionEntry) -> None:
        """It is in force, whatever else holds what it locks; a table that refuses the new end keeps the old one."""
        if entry.lapsed:
            self._locks.drop(entry.id)
        else:
            with suppress(Conflict):
                self._locks.take(entry)
        self._model.hold(entry)

    def _count(self, **numbers: int) -> None:
        before = self.book.counters
        self._undo.append(lambda: setattr(self.book, "counters", before))
        self.book.counters = replace(before, **numbers)
        self.changed = True

    def _put(self, where: dict[K, V], key: K, value: V) -> None:
        if key in where:
            before = where[key]
            self._undo.append(lambda: where.__setitem__(key, before))
        else:
            self._undo.append(lambda: where.__delitem__(key))
        where[key] = value
        self.changed = True

    def _drop(self, where: dict[K, V], key: K) -> None:
        before = where.pop(key)
        self._undo.append(lambda: where.__setitem__(key, before))
        self.changed = True

    def _record(self, record_type: RecordType, message: str, data: Mapping[str, Any]) -> None:
        self.records.append(Record(self.now, record_type, message, data))

    def _tell(
        self, kind: ChangeKind, verb: ChangeVerb, entry: PermissionEntry | RequestEntry | NotificationEntry
    ) -> None:
        self.touched.append(entry)
        self.changes.append(Change(kind=kind, verb=verb, id=entry.id, owner=entry.owner, object_uid=entry.object_uid))


def _shifted(moment: int, by: int) -> int:
    """Neither never nor always moves."""
    return moment if moment in (0, FOREVER) else min(max(moment + by, 0), FOREVER)


def _locks_the_same(one: RequestEntry, other: RequestEntry) -> bool:
    """Only asked about: what is locked, and whom that is in the way of, has not changed."""
    if (one.priority, len(one.actions)) != (other.priority, len(other.actions)):
        return False
    return all(bare(mine) == bare(theirs) for mine, theirs in zip(one.actions, other.actions, strict=True))


def describe(model: ClusterModel, action: Action) -> str:
    """For a person: the deed and the place."""
    devices = (device_label(model, name, action.host) for name in action.devices[:3])
    where = ", ".join(filter(None, (action.host or action.tenant, *action.services, *devices)))
    more = f" and {len(action.devices) - 3} more" if len(action.devices) > 3 else ""
    return f"{action.type} {where}{more}"


def permission_data(entry: PermissionEntry) -> dict[str, Any]:
    """As the log has it."""
    data: dict[str, Any] = to_builtins(entry)
    return data
