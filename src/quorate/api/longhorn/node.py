"""Node (longhorn): the storage inventory of a node, disk by disk."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api.groups import LONGHORN
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import Bytes, Condition, Resource
from quorate.api.scalars import ByteCount, Count, Message, ObjectRef, Word
from quorate.api.struct import Struct, list_map, list_set

#: A disk is named by its volume group, or by group and thin pool: ``data``, ``data/thin``.
DiskName = Annotated[str, Meta(min_length=1, max_length=317)]
Tags = Annotated[tuple[Word, ...], Meta(max_length=32), list_set()]


class ProbedCondition(Condition):
    """A condition with the fields of Longhorn's: a reason may be empty, and there is a time of the last probe."""

    reason: Annotated[
        str,
        Meta(
            max_length=1024,
            pattern=r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$",
            description="Why, as a code; see docs/conditions.md. Longhorn's own may have none.",
        ),
    ] = ""
    last_probe_time: Annotated[str, Meta(max_length=64, description="Taken as it is; never written by us.")] = ""


class DiskSpec(Struct):
    """What people say about a disk."""

    allow_scheduling: Annotated[bool, Meta(description="With false the disk keeps what it has and takes nothing.")] = (
        True
    )
    storage_reserved: Annotated[ByteCount, Meta(description="Bytes that are not to be given away.")] = Bytes(0)
    tags: Annotated[Tags, Meta(description="Words by which people tell disks apart.")] = ()


class NodeSpec(Struct):
    """What people say about a node's storage. A disk that is not named here is used as it is."""

    allow_scheduling: Annotated[bool, Meta(description="With false no disk of the node takes anything new.")] = True
    disks: Annotated[
        Mapping[DiskName, DiskSpec],
        Meta(max_length=256, description="By disk (group, or group/pool): what people say about it."),
    ] = field(default_factory=dict)
    tags: Annotated[Tags, Meta(description="Words by which people tell nodes apart.")] = ()


class DiskStatus(Struct):
    """A disk as it is, in bytes."""

    disk_uuid: Annotated[
        str,
        Meta(max_length=64, description="The group's or pool's own; the DiskSchedule is named by it in lower case."),
    ] = field(default="", name="diskUUID")
    lvm_volume_group_name: Annotated[str, Meta(description="The LVMVolumeGroup.")] = ""
    lvm_volume_group_thin_pool_name: Annotated[
        str, Meta(description="Its thin pool; empty: the disk is the group's own space.")
    ] = ""
    storage_maximum: Annotated[ByteCount, Meta(description="Capacity.")] = Bytes(0)
    storage_available: Annotated[
        ByteCount, Meta(description="The most that may be scheduled: (capacity - reserved) x over-provisioning (M12).")
    ] = Bytes(0)
    storage_scheduled: Annotated[ByteCount, Meta(description="As the DiskSchedule had it when this was written.")] = (
        Bytes(0)
    )
    storage_reserved: Annotated[
        ByteCount, Meta(description="Kept by people, and for a group also what its thin pools take.")
    ] = Bytes(0)
    storage_free: Annotated[
        ByteCount, Meta(description="Bytes not taken or written to, in whole hundredths of the capacity.")
    ] = Bytes(0)
    extent_size: Annotated[ByteCount, Meta(description="Sizes are rounded up to this.")] = Bytes(0)
    drives: Annotated[
        tuple[ObjectRef, ...], Meta(max_length=64, description="The Drives that the disk lies on."), list_set()
    ] = ()
    conditions: Annotated[
        tuple[ProbedCondition, ...],
        list_map("type"),
        Meta(description="How the disk is; docs/conditions.md has every one."),
    ] = ()


class OrphanType(StrEnum):
    """What is left on a node."""

    LOGICAL_VOLUME = "LogicalVolume"
    RESOURCE = "Resource"


#: How many are reported; whoever has more has to begin somewhere.
MAX_ORPHANS = 500


class Orphan(Struct):
    """Something of ours on the node that belongs to no object. Never removed but at a person's word."""

    id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=300,
            description="What quorate.io/remove-orphans names it by: LVM's UUID, or drbd/ and the resource's name.",
        ),
    ]
    type: Annotated[
        OrphanType, Meta(description="LogicalVolume: space on a disk. Resource: a DRBD resource that is up.")
    ]
    name: Annotated[str, Meta(max_length=300, description="What the node calls it: group/name, or a resource's name.")]
    volume_name: Annotated[
        str, Meta(max_length=253, description="The ReplicatedVolume that it was made for, if it says so.")
    ] = ""
    size: Annotated[ByteCount, Meta(description="Bytes.")] = Bytes(0)
    holds_data: Annotated[
        bool,
        Meta(description="It was a copy of its volume, or is about to be: no volume of that name is formed beside it."),
    ] = False
    message: Annotated[
        Message, Meta(description="Why it cannot be removed, or was not, although a person said so.")
    ] = ""


#: How many are reported: one is enough.
MAX_STUCK = 32


class StuckCommand(Struct):
    """A command that hangs in the node's kernel, where no signal reaches it."""

    work: Annotated[str, Meta(min_length=1, max_length=300, description="What waits for it: a resource, or a disk.")]
    command: Annotated[str, Meta(max_length=512, description="The command.")]
    since: Annotated[datetime, Meta(description="When it was last heard of.")]


class NodeStatus(Struct):
    """What a node has, derived from its LVMVolumeGroups. Orphans and stuck commands are its agent's, all else ours."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    zone: Annotated[str, Meta(description="The node's label topology.kubernetes.io/zone.")] = ""
    disk_status: Annotated[
        Mapping[DiskName, DiskStatus], Meta(max_length=256, description="By disk (group, or group/pool): how it is.")
    ] = field(default_factory=dict)
    orphans: Annotated[
        tuple[Orphan, ...],
        Meta(
            max_length=MAX_ORPHANS,
            description="Logical volumes and DRBD resources of ours, on the node, that belong to no object.",
        ),
        list_map("id"),
    ] = ()
    orphans_reported_by: Annotated[
        str, Meta(max_length=253, description="The agent that looked for orphans, as it holds the node's Lease.")
    ] = ""
    stuck_commands: Annotated[
        tuple[StuckCommand, ...],
        Meta(max_length=MAX_STUCK, description="Commands that hang in the kernel for a minute or longer."),
        list_map("work"),
    ] = ()
    conditions: Annotated[
        tuple[ProbedCondition, ...],
        list_map("type"),
        Meta(description="How the node's storage is; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=LONGHORN.name,
    version=LONGHORN.version,
    plural="nodes",
    scope=Scope.NAMESPACED,
    short_names=("lhn",),
    categories=("quorate", "storage"),
    columns=(
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("AllowScheduling", ".spec.allowScheduling", "boolean"),
        Column("Schedulable", '.status.conditions[?(@.type=="Schedulable")].status'),
        Column("Stuck", '.status.conditions[?(@.type=="KernelStuck")].status', priority=1),
        Column("Orphans", '.status.conditions[?(@.type=="Orphans")].status', priority=1),
        Column("Zone", ".status.zone", priority=1),
    ),
)
class Node(Resource):
    """The disks of a node: what people allow, what is there, what is given away. Named like the node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
