"""Node (core): a machine of the cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, field

from quorate.api.groups import CORE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.struct import Struct, list_map


class Taint(Struct):
    """Something that keeps pods away."""

    key: Annotated[str, Meta(description="What is wrong, or special.")]
    effect: Annotated[str, Meta(description="NoSchedule, PreferNoSchedule or NoExecute.")]
    value: Annotated[str, Meta(description="More about it.")] = ""
    time_added: Annotated[datetime, Meta(description="When it was set.")] | None = None


class NodeSpec(Struct):
    """What we read of it."""

    unschedulable: Annotated[bool, Meta(description="Cordoned: the node takes nothing new.")] = False
    taints: Annotated[tuple[Taint, ...], Meta(description="What keeps pods away.")] = ()
    pod_cidr: Annotated[str, Meta(description="The addresses of the node's pods.")] = field(default="", name="podCIDR")
    provider_id: Annotated[str, Meta(description="The machine, as a cloud names it.")] = field(
        default="", name="providerID"
    )


class NodeAddress(Struct):
    """One of a node's addresses."""

    type: Annotated[str, Meta(description="Such as InternalIP, Hostname or ExternalIP.")]
    address: Annotated[str, Meta(description="The address or the name.")]


class NodeCondition(Struct):
    """Older than the common Condition: heartbeats, and nothing is bound to be there."""

    type: Annotated[str, Meta(description="What it is about, such as Ready.")]
    status: Annotated[str, Meta(description="True, False or Unknown.")]
    last_heartbeat_time: Annotated[datetime, Meta(description="When it was last confirmed.")] | None = None
    last_transition_time: Annotated[datetime, Meta(description="When its status last changed.")] | None = None
    reason: Annotated[str, Meta(description="Why, as a code.")] = ""
    message: Annotated[str, Meta(description="Why, for people.")] = ""


class NodeSystemInfo(Struct):
    """What we read of it."""

    boot_id: Annotated[str, Meta(description="Another one after each boot.")] = field(default="", name="bootID")
    machine_id: Annotated[str, Meta(description="The machine's own id.")] = field(default="", name="machineID")
    kernel_version: Annotated[str, Meta(description="The kernel that runs.")] = ""
    os_image: Annotated[str, Meta(description="The operating system, as it calls itself.")] = ""


class NodeStatus(Struct):
    """What we read of it."""

    addresses: Annotated[tuple[NodeAddress, ...], Meta(description="What the node is reached by.")] = ()
    conditions: Annotated[tuple[NodeCondition, ...], list_map("type"), Meta(description="How the node is.")] = ()
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
