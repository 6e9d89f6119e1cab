"""Whose turn it is: the first of the queue, and the second where the layout lets two nodes use the volume at once.

Whoever can never be served where it is (no local copy, a node outside the pool, a node that there is not) keeps nobody
else waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.api.conditions.rv import PublishSucceeded
from quorate.api.meta import NodeName
from quorate.api.storage.configuration import VolumeAccess
from quorate.api.storage.datamesh import Member, Transition, TransitionType
from quorate.api.storage.drbd import ReplicaType, Role
from quorate.volumes.attach.two_primaries import not_in_this_layout
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Blocker, Wait

#: A volume is Primary on so many nodes at most.
AT_ONCE: Final = 2


def turns(view: VolumeView) -> Mapping[NodeName, Wait | None]:
    """Of every node in the queue: why it is not its turn; None: it is."""
    found: dict[NodeName, Wait | None] = {}
    served: list[NodeName] = []
    full = False
    for node in queued(view):
        refused = refusal(view, node)
        if refused is not None:
            found[node] = refused
            continue
        before = ", ".join(served)
        if not served:
            found[node] = None
        elif full or len(served) >= AT_ONCE:
            found[node] = Wait(PublishSucceeded.PENDING.code, f"served before {node}: {before}")
        elif why := not_in_this_layout(view, served[0], node):
            found[node] = Wait(PublishSucceeded.TWO_PRIMARIES_NOT_ALLOWED.code, f"{before} came first; {why}")
        else:
            found[node] = None
        full = full or found[node] is not None
        if found[node] is None:
            served.append(node)
    return found


def served(view: VolumeView) -> tuple[NodeName, ...]:
    """Nodes whose turn it is, the oldest first."""
    return tuple(node for node, wait in turns(view).items() if wait is None)


def queued(view: VolumeView) -> tuple[NodeName, ...]:
    """The queue, as nodes."""
    return tuple(each.node_name for each in view.rv.status.attach_requests) if view.rv is not None else ()


def refusal(view: VolumeView, node: NodeName) -> Wait | None:
    """Why a node cannot be served as things are, whoever else asks; None: it can."""
    if view.is_gone(node):
        return Wait(PublishSucceeded.NODE_NOT_ELIGIBLE.code, f"there is no node {node}", (Blocker("Node", node),))
    configuration = view.rv.status.configuration if view.rv is not None else None
    member = member_on(view, node)
    local = configuration is not None and configuration.volume_access is VolumeAccess.LOCAL
    if local and (member is None or member.type is not ReplicaType.DISKFUL):
        reason = PublishSucceeded.UNABLE_TO_PROVIDE_LOCAL_VOLUME_ACCESS.code
        return Wait(reason, f"only local access is allowed, and {node} has no copy of {view.name}")
    if member is None and view.on_node(node) is None and view.rsp is not None and view.eligible(node) is None:
        message = f"pool {view.rsp.name} does not list node {node}"
        return Wait(PublishSucceeded.NODE_NOT_ELIGIBLE.code, message, (Blocker.of(view.rsp),))
    return None


def member_on(view: VolumeView, node: NodeName) -> Member | None:
    """The member on a node."""
    return next((member for member in view.members if member.node_name == node), None)


def using(view: VolumeView) -> tuple[Member, ...]:
    """Whoever uses the volume, or may still do so: attached, Primary by a word that counts, or on its way out.

    One that has been told to let go, and says so itself, has let go, whoever else has yet to hear of it.
    """
    status = view.rv.status if view.rv is not None else None
    leaving = {
        each.replica_name
        for each in (status.datamesh_transitions if status is not None else ())
        if each.type in (TransitionType.DETACH, TransitionType.FORCE_DETACH) and not _has_let_go(view, each)
    }
    return tuple(
        member
        for member in view.members
        if member.attached or member.name in leaving or view.state_of(member.name).role == Role.PRIMARY
    )


def _has_let_go(view: VolumeView, transition: Transition) -> bool:
    """Whether the subject shows the revision in which it is not attached; its role is asked for beside this."""
    replica = view.replica(transition.replica_name) if transition.replica_name is not None else None
    return replica is not None and transition.datamesh_revision > 0 and replica.confirms(transition.datamesh_revision)
