"""Objects that somebody applied: put to the broker, answered in their status, taken back when they are deleted.

| what is seen                          | what is done                                                     |
|---------------------------------------|------------------------------------------------------------------|
| not ours yet                          | our finalizer, before the broker hears of it                     |
| there                                 | by its kind: asked, asked again, or the answer written           |
| being deleted                         | withdrawn from the broker; when that is done, our finalizer goes |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

from quorate.api import finalizers, labels
from quorate.api.maintenance.action import StatusCode
from quorate.api.meta import Resource
from quorate.engine import (
    NOTHING,
    AddFinalizer,
    Controller,
    Index,
    Key,
    Plan,
    Reader,
    ReleaseFinalizer,
    Signal,
    Watch,
)
from quorate.engine.clock import Clock
from quorate.maintenance import messages
from quorate.maintenance.live.asking import Answer, Asking

BY_UID: Final = "by uid"

#: The object, the broker's answer to it, and what the ledger has of it.
R = TypeVar("R", bound=Resource)
A = TypeVar("A")
E = TypeVar("E")


class Withdrawal(Protocol):
    """The broker, as far as whoever is deleted needs it."""

    async def withdraw(self, object_uid: str) -> messages.Status:
        """The object is being deleted."""
        ...


@dataclass(frozen=True, slots=True)
class View(Generic[R, A, E]):
    """An object, and what is known of its answer."""

    subject: R
    answer: Answer[A] | None
    #: The broker would answer otherwise now.
    stale: bool
    #: Everything it got is taken back.
    over: bool
    held: E


class Applied(ABC, Generic[R, A, E]):
    """The controller of one kind, and what it has asked."""

    def __init__(
        self,
        cls: type[R],
        name: str,
        broker: Withdrawal,
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        self.signal = Signal()
        self.asking: Asking[A] = Asking(self.signal, start, clock)
        self._cls = cls
        self._name = name
        self._withdrawal = broker

    @abstractmethod
    def held(self, uid: str) -> E:
        """What the ledger has of an object."""

    @abstractmethod
    def put(self, subject: R) -> Awaitable[A]:
        """Put it to the broker."""

    @abstractmethod
    def decided(self, view: View[R, A, E], now: datetime) -> Plan:
        """What to do for one that is there, and ours."""

    def controller(self) -> Controller[Any]:
        """Of objects that somebody applied; the broker's own are left to ``projections``."""
        return Controller(
            name=self._name,
            watches=(Watch(self._cls),),
            observe=self._observe,
            decide=self._decide,
            indexes=(Index(self._cls, BY_UID, lambda subject: (subject.metadata.uid,)),),
            signals=(self.signal,),
        )

    def asked(self, subject: R) -> Plan:
        """Have it put to the broker, beside the passes."""
        return Plan(effects=(partial(self._ask, subject),))

    def _observe(self, reader: Reader, key: Key) -> View[R, A, E] | None:
        subject = reader.get(self._cls, key.name)
        if subject is None or labels.PROJECTION in subject.metadata.labels:
            return None
        uid, asking = subject.metadata.uid, self.asking
        return View(subject, asking.answer(uid), asking.is_stale(uid), asking.is_over(uid), self.held(uid))

    def _decide(self, view: View[R, A, E], now: datetime, _: Random) -> Plan:
        subject = view.subject
        ours = finalizers.BROKER in subject.metadata.finalizers
        if not subject.deleting:
            return self.decided(view, now) if ours else Plan(writes=(AddFinalizer(subject, finalizers.BROKER),))
        if not ours:
            return NOTHING
        if not view.over:
            return Plan(effects=(partial(self._withdraw, subject),))
        forget = partial(self.asking.forget, subject.metadata.uid)
        return Plan(writes=(ReleaseFinalizer(subject, finalizers.BROKER, ()),), effects=(forget,))

    def _ask(self, subject: R) -> None:
        metadata = subject.metadata
        self.asking.ask(Key("", subject.name), metadata.uid, metadata.generation, partial(self.put, subject))

    def _withdraw(self, subject: R) -> None:
        uid = subject.metadata.uid

        async def withdraw() -> bool:
            return (await self._withdrawal.withdraw(uid)).code is StatusCode.OK

        self.asking.take_back(Key("", subject.name), uid, withdraw)
