"""A ReplicatedVolume as a group: its parts are its diskful members and the shown diskless one.

| mode             | asks                                                                                       |
|------------------|--------------------------------------------------------------------------------------------|
| MAX_AVAILABILITY | one part away or locked, and that the volume stays writable                                |
| KEEP_AVAILABLE   | that the volume stays writable                                                             |
| FORCE_RESTART    | one locked, and any number broken                                                          |

*Writable* counts while it is attached anywhere but on the hosts that go down; otherwise so many up-to-date copies must
stay. A volume that can lose nobody is refused for a while, not for good: it can be detached, or get another replica.

While a step that changes votes, copies needed or size is not confirmed by all, nothing of it may be disturbed, whatever
the mode; a member's first synchronisation counts as one locked.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.api.maintenance.action import AvailabilityMode, IssueType, LockKind, StatusCode
from quorate.maintenance.model.items import GroupItem, VDiskItem
from quorate.maintenance.nouns import VDiskId, VolumeFacts
from quorate.maintenance.rules.groups import is_quiet, obstacles_beside, told
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.obstacles import Objection, Obstacle, weigh


def objection_to_step(inquiry: Inquiry, group: GroupItem) -> Objection | None:
    """A change of its members is under way."""
    facts = group.volume
    if facts is None or not facts.unconfirmed_step or inquiry.ideal:
        return None
    obstacle = _transition(inquiry, facts, facts.unconfirmed_step)
    message = f"{group.label} is being changed, and not all its members have confirmed it: {facts.unconfirmed_step}"
    return Objection(StatusCode.DISALLOW_TEMP, IssueType.GENERIC, message, (obstacle,), inquiry.retry_at)


def objection_to_volume(inquiry: Inquiry, part: VDiskItem) -> Objection | None:
    """May this member go away beside what is away and locked of the volume already?"""
    group = part.group
    facts = group.volume
    assert facts is not None
    if (objection := objection_to_step(inquiry, group)) is not None:
        return objection
    mode = inquiry.mode
    in_use = facts.attached_on - inquiry.leaving
    forced = mode is AvailabilityMode.FORCE_RESTART
    # The usual case, forty times over for a node: nothing else is amiss.
    quiet = is_quiet(inquiry, part) and not facts.synchronizing
    if quiet and (forced or _serves(group, in_use, frozenset((part.id,)))):
        return None
    obstacles = obstacles_beside(inquiry, part)
    if facts.synchronizing and not inquiry.ideal:
        obstacles.append(_transition(inquiry, facts, f"{facts.synchronizing} gets its first copy"))

    def serves(left: Sequence[Obstacle]) -> bool:
        lost = (other.member.id for other in left if other.member is not None)
        return _serves(group, in_use, frozenset((part.id, *lost)))

    def allows(left: Sequence[Obstacle]) -> bool:
        if inquiry.ideal:
            return not left
        if forced:
            return not any(other.locked for other in left)
        if mode is AvailabilityMode.MAX_AVAILABILITY and left:
            return False
        return not any(other.taken is not None for other in left) and serves(left)

    if allows(obstacles):
        return None
    beside = f": {told(obstacles)}" if obstacles else ""
    why = "" if forced or serves(obstacles) else _why(facts, in_use)
    message = f"{group.label}: {part.label} cannot go under {mode}{why}{beside}"
    return weigh(inquiry, IssueType.TOO_MANY_UNAVAILABLE_VDISKS, message, obstacles, allows)


def _serves(group: GroupItem, in_use: frozenset[int], lost: frozenset[VDiskId]) -> bool:
    facts = group.volume
    assert facts is not None
    return is_writable(group, lost) if in_use else copies_left(facts, lost) >= facts.copies_kept


def is_writable(group: GroupItem, lost: frozenset[VDiskId]) -> bool:
    """I/O goes on without these."""
    known = group.foresight.get(lost)
    if known is None:
        assert group.volume is not None
        known = group.foresight[lost] = _survives(group.volume, lost)
    return known


def _survives(facts: VolumeFacts, lost: frozenset[VDiskId]) -> bool:
    """Enough voters are left, or one too few and a tie-breaker; and enough copies."""
    if facts.survives is not None:
        return facts.survives(frozenset(member.node for member in facts.members if member.vdisk in lost))
    left = [member for member in facts.members if member.connected and member.vdisk not in lost]
    present = sum(member.voter for member in left)
    voters = sum(member.voter for member in facts.members)
    tie = voters % 2 == 0 and present == facts.quorum - 1 and any(member.tie_breaker for member in left)
    enough = copies_left(facts, lost) >= max(1, facts.quorum_minimum_redundancy)
    return (present >= facts.quorum or tie) and enough


def copies_left(facts: VolumeFacts, lost: frozenset[VDiskId]) -> int:
    """Up-to-date copies without these."""
    left = (member for member in facts.members if member.connected and member.vdisk not in lost)
    return sum(member.voter and member.up_to_date for member in left)


def _why(facts: VolumeFacts, in_use: frozenset[int]) -> str:
    if in_use:
        return f", because it is in use on node {min(in_use)} and could not be written to any more"
    return f", because fewer than {facts.copies_kept} up-to-date copies would stay"


def _transition(inquiry: Inquiry, facts: VolumeFacts, what: str) -> Obstacle:
    label = f"volume {facts.name}"
    return Obstacle(label, True, inquiry.retry_at, kind=LockKind.TRANSITION, id=what, name=facts.name)
