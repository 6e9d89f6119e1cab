"""What one volume depends on, listed once and read as a controller's caches are.

One look cannot tell when a Lease last changed, so whether an agent is alive is taken from those who can: the pool's
eligible nodes say it of each of theirs. Of any other node the Lease's own time has to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from quorate.api import core, longhorn, names
from quorate.api.baremetal import Volume
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Lease
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import Resource
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)
from quorate.engine import Index, Reader
from quorate.engine.store import Store
from quorate.volumes.observe import INDEXES

R = TypeVar("R", bound=Resource)

#: Everything that the picture of a volume is made of.
KINDS: Final[tuple[type[Resource], ...]] = (
    ClusterConfig,
    core.Node,
    DiskSchedule,
    DRBDResourceOperation,
    Lease,
    longhorn.Node,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
    Volume,
)


class Listing(Reader):
    """The objects of one moment."""

    def __init__(self, objects: Iterable[Resource], now: datetime, indexes: Iterable[Index[Any]] = INDEXES) -> None:
        super().__init__(())
        self._now = now
        self._objects: dict[type[Resource], dict[tuple[str, str], Any]] = {}
        for obj in sorted(objects, key=lambda each: (each.metadata.namespace or "", each.name)):
            self._objects.setdefault(type(obj), {})[obj.metadata.namespace or "", obj.name] = obj
        self._indexes: Mapping[tuple[type[Resource], str], Index[Any]] = {
            (index.cls, index.name): index for index in indexes
        }
        self._agents = {
            names.agent_lease(node.node_name): node.agent_ready
            for pool in self.list(ReplicatedStoragePool)
            for node in pool.status.eligible_nodes
        }

    def get(self, cls: type[R], name: str, namespace: str = "") -> R | None:
        """One object, or None."""
        found: R | None = self._objects.get(cls, {}).get((namespace, name))
        return found

    def list(self, cls: type[R], namespace: str = "") -> tuple[R, ...]:
        """All objects of a kind."""
        found = self._objects.get(cls, {})
        return tuple(obj for (space, _), obj in found.items() if not namespace or space == namespace)

    def find(self, cls: type[R], index: str, value: str) -> tuple[R, ...]:
        """The objects that an index has under a value."""
        values = self._indexes[cls, index].values
        return tuple(obj for obj in self.list(cls) if value in values(obj))

    def silent_for(self, cls: type[Resource], name: str, namespace: str = "") -> float | None:
        """Nothing where the agent is known to live, for ever where it is known not to."""
        lease = self.get(Lease, name, namespace) if cls is Lease else None
        if lease is None:
            return None
        if name in self._agents:
            return 0.0 if self._agents[name] else float("inf")
        renewed = lease.spec.renew_time
        if renewed is None:
            return float("inf")
        return max(0.0, (self._now - datetime.fromisoformat(renewed)).total_seconds())


async def fetch(store: Store, now: datetime) -> Listing:
    """List everything; the kinds one after the other, so that a busy server is not asked for all at once."""
    found: list[Resource] = []
    for cls in KINDS:
        found += (await store.list(cls)).items
    return Listing(found, now)
