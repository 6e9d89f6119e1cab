"""What the ledger holds, as objects, so that people see it with ``kubectl get``.

| kind              | shows                                            | deleting it                               |
|-------------------|--------------------------------------------------|-------------------------------------------|
| Permission        | every permission in force                        | DONE: the work is over                    |
| PermissionRequest | stored requests that came over another interface | REJECT: the request is withdrawn          |
| Notification      | notifications that came over another interface   | REJECT: the notification is withdrawn     |
| WalleTask         | every task of Wall-E                             | nothing: it is made anew                  |

They are derived from the ledger and from nothing else. Whoever changes one only sees it put right; an object of these
kinds that is not in the ledger, and that nobody applied to ask for something, goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, Generic, TypeVar

from quorate.api import finalizers, labels
from quorate.api.maintenance import Notification, Permission, PermissionRequest, WalleTask
from quorate.api.meta import ObjectMeta
from quorate.api.struct import replace
from quorate.engine import (
    NOTHING,
    AddFinalizer,
    Controller,
    Create,
    Delete,
    Key,
    Patch,
    PatchStatus,
    Plan,
    Reader,
    ReleaseFinalizer,
    Signal,
    Watch,
)
from quorate.engine.clock import Clock
from quorate.maintenance.live.asking import Asking

#: Seconds after which something that is due by time is surely so.
_A_MOMENT: Final = 0.1

P = TypeVar("P", bound=Permission | PermissionRequest | Notification | WalleTask)


@dataclass(frozen=True, slots=True)
class ProjectionView(Generic[P]):
    """An object as it is, and as it should be; None: it is not there, or should not be."""

    found: P | None
    intended: P | None
    #: Somebody deleted it, and what it stood for is over.
    over: bool


class Projection(Generic[P]):
    """One kind."""

    def __init__(
        self,
        cls: type[P],
        names: Callable[[], Collection[str]],
        make: Callable[[str], P | None],
        *,
        labelled: bool = False,
        end: Callable[[str], Coroutine[Any, Any, bool]] | None = None,
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        """``names`` are of the objects that there should be; ``make`` makes the one of a name, or none.

        ``end`` ends what the object of a name stands for, and tells whether it did; None: it cannot be ended so.
        ``labelled``: people make objects of this kind too, and ours have a label.
        """
        self._cls = cls
        self._names = names
        self._make = make
        self._end = end
        self._labels: Mapping[str, str] = {labels.PROJECTION: "true"} if labelled else {}
        self.signal = Signal()
        self.asking: Asking[None] = Asking(self.signal, start, clock)

    def controller(self) -> Controller[Any]:
        """Woken by its objects, and by what happens in the ledger."""
        return Controller(
            name=f"{self._cls.KIND.name.lower()}-projection",
            watches=(Watch(self._cls),),
            observe=self._observe,
            decide=self._decide,
            signals=(self.signal,),
        )

    def wake(self, name: str) -> None:
        """Something that this object shows has changed."""
        self.signal.wake(Key("", name))

    def wake_all(self) -> None:
        """Something that all of them show has changed."""
        for name in self._names():
            self.wake(name)

    def _observe(self, reader: Reader, key: Key) -> ProjectionView[P] | None:
        found = reader.get(self._cls, key.name)
        if found is not None and not self._labels.items() <= found.metadata.labels.items():
            return None  # somebody applied it, perhaps under a name that we would give
        intended = self._make(key.name)
        if found is None and intended is None:
            return None
        return ProjectionView(found, intended, over=found is not None and self.asking.is_over(found.metadata.uid))

    def _decide(self, view: ProjectionView[P], now: datetime, _: Random) -> Plan:
        found, intended = view.found, view.intended
        if found is None:
            assert intended is not None
            return Plan(writes=(Create(replace(intended, metadata=self._metadata(intended.name))),))
        held = finalizers.BROKER in found.metadata.finalizers
        if intended is None or view.over:
            return self._gone(found, held=held)
        if found.deleting:
            # What cannot be ended is made anew once it is gone.
            return Plan(effects=(partial(self._end_by_hand, found),)) if held else NOTHING
        if self._end is not None and not held:
            return Plan(writes=(AddFinalizer(found, finalizers.BROKER),))
        put_right = replace(found, spec=_spec(found, intended))
        return Plan(
            writes=(Patch(found, put_right),),
            status=PatchStatus(found, replace(found, status=intended.status)),
            requeue_after=_due(intended, now),
        )

    def _gone(self, found: P, *, held: bool) -> Plan:
        """The finalizer first, then the object: nobody deleted it, and nothing is to be ended."""
        if held:
            forget = partial(self.asking.forget, found.metadata.uid)
            return Plan(writes=(ReleaseFinalizer(found, finalizers.BROKER, ()),), effects=(forget,))
        return NOTHING if found.deleting else Plan(writes=(Delete(found),))

    def _end_by_hand(self, found: P) -> None:
        if (end := self._end) is not None:
            self.asking.take_back(Key("", found.name), found.metadata.uid, lambda: end(found.name))

    def _metadata(self, name: str) -> ObjectMeta:
        held = (finalizers.BROKER,) if self._end is not None else ()
        return ObjectMeta(name=name, labels=self._labels, finalizers=held)


def _due(intended: P, now: datetime) -> float | None:
    """Seconds until a permission's deadline: from then on it may be held only because its host is down."""
    if not isinstance(intended, Permission) or intended.status.deadline is None or intended.status.deadline < now:
        return None
    return (intended.status.deadline - now).total_seconds() + _A_MOMENT


def _spec(found: P, intended: P) -> Any:
    """What was asked or told is fixed once it is there; what is left of it is in the status."""
    match found, intended:
        case PermissionRequest(), PermissionRequest():
            return replace(found.spec, availability_mode=intended.spec.availability_mode)
        case Notification(), Notification():
            return found.spec
        case _:
            return intended.spec
