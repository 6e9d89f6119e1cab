"""How many parts of a group may be away at once.

| mode             | an erasure group may have                                                             |
|------------------|---------------------------------------------------------------------------------------|
| MAX_AVAILABILITY | one part away or locked, the one asked for included                                   |
| KEEP_AVAILABLE   | as many as it has parity parts (mirror-3-dc: one realm, or a realm and one elsewhere) |
| FORCE_RESTART    | one locked, and any number broken                                                     |

In every mode one answer takes one part of a group at most. Who has no parity is only worked on by force.
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
from quorate.maintenance.rules.obstacles import Objection, Obstacle, lock_on, weigh

_SHOWN: Final = 3


def objection_to_group(inquiry: Inquiry, part: VDiskItem) -> Objection | None:
    """May this part of an erasure group go away beside what is away and locked of it already?"""
    group = part.group
    species = group.species
    assert species is not None
    mode = inquiry.mode
    if not species.parity_parts and mode is not AvailabilityMode.FORCE_RESTART and not inquiry.ideal:
        return Objection(
            StatusCode.DISALLOW,
            IssueType.TOO_MANY_UNAVAILABLE_VDISKS,
            f"{group.label} has no redundancy: {part.label} may be taken down by {AvailabilityMode.FORCE_RESTART} only",
        )
    if is_quiet(inquiry, part):
        return None
    obstacles = obstacles_beside(inquiry, part)

    def allows(left: Sequence[Obstacle]) -> bool:
        # Where all is well, only what is asked for together can be in its way.
        return not left if inquiry.ideal else _allows(mode, species, part, left)

    if allows(obstacles):
        return None
    message = f"{group.label}: {part.label} cannot go under {mode}: {told(obstacles)}"
    return weigh(inquiry, IssueType.TOO_MANY_UNAVAILABLE_VDISKS, message, obstacles, allows)


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


def _allows(mode: AvailabilityMode, species: Species, part: VDiskItem, others: Sequence[Obstacle]) -> bool:
    if mode is AvailabilityMode.MAX_AVAILABILITY:
        return not others
    if mode is AvailabilityMode.FORCE_RESTART:
        return not any(other.locked for other in others)
    if any(other.taken is not None for other in others):
        return False
    if species is Species.MIRROR_3_DC:
        away = Counter(other.member.id.realm for other in others if other.member is not None)
        away[part.id.realm] += 1
        return len(away) == 1 or (len(away) == 2 and min(away.values()) == 1)
    return len(others) + 1 <= species.parity_parts


def _obstacle(inquiry: Inquiry, other: VDiskItem, part: VDiskItem) -> Obstacle | None:
    for item in (other, *other.drives, other.node):
        lock = lock_on(inquiry, item)
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


def is_away(node: NodeItem, group: GroupItem) -> bool:
    """A node whose agent is merely silent takes no volume's replica away: that is for its peers to say."""
    if group.volume is not None and node.state is HostState.DOWN:
        return node.info is None or node.info.surely_down
    return node.state is not HostState.UP


def _away(inquiry: Inquiry, label: str, member: VDiskItem) -> Obstacle:
    return Obstacle(label, False, inquiry.retry_at, member=member, name=member.name)
