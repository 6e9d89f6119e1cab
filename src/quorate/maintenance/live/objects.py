"""All objects that show the ledger, and those whose answer it holds: woken when it changes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from quorate.api import names
from quorate.api.maintenance import Notification, Permission, PermissionRequest, WalleTask
from quorate.api.maintenance.action import StatusCode
from quorate.engine import Controller, Key, Reader
from quorate.engine.clock import Clock
from quorate.maintenance.broker import Broker
from quorate.maintenance.live import shown
from quorate.maintenance.live.applied import BY_UID
from quorate.maintenance.live.entries import Reading
from quorate.maintenance.live.markers import MarkerProjection
from quorate.maintenance.live.notices import Notices
from quorate.maintenance.live.numbers import Names
from quorate.maintenance.live.projections import Projection
from quorate.maintenance.live.requests import Requests
from quorate.maintenance.messages import (
    Caller,
    Change,
    ChangeKind,
    ChangeVerb,
    ManageNotification,
    ManagePermission,
    ManageRequest,
    NotificationCommand,
    PermissionCommand,
    PermissionResponse,
    RequestCommand,
    Status,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.rules import is_down

#: What cannot be ended because it is over already, is over.
_OVER: Final = (StatusCode.OK, StatusCode.WRONG_REQUEST)


class LedgerObjects:
    """The objects of ``maintenance.quorate.io``, and markers on others."""

    def __init__(
        self,
        broker: Broker,
        model: ClusterModel,
        names_: Names,
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        self._broker = broker
        self._model = model
        self._entries = entries = Reading(lambda: broker.ledger)
        self._reader: Reader | None = None
        #: By the id of a stored request: what it would be answered now, where that is not what it was answered last.
        self._answers: dict[str, PermissionResponse] = {}
        self._asked = Requests(broker, entries, start, clock)
        self._told = Notices(broker, entries, start, clock)
        self._markers = MarkerProjection(lambda: broker.ledger, names_)
        self._permissions = Projection(
            Permission,
            lambda: entries().permissions,
            self._permission,
            end=self._end_permission,
            start=start,
            clock=clock,
        )
        self._requests = Projection(
            PermissionRequest,
            lambda: entries().requests,
            self._request,
            labelled=True,
            end=self._end_request,
            start=start,
            clock=clock,
        )
        self._notifications = Projection(
            Notification,
            lambda: entries().notifications,
            self._notification,
            labelled=True,
            end=self._end_notification,
            start=start,
            clock=clock,
        )
        self._tasks = Projection(WalleTask, lambda: entries().tasks, self._task, start=start, clock=clock)

    @property
    def _projections(self) -> tuple[Projection[Any], ...]:
        return (self._permissions, self._requests, self._notifications, self._tasks)

    def controllers(self) -> tuple[Controller[Any], ...]:
        """One for each kind."""
        return (
            self._asked.controller(),
            self._told.controller(),
            *(projection.controller() for projection in self._projections),
            self._markers.controller(),
        )

    def follow(self, reader: Reader) -> None:
        """Where objects are looked up."""
        self._reader = reader

    def begin(self) -> None:
        """A new term: nothing is known of what was asked in another."""
        self._answers.clear()
        self._asked.asking.begin()
        self._told.asking.begin()
        for projection in self._projections:
            projection.asking.begin()

    def wake_all(self) -> None:
        """The ledger was read anew."""
        for projection in self._projections:
            projection.wake_all()
        self._markers.wake_all()

    def nodes_changed(self) -> None:
        """Permissions show how their hosts are."""
        self._permissions.wake_all()

    def tell(self, change: Change) -> None:
        """Something in the ledger is not as it was: wake whatever shows it."""
        match change.kind:
            case ChangeKind.PERMISSION:
                _wake(self._permissions, change.id)
                self._requests.wake_all()
            case ChangeKind.REQUEST:
                self._note_answer(change)
                _wake(self._requests, change.id)
                if change.verb in (ChangeVerb.ADDED, ChangeVerb.ENDED):
                    self._requests.wake_all()
                    self._wake_queue(self._entries().places.get(change.id, 0))
            case ChangeKind.NOTIFICATION:
                _wake(self._notifications, change.id)
            case ChangeKind.TASK:
                self._tasks.wake(names.walle_task(change.id))
            case ChangeKind.MARKER:
                self._markers.wake(change.id)
            case ChangeKind.CONFIG:
                pass
        if change.object_uid:
            if change.verb is ChangeVerb.ANSWER and change.answer is not None:
                self._asked.told(change.object_uid, change.answer)
            self._wake_asker(change.object_uid)

    def _note_answer(self, change: Change) -> None:
        if change.verb is ChangeVerb.ANSWER and change.answer is not None:
            self._answers[change.id] = change.answer
        else:
            self._answers.pop(change.id, None)

    def _wake_asker(self, uid: str) -> None:
        assert self._reader is not None
        for request in self._reader.find(PermissionRequest, BY_UID, uid):
            self._asked.signal.wake(Key("", request.name))
        for notice in self._reader.find(Notification, BY_UID, uid):
            self._told.signal.wake(Key("", notice.name))

    def _wake_queue(self, place: int) -> None:
        """Everybody behind this place has another one now."""
        entries = self._entries()
        for uid, entry in entries.request_of.items():
            if entries.places[entry.id] > place:
                self._wake_asker(uid)

    # What each object shows

    def _permission(self, name: str) -> Permission | None:
        entry = self._entries().permissions.get(name)
        if entry is None:
            return None
        held = entry.deadline <= self._broker.now() and not entry.lapsed and is_down(self._model, entry)
        return shown.permission(entry, name, self._model, held_down=held)

    def _request(self, name: str) -> PermissionRequest | None:
        entries = self._entries()
        entry = entries.requests.get(name)
        if entry is None:
            return None
        got, now = entries.got.get(entry.id, ()), self._answers.get(entry.id)
        return shown.request(entry, name, entries.places[entry.id], got, now=now)

    def _notification(self, name: str) -> Notification | None:
        entry = self._entries().notifications.get(name)
        return shown.notification(entry, name) if entry is not None else None

    def _task(self, name: str) -> WalleTask | None:
        entry = self._entries().tasks.get(name)
        return shown.task(entry, name) if entry is not None else None

    # What deleting one ends

    async def _end_permission(self, name: str) -> bool:
        entry = self._entries().permissions.get(name)
        if entry is None:
            return True
        done = ManagePermission(command=PermissionCommand.DONE, user=entry.owner, permissions=(entry.id,))
        return _is_over((await self._broker.manage_permission(done, Caller(name=entry.owner))).status)

    async def _end_request(self, name: str) -> bool:
        entry = self._entries().requests.get(name)
        if entry is None:
            return True
        reject = ManageRequest(command=RequestCommand.REJECT, user=entry.owner, request_id=entry.id)
        return _is_over((await self._broker.manage_request(reject, Caller(name=entry.owner))).status)

    async def _end_notification(self, name: str) -> bool:
        entry = self._entries().notifications.get(name)
        if entry is None:
            return True
        reject = ManageNotification(command=NotificationCommand.REJECT, user=entry.owner, notification_id=entry.id)
        return _is_over((await self._broker.manage_notification(reject, Caller(name=entry.owner))).status)


def _is_over(status: Status) -> bool:
    return status.code in _OVER


def _wake(projection: Projection[Any], broker_id: str) -> None:
    parsed = names.parse_broker_id(broker_id)
    if parsed is not None:
        letter, number = parsed
        projection.wake(f"{letter}-{number}")
