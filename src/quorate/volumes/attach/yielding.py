"""The younger of two primaries has lost a link: how it gives way, and how it comes back.

Its agent has cut it off already. It is Primary still, suspended, and perhaps held open by somebody who waits for a
write. If it met the third member before the older primary, both would write. So it is told to link to the older one
alone, which makes it Secondary as soon as they meet (``two_primaries_3d_disconnect``). If it wrote anything on its own
they do not meet: once it is Secondary, it is made to give that up (operation ``Rejoin``). Then it is linked to
everybody again, and the copies are compared with the older one's: what it wrote between the cut and its own may be on
the third member only.

These are no transitions. Each changes the config of one member: it links to fewer, or to more when that is harmless.
They must not wait for anybody's confirmation: the member that is away may be the reason for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from quorate.api import labels, names
from quorate.api.meta import ObjectMeta
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import Role
from quorate.api.storage.drbdrop import DRBDResourceOperationSpec, OperationPhase, OperationType, Rejoin
from quorate.api.storage.rv import Comparison, ComparisonReason, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Write
from quorate.volumes.attach.comparison import added
from quorate.volumes.attach.two_primaries import link_lost
from quorate.volumes.view import ReplicaView, VolumeView


def yielded(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status in which the younger gives way, or has come back; None: neither is to be done."""
    lost = link_lost(view)
    if lost is not None:
        older, younger = lost
        status = _with(view, replace(younger, attached=False, returns_to=older.name))
        comparison = Comparison(
            revision=status.datamesh_revision,
            reason=ComparisonReason.TWO_PRIMARIES,
            since=now,
            reference=older.name,
        )
        return added(status, comparison)
    back = next((member for member in view.members if member.returns_to is not None and _is_back(view, member)), None)
    return _with(view, replace(back, returns_to=None)) if back is not None else None


def writes(view: VolumeView) -> Iterator[Write]:
    """The operation that makes a member give up what it wrote since the cut, once it is Secondary."""
    for member in view.members:
        older = view.members_by_name.get(member.returns_to) if member.returns_to is not None else None
        replica = view.replica(member.name)
        if older is None or replica is None or not _is_secondary(replica) or view.operation is not None:
            continue
        if is_meeting(view, member) or _rejoins(view):
            continue
        yield Create(
            DRBDResourceOperation(
                metadata=ObjectMeta(
                    name=names.rejoin_operation(member.name, view.volume.status.datamesh_revision),
                    labels={labels.NODE: member.node_name, labels.REPLICATED_VOLUME: view.name},
                ),
                spec=DRBDResourceOperationSpec(
                    node_name=member.node_name,
                    drbd_resource_name=member.name,
                    type=OperationType.REJOIN,
                    rejoin=Rejoin(peer_node_id=older.node_id),
                ),
            )
        )
    returning = any(member.returns_to is not None for member in view.members)
    for operation in _rejoins(view):
        failed = operation.status.phase is OperationPhase.FAILED
        if not operation.deleting and (failed or not returning):
            yield Delete(operation)


def is_meeting(view: VolumeView, member: Member) -> bool:
    """Whether a member is in touch with the one it returns to."""
    return member.returns_to is not None and view.connected(member.name, member.returns_to)


def _rejoins(view: VolumeView) -> list[DRBDResourceOperation]:
    return [each for each in view.comparisons if each.spec.type is OperationType.REJOIN]


def _is_back(view: VolumeView, member: Member) -> bool:
    """Whether it is Secondary by its own agent's word, and in touch with the older; or that one is away, or gone."""
    older = view.members_by_name.get(member.returns_to) if member.returns_to is not None else None
    replica = view.replica(member.name)
    if older is None:
        return True
    if replica is None or not replica.fresh:
        return False
    if replica.report is None:
        return True
    return _is_secondary(replica) and (is_meeting(view, member) or not view.state_of(older.name).up)


def _is_secondary(replica: ReplicaView) -> bool:
    return replica.report is not None and replica.report.role != Role.PRIMARY


def _with(view: VolumeView, changed: Member) -> ReplicatedVolumeStatus:
    status = view.volume.status
    members = tuple(changed if member.name == changed.name else member for member in view.members)
    datamesh = replace(status.datamesh, members=members)
    return replace(status, datamesh=datamesh, datamesh_revision=status.datamesh_revision + 1)
