"""A growth is over, and told of, when every copy would survive a power loss: when each disk has its activity log.

DRBD writes none at the new end of a disk until an extent of the volume becomes active, and without one a disk is not
attached again after a power loss (facts: drbd9-races, R and k4). So agents take a copy of it along, renew it, read it
and report (``actual.activityLogAt``).

Where it is missing all the same, as on members that grew under an older version, disks are attached anew, one member
after the other, by a DRBDResourceOperation: only while all are connected, nothing is copied, nobody's node or drive is
locked, and enough copies are left without the one whose disk is attached anew. Where the volume is in use that cannot
be done; its agent has seen to it that the user's next write makes the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from quorate.api import labels, names
from quorate.api.meta import ObjectMeta
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.drbd import DiskState
from quorate.api.storage.drbdrop import DRBDResourceOperationSpec, OperationPhase, OperationType
from quorate.engine import Create, Delete, Write
from quorate.volumes.attach.turns import served, using
from quorate.volumes.attach.two_primaries import restless
from quorate.volumes.naming import named
from quorate.volumes.patience import left_of
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait

if TYPE_CHECKING:
    from quorate.volumes.transitions.rules import Locks

#: Between one operation and the next: an agent looks for the log meanwhile.
PAUSE: Final = timedelta(seconds=30)
_FINAL = (OperationPhase.SUCCEEDED, OperationPhase.FAILED)


def is_proven(replica: ReplicaView) -> bool:
    """Whether its disk has been seen to have a log at its present size. Without a disk there is nothing to prove."""
    shown = replica.report.devices[0] if replica.report is not None and replica.report.devices else None
    if shown is None or shown.disk_state in ("", DiskState.DISKLESS):
        return True
    known = replica.replica.status.drbd.actual.activity_log_at
    return known is not None and int(known) == shown.size * 1024


def unproven(view: VolumeView) -> list[ReplicaView]:
    """Members with a copy, as far as they are heard, of which it is not known that they have their log."""
    return [each for each in _with_copy(view) if not is_proven(each)]


def lacking(view: VolumeView) -> list[ReplicaView]:
    """Those of them whose agent has looked, and found none."""
    return [each for each in unproven(view) if each.replica.status.drbd.actual.activity_log_missing]


def hindrance(view: VolumeView) -> Wait | None:
    """What is said while a disk has no log."""
    found = lacking(view)
    if not found:
        return _unheard(view)
    told = f"{named(view, (each.name for each in found))} grew and would not survive a power loss yet"
    return Wait(
        "MetadataNotSafe", f"{told}: {_why_not(view, found)}", tuple(Blocker.of(each.replica) for each in found)
    )


def _unheard(view: VolumeView) -> Wait | None:
    """A growth that waits for the word of an agent: one of an older version never gives it."""
    silent = unproven(view) if view.volume.status.growing_to is not None else []
    if not silent:
        return None
    who = named(view, (each.name for each in silent))
    told = f"it has grown, and is told of when the agents have found the activity log on the disks of {who}"
    blockers = tuple(Blocker.of(each.replica) for each in silent)
    return Wait("MetadataNotSafe", f"{told}; an agent of an older version never looks: update it there", blockers)


def writes(view: VolumeView, now: datetime, locks: Locks) -> Iterator[Write]:
    """The operation that should be made, or one that has had its time."""
    known = _operations(view)
    for operation in known:
        if not operation.deleting and _is_over(view, operation, now):
            yield Delete(operation)
    subject = _subject(view, locks) if not known and not view.volume.deleting else None
    if subject is not None and subject.node_name is not None:
        yield Create(_made(view, subject))


def look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until another operation may be made."""
    ended = (each.status.completed_at for each in _operations(view))
    left = (left_of(PAUSE.total_seconds(), at, now) for at in ended if at is not None)
    return min((each for each in left if each), default=None)


def _subject(view: VolumeView, locks: Locks) -> ReplicaView | None:
    """Whose turn it is."""
    found = lacking(view)
    if not found or view.volume.status.datamesh_transitions or restless(view) is not None or _are_marked(view):
        return None
    users = {member.name for member in using(view)}
    if not users:
        return found[0] if not served(view) else None
    if any(locks(each) for each in view.members) or not _can_do_without_one(view):
        return None
    return next((each for each in found if each.name not in users), None)


def _can_do_without_one(view: VolumeView) -> bool:
    copies = [member for member in view.diskful_members if not member.hidden]
    return len(copies) > max(1, view.volume.status.drbd.config.quorum_minimum_redundancy or 1)


def _are_marked(view: VolumeView) -> bool:
    """Whether a copy is known to differ: whatever reconnects would hide it."""
    return any(
        device.out_of_sync
        for replica in view.replicas
        if replica.report is not None
        for link in replica.report.connections
        for device in link.peer_devices
    )


def _why_not(view: VolumeView, found: list[ReplicaView]) -> str:
    users = using(view)
    if not users:
        return "its disks are attached anew, one after the other"
    where = ", ".join(member.node_name for member in users)
    if not _can_do_without_one(view) or {each.name for each in found} <= {member.name for member in users}:
        return f"the next write of its user on {where} ends that, and so does detaching it there once"
    return "its disks are attached anew, one after the other"


def _operations(view: VolumeView) -> list[DRBDResourceOperation]:
    return [each for each in view.comparisons if each.spec.type is OperationType.RENEW_ACTIVITY_LOG]


def _is_over(view: VolumeView, operation: DRBDResourceOperation, now: datetime) -> bool:
    status, without = operation.status, {each.name for each in lacking(view)}
    if operation.spec.drbd_resource_name not in without:
        return status.phase is not OperationPhase.RUNNING
    if status.phase in _FINAL:
        return status.completed_at is None or not left_of(PAUSE.total_seconds(), status.completed_at, now)
    # What has not begun holds up nobody who wants to use the volume.
    return status.phase is not OperationPhase.RUNNING and bool(served(view)) != bool(using(view))


def _made(view: VolumeView, replica: ReplicaView) -> DRBDResourceOperation:
    assert replica.node_name is not None
    return DRBDResourceOperation(
        metadata=ObjectMeta(
            name=names.log_operation(replica.name),
            labels={labels.NODE: replica.node_name, labels.REPLICATED_VOLUME: labels.value(view.name)},
        ),
        spec=DRBDResourceOperationSpec(
            node_name=replica.node_name,
            drbd_resource_name=replica.name,
            type=OperationType.RENEW_ACTIVITY_LOG,
        ),
    )


def _with_copy(view: VolumeView) -> list[ReplicaView]:
    found = (view.replica(member.name) for member in view.diskful_members)
    return sorted((each for each in found if each is not None), key=lambda each: each.id)
