"""What replicas leave behind: logical volumes and ledger entries of replicas that are gone.

The pieces of replicas that exist are the replica reconciler's. Here is only what nobody else can look after: a logical
volume whose replica has gone (its agent let go of it, so DRBD holds it no longer), and, once that is gone too, the
space (M31).
"""

from __future__ import annotations

from collections.abc import Iterator

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


def clear(view: VolumeView) -> Iterator[Write]:
    """The next step for each."""
    for piece in strays(view):
        yield from _delete(view, piece)
    yield from places.withdrawals(view)


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
