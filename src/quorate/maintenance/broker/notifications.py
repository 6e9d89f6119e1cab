"""Notifications: work that is not asked for but told. Whether it is wise is not checked: it is a statement of fact."""

from __future__ import annotations

from quorate.maintenance.broker.answers import OK
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.callers import user_of
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.quotas import check_notification_quota, has_quota, longest
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.broker.validation import check_notification
from quorate.maintenance.entries import NotificationEntry
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.messages import (
    Caller,
    ManageNotification,
    ManageNotificationResponse,
    NotificationCommand,
    NotificationRequest,
    NotificationResponse,
    StoredNotification,
)
from quorate.maintenance.moments import later
from quorate.maintenance.rules import resolve


class Notifications:
    """Notification and ManageNotification."""

    def __init__(self, core: Core, turns: Turns) -> None:
        self._core = core
        self._turns = turns

    async def tell(self, asked: NotificationRequest, caller: Caller, *, object_uid: str) -> NotificationResponse:
        """This will happen."""
        user = user_of(asked.user, caller)
        check_notification(asked, longest=longest(self._core.config.quotas, user))
        self._core.weigh()
        limited = has_quota(user, caller)
        return await self._turns.take(
            lambda draft: self._note(draft, asked, user, object_uid, limited=limited), weighs=True
        )

    async def manage(self, asked: ManageNotification, caller: Caller) -> ManageNotificationResponse:
        """List, get or withdraw."""
        core = self._core
        user = user_of(asked.user, caller)
        core.open()
        if asked.command is NotificationCommand.LIST:
            mine = (one for one in core.book.notifications.values() if one.owner == user)
            shown = tuple(_shown(entry) for entry in sorted(mine, key=lambda one: one.order))
            return ManageNotificationResponse(status=OK, notifications=shown)
        if asked.command is None:
            raise wrong("Command is not given: LIST, GET or REJECT is expected")
        entry = _own(core.book, asked.notification_id, user)
        if asked.command is NotificationCommand.GET:
            return ManageNotificationResponse(status=OK, notifications=(_shown(entry),))
        if not asked.dry_run:
            await self._turns.take(lambda draft: _withdraw(draft, asked.notification_id, user), weighs=False)
        return ManageNotificationResponse(status=OK)

    def _note(
        self, draft: Draft, asked: NotificationRequest, user: str, object_uid: str, *, limited: bool
    ) -> NotificationResponse:
        if object_uid:
            known = next((one for one in draft.book.notifications.values() if one.object_uid == object_uid), None)
            if known is not None:
                return NotificationResponse(status=OK, notification_id=known.id)
        if limited:
            retry_at = later(draft.now, self._core.retry)
            check_notification_quota(self._core.config.quotas, draft.book, user, len(asked.actions), retry_at=retry_at)
        for index, action in enumerate(asked.actions):
            if not action.duration:
                raise wrong(f"Actions[{index}].Duration is missing or zero: say how long it will be away")
            if later(asked.time, action.duration) < draft.now:
                raise wrong(f"Actions[{index}] is over already: Time and Duration end before now")
            found = resolve(self._core.model, action)
            if isinstance(found, Refusal):
                raise Declined(found.code, found.issue.message)
        entry = draft.announce(user, asked.actions, asked.time, reason=asked.reason, object_uid=object_uid)
        return NotificationResponse(status=OK, notification_id=entry.id)


def _own(book: Book, notification_id: str, user: str) -> NotificationEntry:
    entry = book.notifications.get(notification_id)
    if entry is None or entry.owner != user:
        raise wrong(f"{user} has no notification {notification_id!r}: it may be over, or never have been")
    return entry


def _withdraw(draft: Draft, notification_id: str, user: str) -> None:
    draft.withdraw(_own(draft.book, notification_id, user))


def _shown(entry: NotificationEntry) -> StoredNotification:
    return StoredNotification(
        notification_id=entry.id, owner=entry.owner, actions=entry.actions, time=entry.time, reason=entry.reason
    )
