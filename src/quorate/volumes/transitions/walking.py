"""How a transition goes from step to step. One generic walk for all of them.

A step **begins** with one write: its change, the next revision, and itself as Active. It needs

- every member's confirmation of whatever came before (not for a change of roles): so members differ by one step at
  most, and whatever order they apply it in, only "before" and "after" can meet;
- its guard's consent;
- that no copy is in doubt, unless it only changes roles or a person's word is about it (``stale``);
- for a step that changes votes: that nobody's node or drive is locked, that no other transition is between its first
  and its last such step, and that the voters are not divided (``guards.divided``);
- for a growth: that nobody's node or drive is locked.

Members that are down or stale are excused in the same write, or the step waits (a change of roles does not: decision
0005). A step is **over** when all others have confirmed, of those who must know; the write that says so may begin the
next one. Whoever falls silent meanwhile is excused in one more revision; one whom a person gives up (``force-remove``)
without regard to what is left: the step would keep the removal from beginning, and wait for it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from quorate.api import annotation_keys
from quorate.api.storage.datamesh import Member, StepStatus, Transition, TransitionGroup, TransitionType
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.stale import nobody_leaves
from quorate.volumes.transitions import changes
from quorate.volumes.transitions.catalogue import RULES, SHOW
from quorate.volumes.transitions.confirmation import absent, connected_still, excuse_refused, unconfirmed, wait_for
from quorate.volumes.transitions.guards import divided, has_consent, is_forced
from quorate.volumes.transitions.making import make
from quorate.volumes.transitions.members import is_up
from quorate.volumes.transitions.nodes import is_past_grace
from quorate.volumes.transitions.proposals import forced_replica
from quorate.volumes.transitions.rules import Locks, Rule, active_step, subject_of
from quorate.volumes.transitions.votes import changes_votes
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Wait

_WITHIN_GRACE = (TransitionType.ADD_REPLICA, TransitionType.FORCE_REMOVE_REPLICA)
_ALONE = (TransitionGroup.FORMATION, TransitionGroup.RESIZE)


class Walk(msgspec.Struct, frozen=True, gc=False):
    """Everything that a walk depends on."""

    view: VolumeView
    now: datetime
    locks: Locks

    def after(self, status: ReplicatedVolumeStatus) -> Walk:
        """The same, as if this were written already."""
        return Walk(self.view.with_status(status), self.now, self.locks)


def walk(walk: Walk, transition: Transition) -> ReplicatedVolumeStatus | Wait:
    """The status after the next thing that can be done for a transition, or why nothing can."""
    at = active_step(transition)
    if at is None:
        return _begin_next(walk, transition)
    step, rule = transition.steps[at], RULES[transition.steps[at].name]
    if step.datamesh_revision:
        needed = rule.must_know(walk.view, transition)
        missing = tuple(member for member in unconfirmed(walk.view, step.datamesh_revision) if member in needed)
        gone = absent(walk.view, missing, step.started_at, walk.now)
        if gone and (refusal := _not_excused(walk.view, transition, gone)) is not None:
            waiting = wait_for(walk.view, missing, step.datamesh_revision)
            return Wait(refusal.reason, f"{waiting.message}; {refusal.message}", waiting.blockers)
        if (joiner := _joiner(walk.view, gone, transition)) is not None:
            return _sent_away(walk, joiner)
        if gone:
            excused = changes.excuse(walk.view, (member.name for member in gone))
            return _at_revision(excused, transition, at)
        if missing:
            return wait_for(walk.view, missing, step.datamesh_revision)
    undone = rule.done(walk.view, transition)
    return undone if undone is not None else _complete(walk, transition, at)


def begin(walk: Walk, transition: Transition) -> ReplicatedVolumeStatus | Wait:
    """The status with a new transition whose first step has begun, or why it cannot.

    Steps that change nothing are no beginning: what is listed keeps others from being proposed, and nobody has agreed.
    """
    status = walk.view.volume.status
    listed = replace(status, datamesh_transitions=(*status.datamesh_transitions, transition))
    begun = _begin_next(walk.after(listed), transition)
    if isinstance(begun, Wait):
        return begun
    further = next((each for each in begun.datamesh_transitions if _is_same(each, transition)), None)
    if further is None or active_step(further) is not None or _has_changed_something(further):
        return begun
    return _begin_next(walk.after(begun), further)


def _complete(walk: Walk, transition: Transition, at: int) -> ReplicatedVolumeStatus:
    """The step is over: the next one begins in the same write if it can; after the last the transition goes."""
    status = walk.view.volume.status
    done = replace(transition.steps[at], status=StepStatus.COMPLETED, completed_at=walk.now, message="")
    steps = (*transition.steps[:at], done, *transition.steps[at + 1 :])
    further = replace(transition, steps=steps, reason="", message="")
    if at == len(steps) - 1:
        return with_transition(status, transition, None)
    completed = with_transition(status, transition, further)
    begun = _begin_next(walk.after(completed), further)
    return completed if isinstance(begun, Wait) else begun


def _begin_next(walk: Walk, transition: Transition) -> ReplicatedVolumeStatus | Wait:
    at = next(n for n, step in enumerate(transition.steps) if step.status is StepStatus.PENDING)
    view, rule = walk.view, RULES[transition.steps[at].name]
    changed = rule.change(view, transition)
    if not _differs(changed, view.volume.status):
        # Nothing to tell: neither guard nor confirmation is needed for that.
        begun = _as_active(walk, transition, at, revision=0)
        undone = rule.done(walk.after(begun).view, transition)
        if undone is None:
            following = walk.after(begun)
            return _complete(following, _same(following.view, transition), at)
        # What is to change a vote, and cannot yet, is tried again: as Active, with nothing told, it never would be.
        return undone if rule.votes else begun
    if (objection := _objection(walk, transition, rule)) is not None:
        return objection
    missing = unconfirmed(view, view.volume.status.datamesh_revision)
    # A member that is being told for the first time has nothing to confirm.
    gone = absent(view, missing, None, walk.now)
    slow = [member for member in missing if member not in gone]
    if slow and not rule.beside:
        return wait_for(view, slow, view.volume.status.datamesh_revision)
    if gone and (refusal := _not_excused(view, transition, gone)) is not None:
        if not rule.beside:
            return refusal
        gone = ()
    if (joiner := _joiner(view, gone, transition)) is not None:
        return _sent_away(walk, joiner)
    told = walk.after(changed)
    here = [member.name for member in gone if member.name in told.view.members_by_name]
    if here:
        told = told.after(changes.excuse(told.view, here))
    revised = replace(told.view.volume.status, datamesh_revision=view.volume.status.datamesh_revision + 1)
    return _as_active(told.after(revised), transition, at, revision=revised.datamesh_revision)


def _objection(walk: Walk, transition: Transition, rule: Rule) -> Wait | None:
    others = [each for each in walk.view.volume.status.datamesh_transitions if not _is_same(each, transition)]
    alone = next((each for each in others if each.group in _ALONE), None)
    if alone is not None:
        return Wait("AnotherTransition", f"{alone.type} is under way, and nothing beside it")
    forced = is_forced(transition) and has_consent(walk.view, transition)
    if not rule.beside and not forced and (doubt := nobody_leaves(walk.view, transition.replica_name)) is not None:
        return doubt
    if rule.votes:
        holder = next((each for each in others if changes_votes(each)), None)
        if holder is not None:
            return _one_at_a_time(transition, holder)
        if (unsafe := _locked(walk, transition) or divided(walk.view)) is not None:
            return unsafe
    if transition.group is TransitionGroup.RESIZE and (locked := _locked(walk, transition)) is not None:
        return locked
    return rule.guard(walk.view, transition)


def _one_at_a_time(transition: Transition, holder: Transition) -> Wait:
    name = holder.replica_name
    told = f"{holder.type}{f' of {name}' if name is not None else ''} changes votes, and one does at a time"
    if is_forced(transition) and not is_forced(holder) and name is not None:
        told += f"; where {name} is lost too, it is given up first ({annotation_keys.FORCE_REMOVE}={name})"
    return Wait("AnotherTransition", told)


def _locked(walk: Walk, transition: Transition) -> Wait | None:
    for member in walk.view.members:
        lock = walk.locks(member)
        lost = transition.type in _WITHIN_GRACE and is_past_grace(walk.view, member.node_name, walk.now)
        if lock is not None and not lost:
            return lock
    return None


def _not_excused(view: VolumeView, transition: Transition, gone: tuple[Member, ...]) -> Wait | None:
    if not (is_forced(transition) and has_consent(view, transition)) and not _is_in_the_way(view, transition, gone):
        return excuse_refused(view, gone)
    # A person's word is about the subject. Whoever else is up is what shall go on, and has to be told.
    here = [member for member in gone if member.name != transition.replica_name and is_up(view, member.name)]
    return wait_for(view, here, view.volume.status.datamesh_revision) if here else connected_still(view, gone)


def _is_in_the_way(view: VolumeView, transition: Transition, gone: tuple[Member, ...]) -> bool:
    """Whether a step that has begun waits for somebody whom a person gives up, and so keeps that from being done.

    To be removed by force it would be excused, and whoever else is gone with it: by the same word, under the same
    conditions. No further step begins by that.
    """
    forced = forced_replica(view)
    if forced is None or not forced.replica.deleting or active_step(transition) is None:
        return False
    return forced.name in {member.name for member in gone}


def _joiner(view: VolumeView, gone: tuple[Member, ...], transition: Transition) -> Transition | None:
    """Of those that are gone, one that is joining and has no vote yet: its transition."""
    names = {member.name for member in gone if member.hidden}
    return next(
        (
            each
            for each in view.volume.status.datamesh_transitions
            if each.type is TransitionType.ADD_REPLICA and each.replica_name in names and not has_begun(each, SHOW)
        ),
        None,
    )


def _sent_away(walk: Walk, joining: Transition) -> ReplicatedVolumeStatus:
    """One that falls silent while it joins is not excused but forgotten, and joins again when it is back.

    Members that only took it out of their files would count it, because only a link can hide it: in a layout with a
    tie-breaker the next loss would not be survived.
    """
    member = walk.view.members_by_name[subject_of(joining)]
    instead = make(walk.view, TransitionType.FORCE_REMOVE_REPLICA, walk.now, member.name, before=member.type)
    return with_transition(walk.view.volume.status, joining, instead)


def _has_changed_something(transition: Transition) -> bool:
    """Whether members have been told anything by it."""
    return any(step.datamesh_revision for step in transition.steps)


def has_begun(transition: Transition, rule: Rule) -> bool:
    """Whether a step of this sort is under way or over."""
    return any(step.name == rule.name and step.status is not StepStatus.PENDING for step in transition.steps)


def _differs(after: ReplicatedVolumeStatus, before: ReplicatedVolumeStatus) -> bool:
    return (after.datamesh, after.drbd) != (before.datamesh, before.drbd)


def _as_active(walk: Walk, transition: Transition, at: int, *, revision: int) -> ReplicatedVolumeStatus:
    begun = replace(
        transition.steps[at], status=StepStatus.ACTIVE, started_at=walk.now, datamesh_revision=revision, message=""
    )
    steps = (*transition.steps[:at], begun, *transition.steps[at + 1 :])
    at_revision = revision or transition.datamesh_revision
    further = replace(transition, steps=steps, datamesh_revision=at_revision, reason="", message="")
    return with_transition(walk.view.volume.status, transition, further)


def _at_revision(status: ReplicatedVolumeStatus, transition: Transition, at: int) -> ReplicatedVolumeStatus:
    """The same step, at one more revision."""
    revision = status.datamesh_revision + 1
    step = replace(transition.steps[at], datamesh_revision=revision)
    steps = (*transition.steps[:at], step, *transition.steps[at + 1 :])
    further = replace(transition, steps=steps, datamesh_revision=revision)
    return with_transition(replace(status, datamesh_revision=revision), transition, further)


def with_transition(
    status: ReplicatedVolumeStatus, before: Transition, after: Transition | None
) -> ReplicatedVolumeStatus:
    """The status with one transition changed, or gone."""
    found: list[Transition] = []
    for each in status.datamesh_transitions:
        if not _is_same(each, before):
            found.append(each)
        elif after is not None:
            found.append(after)
    return replace(status, datamesh_transitions=tuple(found))


def _is_same(one: Transition, other: Transition) -> bool:
    return (one.type, one.replica_name) == (other.type, other.replica_name)


def _same(view: VolumeView, transition: Transition) -> Transition:
    return next(each for each in view.volume.status.datamesh_transitions if _is_same(each, transition))
