"""Who has not confirmed a revision yet, and whom the others need not wait for.

A step is over when every member has shown its revision, tie-breaker and subject included. One that is down or stale is
**excused** only while all of this holds:

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

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member
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
from quorate.volumes.waits import Blocker, Wait, ids


def unconfirmed(view: VolumeView, revision: int) -> tuple[Member, ...]:
    """Members that must show a revision, and do not."""
    return tuple(
        member
        for member in view.members
        if not member.excused and ((replica := view.replica(member.name)) is None or not replica.confirms(revision))
    )


def absent(view: VolumeView, members: Iterable[Member], since: datetime | None, now: datetime) -> tuple[Member, ...]:
    """Of these, the ones that are stale, or down for longer than coming up takes."""
    patient = since is not None and (now - since).total_seconds() < SLOWNESS
    return tuple(
        member
        for member in members
        if not is_fresh(view, member.name) or not (patient or member.down or is_up(view, member.name))
    )


def wait_for(view: VolumeView, members: Iterable[Member], revision: int) -> Wait:
    """The words for members that have yet to confirm."""
    named = tuple(members)
    stale = [member.name for member in named if not is_fresh(view, member.name)]
    slow = [member.name for member in named if member.name not in stale]
    told = [f"not confirmed by {ids(slow)}"] if slow else []
    told += [f"silent agents {ids(stale)}"] if stale else []
    blockers = tuple(Blocker("ReplicatedVolumeReplica", member.name) for member in named)
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
        return _refusal("NotExcused", f"nothing is known of {ids(silent)} either", silent)
    promise = promise_of(view)
    promised = promise.minimum_redundancy if promise is not None else 1
    good = [name for name in good_copies(view) if name not in away]
    if not is_serving(view) or without_quorum(view):
        return _refusal("NoQuorum", "the members that are here have no quorum without it", away)
    if len(good) < promised:
        return _refusal("CopiesMissing", f"{len(good)} of {promised} promised copies are here: {ids(good)}", away)
    votes, votes_here = voters(view.members), voters(here)
    lost = [member.name for member in tie_breakers(view.members) if member.name in away]
    if lost and 2 * len(votes_here) <= len(votes):
        return _refusal("TieBreakerAway", f"the tie-breaker {ids(lost)} is away, and so is half of the voters", away)
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
            message = f"{ids([away.name])} is silent, yet connected with {ids(seen_by)}"
            return _refusal("StillConnected", message, (away.name,))
    return None


def _refusal(reason: str, message: str, names: Iterable[ReplicaName]) -> Wait:
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in sorted(names))
    return Wait(reason, message, blockers)
