"""What a replica asks of the datamesh, and what its agent is told: the two ends of membership.

| the replica                                                        | ``datameshPendingTransition``       |
|--------------------------------------------------------------------|-------------------------------------|
| no member, scheduled, space granted, logical volume made, address  | to join (a diskless one needs only  |
|                                                                    | node and address)                   |
| a member that is being deleted                                     | to leave                            |
| a member whose intended type or disk is another, with what it needs | to change                          |
| otherwise                                                          | nothing                             |

Nothing is configured before membership: no ``.res`` file, no ``up``. Until then ``config`` has only the node id.
"""

from __future__ import annotations

from quorate.api.storage.datamesh import Member, PendingTransition
from quorate.api.storage.drbd import DrbdConfig, ReplicaType
from quorate.api.struct import replace
from quorate.volumes.datamesh import config_of
from quorate.volumes.replica import disk, leaving
from quorate.volumes.view import ReplicaView, VolumeView


def pending_transition(view: VolumeView, replica: ReplicaView) -> PendingTransition | None:
    """What the replica asks for."""
    if view.rv is None:
        return None
    obj, member = replica.replica, replica.member
    if leaving.is_leaving(obj):
        return PendingTransition(member=False) if member is not None else None
    if obj.deleting or not _is_prepared(replica):
        return None
    intended = PendingTransition(
        member=True,
        type=replica.type,
        lvm_volume_group_name=obj.spec.lvm_volume_group_name or "",
        lvm_volume_group_thin_pool_name=obj.spec.lvm_volume_group_thin_pool_name or "",
    )
    if member is None:
        return intended
    return replace(intended, member=None) if _differs(member, intended) else None


def config(view: VolumeView, replica: ReplicaView) -> DrbdConfig:
    """What the replica's agent must realise: of a member, its revision's; before and after, what it has."""
    known = replica.replica.status.drbd.config
    rendered = config_of(view, replica)
    if rendered is not None:
        return known if rendered == known else rendered
    if view.rv is not None and known.node_id != replica.id and not known.datamesh_revision:
        return replace(known, node_id=replica.id)
    return replace(known, down=True) if _has_left(view, replica) and not known.down else known


def _is_prepared(replica: ReplicaView) -> bool:
    if not replica.scheduled or replica.address is None:
        return False
    if not replica.diskful:
        return True
    volume = disk.intended_volume(replica)
    return volume is not None and disk.is_usable(volume)


def _differs(member: Member, intended: PendingTransition) -> bool:
    if member.type is not intended.type:
        return True
    was = (member.lvm_volume_group_name, member.lvm_volume_group_thin_pool_name)
    now = (intended.lvm_volume_group_name, intended.lvm_volume_group_thin_pool_name)
    return member.type is ReplicaType.DISKFUL and was != now


def _has_left(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether a later revision knows nothing of it: a node that slept through its removal must not bring it up again.

    Only of one that is being deleted: a volume that has lost its status knows nothing of any replica.
    """
    if view.rv is None or not leaving.is_leaving(replica.replica):
        return False
    return 0 < replica.replica.status.drbd.config.datamesh_revision <= view.rv.status.datamesh_revision
