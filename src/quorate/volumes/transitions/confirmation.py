"""Who has not confirmed a revision yet, and whom the others need not wait for.

A step is over when every member has shown its revision, tie-breaker and subject included. One that is down, stale or
stuck (up, but alone and unable to do as it is told: its disk is gone) is **excused** only while all of this holds:

- the others, those with living agents, are quorate by their own word;
- they hold as many up-to-date copies as are promised;
- a shown tie-breaker is among them. Where it is itself the one that is away, all that it could help to decide is
  decided without it: they are then more than half of the voters (decision 0004);
- each of them says that it is not in touch with the absent one.

The others then take it out of their files, in a revision of its own that the step waits for instead. So it cannot come
back with an old file and be listened to. Its vote stays in their metadata, and they link to it again only after it has
reported the current revision.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, StepStatus
from quorate.api.storage.drbd import DrbdErrors
from quorate.volumes.naming import named
from quorate.volumes.patience import left_of
from quorate.volumes.transitions.members import (
    good_copies,
    is_fresh,
    is_linked,
    is_serving,
    is_up,
    promise_of,
    says_connected,
    tie_breakers,
    voters,
    without_quorum,
)
from quorate.volumes.transitions.rules import SLOWNESS
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Blocker, Wait

#: What there is to do about a member that the others are no volume without.
_BY_FORCE: Final = "; who is away is waited for, or given up by a person's word (force-remove, force-detach)"


def unconfirmed(view: VolumeView, revision: int) -> tuple[Member, ...]:
    """Members that must show a revision, and do not."""
    return tuple(
        member
        for member in view.members
        if not member.excused and ((replica := view.replica(member.name)) is None or not replica.confirms(revision))
    )


def absent(view: VolumeView, members: Iterable[Member], since: datetime | None, now: datetime) -> tuple[Member, ...]:
    """Of these, the ones that are stale, or down or stuck for longer than coming up takes."""
    patient = since is not None and left_of(SLOWNESS, since, now) > 0
    return tuple(
        member
        for member in members
        if not is_fresh(view, member.name)
        or not (patient or member.down or is_up(view, member.name))
        or (not patient and is_stuck(view, member) and (since is not None or _complains(view, member)))
    )


def look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until one that has not confirmed may count as absent: nothing else may happen before that."""
    waiting = (
        step.started_at
        for transition in view.volume.status.datamesh_transitions
        for step in transition.steps
        if step.status is StepStatus.ACTIVE
        and step.started_at is not None
        and step.datamesh_revision
        and unconfirmed(view, step.datamesh_revision)
    )
    left = (left_of(SLOWNESS, since, now) for since in waiting)
    return min((seconds for seconds in left if seconds > 0), default=None)


def is_stuck(view: VolumeView, member: Member) -> bool:
    """Whether a living agent cannot do as it is told, and its kernel is alone: its disk may be gone.

    Alone is one without quorum, and without a link by anybody's word.
    """
    replica = view.replica(member.name)
    if replica is None or replica.report is None or view.state_of(member.name).quorum:
        return False
    if replica.confirms(view.volume.status.datamesh_revision) and not _complains(view, member):
        return False
    others = [each for each in view.members if each.name != member.name]
    if any(says_connected(replica, other) for other in others):
        return False
    return not any(says_connected(other, member) for other in view.replicas if other.name != member.name)


def _complains(view: VolumeView, member: Member) -> bool:
    """Whether its agent says that something has failed."""
    replica = view.replica(member.name)
    return replica is not None and replica.replica.status.drbd.errors != DrbdErrors()


def wait_for(view: VolumeView, members: Iterable[Member], revision: int) -> Wait:
    """The words for members that have yet to confirm."""
    missing = tuple(members)
    stale = [member.name for member in missing if not is_fresh(view, member.name)]
    slow = [member.name for member in missing if member.name not in stale]
    told = [f"not confirmed by {named(view, slow)}"] if slow else []
    told += [f"silent agents {named(view, stale)}"] if stale else []
    blockers = tuple(Blocker("ReplicatedVolumeReplica", member.name) for member in missing)
    return Wait("WaitingForConfirmation", f"revision {revision}: {'; '.join(told)}", blockers)


def excuse_refused(view: VolumeView, members: Iterable[Member]) -> Wait | None:
    """Why the volume cannot do without the word of these; None: they are excused."""
    return not_alone(view, members) or connected_still(view, members)


def not_alone(view: VolumeView, members: Iterable[Member]) -> Wait | None:
    """Why the others are not a volume by themselves; None: they are."""
    away = {member.name for member in members} | {member.name for member in view.members if member.excused}
    here = tuple(member for member in view.members if member.name not in away)
    silent = [member.name for member in here if not is_up(view, member.name) and not member.down]
    if silent:
        return _refusal("NotExcused", f"nothing is known of {named(view, silent)} either", silent)
    return _unserved(view, away)


def cannot_do_without(view: VolumeView, user: Member) -> Wait | None:
    """Why somebody who uses the volume, and is out of reach, cannot be taken for gone; None: it can.

    Who is silent and in touch with the others is not missed here, though it cannot say whether the user is in touch
    with it. If it were, and Primary, those who lost the user and see it through the silent one would be Outdated
    (``loss_2d_tb_qmr1``): an up-to-date copy that has quorum, by its own word, knows that there is no Primary in sight
    of anybody it is in touch with. And whoever is in nobody's sight has no quorum.
    """
    away = {member.name for member in view.members if member.excused or not view.state_of(member.name).up}
    return _unserved(view, away | {user.name}) or connected_still(view, (user,))


def _unserved(view: VolumeView, away: set[ReplicaName]) -> Wait | None:
    """What the volume lacks without these; None: it serves, and keeps what it promises of every write."""
    promise = promise_of(view)
    promised = promise.minimum_redundancy if promise is not None else 1
    good = [name for name in good_copies(view) if name not in away]
    if not is_serving(view) or not away.issuperset(without_quorum(view)):
        message = f"the members that are here have no quorum without {named(view, away)}{_BY_FORCE}"
        return _refusal("NoQuorum", message, away)
    if len(good) < promised or not any(is_up(view, name) for name in good):
        message = f"{len(good)} of {promised} promised copies are here: {named(view, good)}{_BY_FORCE}"
        return _refusal("CopiesMissing", message, away)
    votes = voters(view.members)
    votes_here = [member for member in votes if member.name not in away]
    lost = [member.name for member in tie_breakers(view.members) if member.name in away]
    if lost and 2 * len(votes_here) <= len(votes):
        return _refusal(
            "TieBreakerAway", f"the tie-breaker {named(view, lost)} is away, and so is half of the voters", away
        )
    return None


def connected_still(view: VolumeView, members: Iterable[Member]) -> Wait | None:
    """Whether anybody who counts is in touch with one of these, or cannot say."""
    for away in members:
        seen_by = [
            replica.name
            for replica in view.replicas
            if (member := replica.member) is not None
            and replica.name != away.name
            and is_linked(member, away)
            and replica.report is not None
            and says_connected(replica, away)
        ]
        if seen_by:
            heard = f"{named(view, [away.name])} is silent, yet connected with {named(view, seen_by)}"
            message = f"{heard}: its agent is brought back, or {away.node_name} switched off"
            return _refusal("StillConnected", message, (away.name,))
    return None


def _refusal(reason: str, message: str, names: Iterable[ReplicaName]) -> Wait:
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in sorted(names))
    return Wait(reason, message, blockers)
