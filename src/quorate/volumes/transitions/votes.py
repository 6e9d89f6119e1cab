"""Whether a change of votes, or a copy, is half done: for the walk, for people, and for the broker."""

from __future__ import annotations

from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import Step, StepStatus, Transition, TransitionGroup
from quorate.volumes.transitions.catalogue import RULES
from quorate.volumes.transitions.rules import active_step


def changes_votes(transition: Transition) -> bool:
    """Whether it is between its first and its last change of votes: no other may begin one."""
    begun = any(step.status is not StepStatus.PENDING and _is_voting(step) for step in transition.steps)
    return begun and any(step.status is not StepStatus.COMPLETED for step in transition.steps)


def _is_voting(step: Step) -> bool:
    rule = RULES.get(step.name)
    # A step that changed nothing has no revision; one under way may still turn out so, and counts.
    return rule is not None and rule.votes and (step.status is StepStatus.ACTIVE or bool(step.datamesh_revision))


def unconfirmed_vote_step(rv: ReplicatedVolume) -> tuple[Transition, Step] | None:
    """The step under way that changes votes, qmr or size: meanwhile nobody on its members' nodes may go down."""
    for transition in rv.status.datamesh_transitions:
        at = active_step(transition)
        if at is None:
            continue
        step = transition.steps[at]
        rule = RULES.get(step.name)
        if transition.group is TransitionGroup.RESIZE or (rule is not None and rule.votes):
            return transition, step
    return None


def synchronizing_member(rv: ReplicatedVolume) -> ReplicaName | None:
    """The hidden member that is being given a copy: it counts as one member locked."""
    for transition in rv.status.datamesh_transitions:
        at = active_step(transition)
        rule = RULES.get(transition.steps[at].name) if at is not None else None
        if rule is not None and rule.syncs:
            return transition.replica_name
    return None
