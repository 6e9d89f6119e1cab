"""What one user may have at once (BrokerConfig ``quotas``): nobody fills the queue and the ledger for everybody.

Whoever is an admin is trusted with any number, for whomever they ask. So are the users of Quorate itself, which ask for
what others have begun (a drive's removal, a task of Wall-E), and which nobody but they, and admins, may speak for.
How long something may be away is limited for admins too: a duration without end is a mistake, and locks for good. Only
Quorate's own users mean it: a drive that is removed does not come back, and Wall-E says when a task is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.broker_config import Quotas
from quorate.api.names import DRIVES_USER
from quorate.maintenance.broker.book import MONITOR, Book
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.broker.renewal import WALLE
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.messages import Caller
from quorate.maintenance.moments import FOREVER


class _Owned(Protocol):
    @property
    def owner(self) -> str: ...


OWN_USERS: Final = frozenset({DRIVES_USER, WALLE, MONITOR})


def has_quota(user: str, caller: Caller) -> bool:
    """Whether only so much may be had."""
    return user not in OWN_USERS and (caller.anyone or not caller.admin)


def longest(quotas: Quotas, user: str) -> int:
    """How long something of this user may be away."""
    return FOREVER if user in OWN_USERS else quotas.duration.microseconds or FOREVER


def check_request_quota(quotas: Quotas, book: Book, asked: RequestEntry, *, schedule: bool, retry_at: int) -> None:
    """Declined if its user cannot have one more request of so many actions; ``schedule``: it is to be stored."""
    user = asked.owner
    if schedule:
        stored = _count(book.requests.values(), user)
        _check(quotas.requests, stored, user, "stored requests", "Schedule", "quotas.requests", retry_at)
    _check_actions(quotas, book, user, len(asked.actions), retry_at)


def check_notification_quota(quotas: Quotas, book: Book, user: str, actions: int, *, retry_at: int) -> None:
    """Declined if this user cannot have one more notification of so many actions."""
    told = _count(book.notifications.values(), user)
    _check(quotas.requests, told, user, "notifications", "Notification", "quotas.requests", retry_at)
    _check_actions(quotas, book, user, actions, retry_at)


def _check(allowed: int, has: int, user: str, what: str, field: str, setting: str, retry_at: int) -> None:
    if allowed and has >= allowed:
        raise Declined(
            StatusCode.ERROR_TEMP,
            f"{field}: {user} has {has} {what}, and at most {allowed} are allowed ({setting} of the BrokerConfig): "
            "withdraw some, or wait until some are over",
            deadline=retry_at,
        )


def _check_actions(quotas: Quotas, book: Book, user: str, asked: int, retry_at: int) -> None:
    allowed = quotas.actions
    if not allowed:
        return
    if asked > allowed:
        raise wrong(f"Actions has {asked}: one user may have {allowed} (quotas.actions of the BrokerConfig)")
    waiting = sum(len(entry.actions) for entry in book.requests.values() if entry.owner == user)
    told = sum(len(entry.actions) for entry in book.notifications.values() if entry.owner == user)
    in_force = (entry for entry in book.permissions.values() if not entry.lapsed)
    has = waiting + told + _count(in_force, user)
    if has + asked > allowed:
        raise Declined(
            StatusCode.ERROR_TEMP,
            f"Actions has {asked}, and {user} has {has} in requests, notifications and permissions: at most {allowed} "
            "are allowed (quotas.actions of the BrokerConfig): withdraw some, or wait until some are over",
            deadline=retry_at,
        )


def _count(entries: Iterable[_Owned], user: str) -> int:
    return sum(entry.owner == user for entry in entries)
