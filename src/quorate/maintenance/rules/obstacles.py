"""What stands in somebody's way on an item: a lock that counts for them, or that the item is away.

An obstacle knows at which moment it can end: a permission at its deadline, if the item is up then; announced work at
its end; an earlier action of the same request when the permission that it becomes ends. Of a broken disk or of a lock
without end nobody knows: it is worth looking again after the usual time, and if somebody is before us in the queue also
when they fall silent. ``until`` is what people are told, and promises no more than was said: work under a permission
may begin at its deadline and last its duration; of what is down nobody knows when it is back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from quorate.api.maintenance.action import Blocker, HostState, Issue, IssueType, LockKind, StatusCode
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.messages import Action
from quorate.maintenance.model.items import Item, VDiskItem
from quorate.maintenance.model.locks import Announced, Held, Lock, Queued
from quorate.maintenance.model.trial import Taken
from quorate.maintenance.moments import FOREVER, later, to_datetime
from quorate.maintenance.rules.inquiry import Inquiry

#: What an Issue has room for.
MAX_BLOCKERS: Final = 16
MAX_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing in the way."""

    label: str
    #: Locked; otherwise it is away without anybody's leave.
    locked: bool
    #: The moment at which it ends, or at which it is worth looking again.
    ends: int
    kind: LockKind | None = None
    id: str = ""
    owner: str = ""
    #: It is of the same request.
    taken: Taken | None = None
    #: The part of a group that it concerns.
    member: VDiskItem | None = None
    #: What requests call it, where that is not its label.
    name: str = ""
    #: When it is over at the latest, if all goes as was said; None: nobody can say.
    until: int | None = None
    #: Down by permission for longer than was said: it is broken, whoever holds it.
    overdue: bool = False

    def __str__(self) -> str:
        if self.kind is LockKind.PERMISSION:
            return f"{self.label} is locked by permission {self.id} of {self.owner}"
        if self.kind is LockKind.NOTIFICATION:
            return f"on {self.label} work is announced by notification {self.id} of {self.owner}"
        if self.kind is LockKind.SCHEDULED_REQUEST:
            return f"{self.label} is asked for by request {self.id} of {self.owner}, which goes first"
        if self.kind is LockKind.TEMPORARY:
            return f"{self.label} is taken by the same request"
        if self.kind is LockKind.TRANSITION:
            return f"{self.label}: {self.id}"
        return f"{self.label} is {'restarting' if self.locked else 'not available'}"

    def blocker(self) -> Blocker:
        """As refusals carry it."""
        until = None if self.until is None else to_datetime(self.until)
        name = self.name or self.label
        return Blocker(object=name[:253], lock=self.kind, id=self.id[:160], owner=self.owner[:128], until=until)


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an action may not be done."""

    code: StatusCode
    type: IssueType
    message: str
    obstacles: Sequence[Obstacle] = ()
    deadline: int | None = None

    def refusal(self, action: Action) -> Refusal:
        """As the rules answer it."""
        blockers = tuple(obstacle.blocker() for obstacle in self.obstacles[:MAX_BLOCKERS])
        issue = Issue(type=self.type, message=self.message[:MAX_MESSAGE], blockers=blockers)
        return Refusal(action, self.code, issue, self.deadline)


def lock_on(inquiry: Inquiry, item: Item) -> Obstacle | None:
    """The first lock on an item that counts for who asks; being restarted is one."""
    return next(locks_on(inquiry, item), None) if _may_be_locked(inquiry, item) else None


def locks_on(inquiry: Inquiry, item: Item) -> Iterator[Obstacle]:
    """All of them: permissions, announced work, who goes first, the same request."""
    yield from stored_locks_on(inquiry, item)
    taken = inquiry.trial.taken.get(item)
    if taken is not None:
        ends, kind = inquiry.end_of(taken), LockKind.TEMPORARY
        until = taken.over if ends < FOREVER and taken.over < FOREVER else None
        yield Obstacle(item.label, True, ends, kind=kind, taken=taken, name=item.name, until=until)


def stored_locks_on(inquiry: Inquiry, item: Item) -> Iterator[Obstacle]:
    """All but the request's own."""
    if inquiry.ideal:
        return
    now, locks, away = inquiry.now, item.locks, item.state is not HostState.UP
    held = [] if locks is None else [held for held in locks.held if away or held.deadline > now]
    for lock in held:
        yield _held(inquiry, item, lock)
    if item.state is HostState.RESTART and not held:
        yield Obstacle(item.label, True, inquiry.retry_at, name=item.name)
    if locks is None:
        return
    for announced in locks.announced:
        if announced.start <= inquiry.horizon and announced.end >= now:
            yield _announced(inquiry, item, announced)
    if inquiry.behind:
        yield from _queued_before(inquiry, item, locks.queued)


def stops_force(inquiry: Inquiry, obstacle: Obstacle) -> bool:
    """By force one part of a group goes at a time: not beside what somebody else works on, or may any moment."""
    at_work = obstacle.locked and not obstacle.overdue and obstacle.kind is not LockKind.TRANSITION
    return at_work and not (obstacle.kind is LockKind.TEMPORARY and inquiry.is_own(obstacle.taken))


def objection_to(inquiry: Inquiry, item: Item) -> Objection | None:
    """An item that somebody has cannot be had: not before the last of its locks is gone."""
    if not _may_be_locked(inquiry, item):
        return None
    obstacles = tuple(locks_on(inquiry, item))
    if not obstacles:
        return None
    return weigh(inquiry, IssueType.GENERIC, str(obstacles[0]), obstacles, lambda left: not left)


def weigh(
    inquiry: Inquiry,
    issue: IssueType,
    message: str,
    obstacles: Sequence[Obstacle],
    allows: Callable[[Sequence[Obstacle]], bool],
) -> Objection:
    """A rule refuses because of these; not before enough of them have ended."""
    return Objection(StatusCode.DISALLOW_TEMP, issue, message, obstacles, _earliest(inquiry, obstacles, allows))


def _earliest(inquiry: Inquiry, obstacles: Sequence[Obstacle], allows: Callable[[Sequence[Obstacle]], bool]) -> int:
    """The first moment at which enough of them have ended. What is taken in part will be a permission by then."""
    left = sorted((_then(inquiry, obstacle) for obstacle in obstacles), key=lambda obstacle: obstacle.ends)
    if left and allows(left):
        return inquiry.now
    # Whatever a rule allows it allows with less in the way too, so there is one point from which on it does. There may
    # be a thousand in the queue: one by one they took most of a second.
    gone = bisect_left(range(len(left) + 1), True, key=lambda number: allows(left[number:]))
    return left[gone - 1].ends if 0 < gone <= len(left) else inquiry.retry_at


def _then(inquiry: Inquiry, obstacle: Obstacle) -> Obstacle:
    granted = obstacle.taken is not None and not inquiry.concerns(obstacle.taken)
    return replace(obstacle, taken=None) if granted else obstacle


def _may_be_locked(inquiry: Inquiry, item: Item) -> bool:
    return item.locks is not None or item.state is HostState.RESTART or item in inquiry.trial.taken


def _held(inquiry: Inquiry, item: Item, lock: Held) -> Obstacle:
    # The work may begin at the deadline, and last as long as was said.
    expected = later(lock.deadline, lock.duration)
    if item.state is HostState.UP:
        # At its deadline it lets go, if nothing is down then.
        ends = lock.deadline if lock.deadline < FOREVER else inquiry.retry_at
        until = expected if expected < FOREVER else None
        return _by(item, lock, LockKind.PERMISSION, ends, until=until)
    # It went down under the permission: the work should be over in time, but the lock stays until its owner gives it
    # back, or the item is up.
    overdue = expected <= inquiry.now
    ends = inquiry.retry_at if overdue else min(expected, inquiry.retry_at)
    return replace(_by(item, lock, LockKind.PERMISSION, ends), overdue=overdue)


def _announced(inquiry: Inquiry, item: Item, lock: Announced) -> Obstacle:
    # It still counts at its last microsecond.
    ends = later(lock.end, 1)
    if ends == FOREVER:
        return _by(item, lock, LockKind.NOTIFICATION, inquiry.retry_at)
    return _by(item, lock, LockKind.NOTIFICATION, ends, until=ends if item.state is HostState.UP else None)


def _queued_before(inquiry: Inquiry, item: Item, queue: Sequence[Queued]) -> Iterator[Obstacle]:
    """Those who go first: as many as can be told of, and of all others the one that is in the way for longest."""
    before = bisect_left(queue, inquiry.rank, key=lambda lock: lock.rank)
    for lock in queue[:MAX_BLOCKERS]:
        if lock.rank >= inquiry.rank:
            return
        yield _queued(inquiry, item, lock)
    if before > MAX_BLOCKERS:
        yield _queued(inquiry, item, _longest(inquiry, islice(queue, MAX_BLOCKERS, before)))


def _longest(inquiry: Inquiry, queue: Iterator[Queued]) -> Queued:
    """The first of those that are in the way for longest.

    Nobody is for longer than the time to retry: as we look no further then, a thousand cost no more than ten.
    """
    longest = next(queue)
    for lock in queue:
        if queue_moves(inquiry, longest.id) == inquiry.retry_at:
            break
        if queue_moves(inquiry, lock.id) > queue_moves(inquiry, longest.id):
            longest = lock
    return longest


def _queued(inquiry: Inquiry, item: Item, lock: Queued) -> Obstacle:
    silent = inquiry.model.blocks_until(lock.id)
    until = silent if silent < FOREVER else None
    return _by(item, lock, LockKind.SCHEDULED_REQUEST, queue_moves(inquiry, lock.id), until=until)


def queue_moves(inquiry: Inquiry, request_id: str) -> int:
    """When to look again at somebody who goes first: they may be done at any time, or fall silent."""
    known = inquiry.queue_moves.get(request_id)
    if known is None:
        silent = inquiry.model.blocks_until(request_id)
        known = min(silent, inquiry.retry_at) if silent > inquiry.now else inquiry.retry_at
        inquiry.queue_moves[request_id] = known
    return known


def _by(item: Item, lock: Lock, kind: LockKind, ends: int, *, until: int | None = None) -> Obstacle:
    return Obstacle(item.label, True, ends, kind, lock.id, lock.owner, name=item.name, until=until)
