"""Since when a node is not ready, and how long that is borne before it counts as lost."""

from __future__ import annotations

from datetime import datetime

from quorate.api.cluster_config import ClusterConfigSpec
from quorate.api.core import Node
from quorate.api.duration import Duration
from quorate.api.storage.configuration import EligibleNodesPolicy

_READY = "Ready"


def grace_period(config: ClusterConfigSpec, *policies: EligibleNodesPolicy | None) -> Duration:
    """The first that is given: a volume asks its class, then its pool; what nobody says is in the ClusterConfig."""
    given = (policy.not_ready_grace_period for policy in policies if policy is not None)
    return next((grace for grace in given if grace is not None), config.grace_periods.node_not_ready)


def is_ready(node: Node) -> bool:
    """Whether the node says so."""
    return any(condition.type == _READY and condition.status == "True" for condition in node.status.conditions)


def not_ready_since(node: Node) -> datetime | None:
    """Since when it has not been Ready; one that never was, since it was made. None: it is, or nobody knows."""
    ready = next((condition for condition in node.status.conditions if condition.type == _READY), None)
    if ready is None:
        return node.metadata.creation_timestamp
    if ready.status == "True":
        return None
    return ready.last_transition_time or node.metadata.creation_timestamp


def grace_left(node: Node, grace: Duration, now: datetime) -> float | None:
    """Seconds until a node that is not ready counts as lost, zero if it does; None: no such time is set.

    A time in the future is another clock's: the grace is then whole.
    """
    since = not_ready_since(node)
    if since is None:
        return None
    return max(0.0, grace.seconds - max(0.0, (now - since).total_seconds()))
