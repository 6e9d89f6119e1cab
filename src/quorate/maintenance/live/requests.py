"""PermissionRequests that somebody applied.

| what is seen                                             | what is done                                              |
|----------------------------------------------------------|-----------------------------------------------------------|
| new                                                      | our finalizer; then the broker is asked, once             |
| ``availabilityMode`` changed                             | the broker is asked again, with the other mode            |
| stored, and the broker would now answer otherwise        | it is asked again: what can be granted is granted         |
| the broker cannot answer now (ERROR_TEMP)                | it is asked again when it said                            |
| being deleted                                            | the stored request goes, its permissions are given back;  |
|                                                          | then our finalizer                                        |

The status is the last answer. What changes without an answer is read from the ledger: the place in the queue, and which
permissions are still in force. Why something is refused is told anew whenever the broker would say something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from quorate.api import conditions
from quorate.api.conditions.maintenance import Granted
from quorate.api.maintenance import PermissionRequest
from quorate.api.maintenance.action import Issue, StatusCode
from quorate.api.maintenance.permission_request import PermissionRequestStatus, RefusedAction
from quorate.api.struct import replace
from quorate.engine import PatchStatus, Plan, PlanEvent
from quorate.engine.clock import Clock
from quorate.maintenance import messages
from quorate.maintenance.entries import PermissionEntry, RequestEntry
from quorate.maintenance.live import words
from quorate.maintenance.live.applied import Applied, View, Withdrawal
from quorate.maintenance.live.entries import Entries
from quorate.maintenance.live.shown import MESSAGE, REFUSED
from quorate.maintenance.messages import Caller, PermissionResponse
from quorate.maintenance.moments import to_datetime

#: Seconds after which to ask again when the broker cannot answer and does not say when.
_RETRY: Final = 10.0

_REASONS = {
    StatusCode.ALLOW: Granted.ALLOW,
    StatusCode.OK: Granted.ALLOW,
    StatusCode.ALLOW_PARTIAL: Granted.ALLOW_PARTIAL,
    StatusCode.DISALLOW: Granted.DISALLOW,
    StatusCode.DISALLOW_TEMP: Granted.DISALLOW_TEMP,
    StatusCode.WRONG_REQUEST: Granted.WRONG_REQUEST,
    StatusCode.ERROR: Granted.ERROR,
    StatusCode.ERROR_TEMP: Granted.ERROR_TEMP,
    StatusCode.UNAUTHORIZED: Granted.UNAUTHORIZED,
    StatusCode.NO_SUCH_HOST: Granted.NO_SUCH_HOST,
    StatusCode.NO_SUCH_DEVICE: Granted.NO_SUCH_DEVICE,
    StatusCode.NO_SUCH_SERVICE: Granted.NO_SUCH_SERVICE,
}


class Submission(Withdrawal, Protocol):
    """The broker, as far as objects that ask need it."""

    async def submit(self, asked: messages.PermissionRequest, caller: Caller, *, object_uid: str) -> PermissionResponse:
        """Ask for an object, for the first time or again."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """What the ledger has of a request."""

    stored: RequestEntry | None = None
    place: int | None = None
    permissions: tuple[PermissionEntry, ...] = ()


RequestView: TypeAlias = View[PermissionRequest, PermissionResponse, Held]


class Requests(Applied[PermissionRequest, PermissionResponse, Held]):
    """The controller, and what it has asked."""

    def __init__(
        self,
        broker: Submission,
        entries: Callable[[], Entries],
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        super().__init__(PermissionRequest, "permission-requests", broker, start, clock)
        self._broker = broker
        self._entries = entries

    def held(self, uid: str) -> Held:
        entries = self._entries()
        stored = entries.request_of.get(uid)
        place = entries.places.get(stored.id) if stored is not None else None
        return Held(stored, place, entries.permissions_of.get(uid, ()))

    def put(self, subject: PermissionRequest) -> Awaitable[PermissionResponse]:
        spec = subject.spec
        return self._broker.submit(words.asked_by(spec), Caller(name=spec.user), object_uid=subject.metadata.uid)

    def told(self, uid: str, now: PermissionResponse) -> None:
        """The broker would answer so now. Only where something is granted, or nothing ever will be, is it asked."""
        if now.permissions or now.status.code is not StatusCode.DISALLOW_TEMP:
            self.asking.expire(uid)
        else:
            self.asking.amend(uid, partial(_with_reasons, now))

    def decided(self, view: RequestView, now: datetime) -> Plan:
        request, again = view.subject, retry_after(view, now)
        if view.answer is None or view.stale or view.answer.generation != request.metadata.generation or again == 0.0:
            return self.asked(request)
        status = composed(view, view.answer.said, now)
        written = PatchStatus(request, replace(request, status=status))
        return Plan(status=written, events=_events(request, status), requeue_after=again)


def _with_reasons(now: PermissionResponse, before: PermissionResponse) -> PermissionResponse:
    """What was granted before stays so."""
    status = now.status if before.status.code is now.status.code else before.status
    return replace(before, status=status, refused=now.refused, deadline=now.deadline)


def retry_after(view: RequestView, now: datetime) -> float | None:
    """Seconds until the broker is to be asked again by time alone, zero if that is now; None: never."""
    if view.answer is None or view.answer.said.status.code is not StatusCode.ERROR_TEMP:
        return None
    deadline = to_datetime(view.answer.said.deadline) if view.answer.said.deadline is not None else None
    if deadline is None:
        return _RETRY
    return max(0.0, (deadline - now).total_seconds())


def composed(view: RequestView, said: PermissionResponse, now: datetime) -> PermissionRequestStatus:
    """The status that shows an answer, and the same one as before if it says nothing new."""
    before, generation, held = view.subject.status, view.subject.metadata.generation, view.held
    deadline = to_datetime(said.deadline) if said.deadline is not None else None
    verdict = _REASONS[said.status.code](said.status.reason)
    status = replace(
        before,
        observed_generation=generation,
        id=held.stored.id if held.stored is not None else "",
        code=said.status.code,
        message=said.status.reason[:MESSAGE],
        deadline=deadline,
        position=held.place,
        permissions=tuple(entry.id for entry in held.permissions if not entry.lapsed),
        refused=tuple(
            RefusedAction(action=words.shown(action), issue=action.issue or Issue())
            for action in said.refused[:REFUSED]
        ),
        conditions=conditions.merge(before.conditions, [verdict], now=now, generation=generation),
    )
    # A moment to come back at that is still to come is as good as a later one.
    if before.deadline is not None and deadline is not None and now < before.deadline <= deadline:
        status = replace(status, deadline=before.deadline)
    return before if status == before else replace(status, last_checked_at=now.replace(microsecond=0))


def _events(request: PermissionRequest, status: PermissionRequestStatus) -> tuple[PlanEvent, ...]:
    if status.code is request.status.code or status.code is None:
        return ()
    granted = status.code in (StatusCode.ALLOW, StatusCode.ALLOW_PARTIAL)
    return (PlanEvent(request, _REASONS[status.code].code, status.message or status.code, warning=not granted),)
