"""All controllers that one process of a cluster leads with: those of ``quorate controller`` and of ``quorate up``."""

from __future__ import annotations

from typing import Any

from quorate import cluster, disks, drives, nodes, placement
from quorate.api.cluster_config import ClusterConfig
from quorate.api.names import CLUSTER
from quorate.engine import Controller, Reader
from quorate.engine.manager import RESYNC_INTERVAL
from quorate.locks import LockTable
from quorate.volumes.controllers import controllers as volumes

#: Of the Lease by which processes agree on who decides; in our namespace.
LEASE = "quorate-controller"


def cluster_wide(table: LockTable | None = None) -> tuple[Controller[Any], ...]:
    """A set of its own for each manager, the broker's apart; ``table`` is what volumes share with that."""
    return (
        *cluster.CONTROLLERS,
        *nodes.CONTROLLERS,
        *disks.CONTROLLERS,
        *placement.CONTROLLERS,
        *volumes(table),
        *drives.CONTROLLERS,
    )


def resync_interval(reader: Reader) -> float:
    """What the ClusterConfig says, in seconds; one that cannot be used says nothing."""
    found = reader.get(ClusterConfig, CLUSTER)
    return (found.spec.resync_interval.seconds if found is not None else 0.0) or RESYNC_INTERVAL
