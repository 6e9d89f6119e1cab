"""Transitions that are turned back, because what they were for is not so any more.

| under way                                | and then                            | instead                           |
|------------------------------------------|-------------------------------------|-----------------------------------|
| joins, has no vote yet                   | the replica is deleted              | it leaves                         |
| joins, the tie-breaker is hidden for it  | it is not good or not here any more | begins anew, tie-breaker shown    |
| leaves, the tie-breaker is hidden for it | it is needed after all              | ends, tie-breaker shown           |
| leaves, is hidden, not forgotten yet     | copies that were to do without it   | it joins again                    |
|                                          | are not good any more               |                                   |
| is being forced out                      | it is back                          | joins, or is asked to leave       |
| is attached or detached                  | a person wants it detached by force | it is made Secondary by force, or |
|                                          |                                     | taken for detached, out of reach  |
| is made Secondary by force               | the word is taken back              | it is detached                    |
| joins, leaves or changes                 | it is out of reach, and a person    | it is forced out                  |
|                                          | wants it removed by force           |                                   |
| has given way by a person's word         | the word is taken back              | comes up; joins, if hidden        |
| grows, DRBD has not yet                  | a member is away for too long       | the former size                   |

So nothing that waits for somebody who may never come back keeps a volume from its tie-breaker or its copies.
"""

from __future__ import annotations

from datetime import datetime

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, StepStatus, Transition, TransitionType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.resize import growth
from quorate.volumes.transitions import changes
from quorate.volumes.transitions.catalogue import FORGET, GIVE_WAY, HIDE, JOIN, SHOW
from quorate.volumes.transitions.changes import connect, due_tie_breaker
from quorate.volumes.transitions.guards import copies_missing, has_consent, may_leave, not_to_be_forced
from quorate.volumes.transitions.making import make
from quorate.volumes.transitions.members import is_diskful, is_fresh, is_up
from quorate.volumes.transitions.proposals import is_to_be_forced_out, removal
from quorate.volumes.transitions.rules import active_step, subject_of
from quorate.volumes.transitions.walking import has_begun, with_transition
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Wait

_COPIES_MISSING = "CopiesMissing"
_STILL_HERE = "StillHere"
_MEMBERSHIP = (TransitionType.ADD_REPLICA, TransitionType.REMOVE_REPLICA, TransitionType.CHANGE_REPLICA_TYPE)
#: What a step may wait for endlessly. Confirmations and locks come and go.
_ENDLESS = frozenset({_COPIES_MISSING, _STILL_HERE, "NotUp", "NotConnected", "WaitingForSync", "Attached"})

_USES = (TransitionType.ATTACH, TransitionType.DETACH)


def abandoned(view: VolumeView, transition: Transition, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status without a transition whose subject now wants the opposite; None: it goes on."""
    if transition.type is TransitionType.RESIZE_VOLUME:
        return growth.given_up(view, transition, now)
    if transition.type is TransitionType.FORCE_REMOVE_REPLICA:
        return _come_back(view, transition, now)
    if transition.type is TransitionType.FORCE_DETACH:
        return _asked_to_let_go(view, transition, now)
    name = transition.replica_name
    if transition.type is not TransitionType.ADD_REPLICA or name is None or not _is_leaving(view, name):
        return None
    if has_begun(transition, SHOW):
        return None
    member = view.members_by_name.get(name)
    if member is not None and _is_missed(view, transition):
        return None
    instead = removal(view, member, now) if member is not None else None
    return with_transition(view.volume.status, transition, instead)


def turned(view: VolumeView, transition: Transition, wait: Wait, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status with a transition turned back because of what it waits for; None: it waits."""
    name = transition.replica_name
    member = view.members_by_name.get(name) if name is not None else None
    if (forced := taken_over(view, transition, now)) is not None:
        return with_transition(view.volume.status, transition, forced)
    following = next((step.name for step in transition.steps if step.status is StepStatus.PENDING), "")
    if member is None or wait.reason not in _ENDLESS or _has_active_step(transition):
        return None
    instead: Transition | None
    if wait.reason == _STILL_HERE:
        if transition.type is not TransitionType.FORCE_REMOVE_REPLICA:
            return None
        # It is back: what was to be forced can be asked for, or needs not be done at all.
        stays = member.hidden and not _is_leaving(view, member.name)
        instead = _again(view, member, now) if stays else _asked_to_go(view, member, now)
    elif (
        following == FORGET.name
        and _is_still_needed(view, transition, wait)
        and _can_come_back(view, transition, member)
    ):
        instead = _again(view, member, now)
    elif following in (HIDE.name, SHOW.name) and due_tie_breaker(view) is not None:
        instead = _again(view, member, now) if member.hidden else None
    else:
        return None
    return with_transition(view.volume.status, transition, instead)


def taken_over(view: VolumeView, transition: Transition, now: datetime) -> Transition | None:
    """What a person wants done by force in place of what waits for the same member; None: nothing, or not yet.

    What waits keeps the force from being proposed, and waits for the very one that may never come back. Whatever a step
    of it has told the others, the next that changes a vote waits for as any does (``walking``).
    """
    member = view.members_by_name.get(transition.replica_name) if transition.replica_name is not None else None
    if member is None:
        return None
    in_use = transition.type in _USES
    if in_use:
        forced = make(view, TransitionType.FORCE_DETACH, now, member.name)
        if has_consent(view, forced):
            return forced if not_to_be_forced(view, forced) is None else None
    # Of one that is heard, and may be Primary, nothing is taken for granted: it lets go first, if need be by force.
    may_use = in_use and is_up(view, member.name)
    if may_use or not (in_use or transition.type in _MEMBERSHIP) or not is_to_be_forced_out(view, member):
        return None
    forced = make(view, TransitionType.FORCE_REMOVE_REPLICA, now, member.name, before=member.type)
    return forced if may_leave(view, forced) is None else None


def _come_back(view: VolumeView, transition: Transition, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status in which a copy that gave way by a person's word comes up again, because the word is taken back.

    Nobody's confirmation is waited for: what it gave way for may be gone for good. Only its own file says that it is
    down, so whatever the others know, they meet it as they did before (decision 0017). Not while a vote is changing.
    """
    member = view.members_by_name.get(subject_of(transition))
    at = active_step(transition)
    changing = at is not None and transition.steps[at].name != GIVE_WAY.name
    gave_way = any(step.name == GIVE_WAY.name and step.datamesh_revision for step in transition.steps)
    if member is None or not gave_way or changing or has_consent(view, transition):
        return None
    instead = _again(view, member, now) if member.hidden else None
    status = with_transition(connect(view, transition), transition, instead)
    return replace(status, datamesh_revision=status.datamesh_revision + 1)


def _asked_to_let_go(view: VolumeView, transition: Transition, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status in which a user that is heard is asked to let go, as any: the word for more is taken back."""
    name = subject_of(transition)
    if name not in view.members_by_name or not is_up(view, name) or has_consent(view, transition):
        return None
    return with_transition(changes.spared(view, name), transition, make(view, TransitionType.DETACH, now, name))


def _again(view: VolumeView, member: Member, now: datetime) -> Transition:
    """It is a member already: what it has done of joining changes nothing."""
    return make(view, TransitionType.ADD_REPLICA, now, member.name, after=member.type)


def _asked_to_go(view: VolumeView, member: Member, now: datetime) -> Transition:
    return make(view, TransitionType.REMOVE_REPLICA, now, member.name, before=member.type)


def _is_still_needed(view: VolumeView, transition: Transition, wait: Wait) -> bool:
    """Whether what it waits for is copies to do without the subject.

    The same reason is given when somebody else cannot be excused for want of copies. Turned back for that, it would be
    turned again at once, and so on for ever: ``abandoned`` asks about the subject.
    """
    return wait.reason == _COPIES_MISSING and copies_missing(view, transition) is not None


def _is_missed(view: VolumeView, transition: Transition) -> bool:
    """Whether it came back from a removal, and the copies that were to do without it are still not there."""
    came_back = any(step.name == JOIN.name and not step.datamesh_revision for step in transition.steps)
    return came_back and copies_missing(view, transition) is not None


def _can_come_back(view: VolumeView, transition: Transition, member: Member) -> bool:
    removed = transition.type in (TransitionType.REMOVE_REPLICA, TransitionType.CHANGE_REPLICA_TYPE)
    return removed and is_diskful(member) and not member.excused and is_fresh(view, member.name)


def _is_leaving(view: VolumeView, name: ReplicaName) -> bool:
    """Whether a replica asks to leave, or is gone altogether."""
    replica = view.replica(name)
    if replica is None or (replica.member is None and replica.replica.deleting):
        return True
    asked = replica.replica.status.datamesh_pending_transition
    return asked is not None and asked.member is False


def _has_active_step(transition: Transition) -> bool:
    return any(step.status is StepStatus.ACTIVE for step in transition.steps)
