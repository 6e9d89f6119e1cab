"""What a task of Wall-E consists of: a stored request, or the permissions that it got. Without both it is over."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.struct import replace
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.renewal import WALLE
from quorate.maintenance.entries import PermissionEntry, RequestEntry, TaskEntry


def alive(book: Book, task: TaskEntry) -> bool:
    """Whether anything is left of it."""
    return task.request_id in book.requests or any(one in book.permissions for one in task.permission_ids)


def follow_request(draft: Draft, entry: RequestEntry, permissions: Iterable[PermissionEntry], *, allowed: bool) -> None:
    """A request was asked about again, whoever did: its task has what it got. Refused for good, it is over."""
    given = tuple(permission.id for permission in permissions)
    for task in [task for task in draft.book.tasks.values() if task.request_id == entry.id]:
        if not allowed:
            draft.drop_task(task)
        elif given:
            request_id = entry.id if entry.id in draft.book.requests else ""
            draft.put_task(replace(task, request_id=request_id, permission_ids=(*task.permission_ids, *given)))


def forget_request(draft: Draft, entry: RequestEntry) -> None:
    """A request was dropped by hand: so is its task, if it has nothing else."""
    if entry.owner == WALLE:
        _tidy(draft, [task for task in draft.book.tasks.values() if task.request_id == entry.id])


def forget_permissions(draft: Draft, entries: Iterable[PermissionEntry]) -> None:
    """Permissions ended by hand: so is their task, if it has nothing else."""
    ended = {entry.id for entry in entries if entry.owner == WALLE}
    if ended:
        _tidy(draft, [task for task in draft.book.tasks.values() if not ended.isdisjoint(task.permission_ids)])


def _tidy(draft: Draft, tasks: list[TaskEntry]) -> None:
    for task in tasks:
        if not alive(draft.book, task):
            draft.drop_task(task)
            continue
        left = tuple(one for one in task.permission_ids if one in draft.book.permissions)
        request_id = task.request_id if task.request_id in draft.book.requests else ""
        draft.put_task(replace(task, permission_ids=left, request_id=request_id))
