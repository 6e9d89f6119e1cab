"""What replicas leave behind: logical volumes and ledger entries of replicas that are gone.

The pieces of replicas that exist are the replica reconciler's. Here is only what nobody else can look after: a logical
volume whose replica has gone (its agent let go of it, so DRBD holds it no longer), and, once that is gone too, the
space (M31).

| a logical volume without its replica            | is                                                              |
|-------------------------------------------------|-----------------------------------------------------------------|
| of a volume that is being deleted               | deleted                                                         |
| of a member: only the replica's object was lost | kept, whoever deletes it: it is a copy that others count on     |
| older than the volume, or there is no volume    | kept, unless somebody deletes it: it may be all that is left of |
|                                                 | an earlier volume of that name whose objects were lost          |
| otherwise                                       | deleted                                                         |
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from quorate.api import core, finalizers, labels
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume
from quorate.engine import Delete, NoneLeft, ReleaseFinalizer, Write
from quorate.engine.selectors import match
from quorate.volumes import places
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.replicas import owner_name


def strays(view: VolumeView) -> tuple[LVMLogicalVolume, ...]:
    """Logical volumes without their replica."""
    return tuple(piece for piece in view.pieces if view.replica(ReplicaName(owner_name(piece))) is None)


def of_earlier_volumes(view: VolumeView) -> tuple[LVMLogicalVolume, ...]:
    """Those that this volume has never made, and that nobody has deleted."""
    made = view.rv.metadata.creation_timestamp if view.rv is not None else None
    return tuple(
        piece
        for piece in strays(view)
        if not piece.deleting and (view.rv is None or _is_older(piece.metadata.creation_timestamp, made))
    )


def clear(view: VolumeView) -> Iterator[Write]:
    """The next step for each."""
    ending = view.rv is not None and view.rv.deleting
    kept = () if ending else of_earlier_volumes(view)
    for piece in strays(view):
        counted_on = ReplicaName(owner_name(piece)) in view.members_by_name
        if piece not in kept and (ending or not counted_on):
            yield from _delete(view, piece)
    yield from places.withdrawals(view)


def _is_older(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one < other


def _delete(view: VolumeView, piece: LVMLogicalVolume) -> Iterator[Write]:
    if not piece.deleting:
        yield Delete(piece)
    elif finalizers.CONTROLLER in piece.metadata.finalizers:
        yield ReleaseFinalizer(piece, finalizers.CONTROLLER, after=())
    elif finalizers.AGENT in piece.metadata.finalizers:
        node = view.nodes.get(NodeName(piece.metadata.labels.get(labels.NODE, "")))
        if node is not None and node.machine is None:
            # Nobody is left who could: the one case in which we let go in an agent's stead.
            machine = NoneLeft(core.Node, fields=match({"metadata.name": node.name}))
            yield ReleaseFinalizer(piece, finalizers.AGENT, after=(machine,))
