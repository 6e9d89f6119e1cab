"""Requests: asking, asking again, and managing what is stored."""

from __future__ import annotations

import asyncio

from quorate.api.maintenance.action import MAX_ACTIONS, AvailabilityMode, StatusCode
from quorate.api.names import broker_id
from quorate.api.names import request as request_name
from quorate.api.struct import replace
from quorate.engine.logs import get_logger
from quorate.errors import Conflict
from quorate.maintenance.broker.answers import OK, WAITING, bare, granted, in_short, tried
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.callers import user_of
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.quotas import check_request_quota, has_quota, longest
from quorate.maintenance.broker.renewal import WALLE, renewed
from quorate.maintenance.broker.runs import check_run
from quorate.maintenance.broker.tasks import follow_request, forget_request
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.broker.validation import check_request
from quorate.maintenance.entries import PermissionEntry, RequestEntry, ServedEntry
from quorate.maintenance.evaluation import Evaluation
from quorate.maintenance.messages import (
    Action,
    Caller,
    CheckRequest,
    ManageRequest,
    ManageRequestResponse,
    PermissionRequest,
    PermissionResponse,
    RequestCommand,
    ScheduledRequest,
    Status,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import later
from quorate.maintenance.slices import Disturbed, weigh

log = get_logger(__name__)


class Requests:
    """PermissionRequest, CheckRequest, ManageRequest."""

    def __init__(self, core: Core, turns: Turns) -> None:
        self._core = core
        self._turns = turns
        #: Each takes a slice of every round of the loop: one at a time, however many try at once.
        self._one_trial = asyncio.Lock()

    async def ask(self, asked: PermissionRequest, caller: Caller) -> PermissionResponse:
        """May these be done?"""
        core = self._core
        user = user_of(asked.user, caller)
        check_request(asked, longest=longest(core.config.quotas, user))
        limited = has_quota(user, caller)
        if asked.dry_run:
            async with self._one_trial:
                now = core.weigh()
                entry = new_entry(core.model, asked, user, core.book.counters.requests + 1, now)
                self._check_room(core.book, entry, now, limited=limited, schedule=asked.schedule)
                return tried(core.model, await weighed(core, entry, now), now)
        core.weigh()
        return await self._turns.weigh(lambda draft: self.decide(draft, asked, user, limited=limited))

    async def check(self, asked: CheckRequest, caller: Caller) -> PermissionResponse:
        """May the rest of a stored request be done now?"""
        core = self._core
        user = user_of(asked.user, caller)
        if asked.dry_run:
            async with self._one_trial:
                now = core.weigh()
                entry = _again(own_request(core.book, asked.request_id, user), asked.availability_mode)
                evaluation = await weighed(core, entry, now)
            kept = evaluation.code in WAITING
            return tried(core.model, evaluation, now, request_id=entry.id if kept else "")
        core.weigh()

        async def decide(draft: Draft) -> PermissionResponse:
            entry = own_request(draft.book, asked.request_id, user)
            return await self.decide_again(draft, entry, asked.availability_mode)

        return await self._turns.weigh(decide)

    async def manage(self, asked: ManageRequest, caller: Caller) -> ManageRequestResponse:
        """List, get or withdraw stored requests."""
        core = self._core
        user = user_of(asked.user, caller)
        now = core.open()
        if asked.command is RequestCommand.LIST:
            mine = sorted((one for one in core.book.requests.values() if one.owner == user), key=lambda one: one.order)
            return ManageRequestResponse(status=OK, requests=_shown(core.book, mine))
        if asked.command is None:
            raise wrong("Command is not given: LIST, GET or REJECT is expected")
        entry = own_request(core.book, asked.request_id, user)
        if asked.command is RequestCommand.GET:
            if not asked.dry_run:
                self.renew(entry, now)
            return ManageRequestResponse(status=OK, requests=_shown(core.book, [entry]))
        if not asked.dry_run:
            await self._turns.take(lambda draft: _reject(draft, asked.request_id, user), weighs=False)
        return ManageRequestResponse(status=OK)

    def renew(self, entry: RequestEntry, now: int) -> None:
        """Somebody asked about it. Nobody waits for that to be written."""

        def decide(draft: Draft) -> None:
            current = draft.book.requests.get(entry.id)
            if current is not None and not current.object_uid and current.renewed_at < now:
                draft.keep(renewed(current, now))

        self._turns.soon(decide)

    async def decide(
        self, draft: Draft, asked: PermissionRequest, user: str, *, limited: bool, object_uid: str = ""
    ) -> PermissionResponse:
        """A new request, in its turn; ``limited``: the user has a quota."""
        model = self._core.model
        number = draft.book.counters.requests + 1
        entry = new_entry(model, asked, user, number, draft.now, object_uid=object_uid)
        self._check_room(draft.book, entry, draft.now, limited=limited, schedule=asked.schedule)
        evaluation = await weighed(self._core, entry, draft.now)
        stored = asked.schedule and evaluation.code in WAITING and bool(evaluation.left)
        request_id = entry.id if stored else ""
        permissions = self._grant(draft, entry, evaluation, request_id)
        if stored:
            draft.store(_rest(entry, evaluation, draft.now))
        elif permissions:
            _serve(draft, entry, evaluation)
        return granted(model, evaluation, permissions, request_id=request_id)

    async def decide_again(
        self, draft: Draft, entry: RequestEntry, mode: AvailabilityMode | None = None
    ) -> PermissionResponse:
        """A stored request, in its turn. What is refused for good is not kept."""
        model = self._core.model
        if entry.run and not model.blocks(entry.id):
            # It was silent for so long that another run could begin with its hosts.
            try:
                check_run(model, draft.book, entry)
            except Declined as clash:
                draft.drop(entry)
                return PermissionResponse(status=Status(code=StatusCode.DISALLOW, reason=clash.status.reason))
        asking = _again(entry, mode)
        evaluation = await weighed(self._core, asking, draft.now)
        permissions = self._grant(draft, asking, evaluation, entry.id)
        kept = evaluation.code in WAITING
        if kept:
            draft.keep(_rest(asking, evaluation, draft.now))
        else:
            draft.drop(entry)
            _serve(draft, entry, evaluation)
        if entry.owner == WALLE:
            follow_request(draft, entry, permissions, allowed=kept or evaluation.code is StatusCode.ALLOW)
        return granted(model, evaluation, permissions, request_id=entry.id if kept else "")

    def _check_room(self, book: Book, entry: RequestEntry, now: int, *, limited: bool, schedule: bool) -> None:
        """Declined: the user's quota is used up, or another run has to do with these hosts."""
        core = self._core
        if limited:
            retry_at = later(now, core.retry)
            check_request_quota(core.config.quotas, book, entry, schedule=schedule, retry_at=retry_at)
        if entry.run:
            check_run(core.model, book, entry)

    def _grant(
        self, draft: Draft, entry: RequestEntry, evaluation: Evaluation, request_id: str
    ) -> list[PermissionEntry]:
        core = self._core
        for refusal in evaluation.refusals:
            core.metrics.refused(refusal.issue.type)
        if evaluation.refusals:
            log.info(
                "not everything was granted",
                user=entry.owner,
                request=request_id,
                code=evaluation.code.value,
                granted=len(evaluation.grants),
                refused=len(evaluation.refusals),
                why=evaluation.refusals[0].issue.message,
            )
        try:
            return [draft.grant(entry, grant, request_id=request_id) for grant in evaluation.grants]
        except Conflict as conflict:
            raise Declined(StatusCode.DISALLOW_TEMP, str(conflict), deadline=later(draft.now, core.retry)) from conflict


async def weighed(core: Core, entry: RequestEntry, now: int) -> Evaluation:
    """The rules' answer, good until the next await. Declined: the cluster does not rest long enough to tell."""
    try:
        return await weigh(core.model, entry, now)
    except Disturbed as error:
        raise core.busy(f"{error}: ask again, for fewer at once, or with PartialPermissionAllowed") from None


def own_request(book: Book, request_id: str, user: str) -> RequestEntry:
    """Declined if there is none of that id, or it is somebody else's: which of the two is nobody's business."""
    entry = book.requests.get(request_id)
    if entry is None or entry.owner != user:
        raise wrong(f"{user} has no stored request {request_id!r}: it may be done, withdrawn or never have been")
    return entry


def new_entry(
    model: ClusterModel, asked: PermissionRequest, user: str, number: int, now: int, *, object_uid: str = ""
) -> RequestEntry:
    """A request as it would be stored."""
    return RequestEntry(
        id=broker_id(user, request_name(number)),
        order=number,
        owner=user,
        actions=_expanded(model, asked.actions),
        partial_permission_allowed=asked.partial_permission_allowed,
        reason=asked.reason,
        duration=asked.duration,
        tenant_policy=asked.tenant_policy,
        availability_mode=asked.availability_mode,
        priority=asked.priority or model.settings.priority_of(user),
        stored_at=now,
        renewed_at=now,
        last_deadline=0,
        object_uid=object_uid,
        run=asked.run,
    )


def _expanded(model: ClusterModel, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """An action on a tenant is one on each of its hosts. A tenant without hosts stays, for the rules to refuse."""
    if not any(action.tenant for action in actions):
        return actions
    found = tuple(
        replace(action, tenant="", host=host) if host else action
        for action in actions
        for host in ((model.hosts_of_tenant(action.tenant) if action.tenant else ()) or ("",))
    )
    if len(found) > MAX_ACTIONS:
        raise wrong(f"{len(found)} actions on the hosts of these tenants: at most {MAX_ACTIONS} are allowed")
    return found


def _again(entry: RequestEntry, mode: AvailabilityMode | None) -> RequestEntry:
    """To be weighed once more, in another mode if one is given."""
    actions = tuple(bare(action) for action in entry.actions)
    return replace(entry, actions=actions, availability_mode=mode if mode is not None else entry.availability_mode)


def _rest(entry: RequestEntry, evaluation: Evaluation, now: int) -> RequestEntry:
    """What stays stored. An object is its own sign of life: looking at it again and again writes nothing."""
    rest = replace(entry, actions=tuple(in_short(action) for action in evaluation.left))
    return rest if entry.object_uid else renewed(rest, now, evaluation.deadline)


def _serve(draft: Draft, entry: RequestEntry, evaluation: Evaluation) -> None:
    """Nothing of it waits any more: its object, if it has one, has its answer, whoever asked."""
    if entry.object_uid:
        draft.serve(ServedEntry(object_uid=entry.object_uid, code=evaluation.code, reason=evaluation.reason))


def _reject(draft: Draft, request_id: str, user: str) -> None:
    entry = own_request(draft.book, request_id, user)
    draft.drop(entry)
    forget_request(draft, entry)
    if entry.object_uid:
        draft.serve(
            ServedEntry(
                object_uid=entry.object_uid,
                code=StatusCode.WRONG_REQUEST,
                reason=f"{request_id} was withdrawn by {user}",
            )
        )


def _shown(book: Book, entries: list[RequestEntry]) -> tuple[ScheduledRequest, ...]:
    places = {entry.id: place for place, entry in enumerate(book.queue(), 1)} if entries else {}
    return tuple(
        ScheduledRequest(
            request_id=entry.id,
            owner=entry.owner,
            actions=entry.actions,
            partial_permission_allowed=entry.partial_permission_allowed,
            reason=entry.reason,
            availability_mode=entry.availability_mode,
            priority=entry.priority,
            position=places[entry.id],
            run=entry.run,
        )
        for entry in entries
    )
