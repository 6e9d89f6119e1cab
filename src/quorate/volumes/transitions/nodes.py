"""What has become of a node that holds a replica: gone, lost, to be emptied, or not fitting any more."""

from __future__ import annotations

from datetime import datetime

from quorate.api import annotation_keys
from quorate.api.meta import NodeName
from quorate.placement.grace import grace_left, grace_period, is_ready
from quorate.volumes.view import VolumeView


def is_gone(view: VolumeView, node: NodeName) -> bool:
    """Whether it has left the cluster."""
    return view.is_gone(node)


def left_of_grace(view: VolumeView, node: NodeName, now: datetime) -> float | None:
    """Seconds until a node that is not ready counts as lost, zero if it does; None: it is ready, or not there."""
    known = view.nodes.get(node)
    if known is None or known.machine is None or is_ready(known.machine):
        return None
    policies = (
        view.rsc.spec.eligible_nodes_policy if view.rsc is not None else None,
        view.rsp.spec.eligible_nodes_policy if view.rsp is not None else None,
    )
    return grace_left(known.machine, grace_period(view.config, *policies), now)


def is_past_grace(view: VolumeView, node: NodeName, now: datetime) -> bool:
    """Whether the node counts as lost."""
    return is_gone(view, node) or left_of_grace(view, node, now) == 0.0


def is_to_be_emptied(view: VolumeView, node: NodeName) -> bool:
    """Whether a person wants every replica moved away (M29). A cordon only keeps new ones away."""
    known = view.nodes.get(node)
    if known is None or known.machine is None:
        return False
    return known.machine.metadata.annotations.get(annotation_keys.EVACUATE) == "true"


def removes_lost(view: VolumeView) -> bool:
    """Whether a lost replica goes once its replacement is in sync."""
    return view.rsc is None or view.rsc.spec.eligible_nodes_policy.remove_lost_replica
