"""Phase 3, BootstrapData: one operation, on the diskful member with the lowest id, gives the volume its first data.

Nothing else ever does (M3), and never a forced primary, which the kernel refuses under quorum (M22). Members are
declared equal (``clear-bitmap``) only where that is known: every diskful member's space reads as zero. A single copy
equals itself. Otherwise everything is copied from this member (``force-resync``), and the timeout allows for it.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from quorate.api import annotation_keys, labels, names
from quorate.api.meta import ConditionStatus, ObjectMeta
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import DiskState, ReplicaType
from quorate.api.storage.drbdrop import CreateNewUUID, DRBDResourceOperationSpec, OperationPhase, OperationType
from quorate.engine import Create, Delete
from quorate.volumes.replica.owners import owner_reference
from quorate.volumes.settling import is_copying, untold
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.formation.connectivity import changed_members
from quorate.volumes.volume.formation.steps import complete, transition_of, waiting
from quorate.volumes.volume.layout import all_replicas_ready
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.waits import Blocker, Wait, ids


def bootstrap(view: VolumeView, now: datetime) -> Outcome:
    """``reconcileFormationPhaseBootstrapData``."""
    limit, operation, intended = timeout(view), view.operation, operation_of(view)
    if changed := changed_members(view):
        return waiting(view, now, changed, limit)
    if operation is not None and (operation.deleting or is_stale(view, operation)):
        gone = () if operation.deleting else (Delete(operation),)
        return waiting(view, now, _about(operation, "an operation of an earlier formation is in the way"), limit, gone)
    if operation is None:
        return Outcome(view.volume.status, writes=(Create(intended),))
    if operation.spec != intended.spec:
        return waiting(view, now, _about(operation, "the operation is not the one that is needed"), limit)
    if operation.status.phase is OperationPhase.FAILED:
        return waiting(view, now, _about(operation, f"the operation failed: {operation.status.message}"), limit)
    if operation.status.phase is not OperationPhase.SUCCEEDED:
        said = operation.status.message or f"the operation is {operation.status.phase or 'not looked at yet'}"
        return waiting(view, now, _about(operation, said), limit)
    copying = is_copying(operation)
    if wait := _unsynchronised(view):
        return replace(waiting(view, now, wait, limit), copying=copying)
    if (patience := _words_to_come(view, now, copying=copying)) is not None:
        return Outcome(view.volume.status, again=patience, copying=copying)
    return complete(view, now)


def operation_of(view: VolumeView) -> DRBDResourceOperation:
    """The one operation that this volume needs."""
    first = min(view.diskful_members, key=lambda member: member.node_id)
    equal = are_equal(view)
    return DRBDResourceOperation(
        metadata=ObjectMeta(
            name=names.formation_operation(view.name),
            labels={labels.NODE: first.node_name, labels.REPLICATED_VOLUME: labels.value(view.name)},
            annotations={annotation_keys.FORMATION: _mark(view)},
            owner_references=(owner_reference(view.volume),),
        ),
        spec=DRBDResourceOperationSpec(
            node_name=first.node_name,
            drbd_resource_name=first.name,
            type=OperationType.CREATE_NEW_UUID,
            create_new_uuid=CreateNewUUID(clear_bitmap=equal, force_resync=not equal),
        ),
    )


def are_equal(view: VolumeView) -> bool:
    """Whether all copies are known to hold the same: there is one, or every one reads as zero."""
    members = view.diskful_members
    return len(members) == 1 or all(_is_zero(view, member) for member in members)


def _is_zero(view: VolumeView, member: Member) -> bool:
    replica = view.replica(member.name)
    volume = replica.logical_volume if replica is not None else None
    return volume is not None and volume.status.known_zero


def timeout(view: VolumeView) -> float:
    """Seconds for the phase: what is copied takes its time, at the slowest that is still progress."""
    times, size = view.config.timeouts, view.datamesh.size
    copying = 0.0 if are_equal(view) or size is None else int(size) / times.bootstrap_bytes_per_second
    return times.bootstrap_data.seconds + copying


def is_stale(view: VolumeView, operation: DRBDResourceOperation) -> bool:
    """Made for another formation. When it was made says nothing: that is the server's clock, and may be behind ours."""
    return operation.metadata.annotations.get(annotation_keys.FORMATION) != _mark(view)


def _mark(view: VolumeView) -> str:
    """What tells one formation of a volume from every other."""
    return transition_of(view).started_at.isoformat()


def _unsynchronised(view: VolumeView) -> Wait | None:
    waits = [
        member.name
        for member in view.members
        if member.type is ReplicaType.DISKFUL and view.state_of(member.name).disk != DiskState.UP_TO_DATE
    ]
    if not waits:
        return None
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in waits)
    return Wait("WaitingForSynchronization", f"not up to date yet {ids(waits)}", blockers)


def _words_to_come(view: VolumeView, now: datetime, *, copying: bool) -> float | None:
    """Seconds in which the replicas may still say that they are ready: then one write tells of it all."""
    if all_replicas_ready(view).status is ConditionStatus.TRUE:
        return None
    return untold(view.volume.status, now, copying=copying)


def _about(operation: DRBDResourceOperation, words: str) -> Wait:
    return Wait("WaitingForOperation", words, (Blocker.of(operation),))
