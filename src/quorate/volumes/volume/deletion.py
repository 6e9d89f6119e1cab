"""The end of a volume: 002's ``reconcileDeletion``, and what to do about children whose volume is gone.

A deleting volume lives on while something is attached or detaching; its attachments hold it. Then, in this order:

1. the datamesh is emptied and every transition ended, in one write: from here on nobody is a member,
2. the operation and the replicas are deleted; ``replica`` strips our finalizers, never the agent's,
3. logical volumes that their replicas have left behind go, then their space,
4. the volume's finalizer goes, after the store itself has said that no child is left.

A replica's finalizer of its agent is the agent's to release; while its node is down the deletion waits, with reason
NodeDown. Children of a volume that is gone altogether are let go if somebody deletes them; they are never deleted by
us, because what they hold may be all that is left of somebody's data.
"""

from __future__ import annotations

from quorate.api import finalizers, labels
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.engine import Delete, NoneLeft, Plan, ReleaseFinalizer
from quorate.engine.selectors import match
from quorate.volumes import naming
from quorate.volumes.replica import leaving
from quorate.volumes.view import VolumeView
from quorate.volumes.volume import leftovers
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.volume.remains import operations, remains
from quorate.volumes.volume.replicas import deletions
from quorate.volumes.waits import Blocker, Wait


def should_not_exist(view: VolumeView) -> bool:
    """``rvShouldNotExist``: deleted, and nothing attached or detaching."""
    return view.volume.deleting and in_use(view) is None


def in_use(view: VolumeView) -> Wait | None:
    """What keeps a deleting volume alive: whoever uses it, or somebody else's finalizer."""
    foreign = leaving.foreign_finalizers(view.volume)
    if foreign:
        return Wait("ForeignFinalizer", f"kept by {', '.join(foreign)}", (Blocker.of(view.volume),))
    attached = leaving.attached(view)
    if attached:
        wishes = tuple(Blocker.of(each) for each in view.attachments)
        return Wait("Attached", f"attached, or being attached or detached: {naming.in_use(view, attached)}", wishes)
    return None


def take_apart(view: VolumeView) -> Outcome:
    """The next step of a deletion."""
    status = view.volume.status
    emptied = _emptied(status)
    if emptied is not status:
        return Outcome(emptied, advances=True)
    wait = remains(view)
    if wait is not None:
        ended = tuple(Delete(each) for each in operations(view) if not each.deleting)
        writes = (*ended, *deletions(view.replicas), *leftovers.clear(view))
        return Outcome(status, writes=writes, wait=wait)
    if view.attachments:
        held = ", ".join(each.name for each in view.attachments)
        blockers = tuple(Blocker.of(each) for each in view.attachments)
        return Outcome(status, wait=Wait("WaitingForAttachments", f"held by attachments {held}: delete them", blockers))
    return Outcome(status, writes=(_release(view),))


def let_orphans_go(view: VolumeView) -> Plan:
    """There is no volume. Replicas that somebody deletes are let go by ``replica``; this clears up after."""
    return Plan(writes=tuple(leftovers.clear(view)))


def _emptied(status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    """Nobody is a member of a volume that ends, and nothing is under way."""
    if not (status.datamesh.members or status.datamesh_transitions):
        return status
    return replace(
        status,
        datamesh=replace(status.datamesh, members=(), forget=()),
        datamesh_transitions=(),
        datamesh_pending_replica_transitions=(),
        attach_requests=(),
    )


def _release(view: VolumeView) -> ReleaseFinalizer:
    """The caches show no child; the store has the last word."""
    of_volume = match({labels.REPLICATED_VOLUME: labels.value(view.name)})
    by_field = match({"spec.replicatedVolumeName": view.name})
    return ReleaseFinalizer(
        view.volume,
        finalizers.RV_CONTROLLER,
        after=(
            NoneLeft(ReplicatedVolumeReplica, fields=by_field),
            NoneLeft(ReplicatedVolumeAttachment, fields=by_field),
            NoneLeft(LVMLogicalVolume, labels=of_volume),
            NoneLeft(DRBDResourceOperation, labels=of_volume),
        ),
    )
