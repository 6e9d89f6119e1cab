"""What is left of a volume that is being taken apart, and who holds it: for a restart and for a deletion."""

from __future__ import annotations

from quorate.api import finalizers
from quorate.api.storage import DRBDResourceOperation
from quorate.volumes.replica.leaving import foreign_finalizers
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume.leftovers import of_earlier_volumes
from quorate.volumes.volume.replicas import owner_name
from quorate.volumes.waits import Blocker, Wait, ids

NODE_DOWN = "NodeDown"


def remains(view: VolumeView) -> Wait | None:
    """What is left, said so that a person knows whom to turn to; None: nothing."""
    left = operations(view)
    kept = () if view.volume.deleting else of_earlier_volumes(view)
    pieces = [piece for piece in view.pieces if piece not in kept]
    entries = _entries(view, {owner_name(piece) for piece in kept})
    if not (view.replicas or pieces or left or entries):
        return None
    told, blockers = [], []
    down = [replica for replica in view.replicas if _waits_for_agent(replica) and not _is_heard(replica)]
    foreign = {each.name: found for each in view.replicas if (found := foreign_finalizers(each.replica))}
    if view.replicas:
        told.append(f"replicas {ids(replica.name for replica in view.replicas)}")
        blockers += [Blocker.of(replica.replica) for replica in view.replicas]
    if pieces:
        told.append(f"logical volumes {', '.join(piece.name for piece in pieces)}")
        blockers += [Blocker.of(piece) for piece in pieces]
    if left:
        told.append(f"operations {', '.join(each.name for each in left)}")
        blockers += [Blocker.of(each) for each in left]
    if entries:
        told.append(f"space of {', '.join(entries)}")
    message = "left: " + "; ".join(told)
    if down:
        where = ", ".join(dict.fromkeys(str(replica.node_name) for replica in down))
        message = f"node {where} is down, and only its agent can let go of {ids(each.name for each in down)}; {message}"
        nodes = tuple(Blocker("Node", str(replica.node_name)) for replica in down)
        return Wait(NODE_DOWN, message, (*nodes, *blockers))
    if foreign:
        held = ", ".join(f"{name} by {', '.join(by)}" for name, by in foreign.items())
        message = f"held by finalizers that are not ours: {held}; {message}"
    return Wait("WaitingForReplicaCleanup", message, tuple(blockers))


def operations(view: VolumeView) -> tuple[DRBDResourceOperation, ...]:
    """What agents have been asked to do: the first data; of a volume that ends everything else too."""
    first = (view.operation,) if view.operation is not None else ()
    return (*first, *view.comparisons) if view.volume.deleting else first


def _entries(view: VolumeView, kept: set[str]) -> list[str]:
    asked = {name for ledger in view.ledgers for name in (*ledger.spec.replicas, *ledger.status.replicas)}
    return sorted(name for name in asked if name in view.possible_names and name not in kept)


def _is_heard(replica: ReplicaView) -> bool:
    return replica.node is not None and replica.node.fresh


def _waits_for_agent(replica: ReplicaView) -> bool:
    found = replica.replica
    return found.deleting and finalizers.AGENT in found.metadata.finalizers
