"""The cluster in memory: what is known of it, and who has what.

``inventory`` is what there is, kept up to date by events; ``cluster`` adds who has what, and is the model. ``items``
are nodes, drives, replicas and groups, linked; ``counters`` say how many nodes are away, ``locks`` what may hold an
item, ``claims`` who holds what, ``lookup`` what an action is about. ``trial`` is what a request takes while it is
tried, with a log to undo it.

A question about a node costs as much as there are replicas on it, about a healthy group the same whatever its size, and
nothing costs more in a larger cluster.
"""

from quorate.maintenance.model.cluster import ClusterModel
from quorate.maintenance.model.lookup import Items
from quorate.maintenance.model.trial import Trial

__all__ = ["ClusterModel", "Items", "Trial"]
