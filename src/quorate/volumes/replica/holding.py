"""A replica's finalizers, labels and owner: what keeps it, who lets go when (01's table), and whose it is.

| finalizer           | set                     | removed                                                            |
|---------------------|-------------------------|--------------------------------------------------------------------|
| controller          | at creation (M33)       | when nothing hinders it (``leaving``), its logical volumes are     |
|                     |                         | gone and their space is given back; at once when the volume ends   |
| agent               | at creation (M33)       | by the agent; by us only if there is no core Node, or never was    |
| quorum              | on becoming a member    | when the rest have confirmed that it does not count any more       |
| peers               | on becoming a member    | when the rest have dropped and forgotten it                        |

The agent lets go last, and only then ends the resource: so ours go in this order, one a pass.

A person may make a replica too, and knows neither finalizers nor labels. It is taken in as one of ours is made: the
label of its node first of all, also when it is being deleted, for without that no agent ever hears of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.api import core, finalizers, labels
from quorate.api.struct import replace
from quorate.engine import AddFinalizer, NoneLeft, Patch, ReleaseFinalizer, Write
from quorate.engine.selectors import match
from quorate.volumes.replica import leaving
from quorate.volumes.replica.owners import owner_reference, with_owner
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import Blocker, Wait


def writes(snapshot: Snapshot, replica: ReplicaView) -> Iterator[Write]:
    """At most one finalizer set or removed; labels and owner put right."""
    obj, marked = replica.replica, _belonging(snapshot.view, replica)
    if not obj.deleting:
        missing = [name for name in _due(replica) if name not in obj.metadata.finalizers]
        if missing:
            yield AddFinalizer(obj, missing[0])
        yield from marked
    elif marked:
        yield from marked
    elif leaving.is_leaving(obj):
        yield from _release(snapshot.view, replica)


def hold(snapshot: Snapshot, replica: ReplicaView) -> Wait:
    """What a replica that is being deleted waits for."""
    view, obj = snapshot.view, replica.replica
    strangers = leaving.foreign_finalizers(obj)
    if strangers:
        return Wait("ForeignFinalizer", f"kept by {', '.join(strangers)}", (Blocker.of(obj),))
    hindered = leaving.hindrance(view, replica)
    if hindered is not None:
        return hindered
    kept = [volume.name for volume in replica.volumes if volume.name in snapshot.kept]
    if kept and leaving.has_a_copy(replica) and not leaving.is_ending(view):
        blockers = tuple(Blocker("Volume", name) for name in kept)
        return Wait("DriveProcedure", f"a drive's procedure keeps {', '.join(kept)}", blockers)
    if _is_node_down(replica):
        message = f"node {replica.node_name} is down: only its agent can let go of what it has"
        return Wait("NodeDown", message, (Blocker("Node", replica.node_name or ""),))
    if replica.volumes:
        left = tuple(Blocker.of(volume) for volume in replica.volumes)
        return Wait("LogicalVolumeLeft", f"{', '.join(map(str, left))} is being removed", left)
    return Wait("AgentActs", f"the agent of {replica.node_name} takes the resource down", (Blocker.of(obj),))


def is_confirmed_by_the_rest(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether the others know that it does not count: it is hidden or no member, in the revision that they show."""
    if view.rv is None or replica.member is None:
        return True
    if not replica.member.hidden:
        return False
    revision = view.rv.status.datamesh_revision
    others = [each for each in view.replicas if each.member is not None and each.name != replica.name]
    return all(each.confirms(revision) for each in others if each.member is not None and not each.member.excused)


def _due(replica: ReplicaView) -> tuple[str, ...]:
    member = finalizers.OF_A_MEMBER if replica.member is not None else ()
    return (*finalizers.OF_A_NEW_REPLICA, *member)


def _release(view: VolumeView, replica: ReplicaView) -> Iterator[Write]:
    obj, held = replica.replica, replica.replica.metadata.finalizers
    if view.rv is None:
        ending = leaving.hindrance(view, replica) is None
    else:
        ending = view.rv.deleting and not leaving.foreign_finalizers(view.rv)
    if finalizers.QUORUM in held and (ending or is_confirmed_by_the_rest(view, replica)):
        yield ReleaseFinalizer(obj, finalizers.QUORUM, after=())
    elif finalizers.PEERS in held and (ending or leaving.is_forgotten(view, replica)):
        yield ReleaseFinalizer(obj, finalizers.PEERS, after=())
    elif finalizers.CONTROLLER in held and _is_done(view, replica):
        yield ReleaseFinalizer(obj, finalizers.CONTROLLER, after=())
    elif _is_last(replica) and replica.other_label:
        # No agent has ever heard of it.
        yield ReleaseFinalizer(obj, finalizers.AGENT, after=())
    elif _is_last(replica) and _has_no_agent(replica):
        # Nobody is left who could: the one case in which we let go in an agent's stead.
        machine = NoneLeft(core.Node, fields=match({"metadata.name": replica.node_name or ""}))
        yield ReleaseFinalizer(obj, finalizers.AGENT, after=(machine,) if replica.node_name is not None else ())


def _is_done(view: VolumeView, replica: ReplicaView) -> bool:
    if leaving.hindrance(view, replica) is not None:
        return False
    if leaving.is_ending(view) or view.forming:
        # It is still up, and only ended once we have let go. Its disk is what it leaves behind.
        return True
    return not replica.volumes and not any(replica.name in ledger.spec.replicas for ledger in replica.ledgers)


def _is_last(replica: ReplicaView) -> bool:
    held = set(replica.replica.metadata.finalizers)
    return finalizers.AGENT in held and not held & {finalizers.CONTROLLER, finalizers.QUORUM, finalizers.PEERS}


def _has_no_agent(replica: ReplicaView) -> bool:
    return replica.node is None or replica.node.gone


def _is_node_down(replica: ReplicaView) -> bool:
    return replica.node is not None and replica.node.machine is not None and not replica.node.fresh


def _belonging(view: VolumeView, replica: ReplicaView) -> tuple[Write, ...]:
    """By what its agent, people and Kubernetes find it; of one that is being deleted only what its agent needs."""
    obj = replica.replica
    metadata, spec = obj.metadata, obj.spec
    due = {} if obj.deleting else {labels.REPLICATED_VOLUME: labels.value(spec.replicated_volume_name)}
    if spec.node_name is not None and labels.NODE not in metadata.labels:
        due[labels.NODE] = spec.node_name
        if spec.lvm_volume_group_name is not None:
            due[labels.LVM_VOLUME_GROUP] = labels.value(spec.lvm_volume_group_name)
    references = metadata.owner_references
    if view.rv is not None and not obj.deleting and (owner := owner_reference(view.rv)) not in references:
        references = with_owner(references, owner)
    if due.items() <= metadata.labels.items() and references is metadata.owner_references:
        return ()
    found = replace(metadata, labels={**metadata.labels, **due}, owner_references=references)
    return (Patch(obj, replace(obj, metadata=found)),)
