"""Volumes in numbers, for Prometheus: by state and never by volume, so that no cluster has too many series.

| metric                     | labels                    | counts                                                      |
|----------------------------|---------------------------|-------------------------------------------------------------|
| quorate_volumes            | phase                     | volumes                                                     |
| quorate_volume_conditions  | condition, status, reason | volumes: which are not Ready or Resilient, and why          |
| quorate_replica_conditions | condition, status, reason | replicas by Ready and DRBDMoving: who has no quorum, stalls |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from quorate.api.conditions import ConditionType, rv, rvr
from quorate.api.conditions.catalogue import declared_in
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.rv import VolumePhase
from quorate.engine.cache import Cache
from quorate.engine.levels import Levels, by_condition, level

_OF_VOLUMES: Final = tuple(each for each in declared_in(rv) if issubclass(each, ConditionType))


class VolumeMetrics:
    """Counts in the caches of a manager."""

    def __init__(
        self,
        registry: CollectorRegistry,
        volumes: Cache[ReplicatedVolume],
        replicas: Cache[ReplicatedVolumeReplica],
        leads: Callable[[], bool],
    ) -> None:
        self._volumes = volumes
        self._replicas = replicas
        registry.register(Levels(self._levels, leads))

    def _levels(self) -> Iterable[Metric]:
        volumes = self._volumes.list()
        phases = Counter[tuple[str, ...]]({(phase,): 0 for phase in VolumePhase})
        # One that nobody has looked at yet is about to be made.
        phases.update((volume.status.phase or VolumePhase.FORMING,) for volume in volumes)
        yield level("quorate_volumes", "Volumes by phase", ("phase",), phases)
        yield by_condition(
            "quorate_volume_conditions",
            "Volumes by condition",
            _OF_VOLUMES,
            (volume.status.conditions for volume in volumes),
        )
        yield by_condition(
            "quorate_replica_conditions",
            "Replicas by whether they are Ready, and whether their DRBD moves",
            (rvr.Ready, rvr.DRBDMoving),
            (replica.status.conditions for replica in self._replicas.list()),
        )
