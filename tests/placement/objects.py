"""Objects of the API that pools and classes are made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from quorate.api import core, labels, names
from quorate.api.core import Lease
from quorate.api.core.lease import LeaseSpec
from quorate.api.core.node import NodeCondition, NodeSpec, NodeStatus
from quorate.api.meta import MicroTime, NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage.configuration import Configuration, Replication, Topology
from quorate.api.storage.lvg import (
    LocalGroup,
    LVMVolumeGroup,
    LVMVolumeGroupSpec,
    LVMVolumeGroupStatus,
    ThinPool,
    ThinPoolStatus,
    VolumeGroupPhase,
)
from quorate.api.storage.rsc import ReplicatedStorageClass, ReplicatedStorageClassSpec
from quorate.api.storage.rsp import (
    EligibleNode,
    PoolType,
    PoolVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.storage.rv import ReplicatedVolume, ReplicatedVolumeSpec, ReplicatedVolumeStatus
from quorate.api.struct import replace

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def meta(name: str, **said: Any) -> ObjectMeta:
    return ObjectMeta(name=name, uid=f"uid-{name}", resource_version="1", **{"generation": 1, **said})


def machine(
    name: str,
    zone: str = "",
    *,
    ready: str | None = "True",
    since: datetime = NOW,
    unschedulable: bool = False,
    **said: Any,
) -> core.Node:
    """A core Node; ``ready`` None: nobody has said anything."""
    known = {labels.ZONE: zone} if zone else {}
    said.setdefault("creation_timestamp", since)
    found = (NodeCondition(type="Ready", status=ready, last_transition_time=since),) if ready is not None else ()
    return core.Node(
        metadata=meta(name, labels={**known, **said.pop("labels", {})}, **said),
        spec=NodeSpec(unschedulable=unschedulable),
        status=NodeStatus(conditions=found),
    )


def group(
    name: str,
    node: str,
    *,
    phase: VolumeGroupPhase = VolumeGroupPhase.READY,
    planned: Sequence[str] = (),
    thin: Sequence[ThinPoolStatus] = (),
    **said: Any,
) -> LVMVolumeGroup:
    return LVMVolumeGroup(
        metadata=meta(name, **said),
        spec=LVMVolumeGroupSpec(
            actual_vg_name_on_the_node="vg",
            local=LocalGroup(node_name=NodeName(node)),
            thin_pools=tuple(ThinPool(name=pool, size="50%") for pool in planned),
        ),
        status=LVMVolumeGroupStatus(phase=phase, thin_pools=tuple(thin)),
    )


def pool(
    *members: str, nodes: Sequence[EligibleNode] | None = None, generation: int = 1, **said: Any
) -> ReplicatedStoragePool:
    """Members are groups, or ``group/thin``; with nodes, it has been looked at."""
    thin = any("/" in member for member in members)
    spec = ReplicatedStoragePoolSpec(
        type=PoolType.LVM_THIN if thin else PoolType.LVM,
        lvm_volume_groups=tuple(
            PoolVolumeGroup(name=member.partition("/")[0], thin_pool_name=member.partition("/")[2] or None)
            for member in members
        ),
        **said,
    )
    made = ReplicatedStoragePool(metadata=meta("pool", generation=generation), spec=spec)
    if nodes is None:
        return made
    status = ReplicatedStoragePoolStatus(eligible_nodes=tuple(nodes), eligible_nodes_revision=3)
    return replace(made, status=status)


def storage_class(
    replication: Replication = Replication.CONSISTENCY_AND_AVAILABILITY,
    topology: Topology = Topology.IGNORED,
    *,
    generation: int = 1,
    name: str = "class",
    **said: Any,
) -> ReplicatedStorageClass:
    spec = ReplicatedStorageClassSpec(storage_pool="pool", replication=replication, topology=topology, **said)
    return ReplicatedStorageClass(metadata=meta(name, generation=generation), spec=spec)


def volume(name: str, configuration: Configuration | None = None) -> ReplicatedVolume:
    return ReplicatedVolume(
        metadata=meta(name),
        spec=ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="class"),
        status=ReplicatedVolumeStatus(configuration=configuration),
    )


def lease(node: str, at: datetime, holder: str | None = "agent") -> Lease:
    renewed = MicroTime(at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=40, renew_time=renewed)
    return Lease(metadata=ObjectMeta(name=names.agent_lease(NodeName(node)), namespace=names.NAMESPACE), spec=spec)
