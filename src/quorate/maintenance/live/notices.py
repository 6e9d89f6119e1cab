"""Notifications that somebody applied: told to the broker once, and withdrawn when they are deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, Final, Protocol

from quorate.api import conditions
from quorate.api.conditions import Verdict
from quorate.api.conditions.maintenance import Accepted
from quorate.api.maintenance import Notification
from quorate.api.maintenance.action import StatusCode
from quorate.engine import PatchStatus, Plan
from quorate.engine.clock import Clock
from quorate.maintenance.live import words
from quorate.maintenance.live.applied import Applied, View, Withdrawal
from quorate.maintenance.live.entries import Entries
from quorate.maintenance.messages import Caller, NotificationRequest, NotificationResponse

#: Seconds after which a broker that could not listen is told again.
_RETRY: Final = 10.0

_REASONS = {
    StatusCode.NO_SUCH_HOST: Accepted.NO_SUCH_HOST,
    StatusCode.NO_SUCH_DEVICE: Accepted.NO_SUCH_DEVICE,
}


class Ear(Withdrawal, Protocol):
    """The broker, as far as objects that tell need it."""

    async def notification(
        self, asked: NotificationRequest, caller: Caller, *, object_uid: str = ""
    ) -> NotificationResponse:
        """This will happen. The same object tells once."""
        ...


class Notices(Applied[Notification, NotificationResponse, str]):
    """The controller, and what it has told. The ledger has an id for each."""

    def __init__(
        self,
        broker: Ear,
        entries: Callable[[], Entries],
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        super().__init__(Notification, "notifications", broker, start, clock)
        self._broker = broker
        self._entries = entries

    def held(self, uid: str) -> str:
        entry = self._entries().notification_of.get(uid)
        return entry.id if entry is not None else ""

    def put(self, subject: Notification) -> Awaitable[NotificationResponse]:
        told, caller = words.told_by(subject.spec), Caller(name=subject.spec.user)
        return self._broker.notification(told, caller, object_uid=subject.metadata.uid)

    def decided(self, view: View[Notification, NotificationResponse, str], now: datetime) -> Plan:
        notice = view.subject
        if view.held:
            return _report(notice, Accepted.ACCEPTED(), view.held, now)
        if notice.status.id:
            # It was there once, and ends by itself.
            return _report(notice, Accepted.OVER(), notice.status.id, now)
        if view.answer is None:
            return self.asked(notice)
        status = view.answer.said.status
        if status.code is StatusCode.ERROR_TEMP:
            left = _RETRY - (now - view.answer.at).total_seconds()
            return Plan(requeue_after=left) if left > 0 else self.asked(notice)
        if status.code is StatusCode.OK:
            return _report(notice, Accepted.ACCEPTED(), view.answer.said.notification_id, now)
        return _report(notice, _REASONS.get(status.code, Accepted.WRONG_REQUEST)(status.reason), "", now)


def _report(notice: Notification, verdict: Verdict, id_: str, now: datetime) -> Plan:
    return Plan(status=PatchStatus(notice, conditions.told(notice, [verdict], now=now, id=id_)))
