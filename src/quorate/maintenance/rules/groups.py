"""How many parts of a group may be away at once.

| mode             | an erasure group may have                                                             |
|------------------|---------------------------------------------------------------------------------------|
| MAX_AVAILABILITY | one part away or locked, the one asked for included                                   |
| KEEP_AVAILABLE   | as many as it has parity parts (mirror-3-dc: one realm, or a realm and one elsewhere) |
| FORCE_RESTART    | what KEEP_AVAILABLE allows; else one locked, and any number broken                    |

One answer takes one part of a group at most; by force, those of one action. Who has no parity is only worked on by
force. A part that has been down by permission for longer than was said is broken. What force spoils is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, StatusCode
from quorate.maintenance.model.items import GroupItem, NodeItem, VDiskItem
from quorate.maintenance.nouns import Species
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.obstacles import Objection, Obstacle, locks_on, stops_force, weigh

_SHOWN: Final = 3


def objection_to_group(inquiry: Inquiry, part: VDiskItem) -> Objection | None:
    """May this part of an erasure group go away beside what is away and locked of it already?"""
    group, mode = part.group, inquiry.mode
    species = group.species
    assert species is not None
    if species.parity_parts or inquiry.ideal:
        if is_quiet(inquiry, part):
            return None
    elif not inquiry.forced:
        return Objection(
            StatusCode.DISALLOW,
            IssueType.TOO_MANY_UNAVAILABLE_VDISKS,
            f"{group.label} has no redundancy: {part.label} may be taken down by {AvailabilityMode.FORCE_RESTART} only",
        )
    obstacles = obstacles_beside(inquiry, part)

    def keeps(left: Sequence[Obstacle]) -> bool:
        return not any(other.taken is not None for other in left) and _does_without(species, part, left)

    def allows(left: Sequence[Obstacle]) -> bool:
        if inquiry.ideal:
            return is_alone(inquiry, left)
        if mode is AvailabilityMode.MAX_AVAILABILITY:
            return not left
        return keeps(left) or (inquiry.forced and not any(stops_force(inquiry, other) for other in left))

    if allows(obstacles):
        if inquiry.forced and not inquiry.ideal and not keeps(obstacles):
            inquiry.costs.append(_cost(species, part, obstacles))
        return None
    message = f"{group.label}: {part.label} cannot go under {mode}: {told(obstacles)}"
    return weigh(inquiry, IssueType.TOO_MANY_UNAVAILABLE_VDISKS, message, obstacles, allows)


def is_alone(inquiry: Inquiry, others: Sequence[Obstacle]) -> bool:
    """Where all is well, only what is asked for together can be in the way; by force not what goes with one host."""
    return not [other for other in others if not (inquiry.forced and inquiry.is_own(other.taken))]


def is_quiet(inquiry: Inquiry, part: VDiskItem) -> bool:
    """Nothing is amiss with the other parts, so nobody needs to look."""
    group = part.group
    calm = group.troubled == (part.troubles > 0) and not inquiry.behind
    return (calm or inquiry.ideal) and not inquiry.trial.touches(group)


def obstacles_beside(inquiry: Inquiry, part: VDiskItem) -> list[Obstacle]:
    """The other parts that are locked or away, each once."""
    found = []
    for other in part.group.members:
        if other is part or not (other.troubles or inquiry.behind or other in inquiry.trial.taken):
            continue
        obstacle = _obstacle(inquiry, other, part)
        if obstacle is not None:
            found.append(obstacle)
    return found


def told(obstacles: Sequence[Obstacle]) -> str:
    """For a person: the first few."""
    more = f" and {len(obstacles) - _SHOWN} more" if len(obstacles) > _SHOWN else ""
    return "; ".join(str(obstacle) for obstacle in obstacles[:_SHOWN]) + more


def _does_without(species: Species, part: VDiskItem, others: Sequence[Obstacle]) -> bool:
    if species is Species.MIRROR_3_DC:
        away = Counter(other.member.id.realm for other in others if other.member is not None)
        away[part.id.realm] += 1
        return len(away) == 1 or (len(away) == 2 and min(away.values()) == 1)
    return len(others) + 1 <= species.parity_parts


def _cost(species: Species, part: VDiskItem, others: Sequence[Obstacle]) -> str:
    beside = f" beside {told(others)}" if others else ""
    if _does_without(species, part, others):
        return f"{part.group.label} has less redundancy without {part.label}{beside}"
    return f"{part.group.label} cannot be used without {part.label}{beside}"


def _obstacle(inquiry: Inquiry, other: VDiskItem, part: VDiskItem) -> Obstacle | None:
    lock = _lock(inquiry, other)
    if lock is not None:
        # A part of a node that is surely down may be another's and the request's own at once.
        return replace(lock, member=other, taken=lock.taken or inquiry.trial.taken.get(other))
    if inquiry.ideal:
        return None
    node = other.node
    if node is not part.node and is_away(node, other.group):
        return _away(inquiry, f"{other.label} on {node.label}", other)
    for drive in other.drives:
        if drive not in part.drives and drive.state is not HostState.UP:
            return _away(inquiry, f"{other.label} on {drive.label}", other)
    if other.state is not HostState.UP:
        return _away(inquiry, other.label, other)
    return None


def _lock(inquiry: Inquiry, part: VDiskItem) -> Obstacle | None:
    """The first on the part, its drives or its node; by force, the first that is not overdue."""
    found = (lock for item in (part, *part.drives, part.node) for lock in locks_on(inquiry, item))
    first = next(found, None)
    if first is None or not first.overdue or not inquiry.forced:
        return first
    return next((lock for lock in found if not lock.overdue), first)


def is_away(node: NodeItem, group: GroupItem) -> bool:
    """A node whose agent is merely silent takes no volume's replica away: that is for its peers to say."""
    if group.volume is not None and node.state is HostState.DOWN:
        return node.info is None or node.info.surely_down
    return node.state is not HostState.UP


def _away(inquiry: Inquiry, label: str, member: VDiskItem) -> Obstacle:
    return Obstacle(label, False, inquiry.retry_at, member=member, name=member.name)
