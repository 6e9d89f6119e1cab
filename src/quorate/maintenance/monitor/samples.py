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
    sample: Sample
    #: Whether it is away; None: nobody knows.
    away: bool | None
    reason: str = ""


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


@dataclass(frozen=True, slots=True)
class Plans:
    """What is permitted and what is announced, for nodes and for drives."""

    of_items: dict[int | DriveId, list[Plan]] = field(default_factory=dict)

    def of(self, drive: DriveId) -> tuple[Plan, ...]:
        """Its own, and its node's."""
        return (*self.of_items.get(drive, ()), *self.of_items.get(drive.node, ()))

    def permits(self, drive: DriveId) -> bool:
        """Somebody may take it away now."""
        return any(plan.permitted for plan in self.of(drive))


def plans(model: ClusterModel, ledger: Ledger) -> Plans:
    """From permissions and notifications."""
    found = Plans()
    for permission in ledger.permissions:
        action = permission.action
        _add(found, model, action, Plan(permission.id, action.duration or 0, permission.deadline, permitted=True))
    for notification in ledger.notifications:
        for action in notification.actions:
            plan = Plan(notification.id, action.duration or 0, notification.time, permitted=False)
            _add(found, model, action, plan)
    return found


def look(model: ClusterModel, node: NodeInfo, planned: Plans) -> Iterator[Seen]:
    """Every drive of a node."""
    location = Location(node.id, node.data_center, node.room, node.rack)
    for drive in model.drives_of(node.id):
        away, reason = _away(node, drive)
        yield Seen(drive.id, location, _sample(away, planned.permits(drive.id)), away, reason)


def _away(node: NodeInfo, drive: DriveInfo) -> tuple[bool | None, str]:
    if node.state in (HostState.DOWN, HostState.RESTART):
        return True, f"node {node.id} is {node.state}"
    if HostState.UNKNOWN in (node.state, drive.state):
        return None, ""
    return drive.state is not HostState.UP, f"{drive.id} is {drive.state}"


def _sample(away: bool | None, permitted: bool) -> Sample:
    if away is None:
        return Sample.UNKNOWN
    if not away:
        return Sample.GOOD
    return Sample.PLANNED if permitted else Sample.BAD


def _add(found: Plans, model: ClusterModel, action: Action, plan: Plan) -> None:
    items = resolve(model, action)
    if isinstance(items, Refusal):
        return  # of something that is not there any more
    touched: tuple[int | DriveId, ...] = (*items.nodes, *items.drives)
    for item in touched:
        found.of_items.setdefault(item, []).append(plan)
