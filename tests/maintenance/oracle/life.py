"""The broker's life: what is asked, what is kept, and what time does to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.api.maintenance.action import AvailabilityMode, HostState, Issue, IssueType, StatusCode, TenantPolicy
from quorate.api.struct import replace
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.messages import (
    Action,
    CheckRequest,
    ManageNotification,
    ManagePermission,
    ManageRequest,
    NotificationCommand,
    NotificationRequest,
    PermissionCommand,
    PermissionRequest,
    RequestCommand,
)
from quorate.maintenance.moments import later
from tests.maintenance.oracle.asking import WAITING, Weighed, passes, weigh
from tests.maintenance.oracle.locks import Asker
from tests.maintenance.oracle.world import DAY, No, World

#: Its requests wait for as long as it takes.
WALLE = "Wall-E"


class Told(NamedTuple):
    """A permission as its owner is told."""

    id: str
    action: Action
    deadline: int


class Shown(NamedTuple):
    """A stored request as its owner is told."""

    id: str
    actions: tuple[Action, ...]
    issues: tuple[IssueType | None, ...]
    mode: AvailabilityMode
    priority: int
    position: int


class Said(NamedTuple):
    """An answer."""

    code: StatusCode
    id: str = ""
    permissions: tuple[Told, ...] = ()
    deadline: int | None = None
    refused: tuple[tuple[Action, IssueType], ...] = ()
    requests: tuple[Shown, ...] = ()
    notifications: tuple[str, ...] = ()


WRONG = Said(StatusCode.WRONG_REQUEST)
OK = Said(StatusCode.OK)


@dataclass
class Life:
    """A broker over a world."""

    world: World
    now: int
    #: How strictly each permission was granted, by its id: extending it asks as strictly.
    granted_under: dict[str, tuple[AvailabilityMode, TenantPolicy]] = field(default_factory=dict)
    #: The request that was weighed last, as it was before.
    asked: RequestEntry | None = None
    numbers: dict[str, int] = field(default_factory=lambda: {"r": 0, "p": 0, "n": 0})

    def number(self, letter: str) -> int:
        """The next one; none is ever given twice."""
        self.numbers[letter] += 1
        return self.numbers[letter]

    def tidy(self) -> None:
        """Forget what is over."""
        world, now = self.world, self.now
        world.permissions = [
            replace(one, lapsed=True) if world.permission_lapses(one, now) else one for one in world.permissions
        ]
        world.permissions = [one for one in world.permissions if not world.permission_over(one, now)]
        world.requests = [
            one for one in world.requests if one.owner == WALLE or now < later(world.blocks_until(one), DAY)
        ]
        for notification in world.notifications:
            coming = [action for action in notification.actions if later(notification.time, action.duration or 0) > now]
            replaced = replace(notification, actions=tuple(coming))
            world.notifications = [replaced if one is notification else one for one in world.notifications]
        world.notifications = [one for one in world.notifications if one.actions]

    # -- asking

    def permission_request(self, message: PermissionRequest, told: int | None = None) -> Said:
        """May these be done? ``told`` is when the asker is told to come back, which is not for the oracle to choose."""
        if not message.user or not -100 <= message.priority <= 100:
            return WRONG
        if any(action.issue is not None for action in message.actions):
            return WRONG
        order = self.numbers["r"] + 1
        request = RequestEntry(
            id=f"{message.user}-r-{order}",
            order=order,
            owner=message.user,
            actions=message.actions,
            partial_permission_allowed=message.partial_permission_allowed,
            reason=message.reason,
            duration=message.duration,
            tenant_policy=message.tenant_policy,
            availability_mode=message.availability_mode,
            priority=message.priority,
            stored_at=self.now,
            renewed_at=self.now,
            last_deadline=0,
        )
        weighed = weigh(self.world, request, self.now)
        kept = message.schedule and weighed.code in WAITING
        self.asked = request
        if message.dry_run:
            return answer(weighed)
        if kept:
            self.number("r")
        permissions = self.grant(request, weighed, request.id if kept else "")
        if kept:
            self.world.requests.append(self.renewed(request, weighed, told))
        return answer(weighed, permissions, request.id if kept else "")

    def check_request(self, message: CheckRequest, told: int | None = None) -> Said:
        """May the rest be done now?"""
        request = self.stored(message.request_id, message.user)
        if request is None:
            return WRONG
        if message.availability_mode is not None:
            request = replace(request, availability_mode=message.availability_mode)
        weighed = weigh(self.world, request, self.now)
        kept = weighed.code in WAITING
        self.asked = request
        if message.dry_run:
            return answer(weighed, request_id=request.id if kept else "")
        permissions = self.grant(request, weighed, request.id)
        after = [self.renewed(request, weighed, told)] if kept else []
        place = [one.id for one in self.world.requests].index(request.id)
        self.world.requests[place : place + 1] = after
        return answer(weighed, permissions, request.id if kept else "")

    def grant(self, request: RequestEntry, weighed: Weighed, request_id: str) -> list[PermissionEntry]:
        """Remember what was granted."""
        permissions = []
        for granted in weighed.granted:
            order = self.number("p")
            permissions.append(
                PermissionEntry(
                    id=f"{request.owner}-p-{order}",
                    order=order,
                    owner=request.owner,
                    action=granted.action,
                    deadline=granted.deadline,
                    granted_at=self.now,
                    request_id=request_id,
                )
            )
        self.world.permissions += permissions
        self.granted_under |= {one.id: (request.availability_mode, request.tenant_policy) for one in permissions}
        return permissions

    def renewed(self, request: RequestEntry, weighed: Weighed, told: int | None) -> RequestEntry:
        """What is left of a request, asked about just now."""
        issues = {id(refusal.action): refusal.issue for refusal in weighed.refused}
        left = tuple(
            replace(action, issue=Issue(type=issues[id(action)]) if id(action) in issues else None)
            for action in weighed.left
        )
        deadline = told if told is not None else request.last_deadline
        return replace(request, actions=left, renewed_at=self.now, last_deadline=deadline)

    def stored(self, request_id: str, user: str) -> RequestEntry | None:
        """A request, if it is this user's."""
        return next((one for one in self.world.requests if (one.id, one.owner) == (request_id, user)), None)

    # -- managing

    def manage_request(self, message: ManageRequest) -> Said:
        """List, get or withdraw stored requests."""
        if not message.user or message.command is None:
            return WRONG
        if message.command is RequestCommand.LIST:
            mine = [one for one in self.world.requests if one.owner == message.user]
            return OK._replace(requests=tuple(map(self.shown, mine)))
        request = self.stored(message.request_id, message.user)
        if request is None:
            return WRONG
        place = self.world.requests.index(request)
        if message.command is RequestCommand.REJECT:
            if not message.dry_run:
                del self.world.requests[place]
            return OK
        if not message.dry_run:
            self.world.requests[place] = replace(request, renewed_at=self.now)
        return OK._replace(requests=(self.shown(request),))

    def shown(self, request: RequestEntry) -> Shown:
        """As its owner is told."""
        first = [one for one in self.world.requests if (one.priority, one.order) < (request.priority, request.order)]
        return Shown(
            request.id,
            tuple(map(bare, request.actions)),
            tuple(action.issue.type if action.issue is not None else None for action in request.actions),
            request.availability_mode,
            request.priority,
            len(first) + 1,
        )

    def manage_permission(self, message: ManagePermission) -> Said:
        """List, get, end, extend or give back permissions; all of those named, or none."""
        if not message.user or message.command is None:
            return WRONG
        mine = {one.id: one for one in self.world.permissions if one.owner == message.user}
        if message.command is PermissionCommand.LIST:
            return OK._replace(permissions=tuple(map(told, mine.values())))
        if any(name not in mine for name in message.permissions):
            return WRONG
        named = [mine[name] for name in message.permissions]
        if message.command is PermissionCommand.GET:
            return OK._replace(permissions=tuple(map(told, named)))
        if message.command is PermissionCommand.EXTEND:
            return self.extend(named, message)
        if not message.dry_run:
            for permission in named:
                self.end(permission, done=message.command is PermissionCommand.DONE)
        return OK

    def end(self, permission: PermissionEntry, *, done: bool) -> None:
        """Done is done. Given back is over from now on, unless something of it is down."""
        world = self.world
        others = [one for one in world.permissions if one.id != permission.id]
        down = any(world.state(item) is not HostState.UP for item in world.items_if_known(permission.action))
        if done or permission.lapsed or not down:
            world.permissions = others
            return
        shortened = replace(permission, deadline=min(permission.deadline, self.now))
        world.permissions = [shortened if one.id == permission.id else one for one in world.permissions]

    def extend(self, named: list[PermissionEntry], message: ManagePermission) -> Said:
        """Shortening is always allowed; more time only if it would be granted once more."""
        deadline = message.deadline
        if deadline is None:
            return WRONG
        refused = [one for one in named if deadline > one.deadline and not self.may_last(one, deadline)]
        if refused:
            return Said(StatusCode.DISALLOW, permissions=tuple(map(told, refused)))
        # What had let go and lasts longer now holds again: it was asked for once more.
        changed = {one.id: replace(one, deadline=deadline, lapsed=one.lapsed and deadline <= self.now) for one in named}
        if not message.dry_run:
            self.world.permissions = [changed.get(one.id, one) for one in self.world.permissions]
            self.tidy()
        return Said(StatusCode.ALLOW, permissions=tuple(told(changed[name]) for name in message.permissions))

    def may_last(self, permission: PermissionEntry, deadline: int) -> bool:
        """Whether it would be granted until then if it were not there."""
        mode, policy = self.granted_under[permission.id]
        asker = Asker(
            now=self.now,
            span=max(0, deadline - self.now) + (permission.action.duration or 0),
            mode=mode,
            policy=policy,
            partial=False,
            # Before everybody who waits: the holder was there first.
            order=0,
            priority=-101,
            permission=permission.id,
            going=frozenset(item for item in self.world.items_if_known(permission.action) if isinstance(item, int)),
        )
        return passes(self.world, permission.action, asker)

    def kept(self, users: Iterable[str]) -> list[Said]:
        """Everything that these users have."""
        found = []
        for user in users:
            found.append(self.manage_permission(ManagePermission(command=PermissionCommand.LIST, user=user)))
            found.append(self.manage_request(ManageRequest(command=RequestCommand.LIST, user=user)))
        return found

    # -- announcing

    def notification(self, message: NotificationRequest) -> Said:
        """A statement of fact: only its sense is checked."""
        if not message.user:
            return WRONG
        for action in message.actions:
            if not action.duration or later(message.time, action.duration) < self.now:
                return WRONG
            try:
                self.world.items(action)
            except No as no:
                return Said(no.code)
        order = self.number("n")
        self.world.notifications.append(
            NotificationEntry(
                id=f"{message.user}-n-{order}",
                order=order,
                owner=message.user,
                actions=message.actions,
                time=message.time,
                reason=message.reason,
            )
        )
        return OK._replace(id=f"{message.user}-n-{order}")

    def manage_notification(self, message: ManageNotification) -> Said:
        """List, get or withdraw notifications."""
        if not message.user or message.command is None:
            return WRONG
        mine = [one for one in self.world.notifications if one.owner == message.user]
        if message.command is NotificationCommand.LIST:
            return OK._replace(notifications=tuple(one.id for one in mine))
        named = [one for one in mine if one.id == message.notification_id]
        if not named:
            return WRONG
        if message.command is NotificationCommand.GET:
            return OK._replace(notifications=(named[0].id,))
        if not message.dry_run:
            self.world.notifications.remove(named[0])
        return OK


def answer(weighed: Weighed, permissions: list[PermissionEntry] | None = None, request_id: str = "") -> Said:
    """As the asker is told; in a dry run permissions have no ids."""
    if permissions is None:
        given = tuple(Told("", bare(granted.action), granted.deadline) for granted in weighed.granted)
    else:
        given = tuple(map(told, permissions))
    refused = tuple((bare(no.action), no.issue) for no in weighed.refused)
    return Said(weighed.code, request_id, given, None, refused)


def told(permission: PermissionEntry) -> Told:
    """As its owner is told."""
    return Told(permission.id, bare(permission.action), permission.deadline)


def bare(action: Action) -> Action:
    """Without why it was not granted before."""
    return replace(action, issue=None)
