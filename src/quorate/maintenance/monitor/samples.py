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
class Plans:
    """What is permitted and what is announced, for nodes and for drives."""

    nodes: dict[int, list[Span]] = field(default_factory=dict)
    drives: dict[DriveId, list[Span]] = field(default_factory=dict)
    permitted: set[int | DriveId] = field(default_factory=set)

    def of(self, drive: DriveId) -> Iterator[Span]:
        """When it will be away, itself or with its node."""
        yield from self.drives.get(drive, ())
        yield from self.nodes.get(drive.node, ())

    def concern(self, drive: DriveId) -> bool:
        """Something is planned for it."""
        return drive in self.drives or drive.node in self.nodes

    def permits(self, drive: DriveId) -> bool:
        """Somebody may take it away now."""
        return drive in self.permitted or drive.node in self.permitted


def plans(model: ClusterModel, ledger: Ledger, now: int) -> Plans:
    """From permissions, which begin now at the earliest, and from notifications."""
    found = Plans()
    for permission in ledger.permissions:
        duration = permission.action.duration or 0
        end = min(later(now, duration), later(permission.deadline, duration))
        _add(found, model, permission.action, Span(now, end, permission.id), permitted=True)
    for notification in ledger.notifications:
        for action in notification.actions:
            span = Span(max(notification.time, now), later(notification.time, action.duration or 0), notification.id)
            _add(found, model, action, span, permitted=False)
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


def _add(found: Plans, model: ClusterModel, action: Action, span: Span, *, permitted: bool) -> None:
    items = resolve(model, action)
    if isinstance(items, Refusal):
        return  # of something that is not there any more
    for node in items.nodes:
        found.nodes.setdefault(node, []).append(span)
    for drive in items.drives:
        found.drives.setdefault(drive, []).append(span)
    if permitted:
        found.permitted.update((*items.nodes, *items.drives))
