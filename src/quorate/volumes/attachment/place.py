"""Where an attachment stands in the queue: who came first, and whether two may be served at once (02, Attach)."""

from __future__ import annotations

from quorate.api.conditions import Verdict
from quorate.api.conditions.rva import Attached
from quorate.api.meta import NodeName
from quorate.api.storage.drbd import ReplicaType
from quorate.placement.layout import layout_of
from quorate.volumes.view import VolumeView

#: A volume is Primary on so many nodes at most.
_AT_ONCE = 2


def ahead_of(view: VolumeView, node: NodeName) -> tuple[NodeName, ...]:
    """The nodes that are served before this one: earlier in the queue, or not yet detached."""
    if view.rv is None:
        return ()
    queue = [request.node_name for request in view.rv.status.attach_requests]
    earlier = queue[: queue.index(node)] if node in queue else queue
    leaving = [member.node_name for member in view.members if member.attached and member.node_name not in queue]
    return tuple(dict.fromkeys(name for name in (*leaving, *earlier) if name != node))


def turn(view: VolumeView, node: NodeName) -> Verdict | None:
    """Why it is not this node's turn; None: it is."""
    ahead = ahead_of(view, node)
    if not ahead:
        return None
    names = ", ".join(ahead)
    if len(ahead) >= _AT_ONCE:
        return Attached.PENDING(f"served before {node}: {names}")
    why = no_second_primary(view, ahead[0], node)
    return Attached.TWO_PRIMARIES_NOT_ALLOWED(f"attached on {names}; {why}") if why else None


def no_second_primary(view: VolumeView, first: NodeName, second: NodeName) -> str:
    """Why the volume cannot be used on both nodes at once, as its layout goes; empty: it can."""
    configuration = view.rv.status.configuration if view.rv is not None else None
    if configuration is None:
        return "the volume has no configuration yet"
    layout = layout_of(configuration)
    if layout.diskful == 1:
        return ""
    if layout.tie_breakers:
        return f"a volume of {layout} would not survive a cut link between two primaries"
    diskless = [node for node in (first, second) if not _has_copy(view, node)]
    if diskless:
        return f"two primaries need a copy on both nodes, and {', '.join(diskless)} has none"
    return ""


def _has_copy(view: VolumeView, node: NodeName) -> bool:
    member = next((each for each in view.members if each.node_name == node), None)
    return member is not None and member.type is ReplicaType.DISKFUL and not member.hidden
