"""The younger of two primaries has lost a link: how it gives way, and how it comes back.

Its agent has cut it off already. It is Primary still, suspended, and perhaps held open by somebody who waits for a
write. If it met the third member before the older primary, both would write. So it is told to link to the older one
alone, which makes it Secondary as soon as they meet (``two_primaries_3d_disconnect``). If it wrote anything on its own
they do not meet: once it is Secondary, it is made to give that up (operation ``Rejoin``), if the older one is quorate.
Then it is linked to everybody again, and the copies are compared with the older one's: what it wrote between the cut
and its own may be on the third member only.

If they do not meet for a while, and the others say that nobody is in touch with the older one, that one stands still.
The others drop it from their files first, and confirm it; only then is the younger linked to them again.

These are no transitions. Each changes the config of one member: it links to fewer, or to more when that is harmless.
They must not wait for anybody's confirmation: the member that is away may be the reason for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from quorate.api import labels, names
from quorate.api.meta import ObjectMeta
from quorate.api.storage import DRBDResourceOperation
from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import DiskState, Role
from quorate.api.storage.drbdrop import DRBDResourceOperationSpec, OperationPhase, OperationType, Rejoin
from quorate.api.storage.rv import Comparison, ComparisonReason, ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.engine import Create, Delete, Write
from quorate.volumes.attach.comparison import added
from quorate.volumes.attach.two_primaries import link_lost
from quorate.volumes.patience import left_of
from quorate.volumes.view import ReplicaView, VolumeView

#: How long the younger tries to meet the older one before the others may be asked, in seconds.
PATIENCE: Final = 20.0


def yielded(view: VolumeView, now: datetime) -> ReplicatedVolumeStatus | None:
    """The status in which the younger gives way or has come back, or the older gives way; None: nothing is due."""
    lost = link_lost(view)
    if lost is not None:
        return _gives_way(view, *lost, now)
    for member in view.members:
        if member.returns_to is None:
            continue
        older = view.members_by_name.get(member.returns_to)
        if older is None or _is_back(view, member, older):
            return _with(view, replace(member, returns_to=None))
        if look_again(view, now) == 0.0 and _stands_alone(view, member, older):
            return _changed_sides(view, member, older)
    return None


def look_again(view: VolumeView, now: datetime) -> float | None:
    """Seconds until a member that does not come back may go another way; None: nobody is expected back."""
    if all(member.returns_to is None for member in view.members):
        return None
    since = max((each.since for each in view.volume.status.comparisons), default=now)
    return left_of(PATIENCE, since, now)


def _gives_way(view: VolumeView, older: Member, younger: Member, now: datetime) -> ReplicatedVolumeStatus:
    if len(view.diskful_members) == 1:
        # One copy cannot differ from itself, and nobody can give it up.
        return _with(view, replace(younger, attached=False))
    status = _with(view, replace(younger, attached=False, returns_to=older.name))
    comparison = Comparison(
        revision=status.datamesh_revision, reason=ComparisonReason.TWO_PRIMARIES, since=now, reference=older.name
    )
    return added(status, comparison)


def _changed_sides(view: VolumeView, younger: Member, older: Member) -> ReplicatedVolumeStatus | None:
    """First all others drop the older one; when they have, the younger may go to them."""
    if not older.excused:
        return _with(view, replace(older, excused=True))
    revision = view.volume.status.datamesh_revision
    slow = [each for each in _thirds(view, younger, older) if not _confirms(view, each, revision)]
    if slow:
        return None
    freed = _with(view, replace(older, attached=False), replace(younger, returns_to=None))
    compared = tuple(
        replace(each, reference=younger.name) if each.reference == older.name else each for each in freed.comparisons
    )
    return replace(freed, comparisons=compared)


def _stands_alone(view: VolumeView, younger: Member, older: Member) -> bool:
    """Whether everybody else, by living agents' words, is out of touch with the older one, and there is somebody."""
    others = _thirds(view, younger, older)
    words = [view.replica(member.name) for member in (younger, *others)]
    fresh = all(replica is not None and replica.report is not None for replica in words)
    apart = not any(view.connected(member.name, older.name) for member in (younger, *others))
    return bool(others) and fresh and apart


def _thirds(view: VolumeView, younger: Member, older: Member) -> list[Member]:
    return [each for each in view.diskful_members if each not in (younger, older) and not each.hidden]


def _confirms(view: VolumeView, member: Member, revision: int) -> bool:
    replica = view.replica(member.name)
    return replica is not None and replica.confirms(revision)


def writes(view: VolumeView) -> Iterator[Write]:
    """The operation that makes a member give up what it wrote since the cut, once it is Secondary."""
    for member in view.members:
        if member.returns_to is None:
            continue
        older, replica = view.members_by_name.get(member.returns_to), view.replica(member.name)
        if older is None or replica is None or not _is_secondary(replica) or not _is_quorate(view, older):
            continue
        if view.connected(member.name, older.name) or _rejoins(view):
            continue
        yield Create(
            DRBDResourceOperation(
                metadata=ObjectMeta(
                    name=names.rejoin_operation(member.name, view.volume.status.datamesh_revision),
                    labels={labels.NODE: member.node_name, labels.REPLICATED_VOLUME: labels.value(view.name)},
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


def _rejoins(view: VolumeView) -> list[DRBDResourceOperation]:
    return [each for each in view.comparisons if each.spec.type is OperationType.REJOIN]


def _is_back(view: VolumeView, member: Member, older: Member) -> bool:
    """Whether it is Secondary, or not up, by its own agent's word, and in touch with the older one."""
    replica = view.replica(member.name)
    if replica is None or not replica.fresh:
        return False
    return replica.report is None or (_is_secondary(replica) and view.connected(member.name, older.name))


def _is_quorate(view: VolumeView, member: Member) -> bool:
    state = view.state_of(member.name)
    return bool(state.quorum) and state.disk == DiskState.UP_TO_DATE


def _is_secondary(replica: ReplicaView) -> bool:
    return replica.report is not None and replica.report.role != Role.PRIMARY


def _with(view: VolumeView, *changed: Member) -> ReplicatedVolumeStatus:
    status, named = view.volume.status, {member.name: member for member in changed}
    members = tuple(named.get(member.name, member) for member in view.members)
    datamesh = replace(status.datamesh, members=members)
    return replace(status, datamesh=datamesh, datamesh_revision=status.datamesh_revision + 1)
