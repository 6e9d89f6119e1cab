"""How many nodes are away or locked, in the cluster and in each tenant, without looking at the nodes.

Each node stands somewhere (``Standing``), and each counter keeps the nodes of every standing apart. What a standing
means is decided when somebody asks: nodes locked by a stored request count for those behind it in the queue only, and
nodes that somebody announced work on count if the work overlaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The strongest thing that can be said of a node; the first that is true."""

    #: A permission holds it, or it is restarting.
    HELD = "held"
    #: Somebody announced work on it.
    ANNOUNCED = "announced"
    #: A stored request waits for it.
    QUEUED = "queued"
    #: Nobody holds it.
    FREE = "free"


class Standing(NamedTuple):
    """Where a node stands."""

    kind: Kind
    #: The first in the queue that waits for it.
    request: str = ""
    down: bool = False


#: The most common one: an untouched node.
UNTOUCHED = Standing(Kind.FREE)


class NodeCounter:
    """The nodes of the cluster, or of a tenant, by where they stand."""

    __slots__ = ("_by_standing", "size", "tenant")

    def __init__(self, tenant: str = "") -> None:
        self.tenant = tenant
        self.size = 0
        #: Node ids, oldest first; untouched nodes are only counted in ``size``.
        self._by_standing: dict[Standing, dict[int, None]] = {}

    def enter(self, node: int, standing: Standing) -> None:
        """A node is there."""
        self.size += 1
        self._put(node, standing)

    def leave(self, node: int, standing: Standing) -> None:
        """It is gone."""
        self.size -= 1
        self._take(node, standing)

    def move(self, node: int, before: Standing, after: Standing) -> None:
        """It stands elsewhere now."""
        self._take(node, before)
        self._put(node, after)

    def standings(self) -> Iterator[tuple[Standing, dict[int, None]]]:
        """All but the untouched nodes; as many as there are requests in the queue, and four."""
        return iter(self._by_standing.items())

    def _put(self, node: int, standing: Standing) -> None:
        if standing != UNTOUCHED:
            self._by_standing.setdefault(standing, {})[node] = None

    def _take(self, node: int, standing: Standing) -> None:
        if standing == UNTOUCHED:
            return
        nodes = self._by_standing[standing]
        del nodes[node]
        if not nodes:
            del self._by_standing[standing]
