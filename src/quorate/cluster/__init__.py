"""The ground that a cluster stands on is laid, and kept.

``ground`` keeps our namespace and the one ClusterConfig present and says whether the configuration can be used. It is
small and complete, which makes it the example of ``docs/writing-a-controller.md``.
"""

from quorate.cluster.ground import CLUSTER_CONTROLLER

CONTROLLERS = (CLUSTER_CONTROLLER,)

__all__ = ["CLUSTER_CONTROLLER", "CONTROLLERS"]
