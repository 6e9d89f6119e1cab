"""A whole request, weighed: what is granted, what is not and why, and the code that sums it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, StatusCode
from quorate.api.struct import replace as struct_replace
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.moments import FOREVER, later
from quorate.maintenance.nouns import Species, VolumeFacts
from tests.maintenance.oracle.checks import COOL_DOWN, check_items
from tests.maintenance.oracle.locks import Asker
from tests.maintenance.oracle.world import Item, No, World

#: Which refusal speaks for a request of which nothing is granted: the first that is there.
RANKS = (
    (StatusCode.DISALLOW_TEMP, StatusCode.NO_SUCH_SERVICE),
    (StatusCode.ERROR_TEMP,),
    (StatusCode.DISALLOW,),
    (StatusCode.WRONG_REQUEST,),
    (StatusCode.ERROR,),
    (StatusCode.NO_SUCH_HOST,),
    (StatusCode.NO_SUCH_DEVICE,),
)
#: After these a request may be kept, and asked about again.
WAITING = (StatusCode.ALLOW_PARTIAL, StatusCode.DISALLOW_TEMP, StatusCode.ERROR_TEMP)


@dataclass(frozen=True)
class Granted:
    """An action, and until when it may be begun."""

    action: Action
    deadline: int


@dataclass(frozen=True)
class Refused:
    """An action that is not granted."""

    action: Action
    code: StatusCode
    issue: IssueType


@dataclass(frozen=True)
class Weighed:
    """The answer."""

    code: StatusCode
    granted: tuple[Granted, ...]
    refused: tuple[Refused, ...]
    left: tuple[Action, ...]


def weigh(world: World, request: RequestEntry, now: int) -> Weighed:
    """Try the actions in the order given."""
    granted: dict[int, Granted] = {}
    refused: list[Refused] = []
    earlier: frozenset[Item] = frozenset()
    for mode in modes(request):
        tried, refused = struct_replace(request, availability_mode=mode), []
        for number, action in enumerate(request.actions):
            if number in granted:
                continue
            duration = permission_duration(world, request, action)
            asker = asker_for(world, tried, action, now, earlier)
            try:
                items = world.items(action)
                check_items(world, items, asker)
            except No as no:
                code = StatusCode.DISALLOW if contradicts_itself(world, action, asker) else no.code
                if code is StatusCode.DISALLOW_TEMP and not request.partial_permission_allowed:
                    rest = request.actions[number:]
                    code = StatusCode.DISALLOW if clash(world, request, rest, now, earlier) else code
                refused.append(Refused(action, code, no.issue))
                if not request.partial_permission_allowed:
                    break
            else:
                granted[number] = Granted(action, later(now, duration))
                earlier |= frozenset(items)
    return sum_up(request, [granted[number] for number in sorted(granted)], refused)


def modes(request: RequestEntry) -> tuple[AvailabilityMode, ...]:
    """By force all is allowed that keeps what there is available; what needs force must not be in its way."""
    if request.partial_permission_allowed and request.availability_mode is AvailabilityMode.FORCE_RESTART:
        return AvailabilityMode.KEEP_AVAILABLE, AvailabilityMode.FORCE_RESTART
    return (request.availability_mode,)


def sum_up(request: RequestEntry, granted: list[Granted], refused: list[Refused]) -> Weighed:
    """One code for all."""
    if not refused:
        return Weighed(StatusCode.ALLOW, tuple(granted), (), ())
    failed = tuple(refusal.action for refusal in refused)
    if granted and request.partial_permission_allowed:
        return Weighed(StatusCode.ALLOW_PARTIAL, tuple(granted), tuple(refused), failed)
    codes = next(found for rank in RANKS if (found := [no.code for no in refused if no.code in rank]))
    left = failed if request.partial_permission_allowed else request.actions
    if codes[0] not in WAITING:
        left = ()
    return Weighed(codes[0], (), tuple(refused), left)


def permission_duration(world: World, request: RequestEntry, action: Action) -> int:
    """How long a permission lasts: as the action says, or the request, or the settings."""
    for duration in (action.duration, request.duration):
        if duration:
            return duration
    return world.settings.default_permission_duration.microseconds


def asker_for(world: World, request: RequestEntry, action: Action, now: int, earlier: frozenset[Item]) -> Asker:
    """Who asks for an action of a request."""
    # What else is granted may be used before or after: a host that leaves is away for its own action only.
    going = {item for item in world.items_if_known(action) if isinstance(item, int)}
    return Asker(
        now=now,
        span=(action.duration or 0) + permission_duration(world, request, action),
        mode=request.availability_mode,
        policy=request.tenant_policy,
        partial=request.partial_permission_allowed,
        order=request.order,
        priority=request.priority,
        request=request.id,
        earlier=earlier,
        going=frozenset(going),
    )


def contradicts_itself(world: World, action: Action, asker: Asker) -> bool:
    """Whether a rule would refuse even if all were well, because of what the request itself takes.

    The actions of a partial request may be done one after another, so there only one action can contradict itself.
    """
    if asker.partial:
        asker = replace(asker, earlier=frozenset())
    try:
        check_items(in_perfect_order(world), world.items(action), asker)
    except No as no:
        return no.ask_alone is not None and not refuses(no.ask_alone)
    return False


def clash(world: World, request: RequestEntry, actions: tuple[Action, ...], now: int, earlier: frozenset[Item]) -> bool:
    """Whether actions that go together or not at all can never go together, whatever else stands in their way now."""
    for action in actions:
        asker = asker_for(world, request, action, now, earlier)
        if contradicts_itself(world, action, asker):
            return True
        if passes(in_perfect_order(world), action, asker):
            earlier |= frozenset(world.items(action))
    return False


def refuses(rule: Callable[[], None]) -> bool:
    """Whether a rule says no."""
    try:
        rule()
    except No:
        return True
    return False


def in_perfect_order(world: World) -> World:
    """The same cluster, all of it up since ever, and nothing decided."""
    nodes = {
        # What is surely down may be worked on whatever goes with it, so it cannot stand in its own way.
        name: replace(node, state=HostState.UP, start_time=-COOL_DOWN)
        for name, node in world.nodes.items()
    }
    drives = {name: replace(drive, state=HostState.UP) for name, drive in world.drives.items()}
    groups = {
        name: replace(
            group,
            vdisks=tuple(replace(vdisk, state=HostState.UP) for vdisk in group.vdisks),
            # That it has no redundancy is no contradiction, and hides none.
            species=Species.MIRROR_3 if group.species is Species.NONE else group.species,
            volume=group.volume and at_rest(group.volume),
        )
        for name, group in world.groups.items()
    }
    return World(nodes, drives, groups, world.rings, world.settings)


def at_rest(volume: VolumeFacts) -> VolumeFacts:
    """A volume that nobody uses or changes."""
    return replace(volume, attached_on=frozenset(), copies_kept=0, unconfirmed_step="", synchronizing="")


def passes(world: World, action: Action, asker: Asker) -> bool:
    """Whether an action would be granted."""
    try:
        check_items(world, world.items(action), asker)
    except No:
        return False
    return True


def unfair(world: World, request: RequestEntry, now: int, deadline: int | None) -> str:
    """What is wrong with the moment at which a refused request is told to come back; empty if nothing is.

    It must be a moment at which something that holds somebody ends, or the usual time later, where nobody knows; and
    whoever waits for it must not miss that the answer became another, if nothing but time went by.
    """
    if deadline is None or not now < deadline < FOREVER:
        return f"{deadline} is not worth waiting for"
    known = [*moments(world), later(now, world.retry)]
    known += [later(permission.deadline, permission.action.duration or 0) for permission in world.permissions]
    if deadline not in known:
        return f"nothing happens in {deadline - now}"
    for moment in sorted(set(moments(world))):
        if now < moment < deadline and weigh(world, request, moment).code is not StatusCode.DISALLOW_TEMP:
            return f"already in {moment - now} the answer is another, not only in {deadline - now}"
    return ""


def moments(world: World) -> Iterator[int]:
    """All at which time alone frees something."""
    for permission in world.permissions:
        yield permission.deadline
        # From then on what is down by it is broken, and force may pass.
        yield later(permission.deadline, permission.action.duration or 0)
    for notification in world.notifications:
        for action in notification.actions:
            yield later(notification.time, action.duration or 0, 1)
    for request in world.requests:
        yield world.blocks_until(request)
    for node in world.nodes.values():
        yield later(node.start_time, COOL_DOWN, 1)
