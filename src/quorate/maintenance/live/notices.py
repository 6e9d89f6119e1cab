"""Notifications that somebody applied: told to the broker once, and withdrawn when they are deleted."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, Protocol

from quorate.api import conditions, finalizers, labels
from quorate.api.conditions import Verdict
from quorate.api.conditions.maintenance import Accepted
from quorate.api.maintenance import Notification
from quorate.api.maintenance.action import StatusCode
from quorate.api.struct import replace
from quorate.engine import (
    NOTHING,
    AddFinalizer,
    Controller,
    Index,
    Key,
    PatchStatus,
    Plan,
    Reader,
    ReleaseFinalizer,
    Signal,
    Watch,
)
from quorate.engine.clock import Clock
from quorate.maintenance import messages
from quorate.maintenance.live import words
from quorate.maintenance.live.asking import Answer, Asking
from quorate.maintenance.live.entries import Entries
from quorate.maintenance.live.requests import BY_UID
from quorate.maintenance.messages import Caller, NotificationRequest, NotificationResponse

#: Seconds after which a broker that could not listen is told again.
_RETRY: Final = 10.0

_REASONS = {
    StatusCode.NO_SUCH_HOST: Accepted.NO_SUCH_HOST,
    StatusCode.NO_SUCH_DEVICE: Accepted.NO_SUCH_DEVICE,
}


class Ear(Protocol):
    """The broker, as far as objects that tell need it."""

    async def notification(
        self, asked: NotificationRequest, caller: Caller, *, object_uid: str = ""
    ) -> NotificationResponse:
        """This will happen. The same object tells once."""
        ...

    async def withdraw(self, object_uid: str) -> messages.Status:
        """The object is being deleted."""
        ...


@dataclass(frozen=True, slots=True)
class NoticeView:
    """A notification, and what the broker said to it."""

    notice: Notification
    answer: Answer[NotificationResponse] | None
    over: bool
    #: It is in the ledger, under this id.
    id: str


class Notices:
    """The controller, and what it has told."""

    def __init__(
        self,
        broker: Ear,
        entries: Callable[[], Entries],
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        self._broker = broker
        self._entries = entries
        self.signal = Signal()
        self.asking: Asking[NotificationResponse] = Asking(self.signal, start, clock)

    def controller(self) -> Controller[Any]:
        """Of objects that somebody applied; the broker's own are left to ``projections``."""
        return Controller(
            name="notifications",
            watches=(Watch(Notification),),
            observe=self._observe,
            decide=self._decide,
            indexes=(Index(Notification, BY_UID, lambda notice: (notice.metadata.uid,)),),
            signals=(self.signal,),
        )

    def _observe(self, reader: Reader, key: Key) -> NoticeView | None:
        notice = reader.get(Notification, key.name)
        if notice is None or labels.PROJECTION in notice.metadata.labels:
            return None
        uid = notice.metadata.uid
        entry = self._entries().notification_of.get(uid)
        return NoticeView(
            notice, self.asking.answer(uid), self.asking.is_over(uid), entry.id if entry is not None else ""
        )

    def _decide(self, view: NoticeView, now: datetime, _: Random) -> Plan:
        notice = view.notice
        ours = finalizers.BROKER in notice.metadata.finalizers
        if notice.deleting:
            if not ours:
                return NOTHING
            return self._let_go(notice) if view.over else Plan(effects=(partial(self._withdraw, notice),))
        if not ours:
            return Plan(writes=(AddFinalizer(notice, finalizers.BROKER),))
        if view.id:
            return _report(notice, Accepted.ACCEPTED(), view.id, now)
        if notice.status.id:
            # It was there once, and ends by itself.
            return _report(notice, Accepted.OVER(), notice.status.id, now)
        if view.answer is None:
            return Plan(effects=(partial(self._tell, notice),))
        status = view.answer.said.status
        if status.code is StatusCode.ERROR_TEMP:
            left = _RETRY - (now - view.answer.at).total_seconds()
            return Plan(requeue_after=left) if left > 0 else Plan(effects=(partial(self._tell, notice),))
        if status.code is StatusCode.OK:
            return _report(notice, Accepted.ACCEPTED(), view.answer.said.notification_id, now)
        return _report(notice, _REASONS.get(status.code, Accepted.WRONG_REQUEST)(status.reason), "", now)

    def _let_go(self, notice: Notification) -> Plan:
        forget = partial(self.asking.forget, notice.metadata.uid)
        return Plan(writes=(ReleaseFinalizer(notice, finalizers.BROKER, ()),), effects=(forget,))

    def _tell(self, notice: Notification) -> None:
        metadata = notice.metadata
        told, caller = words.told_by(notice.spec), Caller(name=notice.spec.user)
        self.asking.ask(
            Key("", notice.name),
            metadata.uid,
            metadata.generation,
            lambda: self._broker.notification(told, caller, object_uid=metadata.uid),
        )

    def _withdraw(self, notice: Notification) -> None:
        uid = notice.metadata.uid

        async def withdraw() -> bool:
            return (await self._broker.withdraw(uid)).code is StatusCode.OK

        self.asking.take_back(Key("", notice.name), uid, withdraw)


def _report(notice: Notification, verdict: Verdict, id_: str, now: datetime) -> Plan:
    generation = notice.metadata.generation
    status = replace(
        notice.status,
        observed_generation=generation,
        id=id_,
        conditions=conditions.merge(notice.status.conditions, [verdict], now=now, generation=generation),
    )
    return Plan(status=PatchStatus(notice, replace(notice, status=status)))
