"""Kubernetes objects that ask, tell and are deleted. Their uid is written with what they got: none gets it twice."""

from __future__ import annotations

from quorate.api.struct import replace
from quorate.maintenance.broker.answers import OK, permission
from quorate.maintenance.broker.callers import user_of
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.permissions import give_back
from quorate.maintenance.broker.quotas import has_quota, longest
from quorate.maintenance.broker.requests import Requests
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.broker.validation import check_request
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import Caller, Permission, PermissionRequest, PermissionResponse, Status


class Objects:
    """Submit and withdraw."""

    def __init__(self, core: Core, turns: Turns, requests: Requests) -> None:
        self._core = core
        self._turns = turns
        self._requests = requests

    async def submit(self, asked: PermissionRequest, caller: Caller, object_uid: str) -> PermissionResponse:
        """For the first time, or again."""
        if asked.dry_run:
            return await self._requests.ask(asked, caller)
        user = user_of(asked.user, caller)
        check_request(asked, longest=longest(self._core.config.quotas, user))
        limited = has_quota(user, caller)
        self._core.weigh()
        return await self._turns.weigh(lambda draft: self._decide(draft, asked, user, object_uid, limited=limited))

    async def withdraw(self, object_uid: str) -> Status:
        """The object is being deleted."""
        self._core.open()
        await self._turns.take(lambda draft: self._withdraw(draft, object_uid), weighs=False)
        return OK

    async def _decide(
        self, draft: Draft, asked: PermissionRequest, user: str, object_uid: str, *, limited: bool
    ) -> PermissionResponse:
        earlier = tuple(self._shown(entry) for entry in _held(draft, object_uid))
        served = draft.book.served.get(object_uid)
        if served is not None:
            return PermissionResponse(status=Status(code=served.code, reason=served.reason), permissions=earlier)
        stored = next((one for one in draft.book.requests.values() if one.object_uid == object_uid), None)
        if stored is not None:
            answer = await self._requests.decide_again(draft, stored, asked.availability_mode)
        else:
            answer = await self._requests.decide(draft, asked, user, limited=limited, object_uid=object_uid)
        return replace(answer, permissions=(*earlier, *answer.permissions))

    def _withdraw(self, draft: Draft, object_uid: str) -> None:
        for request in tuple(draft.book.requests.values()):
            if request.object_uid == object_uid:
                draft.drop(request)
        for notification in tuple(draft.book.notifications.values()):
            if notification.object_uid == object_uid:
                draft.withdraw(notification)
        give_back(draft, self._core.model, _held(draft, object_uid), "WITHDRAWN")
        draft.forget(object_uid)

    def _shown(self, entry: PermissionEntry) -> Permission:
        return permission(self._core.model, entry)


def _held(draft: Draft, object_uid: str) -> list[PermissionEntry]:
    return [entry for entry in draft.book.permissions.values() if entry.object_uid == object_uid]
