"""Who holds an item, as one request sees it.

Four kinds, in the order in which they are asked: a permission (or it is restarting, whoever does that), announced work
that the asked interval meets, a stored request that goes first, an earlier action of the same request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from quorate.api.maintenance.action import AvailabilityMode, HostState, LockKind, TenantPolicy
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.moments import later
from quorate.maintenance.nouns import GroupInfo, VDiskInfo
from tests.maintenance.oracle.world import Item, No, World

T = TypeVar("T")


@dataclass(frozen=True)
class Asker:
    """On whose behalf a question is asked, and what for."""

    now: int
    #: How long the action and the permission to begin it last together.
    span: int
    mode: AvailabilityMode
    policy: TenantPolicy
    partial: bool
    order: int
    priority: int
    #: Itself, if it is stored: nobody stands in his own way.
    request: str = ""
    #: A permission that is looked away from, to see whether it could be given once more.
    permission: str = ""
    #: Held by earlier actions of the request, and by earlier items of the same action.
    earlier: frozenset[Item] = field(default=frozenset())
    same_action: frozenset[Item] = field(default=frozenset())
    #: Nodes that go away with this action: a volume attached there need not stay writable for them.
    going: frozenset[int] = field(default=frozenset())

    def at(self, now: int) -> Asker:
        """The same question at another time."""
        return replace(self, now=now)

    def holding(self, item: Item) -> Asker:
        """Once an item of this action is found free."""
        return replace(self, same_action=self.same_action | {item})

    def alone(self) -> Asker:
        """As if it were all that is asked for."""
        return replace(self, earlier=frozenset(), same_action=frozenset())


Rule = Callable[[World, T, Asker], None]


def rule(check: Rule[T]) -> Rule[T]:
    """One rule, which can be asked again without what else the request takes."""

    def checked(world: World, subject: T, asker: Asker) -> None:
        try:
            check(world, subject, asker)
        except No as no:
            no.ask_alone = lambda: check(world, subject, asker.alone())
            raise

    return checked


def lock_on(world: World, item: Item, asker: Asker) -> LockKind | None:
    """The first lock on an item."""
    if any(
        permission.id != asker.permission
        and item in world.items_if_known(permission.action)
        and world.holds(permission, item, asker.now)
        for permission in world.permissions
    ):
        return LockKind.PERMISSION
    if world.state(item) is HostState.RESTART:
        return LockKind.PERMISSION
    for notification in world.notifications:
        for action in notification.actions:
            meets = notification.time <= later(asker.now, asker.span)
            lasts = later(notification.time, action.duration or 0) >= asker.now
            if meets and lasts and item in world.items_if_known(action):
                return LockKind.NOTIFICATION
    for request in world.requests:
        goes_first = (request.priority, request.order) < (asker.priority, asker.order)
        if request.id == asker.request or not goes_first or asker.now >= world.blocks_until(request):
            continue
        if any(item in world.items_if_known(action) for action in request.actions):
            return LockKind.SCHEDULED_REQUEST
    return LockKind.TEMPORARY if item in asker.earlier | asker.same_action else None


def overdue(world: World, permission: PermissionEntry, item: Item, now: int) -> bool:
    """Whether an item is down by a permission for longer than was said: it is broken."""
    expected = later(permission.deadline, permission.action.duration or 0)
    return world.state(item) is not HostState.UP and expected <= now


def stops_force(world: World, item: Item, asker: Asker) -> bool:
    """Whether somebody works on an item, or may: then no other part of its group goes by force.

    What goes with the same action is no other's, and what is overdue is only broken.
    """
    holding = [
        permission
        for permission in world.permissions
        if permission.id != asker.permission
        and item in world.items_if_known(permission.action)
        and world.holds(permission, item, asker.now)
    ]
    if any(not overdue(world, permission, item, asker.now) for permission in holding):
        return True
    if not holding and world.state(item) is HostState.RESTART:
        return True
    nobody_holds = replace(asker, same_action=frozenset())
    undecided = World(world.nodes, world.drives, world.groups, world.rings, world.settings)
    undecided.requests, undecided.notifications = world.requests, world.notifications
    left = lock_on(undecided, item, nobody_holds)
    return left is not None and left is not LockKind.PERMISSION


def part_stops_force(world: World, vdisk: VDiskInfo, asker: Asker) -> bool:
    """Through itself, its drives or its node."""
    items: tuple[Item, ...] = (vdisk.id, *vdisk.drives, vdisk.node)
    return any(stops_force(world, item, asker) for item in items)


def taken_of(group: GroupInfo, asker: Asker) -> bool:
    """Whether the same request has taken a replica of a group already, whoever else holds it."""
    taken = asker.earlier | asker.same_action
    return any({vdisk.id, *vdisk.drives, vdisk.node} & taken for vdisk in group.vdisks)


def lock_on_vdisk(world: World, vdisk: VDiskInfo, asker: Asker) -> LockKind | None:
    """A replica is held through itself, its drives and its node; the first of them counts."""
    items: tuple[Item, ...] = (vdisk.id, *vdisk.drives, vdisk.node)
    return next((lock for item in items if (lock := lock_on(world, item, asker)) is not None), None)
