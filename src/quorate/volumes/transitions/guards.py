"""What must be so before a step begins, or is over; evaluated on live reports, and asked again before each step.

Every refusal says which rule stands against it, and which replicas.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import annotation_keys
from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, Transition, TransitionType
from quorate.api.storage.drbd import Role
from quorate.volumes.naming import in_use, named
from quorate.volumes.transitions import changes
from quorate.volumes.transitions.confirmation import cannot_do_without, connected_still, excuse_refused, is_stuck
from quorate.volumes.transitions.members import (
    good_copies,
    has_tie_breaker,
    is_diskful,
    is_fresh,
    is_serving,
    is_up,
    is_up_to_date,
    lacks_only_copies,
    out_of_touch,
    promise_of,
    sides_of_divided,
    voters,
)
from quorate.volumes.transitions.rules import subject_of
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait

_FORCED = (TransitionType.FORCE_REMOVE_REPLICA, TransitionType.FORCE_DETACH)


def is_forced(transition: Transition) -> bool:
    """Whether nobody waits for its subject."""
    return transition.type in _FORCED


def has_consent(view: VolumeView, transition: Transition) -> bool:
    """Whether a person has said that exactly this may cost data."""
    said, name = view.volume.metadata.annotations, subject_of(transition)
    if transition.type is TransitionType.FORCE_REMOVE_REPLICA:
        return said.get(annotation_keys.ACCEPT_DATA_LOSS) == "true" and said.get(annotation_keys.FORCE_REMOVE) == name
    member = view.members_by_name.get(name)
    return transition.type is TransitionType.FORCE_DETACH and member is not None and view.forced_off == member.node_name


def may_count(view: VolumeView, transition: Transition) -> Wait | None:
    """Before a copy gets a vote: it is good, it is in touch with everybody, and the volume serves without it.

    Or it stands still for nothing but this copy.
    """
    name = subject_of(transition)
    if (wait := may_not_be_connected(view, transition) or is_behind(view, transition)) is not None:
        return wait
    return None if _is_the_missing_copy(view, name) else _no_vote_before(view, name)


def _is_the_missing_copy(view: VolumeView, name: ReplicaName) -> bool:
    """Whether a copy that is in touch with every voter is what these lack, and all that they lack."""
    return lacks_only_copies(view) and all(view.connected(name, member.name) for member in voters(view.members))


def _no_vote_before(view: VolumeView, name: ReplicaName) -> Wait | None:
    """That the volume does not serve; and what a person can say, if this copy could take the place of the last one."""
    wait, last = _not_serving(view, (name,)), next(iter(voters(view.members)), None)
    successor = changes.successor_of(view, last.name) if wait is not None and last is not None else None
    if wait is None or last is None or successor is None or successor.name != name:
        return wait
    given_up = f"{named(view, [last.name])} is back, or is given up by a person's word (force-remove={last.name})"
    told = f"{wait.message}; {named(view, [name])} is up to date, and gets a vote when {given_up}"
    return Wait(wait.reason, told, wait.blockers)


def is_behind(view: VolumeView, transition: Transition) -> Wait | None:
    """Whether a new copy is not good yet."""
    name = subject_of(transition)
    member = view.members_by_name.get(name)
    if member is None or not is_diskful(member) or (is_up(view, name) and is_up_to_date(view, name)):
        return None
    return _wait("WaitingForSync", f"{named(view, [name])} is {view.state_of(name).disk}, not UpToDate", name)


def may_not_be_connected(view: VolumeView, transition: Transition) -> Wait | None:
    """Whether a new member is not yet in touch with every voter that is up."""
    name = subject_of(transition)
    if name not in view.members_by_name:
        return None
    if not is_up(view, name):
        return _wait("NotUp", f"{named(view, [name])} is not up, or its agent is silent", name)
    apart = out_of_touch(view, name)
    return (
        _wait("NotConnected", f"{named(view, [name])} is not connected with {named(view, apart)}", name)
        if apart
        else None
    )


def may_leave(view: VolumeView, transition: Transition) -> Wait | None:
    """Before a member is hidden: it is not in use, and what is promised is there without it."""
    name = subject_of(transition)
    member = view.members_by_name.get(name)
    if member is None:
        return None
    if is_forced(transition):
        return _may_be_forced_out(view, transition, member)
    if (user := _in_use(view, member)) is not None:
        return user
    if is_diskful(member):
        return copies_missing(view, transition)
    return None if member.hidden else _tie_breaker_missing(view, member)


def may_be_forgotten(view: VolumeView, transition: Transition) -> Wait | None:
    """Before its vote and its place are gone for good: the copies are counted again."""
    name = subject_of(transition)
    member = view.members_by_name.get(name)
    if member is None:
        return None
    if is_forced(transition):
        return _may_be_forced_out(view, transition, member)
    if is_up(view, name):
        return _wait("NotDown", f"{named(view, [name])} is not down yet", name)
    return copies_missing(view, transition) if is_diskful(member) else None


def copies_missing(view: VolumeView, transition: Transition) -> Wait | None:
    """Whether the promised number of good copies is not there without the subject."""
    name = subject_of(transition)
    promise = promise_of(view)
    if promise is None:
        return _wait("NoConfiguration", "what the volume promises is not known", name)
    good, replica = good_copies(view, without=name), view.replica(name)
    # One with nothing on a dead drive takes nothing away; that writes go on without it is all there is to ask.
    lost = replica is not None and replica.evacuation is not None and replica.evacuation.lost
    needed = promise.minimum_redundancy if lost else promise.diskful
    if len(good) < needed:
        message = (
            f"{len(good)} of {needed} promised copies are up to date without {named(view, [name])}: {named(view, good)}"
        )
        return _wait("CopiesMissing", message, name)
    return _not_serving(view, (name,))


def may_change_tie_breaker(view: VolumeView, transition: Transition) -> Wait | None:
    """Before the tie-breaker is hidden: what it is hidden for can follow at once."""
    joins = transition.type is TransitionType.ADD_REPLICA or _has_rejoined(view, transition)
    return may_count(view, transition) if joins else may_leave(view, transition)


def may_show_tie_breaker(view: VolumeView, transition: Transition) -> Wait | None:
    """Before a tie-breaker is shown. Whoever is not up is not waited for: it is shown when it is."""
    return None if changes.due_tie_breaker(view) is None else _not_serving(view, ())


def may_join(view: VolumeView, transition: Transition) -> Wait | None:
    """Before a replica becomes a member: there is room for it, and nobody is where it is."""
    name = subject_of(transition)
    replica = view.replica(name)
    if replica is None or replica.node_name is None or replica.address is None:
        return _wait("NotPrepared", f"{named(view, [name])} has no node or no address yet", name)
    if replica.replica.deleting:
        return _wait("Deleting", f"{named(view, [name])} is being deleted", name)
    if not replica.fresh:
        return _wait("AgentSilent", f"the agent of {named(view, [name])} is silent", name)
    beside = [member.name for member in view.members if member.node_name == replica.node_name and member.name != name]
    if beside:
        return _wait("NodeTaken", f"there is {named(view, beside)} already", name)
    if replica.id in view.datamesh.forget:
        return _wait("NotForgotten", f"members have yet to forget the last one with node id {replica.id}", name)
    if _waits_for_its_turn(view, replica):
        return _wait("WaitingForTurn", f"{named(view, [name])} is to be copied to when others are done", name)
    return None


def _waits_for_its_turn(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether it joins only to take over from a drive that leaves: so many at once as the cluster allows."""
    promise = promise_of(view)
    others = [each for each in view.replicas if each.member is not None and is_diskful(each.member)]
    leaving = [each.evacuation for each in others if each.evacuation is not None]
    if promise is None or not replica.diskful or not leaving or len(others) < promise.diskful:
        return False
    whole = all(is_up_to_date(view, each.name) for each in others if each.evacuation is None)
    return whole and not any(each.to == replica.name and not each.paused for each in leaving)


def may_give_way(view: VolumeView, transition: Transition) -> Wait | None:
    """Before a copy that is in another one's way goes down: a person has said so, and nobody uses it."""
    member = view.members_by_name[subject_of(transition)]
    return _in_use(view, member) or (None if has_consent(view, transition) else _word_missing(view, transition, member))


def _word_missing(view: VolumeView, transition: Transition, member: Member) -> Wait:
    """A copy goes only by a person's word: because it is the last one with a vote, or for another side's."""
    others = [each.name for each in voters(view.members) if each.name != member.name]
    if not others:
        return _last_copy(view, transition, member)
    mine, word = named(view, [member.name]), f"{annotation_keys.FORCE_REMOVE}={member.name}"
    needed = f"a person's word is missing ({word} with {annotation_keys.ACCEPT_DATA_LOSS}=true)"
    return _wait("ConsentMissing", f"{mine} stands in the way of {named(view, others)}: {needed}", member.name)


def may_hand_over(view: VolumeView, transition: Transition) -> Wait | None:
    """Before another copy gets the vote of the last one: that one is down, by its own word or a person's."""
    member = view.members_by_name[subject_of(transition)]
    if is_up(view, member.name):
        return _wait("NotDown", f"{named(view, [member.name])} is not down yet", member.name)
    return may_give_way(view, transition) or connected_still(view, (member,))


def not_handed_over(view: VolumeView, transition: Transition) -> Wait | None:
    """Whether the subject is still the only one with a vote: nobody who could take its place is here."""
    member = view.members_by_name[subject_of(transition)]
    return _last_copy(view, transition, member) if voters(view.members) == (member,) else None


def divided(view: VolumeView) -> Wait | None:
    """Whether half of the voters or fewer have quorum, and another one is up without it.

    Those that have it kept it through the tie-breaker, and believe that the others have no say: they may be outvoted by
    members that know a step which they themselves have not heard of (decision 0004). One that is down, stale or stuck
    is excused instead: nobody has it in a file any more, so nobody can be with it.
    """
    sides = sides_of_divided(view)
    if sides is None:
        return None
    quorate, cut_off = sides
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in cut_off)
    told = f"quorum is with {named(view, quorate)} by tie-break only, while {named(view, cut_off)} is up without it"
    keep = f"quorate volume keep {view.name} {view.members_by_name[quorate[0]].node_name}"
    return Wait("Divided", f"{told}: mend the link, or give up a side by naming the one to keep ({keep})", blockers)


def may_set_redundancy(view: VolumeView, transition: Transition) -> Wait | None:
    """Before qmr is raised: there are as many good copies."""
    asked, good = changes.possible_redundancy(view), good_copies(view)
    if len(good) >= asked or asked <= (view.volume.status.drbd.config.quorum_minimum_redundancy or 1):
        return None
    return Wait("CopiesMissing", f"{len(good)} of {asked} copies are up to date: {named(view, good)}")


def may_detach(view: VolumeView, transition: Transition) -> Wait | None:
    """Before a member that is out of reach is taken for detached, or one that is heard is made Secondary by force."""
    return not_to_be_forced(view, transition)


def not_to_be_forced(view: VolumeView, transition: Transition) -> Wait | None:
    """Why a user is not detached by force; None: it is.

    By a person's word one whose agent is heard is made Secondary by force, and uses the volume until it says that it is
    (``attach.turns.using``). One that is out of reach is taken for one that does not use the volume any more.
    """
    member = view.members_by_name.get(subject_of(transition))
    if member is None:
        return None
    if not has_consent(view, transition):
        return _still_here(view, member) or cannot_do_without(view, member)
    return None if is_up(view, member.name) else connected_still(view, (member,))


def who_lets_go(view: VolumeView, transition: Transition) -> tuple[Member, ...]:
    """Whoever is to stop using the volume; nobody, if it is out of reach and could be detached by force."""
    member = view.members_by_name.get(subject_of(transition))
    if member is None or (_still_here(view, member) is None and cannot_do_without(view, member) is None):
        return ()
    return (member,)


def _has_rejoined(view: VolumeView, transition: Transition) -> bool:
    """Whether the one that changes its type is in the second half of that: hidden, with the disk that it is to have."""
    member = view.members_by_name.get(subject_of(transition))
    if transition.type is not TransitionType.CHANGE_REPLICA_TYPE or member is None:
        return False
    return is_diskful(member) and member.hidden and not member.down


def _may_be_forced_out(view: VolumeView, transition: Transition, member: Member) -> Wait | None:
    """The conditions of an excuse, all of them; or a person's word, and that nobody is in touch with it."""
    if (here := _still_here(view, member)) is not None:
        return here
    others = [each for each in voters(view.members) if each.name != member.name]
    if is_diskful(member) and not others:
        return _last_copy(view, transition, member)
    if is_diskful(member) and member.down and (missed := _nothing_to_give_way_for(view, member, others)) is not None:
        return missed
    if has_consent(view, transition):
        return connected_still(view, (member,))
    return excuse_refused(view, () if member.excused else (member,))


def _nothing_to_give_way_for(view: VolumeView, member: Member, others: Iterable[Member]) -> Wait | None:
    """Whether a copy that was good has gone down for others of which none is here and good: then it is all there is."""
    rest = [each.name for each in others]
    if any(is_up(view, name) and is_up_to_date(view, name) for name in rest):
        return None
    mine, missed = named(view, [member.name]), named(view, rest)
    told = f"{mine} has given way for {missed}, which is not here and UpToDate: nothing more is done to it until it is"
    back = f"it comes back when the annotation {annotation_keys.FORCE_REMOVE} is taken off the volume"
    return _wait("NotUpToDate", f"{told}; {back}", member.name)


def _last_copy(view: VolumeView, transition: Transition, member: Member) -> Wait:
    told = f"{named(view, [member.name])} is the last copy that has a vote"
    good = changes.successor_of(view, member.name)
    hidden = [each.name for each in view.members if is_diskful(each) and each.hidden]
    if has_consent(view, transition):
        told += f"; it is given up when {named(view, hidden)} is here and UpToDate" if hidden else ""
    elif good is not None:
        given_up = f"when the other is back, or is given up by a person's word (force-remove={member.name})"
        told = f"{told}; that of {named(view, [good.name])} is up to date, and gets one {given_up}"
    return _wait("LastCopy", told, member.name)


def is_here(view: VolumeView, member: Member) -> bool:
    """Whether a member can be asked to go: it is up, its agent is heard, and does as it is told."""
    return is_fresh(view, member.name) and is_up(view, member.name) and not is_stuck(view, member)


def _still_here(view: VolumeView, member: Member) -> Wait | None:
    if not is_here(view, member):
        return None
    return _wait("StillHere", f"{named(view, [member.name])} is here: it is removed without force", member.name)


def _in_use(view: VolumeView, member: Member) -> Wait | None:
    if member.attached or view.state_of(member.name).role == Role.PRIMARY:
        return _wait("Attached", f"in use: {in_use(view, [member.name])}", member.name)
    return None


def _tie_breaker_missing(view: VolumeView, member: Member) -> Wait | None:
    """A tie-breaker that is needed goes only when another one is ready to be shown."""
    if not has_tie_breaker(view) or len(voters(view.members)) % 2:
        return None
    ready = [
        each.name
        for each in view.members
        if not is_diskful(each)
        and each.name != member.name
        and not (each.down or each.excused)
        and is_up(view, each.name)
        and not out_of_touch(view, each.name)
    ]
    if ready:
        return None
    return _wait("TieBreakerNeeded", f"nobody is ready to take the place of {named(view, [member.name])}", member.name)


def _not_serving(view: VolumeView, names: tuple[ReplicaName, ...]) -> Wait | None:
    if is_serving(view):
        return None
    down = [member.name for member in voters(view.members) if not view.state_of(member.name).quorum]
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in (*names, *down))
    return Wait("NoQuorum", f"no quorum at {named(view, down)}", blockers)


def _wait(reason: str, message: str, name: ReplicaName) -> Wait:
    return Wait(reason, message, (Blocker("ReplicatedVolumeReplica", name),))
