"""Which replicas are this node's, and where their files are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from quorate.agent.node import Node
from quorate.api import names
from quorate.api.meta import VolumeName
from quorate.api.secret import Secret
from quorate.api.storage.rvr import ReplicatedVolumeReplica, ReplicatedVolumeReplicaStatus
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
    """The replicas of a volume on this node, the oldest first. There should be one at most.

    Whoever acts on them asks ``why_no_resource`` of the volume's name first.
    """
    found = [
        replica
        for replica in reader.find(ReplicatedVolumeReplica, BY_VOLUME, volume)
        if replica.spec.node_name == node.name
    ]
    if len(found) > 1:
        found.sort(key=lambda replica: (str(replica.metadata.creation_timestamp or ""), replica.name))
    return found


def concerns_its_agent(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """Whether something changes that the agent looks at: what controllers tell people of a replica is none of it."""
    if before is None or after is None or before.spec != after.spec:
        return True
    old, new = before.metadata, after.metadata
    if (old.uid, old.finalizers, old.deletion_timestamp) != (new.uid, new.finalizers, new.deletion_timestamp):
        return True
    return _looked_at(before.status) != _looked_at(after.status)


def _looked_at(status: ReplicatedVolumeReplicaStatus) -> tuple[object, ...]:
    return status.drbd, status.lvm_logical_volume_name, status.size, status.datamesh_revision, status.actual_type


def file_of(node: Node, resource: str) -> str:
    """The resource's own file."""
    return f"{node.settings.config_directory}/{resource}.res"


def known_secret(node: Node, resource: str) -> Secret | None:
    """What the volume's Secret holds; None: it has not been read, or its config needs none."""
    sighting = node.memory.secrets.get(names.shared_secret(VolumeName(resource)))
    return None if sighting is None else sighting.value
