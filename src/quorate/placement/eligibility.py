"""Which nodes of the cluster may hold replicas of a pool, and what is known of each.

Listed is a node whose zone and labels fit the pool, that has an agent or one of the pool's volume groups, and that is
Ready or has not been NotReady for longer than its grace. Being listed does not mean to get anything new: that takes
``nodeReady``, ``agentReady`` and neither ``kernelStuck`` nor ``unschedulable``, which a cordon and the annotation to
evacuate both set (M29).
A node without volume groups is listed for members without a disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quorate.api import annotation_keys, core, labels
from quorate.api.duration import Duration
from quorate.api.meta import NodeName
from quorate.api.storage.lvg import LVMVolumeGroup, VolumeGroupPhase
from quorate.api.storage.rsp import EligibleNode, EligibleVolumeGroup, ReplicatedStoragePoolSpec
from quorate.placement import selector
from quorate.placement.grace import grace_left, is_ready

#: What the schema has room for.
MOST_NODES: Final = 1000


@dataclass(frozen=True, slots=True)
class Machine:
    """A core Node, and its agent."""

    node: core.Node
    #: Seconds since its agent's Lease was seen to change; None: it has none, or nobody holds it.
    agent_silent_for: float | None
    #: Whether there has ever been an agent.
    has_agent: bool
    #: Commands hang in its kernel.
    kernel_stuck: bool = False


@dataclass(frozen=True, slots=True)
class Eligible:
    """The nodes of a pool, and when to look again."""

    nodes: tuple[EligibleNode, ...]
    #: How many more there are than can be listed.
    beyond: int = 0
    #: Seconds until the next grace runs out; None: nobody is in one.
    look_again_in: float | None = None


def eligible(
    spec: ReplicatedStoragePoolSpec,
    groups: Mapping[str, LVMVolumeGroup],
    machines: Iterable[Machine],
    *,
    grace: Duration,
    patience: float,
    now: datetime,
) -> Eligible:
    """All nodes of the pool, in order. ``patience``: seconds of silence after which an agent is not ready."""
    by_node = _groups_by_node(spec, groups)
    found: list[EligibleNode] = []
    deadlines: list[float] = []
    for machine in machines:
        node = machine.node
        on_node = by_node.get(node.name, ())
        if not _belongs(spec, node) or not (on_node or machine.has_agent):
            continue
        left = None if is_ready(node) else grace_left(node, grace, now)
        if left == 0.0:
            continue
        if left is not None:
            deadlines.append(left)
        found.append(_listed(machine, on_node, patience))
    # Those that could hold a copy come first where not all can be listed.
    found.sort(key=lambda node: (not node.lvm_volume_groups, node.node_name))
    kept = sorted(found[:MOST_NODES], key=lambda node: node.node_name)
    return Eligible(tuple(kept), max(0, len(found) - MOST_NODES), min(deadlines, default=None))


def _belongs(spec: ReplicatedStoragePoolSpec, node: core.Node) -> bool:
    zone = node.metadata.labels.get(labels.ZONE, "")
    return (
        not node.deleting
        and (not spec.zones or zone in spec.zones)
        and selector.matches(spec.node_label_selector, node.metadata.labels)
    )


def _listed(machine: Machine, groups: tuple[EligibleVolumeGroup, ...], patience: float) -> EligibleNode:
    metadata = machine.node.metadata
    silent_for = machine.agent_silent_for
    return EligibleNode(
        node_name=NodeName(machine.node.name),
        zone_name=metadata.labels.get(labels.ZONE, ""),
        lvm_volume_groups=groups,
        node_ready=is_ready(machine.node),
        agent_ready=silent_for is not None and silent_for <= patience,
        unschedulable=machine.node.spec.unschedulable or metadata.annotations.get(annotation_keys.EVACUATE) == "true",
        kernel_stuck=machine.kernel_stuck,
    )


def _groups_by_node(
    spec: ReplicatedStoragePoolSpec, groups: Mapping[str, LVMVolumeGroup]
) -> Mapping[str, tuple[EligibleVolumeGroup, ...]]:
    found: dict[str, list[EligibleVolumeGroup]] = {}
    for member in spec.lvm_volume_groups:
        group = groups.get(member.name)
        if group is not None:
            found.setdefault(group.spec.local.node_name, []).append(
                EligibleVolumeGroup(
                    name=member.name,
                    thin_pool_name=member.thin_pool_name,
                    ready=_usable(group, member.thin_pool_name),
                    unschedulable=annotation_keys.UNSCHEDULABLE in group.metadata.annotations,
                )
            )
    return {
        node: tuple(sorted(listed, key=lambda group: (group.name, group.thin_pool_name or "")))
        for node, listed in found.items()
    }


def _usable(group: LVMVolumeGroup, thin_pool: str | None) -> bool:
    if group.deleting or group.status.phase is not VolumeGroupPhase.READY:
        return False
    return thin_pool is None or any(pool.name == thin_pool and pool.ready for pool in group.status.thin_pools)
