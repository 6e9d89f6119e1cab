"""Making replicas, and taking them away by force.

A replica is born with every finalizer it will ever need (M33): there is no moment in which it could vanish under an
agent or a peer, and becoming a member costs no further write. Whoever is not a member has its quorum and peers
finalizers released as a matter of course.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quorate.api import finalizers, labels, names
from quorate.api.meta import NodeName, ObjectMeta, OwnerReference, VolumeName
from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine import Delete, ReleaseFinalizer, Write
from quorate.volumes.view import ReplicaView, VolumeView

#: What forced removal strips. Never the agent's: a kernel resource that nobody brings down is a leak.
OF_CONTROLLERS: Final = (finalizers.CONTROLLER, *finalizers.OF_A_MEMBER)


def new_replica(
    rv: ReplicatedVolume, number: int, replica_type: ReplicaType, node: NodeName | None = None
) -> ReplicatedVolumeReplica:
    """One more, without a place unless its node is given."""
    found = {labels.REPLICATED_VOLUME: rv.name}
    if node is not None:
        found[labels.NODE] = node
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=names.replica(VolumeName(rv.name), number),
            labels=found,
            finalizers=(*finalizers.OF_A_NEW_REPLICA, *finalizers.OF_A_MEMBER),
            owner_references=(owner(rv),),
        ),
        spec=ReplicatedVolumeReplicaSpec(replicated_volume_name=VolumeName(rv.name), type=replica_type, node_name=node),
    )


def owner(rv: ReplicatedVolume) -> OwnerReference:
    """As controller-runtime's ``SetControllerReference`` sets it."""
    return OwnerReference(
        api_version=rv.KIND.api_version,
        kind=rv.KIND.name,
        name=rv.name,
        uid=rv.metadata.uid,
        controller=True,
        block_owner_deletion=True,
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


def forced_removal(replicas: Iterable[ReplicaView]) -> Iterator[Write]:
    """The next step for each: ask for its deletion, then let go of it, finalizer by finalizer."""
    for replica in replicas:
        found = replica.replica
        if not found.deleting:
            yield Delete(found)
            continue
        ours = next((name for name in OF_CONTROLLERS if name in found.metadata.finalizers), None)
        if ours is not None:
            yield ReleaseFinalizer(found, ours, after=())
