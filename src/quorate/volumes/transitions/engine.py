"""One pass over the transitions of a volume: at most one write, which begins, advances or ends a step.

In this order, the first that has something to write ends the pass:

    turned back   a transition whose subject now wants the opposite
    under way     the next thing that can be done for each, oldest first
    taken back    an excused member that has caught up
    spared        one that was to be made Secondary by force, and is Secondary
    forgotten     those that have left, also by a copy that was without its disk
    new           the first proposal that may begin
    replicas      what should be created, deleted or changed so that a transition can follow

Whatever waits says why, in the transition or in the replica's request. Nothing at all is done while some member shows
a revision that the volume does not have: its status was restored from a backup, and what members said of a later one
confirms nothing of this. They are told this one, and then say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Step, StepStatus, Transition
from quorate.api.storage.drbd import Role
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.life import Advance
from quorate.volumes.naming import named
from quorate.volumes.resize import growth
from quorate.volumes.transitions import changes, confirmation, requests
from quorate.volumes.transitions.catalogue import FORGET, RULES
from quorate.volumes.transitions.confirmation import unconfirmed
from quorate.volumes.transitions.proposals import given_up, half_said, proposals, spent_annotations, unheeded
from quorate.volumes.transitions.rules import Locks, no_locks
from quorate.volumes.transitions.turning import abandoned, turned
from quorate.volumes.transitions.walking import Walk, begin, walk
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Blocker, Wait


def advance(view: VolumeView, now: datetime, locks: Locks = no_locks) -> Advance | None:
    """What life asks for in this pass; None: the volume is not there, or not born yet."""
    if view.rv is None or view.forming:
        return None
    later = _later_revision(view)
    if later is not None:
        return Advance(waits=(later,))
    going = Walk(view, now, locks)
    waits: dict[ReplicaName | None, Wait] = {}
    status = _turned_back(view, now) or _under_way(going, waits)
    status = status or _taken_back(view) or _spared(view) or _forgotten(view)
    if status is None:
        status = _begun(going, waits)
    if status is not None:
        return Advance(status=status)
    asked = requests.requested(view, now)
    return Advance(
        create=requests.creations(asked),
        delete=requests.deletions(asked),
        retype=requests.new_types(asked),
        given_up=given_up(view),
        spent_annotations=spent_annotations(view),
        waiting=_told(view, waits),
        waits=(*half_said(view), *unheeded(view, waits, now), *waits.values(), *requests.waits(view, now)),
        again=_look_again(view, now),
    )


def _later_revision(view: VolumeView) -> Wait | None:
    revision = view.volume.status.datamesh_revision
    shown = {
        replica.name: replica.replica.status.datamesh_revision
        for replica in view.replicas
        if replica.member is not None and replica.fresh and replica.replica.status.datamesh_revision > revision
    }
    if not shown:
        return None
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in shown)
    told = f"{named(view, shown)} still show revision {max(shown.values())}, and the volume has {revision}"
    return Wait("LaterRevisionShown", told, blockers)


def _look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until something is due by time alone: a grace, the patience with a member, or with a growth."""
    found = (
        requests.look_again(view, now),
        confirmation.look_again(view, now),
        *(growth.patience_left(transition, now) for transition in view.volume.status.datamesh_transitions),
    )
    return min((seconds for seconds in found if seconds is not None), default=None)


def _turned_back(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    found = (abandoned(view, transition, now) for transition in view.volume.status.datamesh_transitions)
    return next((status for status in found if status is not None), None)


def _under_way(going: Walk, waits: dict[ReplicaName | None, Wait]) -> ReplicatedVolumeStatus | None:
    for transition in going.view.volume.status.datamesh_transitions:
        if any(step.name not in RULES for step in transition.steps):
            continue
        outcome = walk(going, transition)
        if not isinstance(outcome, Wait):
            return outcome
        instead = turned(going.view, transition, outcome, going.now)
        if instead is not None:
            return instead
        waits[transition.replica_name] = outcome
    return None


def _taken_back(view: VolumeView) -> ReplicatedVolumeStatus | None:
    """An excused member that shows the current revision is linked to again, when all others show it too."""
    revision = view.volume.status.datamesh_revision
    for member in view.members:
        if not member.excused:
            continue
        replica = view.replica(member.name)
        if replica is not None and replica.confirms(revision) and not unconfirmed(view, revision):
            return replace(changes.readmit(view, member.name), datamesh_revision=revision + 1)
    return None


def _spared(view: VolumeView) -> ReplicatedVolumeStatus | None:
    """One that knows that it is to be Secondary by force, and is: it is told no more. Nobody else has to know."""
    under_way = {each.replica_name for each in view.volume.status.datamesh_transitions}
    for member in view.members:
        replica = view.replica(member.name) if member.force_secondary and member.name not in under_way else None
        if replica is None or not replica.confirms(view.volume.status.datamesh_revision):
            continue
        if view.state_of(member.name).role != Role.PRIMARY:
            return changes.spared(view, member.name)
    return None


def _forgotten(view: VolumeView) -> ReplicatedVolumeStatus | None:
    """What is to be forgotten is unsaid by the transition that said it, or here if some copy could not at that time."""
    status = view.volume.status
    if not view.datamesh.forget:
        return None
    if any(step.name == FORGET.name for each in status.datamesh_transitions for step in each.steps):
        return None
    found = changes.all_forgotten(view)
    return replace(found, datamesh_revision=status.datamesh_revision + 1) if found is not None else None


def _begun(going: Walk, waits: dict[ReplicaName | None, Wait]) -> ReplicatedVolumeStatus | None:
    for transition in proposals(going.view, going.now):
        outcome = begin(going, transition)
        if not isinstance(outcome, Wait):
            return outcome
        waits[transition.replica_name] = outcome
    return None


def _told(view: VolumeView, waits: Mapping[ReplicaName | None, Wait]) -> ReplicatedVolumeStatus | None:
    """The status with the words of what waits; None: it says so already."""
    status = view.volume.status
    if not status.datamesh_transitions and not status.datamesh_pending_replica_transitions:
        return None
    transitions = tuple(_with_words(each, waits.get(each.replica_name)) for each in status.datamesh_transitions)
    under_way = {each.replica_name for each in transitions}
    pending = tuple(
        replace(each, reason=wait.reason, message=wait.brief())
        if (wait := waits.get(each.name)) is not None and each.name not in under_way
        else replace(each, reason="", message="")
        for each in status.datamesh_pending_replica_transitions
    )
    told = replace(status, datamesh_transitions=transitions, datamesh_pending_replica_transitions=pending)
    return None if told == status else told


def _with_words(transition: Transition, wait: Wait | None) -> Transition:
    if wait is None:
        return transition
    words = wait.brief()
    steps = tuple(_with_message(step, words) for step in transition.steps)
    return replace(transition, reason=wait.reason, message=words, steps=steps)


def _with_message(step: Step, words: str) -> Step:
    return replace(step, message=words) if step.status is StepStatus.ACTIVE else step
