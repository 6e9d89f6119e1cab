"""Replicas as people know them: by name, where they are, and who uses them there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.api.meta import NodeName
from quorate.api.names import replica_id
from quorate.api.scalars import ReplicaName
from quorate.volumes.view import VolumeView

#: How much of a message a list of replicas may take; the objects themselves are in the wait's blockers.
_ROOM: Final = 240


def named(view: VolumeView, names: Iterable[ReplicaName]) -> str:
    """Such as ``demo-0 on node-2, demo-1 on node-3``; of many with long names only the first."""
    return _listed([_placed(view, name) for name in sorted(names, key=replica_id)])


def in_use(view: VolumeView, names: Iterable[ReplicaName]) -> str:
    """The same, with who holds them: ``demo-0 on node-2 (by ReplicatedVolumeAttachment work)``."""
    found = []
    for name in sorted(names, key=replica_id):
        holders = _holders(view, _node_of(view, name))
        found.append(f"{_placed(view, name)}{f' (by {holders})' if holders else ''}")
    return _listed(found)


def _placed(view: VolumeView, name: ReplicaName) -> str:
    node = _node_of(view, name)
    return f"{name} on {node}" if node is not None else name


def _node_of(view: VolumeView, name: ReplicaName) -> NodeName | None:
    member, replica = view.members_by_name.get(name), view.replica(name)
    if member is not None:
        return member.node_name
    return replica.node_name if replica is not None else None


def _holders(view: VolumeView, node: NodeName | None) -> str:
    found = [f"ReplicatedVolumeAttachment {each.name}" for each in view.attachments if each.spec.node_name == node]
    if view.rv is not None and not view.rv.deleting and node in view.rv.spec.publish_on:
        found.append("publishOn")
    return ", ".join(found)


def _listed(words: list[str]) -> str:
    """At least one, and as many as there is room for."""
    shown = 1
    while shown < len(words) and len(", ".join(words[: shown + 1])) <= _ROOM:
        shown += 1
    more = len(words) - shown
    return f"{', '.join(words[:shown])}{f' and {more} more' if more > 0 else ''}" if words else "none"
