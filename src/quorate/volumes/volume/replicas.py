"""Making replicas, and asking for their deletion.

A replica is born with every finalizer it will ever need (M33): there is no moment in which it could vanish under an
agent or a peer, and becoming a member costs no further write. Whoever is not a member has its quorum and peers
finalizers released as a matter of course.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.api import finalizers, labels, names
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine import Delete
from quorate.volumes.replica.owners import owner_reference
from quorate.volumes.view import ReplicaView, VolumeView


def new_replica(
    rv: ReplicatedVolume, number: int, replica_type: ReplicaType, node: NodeName | None = None
) -> ReplicatedVolumeReplica:
    """One more, without a place unless its node is given."""
    found = {labels.REPLICATED_VOLUME: labels.value(rv.name)}
    if node is not None:
        found[labels.NODE] = node
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=names.replica(VolumeName(rv.name), number),
            labels=found,
            finalizers=(*finalizers.OF_A_NEW_REPLICA, *finalizers.OF_A_MEMBER),
            owner_references=(owner_reference(rv),),
        ),
        spec=ReplicatedVolumeReplicaSpec(replicated_volume_name=VolumeName(rv.name), type=replica_type, node_name=node),
    )


def free_ids(view: VolumeView) -> list[int]:
    """Ids that nothing remembers: no replica, member, logical volume, ledger or peer's metadata (M18)."""
    taken = {replica.id for replica in view.replicas}
    taken |= {member.node_id for member in view.members}
    taken |= set(view.datamesh.forget)
    remembered = {owner_name(piece) for piece in view.pieces}
    for ledger in view.ledgers:
        remembered.update(ledger.spec.replicas, ledger.status.replicas)
    return [
        number
        for number in range(MAX_MEMBERS)
        if number not in taken and names.replica(view.name, number) not in remembered
    ]


def owner_name(piece: LVMLogicalVolume) -> str:
    """The replica in the name of a logical volume."""
    return piece.name.rpartition("-")[0]


def deletions(replicas: Iterable[ReplicaView]) -> Iterator[Delete]:
    """Ask for the deletion of each that is not being deleted yet. ``replica`` lets go of them."""
    return (Delete(replica.replica) for replica in replicas if not replica.replica.deleting)
