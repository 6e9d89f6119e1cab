"""The controllers that ``quorate up`` runs today: the ground of a cluster is laid, and kept.

``cluster`` keeps our namespace and the one ClusterConfig present and says whether the configuration can be used. It is
small and complete, which makes it the example of ``docs/writing-a-controller.md``.
"""

from quorate.demo.cluster import CLUSTER_CONTROLLER

CONTROLLERS = (CLUSTER_CONTROLLER,)

__all__ = ["CLUSTER_CONTROLLER", "CONTROLLERS"]
