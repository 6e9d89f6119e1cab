"""Permissions that were given: LIST, GET, DONE, EXTEND, REJECT. All that are named, or none."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.maintenance.action import Issue, StatusCode
from quorate.api.struct import replace
from quorate.errors import Conflict
from quorate.maintenance.broker.answers import OK, permission
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.callers import user_of
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.quotas import longest
from quorate.maintenance.broker.tasks import forget_permissions
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import (
    Caller,
    ManagePermission,
    ManagePermissionResponse,
    PermissionCommand,
    Status,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import FOREVER, later
from quorate.maintenance.rules import is_down, may_extend


class Permissions:
    """ManagePermission."""

    def __init__(self, core: Core, turns: Turns) -> None:
        self._core = core
        self._turns = turns

    async def manage(self, asked: ManagePermission, caller: Caller) -> ManagePermissionResponse:
        """List, get, end, extend or give back."""
        core = self._core
        user = user_of(asked.user, caller)
        core.open()
        match asked.command:
            case PermissionCommand.LIST:
                mine = (one for one in core.book.permissions.values() if one.owner == user)
                return self._shown(OK, sorted(mine, key=lambda one: one.order))
            case PermissionCommand.GET:
                return self._shown(OK, own_permissions(core.book, asked.permissions, user))
            case PermissionCommand.EXTEND:
                return await self._extend(asked, user)
            case PermissionCommand.DONE | PermissionCommand.REJECT:
                own_permissions(core.book, asked.permissions, user)
                if not asked.dry_run:
                    await self._turns.take(lambda draft: self._end(draft, asked, user), weighs=False)
                return ManagePermissionResponse(status=OK)
            case None:
                raise wrong("Command is not given: LIST, GET, DONE, EXTEND or REJECT is expected")

    def _end(self, draft: Draft, asked: ManagePermission, user: str) -> None:
        entries = own_permissions(draft.book, asked.permissions, user)
        if asked.command is PermissionCommand.DONE:
            end_all(draft, entries, "DONE")
        else:
            give_back(draft, self._core.model, entries, "REJECT")

    async def _extend(self, asked: ManagePermission, user: str) -> ManagePermissionResponse:
        try:
            return await self._extended(asked, user)
        except _NotExtended as declined:
            return self._shown(declined.status, declined.entries)

    async def _extended(self, asked: ManagePermission, user: str) -> ManagePermissionResponse:
        core = self._core
        own_permissions(core.book, asked.permissions, user)
        deadline = asked.deadline
        if deadline is None or not 0 <= deadline <= FOREVER:
            raise wrong(f"Deadline is {deadline}: EXTEND needs the new one, in microseconds since 1970")
        now = core.weigh()
        if asked.dry_run:
            entries = own_permissions(core.book, asked.permissions, user)
            self._check(entries, deadline, now)
            return self._shown(_ALLOW, [replace(entry, deadline=deadline) for entry in entries])

        def decide(draft: Draft) -> list[PermissionEntry]:
            entries = own_permissions(draft.book, asked.permissions, user)
            self._check(entries, deadline, draft.now)
            return [_moved(draft, entry, deadline) for entry in entries]

        return self._shown(_ALLOW, await self._turns.take(decide, weighs=True))

    def _check(self, entries: list[PermissionEntry], deadline: int, now: int) -> None:
        """Declined if some of them cannot last that long. Less time is always granted."""
        refused = []
        longer = [entry for entry in entries if deadline > entry.deadline]
        for entry in longer:
            refusal = may_extend(
                self._core.model,
                entry,
                deadline,
                now,
                mode=entry.availability_mode,
                tenant_policy=entry.tenant_policy,
            )
            if refusal is not None:
                self._core.metrics.refused(refusal.issue.type)
                refused.append(replace(entry, action=replace(entry.action, issue=refusal.issue)))
        if refused:
            raise _NotExtended(refused)
        for entry in longer:
            latest = later(now, longest(self._core.config.quotas, entry.owner))
            if deadline > latest:
                allowed = f"allowed is {latest} at most (quotas.duration of the BrokerConfig)"
                raise wrong(f"Deadline is {deadline}: {allowed}")

    def _shown(self, status: Status, entries: Iterable[PermissionEntry]) -> ManagePermissionResponse:
        shown = tuple(permission(self._core.model, entry) for entry in entries)
        return ManagePermissionResponse(status=status, permissions=shown)


_ALLOW = Status(code=StatusCode.ALLOW)


class _NotExtended(Declined):
    """These cannot last longer, and each says why."""

    def __init__(self, entries: list[PermissionEntry]) -> None:
        first = entries[0]
        assert first.action.issue is not None
        super().__init__(StatusCode.DISALLOW, f"{first.id} cannot be extended: {first.action.issue.message}")
        self.entries = entries


def _moved(draft: Draft, entry: PermissionEntry, deadline: int) -> PermissionEntry:
    try:
        return draft.move(entry, deadline)
    except Conflict as conflict:
        issue = Issue(message=str(conflict))
        raise _NotExtended([replace(entry, action=replace(entry.action, issue=issue))]) from conflict


def own_permissions(book: Book, ids: Iterable[str], user: str) -> list[PermissionEntry]:
    """In the order named, each once. Declined at the first that is not this user's."""
    found = []
    for permission_id in dict.fromkeys(ids):
        entry = book.permissions.get(permission_id)
        if entry is None or entry.owner != user:
            raise wrong(f"{user} has no permission {permission_id!r}: it may be over, or never have been")
        found.append(entry)
    return found


def end_all(draft: Draft, entries: Iterable[PermissionEntry], why: str) -> None:
    """What they were for is done: nothing of them stays."""
    for entry in entries:
        draft.end(entry, why)
        forget_permissions(draft, [entry])


def give_back(draft: Draft, model: ClusterModel, entries: Iterable[PermissionEntry], why: str) -> None:
    """Over from now on. Where something is down the lock stays, past its deadline, until that is up."""
    for entry in entries:
        if not entry.lapsed and is_down(model, entry):
            draft.move(entry, min(entry.deadline, draft.now))
        else:
            end_all(draft, [entry], why)
