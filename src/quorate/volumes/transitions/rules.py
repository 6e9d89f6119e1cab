"""What a transition is made of: steps as data, each a change, a guard and what must be so before it is over.

A step that begins changes the datamesh in one write, with the next revision. It is over when every member that must
know has confirmed that revision (``confirmation``) and ``done`` has no objection. A change that changes nothing needs
no revision and no confirmation: the step is over as soon as ``done`` is content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, StepStatus, Transition
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Wait

#: From one status to the next; only the datamesh and what all members share may differ.
Change = Callable[[VolumeView, Transition], ReplicatedVolumeStatus]
#: Why not now; None: go on.
Objection = Callable[[VolumeView, Transition], Wait | None]
#: Why a member's node or drive must not be disturbed now: it holds a permission. None: it does not.
Locks = Callable[[Member], Wait | None]
#: Of the members of a volume, those that a step of a transition is not over without.
Audience = Callable[[VolumeView, Transition], tuple[Member, ...]]


def unobjected(view: VolumeView, transition: Transition) -> Wait | None:
    """Nothing stands against it."""
    return None


def everybody(view: VolumeView, transition: Transition) -> tuple[Member, ...]:
    """All members."""
    return view.members


def nobody(view: VolumeView, transition: Transition) -> tuple[Member, ...]:
    """Whether the step is over can be seen without anybody's word that it has heard of it."""
    return ()


def no_locks(member: Member) -> Wait | None:
    """Nobody holds a permission."""
    return None


@dataclass(frozen=True, slots=True)
class Rule:
    """One sort of step."""

    name: str
    change: Change
    #: Asked before the step begins.
    guard: Objection = unobjected
    #: Asked before it is over, beside the confirmations.
    done: Objection = unobjected
    #: Who must have confirmed it before it is over.
    must_know: Audience = everybody
    #: Changes who counts, or how many copies are needed.
    votes: bool = False
    #: A copy is being made, which does not count yet.
    syncs: bool = False
    #: Changes nothing that members must agree on: it begins whether or not what came before is confirmed.
    beside: bool = False


def subject_of(transition: Transition) -> ReplicaName:
    """The replica that a transition is about."""
    if transition.replica_name is None:
        raise ValueError(f"a transition {transition.type} is about no single replica")
    return transition.replica_name


def active_step(transition: Transition) -> int | None:
    """The place of the step that is under way; None: none has begun, or the last one is over."""
    return next((n for n, step in enumerate(transition.steps) if step.status is StepStatus.ACTIVE), None)


#: How long a living agent may take before its member counts as down, in seconds.
SLOWNESS: Final = 60.0
