"""One look at every drive: is it there, may it be away, and what is known of its future."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from quorate.api.maintenance.action import HostState
from quorate.maintenance.entries import Ledger
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import later
from quorate.maintenance.monitor.guards import Location
from quorate.maintenance.monitor.opinions import Sample
from quorate.maintenance.monitor.spans import Span
from quorate.maintenance.nouns import DriveId, DriveInfo, NodeInfo
from quorate.maintenance.rules import resolve


@dataclass(frozen=True, slots=True)
class Seen:
    """A drive as it was seen."""

    drive: DriveId
    location: Location
    #: Whether it is away; None: nobody knows.
    away: bool | None
    reason: str = ""

    def sample(self, planned: Plans, now: int, since: int | None) -> Sample:
        """What that says of it, if it is away since then."""
        if self.away is None:
            return Sample.UNKNOWN
        if not self.away:
            return Sample.GOOD
        covered = since is not None and planned.cover(self.drive, now, since)
        return Sample.PLANNED if covered else Sample.BAD


@dataclass(frozen=True, slots=True)
class Plan:
    """Work that makes something be away."""

    #: Of the permission or the notification.
    id: str
    duration: int
    #: When it begins; a permission's work, at the latest.
    start: int
    permitted: bool

    def span(self, now: int, since: int | None) -> Span:
        """When it is away for that. Permitted work has begun when the absence did, or else may begin any moment."""
        if not self.permitted:
            return Span(max(self.start, now), later(self.start, self.duration), self.id)
        begun = now if since is None else since
        return Span(begun, min(later(begun, self.duration), later(self.start, self.duration)), self.id)

    def covers(self, now: int, since: int) -> bool:
        """An absence is permitted if it began in time, for as long as the work was to take."""
        return self.permitted and since <= self.start and now <= later(since, self.duration)


@dataclass(frozen=True, slots=True)
class Plans:
    """What is permitted and what is announced, for nodes and for drives."""

    of_items: dict[int | DriveId, list[Plan]] = field(default_factory=dict)

    def of(self, drive: DriveId) -> tuple[Plan, ...]:
        """Its own, and its node's."""
        return (*self.of_items.get(drive, ()), *self.of_items.get(drive.node, ()))

    def cover(self, drive: DriveId, now: int, since: int) -> bool:
        """It may be away now, having left then."""
        return any(plan.covers(now, since) for plan in self.of(drive))


def plans(model: ClusterModel, ledger: Ledger) -> Plans:
    """From permissions and notifications."""
    found = Plans()
    for permission in ledger.permissions:
        if permission.lapsed:
            continue
        action = permission.action
        lasts = action.duration or permission.deadline - permission.granted_at
        _add(found, model, action, Plan(permission.id, lasts, permission.deadline, permitted=True))
    for notification in ledger.notifications:
        for action in notification.actions:
            plan = Plan(notification.id, action.duration or 0, notification.time, permitted=False)
            _add(found, model, action, plan)
    return found


def look(model: ClusterModel, node: NodeInfo) -> Iterator[Seen]:
    """Every drive of a node."""
    location = Location(node.id, node.data_center, node.room, node.rack)
    for drive in model.drives_of(node.id):
        away, reason = _away(node, drive)
        yield Seen(drive.id, location, away, reason)


def _away(node: NodeInfo, drive: DriveInfo) -> tuple[bool | None, str]:
    if node.state in (HostState.DOWN, HostState.RESTART):
        return True, f"node {node.id} is {node.state}"
    if HostState.UNKNOWN in (node.state, drive.state):
        return None, ""
    return drive.state is not HostState.UP, f"{drive.id} is {drive.state}"


def _add(found: Plans, model: ClusterModel, action: Action, plan: Plan) -> None:
    items = resolve(model, action)
    if isinstance(items, Refusal):
        return  # of something that is not there any more
    touched: tuple[int | DriveId, ...] = (*items.nodes, *items.drives)
    for item in touched:
        found.of_items.setdefault(item, []).append(plan)
