"""Node (core): a machine of the cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import field

from quorate.api.groups import CORE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.struct import Struct, list_map


class Taint(Struct):
    """Something that keeps pods away."""

    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class NodeSpec(Struct):
    """What we read of it."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")


class NodeAddress(Struct):
    """One of a node's addresses."""

    type: str
    address: str


class NodeCondition(Struct):
    """Older than the common Condition: heartbeats, and nothing is bound to be there."""

    type: str
    status: str
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class NodeSystemInfo(Struct):
    """What we read of it."""

    boot_id: str = field(default="", name="bootID")
    machine_id: str = field(default="", name="machineID")
    kernel_version: str = ""
    os_image: str = ""


class NodeStatus(Struct):
    """What we read of it."""

    addresses: tuple[NodeAddress, ...] = ()
    conditions: Annotated[tuple[NodeCondition, ...], list_map("type")] = ()
    node_info: NodeSystemInfo | None = None


@kind(
    group=CORE.name,
    version=CORE.version,
    plural="nodes",
    short_names=("no",),
    columns=(
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Unschedulable", ".spec.unschedulable", "boolean"),
        Column("Address", '.status.addresses[?(@.type=="InternalIP")].address'),
        Column("Kernel", ".status.nodeInfo.kernelVersion", priority=1),
    ),
    selectable_fields=(".spec.unschedulable",),
    crd=False,
)
class Node(Resource):
    """A machine of the cluster."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
