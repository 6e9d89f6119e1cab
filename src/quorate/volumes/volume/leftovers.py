"""What replicas leave behind: logical volumes and ledger entries of replicas that are gone.

The pieces of replicas that exist are ``replica``'s. Here is only what nobody else can look after: a logical
volume whose replica has gone (its agent let go of it, so DRBD holds it no longer), and, once that is gone too, the
space (M31).

| a logical volume without its replica            | is                                                              |
|-------------------------------------------------|-----------------------------------------------------------------|
| of a volume that is being deleted               | deleted                                                         |
| of a member: only the replica's object was lost | kept, whoever deletes it: it is a copy that others count on     |
| of another volume, or there is no volume        | kept, whoever deletes it: it may be all that is left of an      |
|                                                 | earlier volume of that name whose objects were lost. A person   |
|                                                 | may give it up: annotation ``accept-data-loss`` on it           |
| otherwise                                       | deleted                                                         |
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.api import core, finalizers, labels
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume
from quorate.engine import Delete, NoneLeft, ReleaseFinalizer, Write
from quorate.engine.selectors import match
from quorate.volumes import places
from quorate.volumes.replica.leaving import accepts_data_loss
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.replicas import owner_name


def strays(view: VolumeView) -> tuple[LVMLogicalVolume, ...]:
    """Logical volumes without their replica."""
    return tuple([piece for piece in view.pieces if view.replica(ReplicaName(owner_name(piece))) is None])


def of_earlier_volumes(view: VolumeView) -> tuple[LVMLogicalVolume, ...]:
    """Those that this volume has never made, and that no person has given up."""
    return tuple(piece for piece in strays(view) if _is_of_earlier_volume(view, piece))


def clear(view: VolumeView) -> Iterator[Write]:
    """The next step for each."""
    ending = view.rv is not None and view.rv.deleting
    for piece in strays(view):
        counted_on = ReplicaName(owner_name(piece)) in view.members_by_name
        if ending or not (counted_on or _is_of_earlier_volume(view, piece)):
            yield from _delete(view, piece)
    yield from places.withdrawals(view)


def _is_of_earlier_volume(view: VolumeView, piece: LVMLogicalVolume) -> bool:
    return not accepts_data_loss(piece) and (view.rv is None or _is_foreign(piece, view.rv))


def _is_foreign(piece: LVMLogicalVolume, volume: ReplicatedVolume) -> bool:
    """Whether another volume made it. One without the label of its maker may be that, unless it is surely younger."""
    maker = piece.metadata.labels.get(labels.VOLUME_UID)
    if maker is not None:
        return maker != volume.metadata.uid
    one, other = piece.metadata.creation_timestamp, volume.metadata.creation_timestamp
    return one is None or other is None or one <= other


def _delete(view: VolumeView, piece: LVMLogicalVolume) -> Iterator[Write]:
    if not piece.deleting:
        yield Delete(piece)
    elif finalizers.CONTROLLER in piece.metadata.finalizers:
        yield ReleaseFinalizer(piece, finalizers.CONTROLLER, after=())
    elif finalizers.AGENT in piece.metadata.finalizers:
        node = view.nodes.get(NodeName(piece.metadata.labels.get(labels.NODE, "")))
        if node is not None and node.gone:
            # Nobody is left who could: the one case in which we let go in an agent's stead.
            machine = NoneLeft(core.Node, fields=match({"metadata.name": node.name}))
            yield ReleaseFinalizer(piece, finalizers.AGENT, after=(machine,))
