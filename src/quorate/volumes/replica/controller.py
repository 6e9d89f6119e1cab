"""One pass over the replicas of a volume: everything about all of them, one status write for each.

A pass writes, in this order: what lets go of disks and space, what makes them, finalizers and owners, and for each
replica one status that is composed of everything else. A replica that only gets a finalizer in a pass gets no disk in
it: no child before the parent's finalizer is seen.

While a volume forms, what only describes a replica waits until it has lasted (``settling``), or goes along with what
somebody acts on: its request to join, its config.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Final

from quorate.api import conditions
from quorate.api.conditions.rvr import BackingVolumeReady, Ready, VolumeAccessReady
from quorate.api.storage.drbd import DrbdConfig
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine import (
    NOTHING,
    AddFinalizer,
    Create,
    PatchStatus,
    Plan,
    PlanEvent,
    ReleaseFinalizer,
    Write,
)
from quorate.volumes.replica import derived, disk, holding, membership
from quorate.volumes.replica.conditions import to_drop, verdicts
from quorate.volumes.replica.phase import summary
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.replica.subject import Subject, Verdicts
from quorate.volumes.settling import is_copying, untold
from quorate.volumes.view import ReplicaView, VolumeView

#: Why a replica that was ready is not, although nothing is wrong.
_NO_NEWS: Final = (Ready.TERMINATING.code, Ready.NOT_CONFIGURED.code)


def decide(snapshot: Snapshot, now: datetime, _: Random) -> Plan:
    """One pass over the replicas of a volume."""
    writes: list[Write] = []
    events: list[PlanEvent] = []
    again: float | None = None
    for replica in snapshot.view.replicas:
        held = list(holding.writes(snapshot, replica))
        writes += [write for write in disk.writes(snapshot, replica) if _may_follow(write, held, writes)]
        writes += held
        before = replica.replica.status
        quiet = _not_worth_a_word(snapshot.view, replica, now)
        if quiet is not None:
            again = quiet
            continue
        status, found = status_of(snapshot, replica, now)
        if status == before:
            continue
        released = [write.finalizer for write in held if isinstance(write, ReleaseFinalizer)]
        if released and (_acted_on(status) == _acted_on(before) or replica.replica.metadata.finalizers == (*released,)):
            continue  # What is left of it is told by the pass that sees it, if there is one.
        wait = _held_back(snapshot, replica, status, now)
        if wait is not None:
            again = wait
            continue
        writes.append(PatchStatus(replica.replica, replace(replica.replica, status=status)))
        events += _events(replica, found)
        events += _overtaken(snapshot, replica, found)
    if not writes and again is None:
        return NOTHING
    return Plan(writes=tuple(writes), events=tuple(events), requeue_after=again)


def _may_follow(write: Write, held: list[Write], before: list[Write]) -> bool:
    """Whether a write fits into the plan: no child before its parent's finalizer, and one write for each ledger."""
    if isinstance(write, Create):
        return not any(isinstance(each, AddFinalizer) for each in held)
    return not any(type(each) is type(write) and each.target is write.target for each in before)


def status_of(
    snapshot: Snapshot, replica: ReplicaView, now: datetime
) -> tuple[ReplicatedVolumeReplicaStatus, Verdicts]:
    """The replica's whole status as it should be, and the verdicts in it."""
    view, obj = snapshot.view, replica.replica
    subject = Subject.of(snapshot, replica)
    found = verdicts(subject)
    told = summary(subject, found)
    before, generation = obj.status, obj.metadata.generation
    config = subject.config
    status = replace(
        before,
        observed_generation=generation,
        phase=told.phase,
        message=told.message,
        datamesh_pending_transition=membership.pending_transition(view, replica),
        lvm_logical_volume_name=disk.name_to_report(replica),
        addresses=derived.addresses(view, config.address),
        backing_volume=derived.backing_volume(replica),
        size=derived.size(replica),
        peers=derived.peers(view, replica, subject.peers),
        drbd=before.drbd if config is before.drbd.config else replace(before.drbd, config=config),
        conditions=conditions.merge(
            before.conditions, found.values(), now=now, generation=generation, drop=to_drop(found)
        ),
    )
    return status, found


def _not_worth_a_word(view: VolumeView, replica: ReplicaView, now: datetime) -> float | None:
    """Seconds for which nothing would be written of a replica that comes to life, whatever there is to say of it.

    What :func:`_held_back` would say, without composing what would not be written. None: it may be worth a write.
    """
    obj, rv = replica.replica, view.rv
    if rv is None or obj.deleting or (replica.member is not None and replica.report is not None):
        return None
    patience = untold(rv.status, now, copying=is_copying(view.operation))
    if patience is None:
        return None
    asked, config = membership.pending_transition(view, replica), membership.config(view, replica)
    same = (asked, *_stamped(config, disk.name_to_report(replica))) == _acted_on(obj.status)
    return patience if same else None


def _held_back(
    snapshot: Snapshot, replica: ReplicaView, after: ReplicatedVolumeReplicaStatus, now: datetime
) -> float | None:
    """Seconds for which a change that nobody acts on is not worth a write yet; None: it is."""
    rv = snapshot.view.rv
    if rv is None or replica.replica.deleting or conditions.is_true(after.conditions, Ready):
        return None  # Of one that is ready, more than that will not come.
    patience = untold(rv.status, now, copying=is_copying(snapshot.view.operation))
    if patience is None or _acted_on(replica.replica.status) != _acted_on(after):
        return None
    return patience


def _acted_on(status: ReplicatedVolumeReplicaStatus) -> tuple[object, ...]:
    """What the volume's reconciler and the agent wait for."""
    return status.datamesh_pending_transition, *_stamped(status.drbd.config, status.lvm_logical_volume_name)


def _stamped(config: DrbdConfig, disk_name: str) -> tuple[object, ...]:
    """A disk's name means nothing without a config."""
    return (config, disk_name) if config.datamesh_revision else ()


def _overtaken(snapshot: Snapshot, replica: ReplicaView, found: Verdicts) -> Iterator[PlanEvent]:
    """That a user was made Secondary by force is told of the volume too: the cost is the volume's, and it passes."""
    fails, rv = found.get(VolumeAccessReady.__name__), snapshot.view.rv
    before = conditions.find(replica.replica.status.conditions, VolumeAccessReady)
    if rv is None or fails is None or fails.reason != VolumeAccessReady.IO_FAILS.code:
        return
    if before is None or before.reason != fails.reason:
        yield PlanEvent(rv, fails.reason, fails.message, warning=True)


def _events(replica: ReplicaView, found: Verdicts) -> Iterator[PlanEvent]:
    """What people want to hear of: a replica that becomes ready or stops being it; a disk that must not go yet."""
    obj, ready = replica.replica, found[Ready.__name__]
    backing, volume = found[BackingVolumeReady.__name__], replica.logical_volume
    before = conditions.find(obj.status.conditions, BackingVolumeReady)
    held = backing.reason == BackingVolumeReady.DELETION_HELD.code
    if volume is not None and held and (before is None or before.reason != backing.reason):
        yield PlanEvent(volume, backing.reason, backing.message, warning=True)
    known = conditions.find(obj.status.conditions, Ready)
    if known is None or known.reason == ready.reason:
        return
    silence = Ready.AGENT_NOT_READY.code
    if known.reason == silence or (ready.reason == silence and replica.node is not None and not replica.node.fresh):
        return  # That an agent is silent, or speaks again, is told at its node: once, and not by a thousand replicas.
    # One that applies a step does what it is there for: whatever fails has a reason of its own.
    worse = known.reason == Ready.READY.code and ready.reason not in _NO_NEWS
    if worse or ready.reason == Ready.READY.code:
        yield PlanEvent(obj, ready.reason, ready.message, warning=worse)
