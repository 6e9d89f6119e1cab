"""Nodes' storage in numbers, for Prometheus: by state and never by node.

| metric                  | labels                    | counts                                              |
|-------------------------|---------------------------|-----------------------------------------------------|
| quorate_node_conditions | condition, status, reason | longhorn Nodes: which are stuck, not ready, or full |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from quorate.api.conditions.inventory import KernelStuck, Orphans, Ready
from quorate.api.longhorn import Node
from quorate.engine.cache import Cache
from quorate.engine.levels import Levels, by_condition


class InventoryMetrics:
    """Counts in the cache of a manager."""

    def __init__(self, registry: CollectorRegistry, nodes: Cache[Node], leads: Callable[[], bool]) -> None:
        self._nodes = nodes
        registry.register(Levels(self._levels, leads))

    def _levels(self) -> Iterable[Metric]:
        yield by_condition(
            "quorate_node_conditions",
            "Nodes' storage by condition",
            (Ready, KernelStuck, Orphans),
            (node.status.conditions for node in self._nodes.list()),
        )
