"""A ReplicatedVolume as a group: its parts are its diskful members and the shown diskless one.

| mode             | asks                                                                                       |
|------------------|--------------------------------------------------------------------------------------------|
| MAX_AVAILABILITY | one part away or locked, and that the volume stays writable                                |
| KEEP_AVAILABLE   | that the volume stays writable                                                             |
| FORCE_RESTART    | what KEEP_AVAILABLE asks; else one locked, and any number broken. What it spoils is told   |

*Writable* counts while it is attached anywhere but on the host that goes down; otherwise so many up-to-date copies must
stay, whether or not their side serves. It counts whichever of those go that may: whoever holds a member may be back
when this one goes. A member that its peers miss already, on a node that is down, cannot be lost once more. A volume
that can lose nobody is refused for a while, not for good: it can be detached, or get another replica.

While a step that changes votes, copies needed or size is not confirmed by all, nothing of it may be disturbed, whatever
the mode (``checks`` has the one exception); a member's first synchronisation counts as one locked, but not by force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType, LockKind, StatusCode
from quorate.maintenance.model.items import GroupItem, VDiskItem
from quorate.maintenance.nouns import VDiskId, VolumeFacts
from quorate.maintenance.rules.groups import is_alone, is_quiet, obstacles_beside, told
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.obstacles import Objection, Obstacle, stops_force, weigh


def objection_to_step(inquiry: Inquiry, group: GroupItem) -> Objection | None:
    """A change of its members is under way."""
    facts = group.volume
    if facts is None or not facts.unconfirmed_step or inquiry.ideal:
        return None
    obstacle = _transition(inquiry, group, facts.unconfirmed_step)
    message = f"{group.label} is being changed, and not all its members have confirmed it: {facts.unconfirmed_step}"
    return Objection(StatusCode.DISALLOW_TEMP, IssueType.GENERIC, message, (obstacle,), inquiry.retry_at)


def objection_to_volume(inquiry: Inquiry, part: VDiskItem) -> Objection | None:
    """May this member go away beside what is away and locked of the volume already?"""
    group, mode = part.group, inquiry.mode
    facts = group.volume
    assert facts is not None
    if (objection := objection_to_step(inquiry, group)) is not None:
        return objection
    in_use = facts.attached_on - inquiry.leaving
    missed = _is_missed(facts, part)

    def serves(left: Sequence[Obstacle]) -> bool:
        return missed or _serves_whoever_is_back(group, in_use, part, left)

    # The usual case, forty times over for a node: nothing else is amiss.
    if is_quiet(inquiry, part) and not facts.synchronizing and serves(()):
        return None
    obstacles = obstacles_beside(inquiry, part)
    if facts.synchronizing and not inquiry.ideal:
        obstacles.append(_transition(inquiry, group, f"{facts.synchronizing} gets its first copy"))

    def keeps(left: Sequence[Obstacle]) -> bool:
        return not any(other.taken is not None for other in left) and serves(left)

    def allows(left: Sequence[Obstacle]) -> bool:
        if inquiry.ideal:
            return is_alone(inquiry, left)
        if mode is AvailabilityMode.MAX_AVAILABILITY and left:
            return False
        return keeps(left) or (inquiry.forced and not any(stops_force(inquiry, other) for other in left))

    stays = serves(obstacles)
    shown = obstacles if stays else [*obstacles, *_cut_off(inquiry, group, part, obstacles)]
    beside = f": {told(shown)}" if shown else ""
    why = "" if stays else _why(inquiry, facts, in_use)
    if allows(obstacles):
        if inquiry.forced and not inquiry.ideal and not keeps(obstacles):
            spoilt = _cost(inquiry, facts, in_use, part) if not stays else f"has less redundancy without {part.label}"
            inquiry.costs.append(f"{group.label} {spoilt}{beside}")
        return None
    message = f"{group.label}: {part.label} cannot go under {mode}{why}{beside}"
    objection = weigh(inquiry, IssueType.TOO_MANY_UNAVAILABLE_VDISKS, message, obstacles, allows)
    # Where nothing else is amiss there is still somebody to ask: whoever uses the volume.
    itself = Obstacle(group.label, False, inquiry.retry_at, name=group.name)
    return replace(objection, obstacles=shown or (itself,))


def _cut_off(inquiry: Inquiry, group: GroupItem, part: VDiskItem, known: Sequence[Obstacle]) -> Iterable[Obstacle]:
    """Members that do not help although they seem to be up: one that has just died, before its agent is missed."""
    facts = group.volume
    assert facts is not None
    counted = {part.id, *(other.member.id for other in known if other.member is not None)}
    away = {member.vdisk for member in facts.members if not member.connected and member.vdisk not in counted}
    for member in group.members:
        if member.id in away:
            label = f"{member.label} on {member.node.label}"
            yield Obstacle(label, False, inquiry.retry_at, member=member, name=member.name)


def _is_missed(facts: VolumeFacts, part: VDiskItem) -> bool:
    if part.node.state is not HostState.DOWN:
        return False
    return any(member.missed for member in facts.members if member.vdisk == part.id)


def _serves_whoever_is_back(
    group: GroupItem, in_use: frozenset[int], part: VDiskItem, others: Sequence[Obstacle]
) -> bool:
    """Without the part and all these; and also when some are back that are only held: who is down uses nothing."""
    assert group.volume is not None
    lost = frozenset((part.id, *(other.member.id for other in others if other.member is not None)))
    if not _serves(group, in_use, lost):
        return False
    if group.volume.survives is None:
        return True  # fewer members never serve better, if all are in touch
    held = [other.member.id for other in others if other.member is not None and other.kind is not None]
    back = chain.from_iterable(combinations(held, number) for number in range(1, len(held) + 1))
    return all(_serves(group, in_use, lost.difference(some)) for some in back)


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
    enough = sum(member.voter and member.up_to_date for member in left) >= max(1, facts.quorum_minimum_redundancy)
    return (present >= facts.quorum or tie) and enough


def copies_left(facts: VolumeFacts, lost: frozenset[VDiskId]) -> int:
    """Up-to-date copies without these. One that is good is there, whether or not its side may serve."""
    return sum(member.voter and member.up_to_date for member in facts.members if member.vdisk not in lost)


def _why(inquiry: Inquiry, facts: VolumeFacts, in_use: frozenset[int]) -> str:
    if in_use:
        where = inquiry.model.known_node(min(in_use)).label
        return f", because it is in use on {where} and could not be written to any more"
    return f", because fewer than {facts.copies_kept} up-to-date copies would stay"


def _cost(inquiry: Inquiry, facts: VolumeFacts, in_use: frozenset[int], part: VDiskItem) -> str:
    if in_use:
        where = inquiry.model.known_node(min(in_use)).label
        return f"stops without {part.label}: it is in use on {where}, and cannot be written to any more"
    return f"has fewer than {facts.copies_kept} up-to-date copies without {part.label}"


def _transition(inquiry: Inquiry, group: GroupItem, what: str) -> Obstacle:
    return Obstacle(group.label, True, inquiry.retry_at, kind=LockKind.TRANSITION, id=what, name=group.name)
