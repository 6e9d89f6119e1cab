"""When a member may be promoted, and what a demotion waits for; on live reports, never on Ready (M23).

A promotion needs

- that it is the node's turn, and the volume is not being deleted;
- a member there that may serve: a copy that counts, or one without a disk, which in a layout with a tie-breaker must be
  the one that is shown (``diskless_own_quorum_majority``), and is Access by now (M27);
- quorum at that member, by its own agent's word; and that it would keep it without whoever may go down by a permission
  (``permissions``);
- a copy that is not in doubt, whatever DRBD calls it (``stale``);
- nobody else who uses the volume; or, for a second primary, two allowed by every member and nothing amiss.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.api.conditions.rv import PublishSucceeded
from quorate.api.meta import NodeName
from quorate.api.scalars import MAX_MEMBERS, ReplicaName
from quorate.api.storage.datamesh import Member, Transition
from quorate.api.storage.drbd import ReplicaType, Role
from quorate.api.storage.drbdrop import DRBDResourceOperation, OperationPhase, OperationType
from quorate.drbd.outcomes import Outcome
from quorate.placement.layout import layout_of
from quorate.volumes.attach.permissions import held_for
from quorate.volumes.attach.turns import member_on, queued, served, turns, using
from quorate.volumes.attach.two_primaries import not_now
from quorate.volumes.stale import why_not_primary
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Blocker, Wait

_NO_QUORUM: Final = "NoQuorum"


def may_attach(view: VolumeView, transition: Transition) -> Wait | None:
    """Before the subject is meant to be Primary."""
    member = _subject(view, transition)
    return why_not(view, member.node_name) if member is not None else None


def why_not(view: VolumeView, node: NodeName) -> Wait | None:
    """Why a node that asks for the volume does not get it now; None: it does, or has it."""
    assert view.rv is not None
    if view.rv.deleting:
        return Wait("ReplicatedVolumeTerminating", f"volume {view.name} is being deleted", (Blocker.of(view.rv),))
    if view.forming:
        return Wait("WaitingForReplicatedVolume", f"volume {view.name} is not formed yet", (Blocker.of(view.rv),))
    waits = turns(view)
    if node not in waits:
        return Wait(PublishSucceeded.PENDING.code, f"{node} is not in the queue")
    if (wait := waits[node]) is not None:
        return wait
    member = member_on(view, node)
    unserved = not_serving(view, member) if member is not None else None
    if (held := held_for(view, node)) is not None:
        # Who has no quorum although all are here who may go down does not wait for a permission: what is amiss is said.
        is_amiss = unserved is not None and unserved.reason == _NO_QUORUM
        return unserved if is_amiss and all(view.state_of(name).up for name in view.holds) else held
    if member is None:
        return _no_member(view, node)
    return unserved or _may_be_stale(view, member) or _others(view, member)


def not_serving(view: VolumeView, member: Member) -> Wait | None:
    """Why a member could not serve, whoever else uses the volume."""
    assert view.rv is not None
    reason, blockers = PublishSucceeded.WAITING_FOR_REPLICA.code, (Blocker("ReplicatedVolumeReplica", member.name),)
    if member.down or member.excused:
        return Wait(reason, f"{member.name} is not up", blockers)
    if member.force_secondary or member.node_name == view.forced_off:
        return Wait(reason, f"{member.name} is detached by force first, as a person has said", blockers)
    if member.returns_to is not None:
        return Wait(reason, f"{member.name} has yielded to {member.returns_to} and is coming back", blockers)
    if member.type is ReplicaType.DISKFUL and member.hidden:
        return Wait(reason, f"the copy of {member.name} is being made", blockers)
    if member.type is ReplicaType.TIE_BREAKER:
        return Wait(reason, f"{member.name} is a tie-breaker, and becomes an access replica first", blockers)
    configuration = view.rv.status.configuration
    breaks_ties = configuration is not None and bool(layout_of(configuration).tie_breakers)
    if member.type is ReplicaType.ACCESS and member.hidden and breaks_ties:
        return Wait(reason, f"{member.name} takes the place of the tie-breaker first", blockers)
    replica = view.replica(member.name)
    report = replica.report if replica is not None else None
    if report is None or not report.devices:
        return Wait(reason, f"{member.name} is not up, or its agent is silent", blockers)
    if not report.devices[0].quorum:
        return Wait(_NO_QUORUM, f"{member.name} has no quorum", blockers)
    return None


def _may_be_stale(view: VolumeView, member: Member) -> Wait | None:
    """Only who holds what users were told is written may be promoted; who is in use already is left as it is."""
    return None if member.attached else why_not_primary(view, member)


def not_primary_yet(view: VolumeView, transition: Transition) -> Wait | None:
    """An attachment is over when the kernel says Primary; or when nobody asks for it any more."""
    member = _subject(view, transition)
    if member is None or member.node_name not in queued(view) or not member.attached:
        return None
    if view.state_of(member.name).role == Role.PRIMARY:
        return None
    said = _last_refusal(view, member.name)
    message = f"{member.name} is not Primary yet{said}"
    return Wait(PublishSucceeded.PUBLISHING.code, message, (Blocker("ReplicatedVolumeReplica", member.name),))


def still_primary(view: VolumeView, transition: Transition) -> Wait | None:
    """A detachment is over when the kernel does not say Primary any more; or when the node is asked for again."""
    member = _subject(view, transition)
    if member is None or member.returns_to is not None or member.node_name in queued(view):
        return None
    if view.state_of(member.name).role != Role.PRIMARY:
        return None
    said, blockers = _last_refusal(view, member.name), _blockers((member,))
    if _is_held_open(view, member.name):
        message = f"the device on {member.node_name} is held open{said}"
        return Wait(PublishSucceeded.DEVICE_IN_USE.code, message, blockers)
    return Wait("Detaching", f"{member.name} is still Primary{said}", blockers)


def not_demoted(view: VolumeView, transition: Transition) -> Wait | None:
    """A detachment by force is over when nobody whose word counts says Primary any more, whoever asks for the node."""
    member = _subject(view, transition)
    if member is None or view.state_of(member.name).role != Role.PRIMARY:
        return None
    how = " by force" if member.force_secondary else ""
    message = f"{member.name} on {member.node_name}{_unheard(view, member)} is still Primary, and is demoted{how}"
    return Wait("Detaching", f"{message}{_last_refusal(view, member.name)}", _blockers((member,)))


def may_allow_two(view: VolumeView, transition: Transition) -> Wait | None:
    """Before two primaries are allowed: two are to be served, and nothing is amiss."""
    if len(served(view)) < 2:
        return Wait("NotNeeded", "fewer than two nodes are to be served")
    return not_now(view)


def may_forbid_two(view: VolumeView, transition: Transition) -> Wait | None:
    """``adjust`` refuses to forbid it while there are two (164)."""
    found = using(view)
    if len(found) < 2:
        return None
    names = ", ".join(member.node_name for member in found)
    return Wait("WaitingForDetach", f"still in use on {names}", _blockers(found))


def _others(view: VolumeView, member: Member) -> Wait | None:
    """Who else uses the volume, and whether this one may beside it."""
    assert view.rv is not None
    others = [each for each in using(view) if each is not member]
    leaving = [each for each in others if not each.attached or each.node_name not in served(view)]
    if leaving:
        names = ", ".join(f"{each.node_name}{_unheard(view, each)}" for each in leaving)
        return Wait("WaitingForDetach", f"it is detached first on {names}", _blockers(leaving))
    if others:
        return _not_allowed(view) or not_now(view)
    return _being_zeroed(view)


def _unheard(view: VolumeView, member: Member) -> str:
    """That nobody there can be asked: it is waited for, or detached by force."""
    replica = view.replica(member.name)
    return "" if replica is not None and replica.fresh else ", whose agent is silent"


def _not_allowed(view: VolumeView) -> Wait | None:
    """Whether some member has not confirmed that there may be two (000, ``rv-publish``)."""
    assert view.rv is not None
    slow = [
        member
        for member in view.members
        if (replica := view.replica(member.name)) is None
        or not replica.fresh
        or not replica.replica.status.drbd.actual.allow_two_primaries
    ]
    if view.rv.status.drbd.config.allow_two_primaries and not slow:
        return None
    names = ", ".join(member.name for member in slow)
    return Wait(
        "WaitingForTwoPrimaries", f"two primaries are not allowed yet by {names or 'the volume'}", _blockers(slow)
    )


def _being_zeroed(view: VolumeView) -> Wait | None:
    """Whoever uses the volume may write where zeros are being written: that ends first."""
    busy = [each for each in view.comparisons if each.spec.type is OperationType.ZERO_RANGE]
    renewed = [each for each in view.comparisons if _is_renewed(each)]
    if renewed:
        return Wait("WaitingForActivityLog", "the volume grew, and its log is being written", (Blocker.of(renewed[0]),))
    if not busy:
        return None
    return Wait("WaitingForZeroing", "new space is being overwritten with zeros", (Blocker.of(busy[0]),))


def _is_renewed(operation: DRBDResourceOperation) -> bool:
    over = operation.status.phase in (OperationPhase.SUCCEEDED, OperationPhase.FAILED)
    return operation.spec.type is OperationType.RENEW_ACTIVITY_LOG and not over


def _no_member(view: VolumeView, node: NodeName) -> Wait:
    replica = view.on_node(node)
    if replica is None and len(view.replicas) >= MAX_MEMBERS:
        return Wait(PublishSucceeded.NO_FREE_NODE_ID.code, f"{view.name} has {len(view.replicas)} replicas already")
    message = f"{node} has no replica yet" if replica is None else f"{replica.name} is not a member yet"
    return Wait(PublishSucceeded.WAITING_FOR_REPLICA.code, message)


def _is_held_open(view: VolumeView, name: ReplicaName) -> bool:
    """By the report, or by what the kernel said when it was asked to let go: opening a device is no event."""
    replica = view.replica(name)
    if replica is None:
        return False
    error, report = replica.replica.status.drbd.errors.last_promotion_error, replica.report
    refused = error is not None and error.reason == Outcome.HELD_OPEN
    return refused or (report is not None and bool(report.devices) and report.devices[0].open)


def _last_refusal(view: VolumeView, name: ReplicaName) -> str:
    """What the kernel said: it names the process that holds the device."""
    replica = view.replica(name)
    error = replica.replica.status.drbd.errors.last_promotion_error if replica is not None else None
    said = " ".join(error.output.split()) if error is not None else ""
    return f": {said}" if said else ""


def _subject(view: VolumeView, transition: Transition) -> Member | None:
    return view.members_by_name.get(transition.replica_name) if transition.replica_name is not None else None


def _blockers(members: Iterable[Member]) -> tuple[Blocker, ...]:
    return tuple(Blocker("ReplicatedVolumeReplica", member.name) for member in members)
