"""LVMVolumeGroup: a volume group on a node, with its thin pools: the disks of this system."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api import labels
from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.quantity import Quantity
from quorate.api.reserved import logical_volume_name, volume_group_name
from quorate.api.scalars import MOST_UNMANAGED, Count, DevicePath, Message, NodeRef, VolumePath, Word
from quorate.api.storage.llv import LVM_NAME_PATTERN, UsedDevice
from quorate.api.struct import Struct, immutable, list_map, list_set


class LocalGroup(Struct):
    """The node that has the group."""

    node_name: Annotated[NodeRef, immutable("is immutable")]


class DeviceSelector(Struct):
    """Which of the node's drives belong to the group. A drive matches when every list that is given names it."""

    slots: Annotated[
        tuple[Word, ...], Meta(max_length=64, description="Slots, as in the Drives' spec."), list_set()
    ] = ()
    paths: Annotated[
        tuple[DevicePath, ...],
        Meta(max_length=64, description="Paths such as /dev/sdb; they may change with a boot."),
        list_set(),
    ] = ()
    serial_numbers: Annotated[tuple[Word, ...], Meta(max_length=64, description="Serial numbers."), list_set()] = ()


class ThinPool(Struct):
    """A thin pool to be made in the group."""

    name: Annotated[Word, Meta(pattern=LVM_NAME_PATTERN, description="What LVM calls it."), logical_volume_name()]
    size: Annotated[
        str,
        Meta(
            max_length=64,
            pattern=r"^([0-9]+(\.[0-9]+)?([KMGTPE]i?|k)?|(100|[1-9][0-9]?)%)$",
            description="An amount, or a share of the group such as 50%.",
        ),
    ]
    allocation_limit: Annotated[
        str,
        Meta(
            max_length=5,
            pattern="^[1-9][0-9]{2,3}%$",
            description="How much may be promised in all, as a share of the pool: over-provisioning.",
        ),
    ] = "150%"


class LVMVolumeGroupSpec(Struct):
    """Where the group is, and what is made in it."""

    actual_vg_name_on_the_node: Annotated[
        str,
        Meta(min_length=1, max_length=127, pattern=LVM_NAME_PATTERN, description="What LVM calls it."),
        volume_group_name(),
        immutable("is immutable"),
    ] = field(name="actualVGNameOnTheNode")
    local: LocalGroup
    device_selector: (
        Annotated[
            DeviceSelector,
            Meta(description="Drives that the agent puts into the group; absent: a person or another tool does it."),
        ]
        | None
    ) = None
    thin_pools: Annotated[
        tuple[ThinPool, ...],
        Meta(max_length=16, description="Thin pools to be made in it; each is a disk of its own."),
        list_map("name"),
    ] = ()


class VolumeGroupPhase(StrEnum):
    """Whether the group can be used."""

    PENDING = "Pending"
    READY = "Ready"
    NOT_READY = "NotReady"
    TERMINATING = "Terminating"


class GroupDevice(UsedDevice):
    """A device of the group, and the drive behind it."""

    size: Annotated[Quantity, Meta(description="What LVM has of it.")]


class ThinPoolStatus(Struct):
    """A thin pool as it is."""

    name: Annotated[Word, Meta(description="What LVM calls it.")]
    uuid: Annotated[str, Meta(description="LVM's own UUID of the pool.")] = ""
    ready: Annotated[bool, Meta(description="It is there, and can be used.")] = False
    message: Message = ""
    actual_size: Annotated[Quantity, Meta(description="All its space.")] | None = None
    used_size: Annotated[Quantity, Meta(description="Written to so far.")] | None = None
    allocated_size: Annotated[Quantity, Meta(description="Promised to logical volumes.")] | None = None
    available_space: (
        Annotated[Quantity, Meta(description="Still to be promised, within the allocation limit.")] | None
    ) = None
    zeroing: Annotated[bool, Meta(description="New space reads as zero.")] = False


class LVMVolumeGroupStatus(Struct):
    """What the node has. Written by its agent; the conditions are composed by the disks controller."""

    phase: VolumeGroupPhase | None = None
    message: Message = ""
    vg_uuid: Annotated[str, Meta(description="LVM's own UUID of the group.")] = field(default="", name="vgUUID")
    vg_size: Annotated[Quantity, Meta(description="All its space.")] | None = None
    vg_free: Annotated[Quantity, Meta(description="What no logical volume and no thin pool has.")] | None = None
    allocated_size: Annotated[Quantity, Meta(description="What they have.")] | None = None
    extent_size: Annotated[Quantity, Meta(description="Sizes are rounded up to this.")] | None = None
    thin_pools: Annotated[
        tuple[ThinPoolStatus, ...],
        Meta(max_length=16, description="The thin pools of the spec, as they are."),
        list_map("name"),
    ] = ()
    devices: Annotated[
        tuple[GroupDevice, ...],
        Meta(max_length=64, description="The devices that it lies on; missing ones stay listed."),
        list_map("path"),
    ] = ()
    unmanaged_volumes: Annotated[
        tuple[VolumePath, ...],
        Meta(max_length=MOST_UNMANAGED, description="Logical volumes in the group that no object stands for."),
    ] = ()
    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="Whether it can be used; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="lvmvolumegroups",
    short_names=("lvg",),
    categories=("quorate", "storage"),
    columns=(
        Column("Node", ".spec.local.nodeName"),
        Column("Phase", ".status.phase"),
        Column("Size", ".status.vgSize"),
        Column("Free", ".status.vgFree"),
        Column("Group", ".spec.actualVGNameOnTheNode", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.local.nodeName",),
    immutable_labels=(labels.NODE,),
)
class LVMVolumeGroup(Resource):
    """A volume group on a node."""

    spec: LVMVolumeGroupSpec
    status: LVMVolumeGroupStatus = LVMVolumeGroupStatus()
