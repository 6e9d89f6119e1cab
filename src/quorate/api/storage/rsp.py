"""ReplicatedStoragePool: the disks that volumes are made of, and the nodes that may hold replicas."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, field

from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.scalars import Count, Message, NodeRef, ObjectRef, Word
from quorate.api.storage.configuration import EligibleNodesPolicy, NetworkNames, ZoneSet
from quorate.api.struct import Rule, Struct, immutable, immutable_optional, list_map, list_set

LabelKey = Annotated[str, Meta(min_length=1, max_length=317)]
LabelValue = Annotated[str, Meta(max_length=63)]
#: So many groups that are on their way out are listed.
MOST_LEAVING: Final = 1000


class PoolType(StrEnum):
    """Whether space is given whole or as it is written."""

    LVM = "LVM"
    LVM_THIN = "LVMThin"


class PoolVolumeGroup(Struct):
    """One LVMVolumeGroup of the pool, and for a thin pool which of its thin pools."""

    name: Annotated[ObjectRef, Meta(description="The LVMVolumeGroup.")]
    thin_pool_name: Annotated[Word, Meta(description="Its thin pool, in a pool of type LVMThin.")] | None = None


class SelectorOperator(StrEnum):
    """As in a Kubernetes label selector."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelRequirement(Struct):
    """One requirement on a label."""

    key: Annotated[LabelKey, Meta(description="The label.")]
    operator: SelectorOperator
    values: Annotated[tuple[LabelValue, ...], Meta(max_length=100, description="With In and NotIn: the values.")] = ()


class LabelSelector(Struct):
    """As in Kubernetes: all requirements hold."""

    match_labels: Annotated[
        Mapping[LabelKey, LabelValue],
        Meta(max_length=32, description="Labels that a node must have, with these values."),
    ] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelRequirement, ...], Meta(max_length=32, description="What else must hold of a node's labels.")
    ] = ()


class ReplicatedStoragePoolSpec(Struct):
    """Which volume groups, in which zones, on which nodes. Volume groups come and go; all else is fixed."""

    RULES = (
        Rule(
            "self.lvmVolumeGroups.all(g, has(g.thinPoolName) == (self.type == 'LVMThin'))",
            "every volume group needs a thinPoolName when type is LVMThin, and none when it is LVM",
            field_path=".lvmVolumeGroups",
        ),
        Rule(
            "has(self.zones) == has(oldSelf.zones) && (!has(self.zones)"
            " || (self.zones.all(z, z in oldSelf.zones) && oldSelf.zones.all(z, z in self.zones)))",
            "zones are immutable",
            field_path=".zones",
        ),
        immutable_optional("nodeLabelSelector"),
    )

    type: Annotated[PoolType, immutable("is immutable")]
    # Not a list-map: one group may give several thin pools.
    # 10,000: a thousand nodes of ten disks; such a pool and its status are about a megabyte, which etcd still takes.
    lvm_volume_groups: Annotated[
        tuple[PoolVolumeGroup, ...],
        Meta(
            min_length=1,
            max_length=10_000,
            description="The disks of the pool. One that is added takes replicas; from one that is taken out they are"
            " moved away, each when its replacement is in sync: see status.leavingVolumeGroups.",
        ),
    ]
    zones: Annotated[ZoneSet, Meta(description="Only nodes of these zones; empty: any zone.")] = ()
    node_label_selector: (
        Annotated[LabelSelector, Meta(description="Only nodes with these labels; absent: any node.")] | None
    ) = None
    system_network_names: Annotated[
        NetworkNames, Meta(description="The networks that replicas talk over; Internal is a node's InternalIP.")
    ] = ("Internal",)
    eligible_nodes_policy: EligibleNodesPolicy = EligibleNodesPolicy()


class StoragePoolPhase(StrEnum):
    """For people; no code reads it."""

    READY = "Ready"
    WAITING_FOR_LVM_VOLUME_GROUPS = "WaitingForLVMVolumeGroups"
    INVALID_CONFIGURATION = "InvalidConfiguration"


class EligibleVolumeGroup(Struct):
    """A volume group of an eligible node."""

    name: Annotated[ObjectRef, Meta(description="The LVMVolumeGroup.")]
    thin_pool_name: Annotated[Word, Meta(description="Its thin pool.")] | None = None
    ready: Annotated[bool, Meta(description="The group, and its thin pool if any, is usable now.")] = False
    unschedulable: Annotated[bool, Meta(description="Takes nothing new: marked so by a person.")] = False


class EligibleNode(Struct):
    """A node that may hold a replica; one without volume groups may hold a diskless one."""

    node_name: NodeRef
    zone_name: Annotated[str, Meta(description="Its zone.")] = ""
    lvm_volume_groups: Annotated[
        tuple[EligibleVolumeGroup, ...],
        Meta(
            max_length=500, description="Its disks that are in the pool; empty: it takes only replicas without a disk."
        ),
    ] = ()
    node_ready: Annotated[bool, Meta(description="Whether the core Node is Ready.")] = False
    agent_ready: Annotated[bool, Meta(description="The agent's Lease is fresh, so that its reports count.")] = False
    unschedulable: Annotated[bool, Meta(description="Cordoned or to be evacuated: gets no new replicas.")] = False
    kernel_stuck: Annotated[bool, Meta(description="Commands hang in its kernel: gets no new replicas.")] = False


class LeavingVolumeGroup(Struct):
    """A volume group that was taken out of the pool, and still has copies of the pool's volumes."""

    name: Annotated[ObjectRef, Meta(description="The LVMVolumeGroup.")]
    thin_pool_name: Annotated[Word, Meta(description="Its thin pool.")] | None = None
    replicas: Annotated[Count, Meta(description="How many are still there.")] = 0


class PoolUsers(Struct):
    """Who uses a pool."""

    replicated_storage_class_names: Annotated[
        tuple[str, ...], Meta(max_length=1000, description="The classes whose volumes use the pool."), list_set()
    ] = ()


class ReplicatedStoragePoolStatus(Struct):
    """Which nodes may hold replicas now."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    phase: StoragePoolPhase | None = None
    message: Message = ""
    eligible_nodes_revision: Annotated[int, Meta(ge=0, description="Moves when eligibleNodes does.")] = 0
    eligible_nodes: Annotated[
        tuple[EligibleNode, ...],
        Meta(max_length=1000, description="The nodes that replicas may be placed on."),
        list_map("nodeName"),
    ] = ()
    leaving_volume_groups: Annotated[
        tuple[LeavingVolumeGroup, ...],
        Meta(
            max_length=MOST_LEAVING,
            description="Volume groups that are not in spec.lvmVolumeGroups any more, while copies are still there.",
        ),
    ] = ()
    used_by: PoolUsers = PoolUsers()
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="Whether it can be used; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="replicatedstoragepools",
    short_names=("rsp",),
    categories=("quorate", "storage"),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Type", ".spec.type"),
        Column("Revision", ".status.eligibleNodesRevision", "integer", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
)
class ReplicatedStoragePool(Resource):
    """The volume groups that replicated volumes are made of, and the nodes that may hold them."""

    spec: ReplicatedStoragePoolSpec
    status: ReplicatedStoragePoolStatus = ReplicatedStoragePoolStatus()
