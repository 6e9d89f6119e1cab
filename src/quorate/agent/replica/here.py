"""Which replicas are this node's, and where their files are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from quorate.agent.node import Node
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.engine import Index, Key, Reader

BY_VOLUME: Final = "volume"


def volume_key(replica: ReplicatedVolumeReplica) -> Iterable[Key]:
    """A replica's key is its volume's name, which is also the name of the kernel resource."""
    return (Key("", replica.spec.replicated_volume_name),)


def _volume_names(replica: ReplicatedVolumeReplica) -> Iterable[str]:
    return (replica.spec.replicated_volume_name,)


#: Replicas by their volume.
REPLICAS_BY_VOLUME: Index[Any] = Index(ReplicatedVolumeReplica, BY_VOLUME, _volume_names)


def replicas_here(node: Node, reader: Reader, volume: str) -> list[ReplicatedVolumeReplica]:
    """The replicas of a volume on this node, the oldest first. There should be one at most."""
    found = [
        replica
        for replica in reader.find(ReplicatedVolumeReplica, BY_VOLUME, volume)
        if replica.spec.node_name == node.name
    ]
    if len(found) > 1:
        found.sort(key=lambda replica: (str(replica.metadata.creation_timestamp or ""), replica.name))
    return found


def file_of(node: Node, resource: str) -> str:
    """The resource's own file."""
    return f"{node.settings.config_directory}/{resource}.res"
