"""What has changed in the caches and is not in the model yet, by what it concerns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quorate.api import core, longhorn, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Lease, PersistentVolumeClaim
from quorate.api.meta import NodeName, Resource, VolumeName
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.engine import Key
from quorate.engine.cache import Cache

#: What the model is made from. Somebody must watch each, so that it is cached.
KINDS: Final[tuple[type[Resource], ...]] = (
    core.Node,
    longhorn.Node,
    Lease,
    Drive,
    LVMVolumeGroup,
    LVMLogicalVolume,
    ReplicatedVolume,
    ReplicatedVolumeReplica,
    PersistentVolumeClaim,
    ClusterConfig,
)

_LEASE_PREFIX: Final = names.agent_lease(NodeName(""))


@dataclass(slots=True)
class Noted:
    """Three lists, each in the order in which things were noted."""

    nodes: dict[NodeName, None] = field(default_factory=dict)
    drives: dict[str, None] = field(default_factory=dict)
    volumes: dict[VolumeName, None] = field(default_factory=dict)
    #: Something that everything depends on has changed.
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.everything or self.nodes or self.drives or self.volumes)


class Notes:
    """Listens to caches. ``noted`` is called after each change; it must not fail."""

    def __init__(self, noted: Callable[[], None]) -> None:
        self.open = Noted()
        self._noted = noted

    def take(self) -> Noted:
        """What is open, which then is not any more."""
        taken, self.open = self.open, Noted()
        return taken

    def follow(self, caches: Mapping[type[Resource], Cache[Any]]) -> None:
        """Note every change from now on, and all that there is."""
        self.open.everything = True
        for cls, note in self._handlers().items():
            caches[cls].subscribe(self._subscribed(note))

    def _handlers(self) -> Mapping[type[Resource], Callable[[Any], None]]:
        return {
            core.Node: self._node,
            longhorn.Node: self._inventory,
            Lease: self._lease,
            Drive: self._drive,
            LVMVolumeGroup: self._group,
            LVMLogicalVolume: self._piece,
            ReplicatedVolume: self._volume,
            ReplicatedVolumeReplica: self._replica,
            PersistentVolumeClaim: self._claim,
            ClusterConfig: self._config,
        }

    def _subscribed(self, note: Callable[[Any], None]) -> Callable[[Key, Any, Any], None]:
        def changed(_: Key, old: Any, new: Any) -> None:
            for obj in (old, new):
                if obj is not None:
                    note(obj)
            self._noted()

        return changed

    def _node(self, node: core.Node) -> None:
        self.open.nodes[NodeName(node.name)] = None

    def _inventory(self, node: longhorn.Node) -> None:
        if node.status.stuck_commands:  # what has ended had begun, too
            self.open.nodes[NodeName(node.name)] = None

    def _lease(self, lease: Lease) -> None:
        if lease.namespace == names.NAMESPACE and lease.name.startswith(_LEASE_PREFIX):
            self.open.nodes[NodeName(lease.name.removeprefix(_LEASE_PREFIX))] = None

    def _drive(self, drive: Drive) -> None:
        self.open.drives[drive.name] = None

    def _group(self, group: LVMVolumeGroup) -> None:
        self.open.nodes[group.spec.local.node_name] = None

    def _piece(self, piece: LVMLogicalVolume) -> None:
        if volume := piece.volume_name:
            self.open.volumes[volume] = None

    def _volume(self, volume: ReplicatedVolume) -> None:
        self.open.volumes[VolumeName(volume.name)] = None

    def _replica(self, replica: ReplicatedVolumeReplica) -> None:
        self.open.volumes[VolumeName(replica.spec.replicated_volume_name)] = None

    def _claim(self, claim: PersistentVolumeClaim) -> None:
        if volume := claim.spec.volume_name:
            self.open.volumes[VolumeName(volume)] = None

    def _config(self, _: ClusterConfig) -> None:
        self.open.everything = True
