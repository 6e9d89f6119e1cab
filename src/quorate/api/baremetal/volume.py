"""Volume (csi-baremetal): something on a drive that must leave before the drive can.

One exists for every logical volume on a drive that is not OPERATIVE. Its annotations are the protocol between the
drive's procedure and whoever can move the data: see ``quorate.api.annotation_keys``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api import annotation_keys
from quorate.api.baremetal.drive import DriveHealth
from quorate.api.groups import BAREMETAL
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import Bytes, Condition, Resource
from quorate.api.scalars import ByteCount, Count, Message, NodeRef, ObjectRef
from quorate.api.struct import Struct, list_map


class LocationType(StrEnum):
    """What Location names."""

    DRIVE = "DRIVE"
    LVM = "LVM"
    NVME = "NVME"


class VolumeMode(StrEnum):
    """How it is used."""

    FS = "FS"
    RAW = "RAW"
    RAW_PART = "RAW_PART"


class VolumeUsage(StrEnum):
    """How far its release is."""

    IN_USE = "IN_USE"
    RELEASING = "RELEASING"
    RELEASED = "RELEASED"
    FAILED = "FAILED"


class VolumeSpec(Struct):
    """What it is, and where."""

    id: Annotated[ObjectRef, Meta(description="The name of this object.")] = field(name="Id")
    location: Annotated[ObjectRef, Meta(description="A Drive's UUID or an LVMVolumeGroup's name.")] = field(
        name="Location"
    )
    location_type: LocationType = field(default=LocationType.LVM, name="LocationType")
    node_id: NodeRef = field(name="NodeId")
    size: Annotated[ByteCount, Meta(description="Bytes.")] = field(default=Bytes(0), name="Size")
    mode: VolumeMode = field(default=VolumeMode.RAW, name="Mode")
    storage_class: Annotated[str, Meta(max_length=253, description="The kind of storage that it lies on.")] = field(
        default="", name="StorageClass"
    )
    owners: Annotated[tuple[str, ...], Meta(max_length=64, description="Who uses it.")] = field(
        default=(), name="Owners"
    )


class VolumeStatus(Struct):
    """How far its release is, computed from its annotations and its owner."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    health: Annotated[DriveHealth, Meta(description="The worst of the drives under it.")] | None = None
    usage: VolumeUsage | None = None
    message: Message = ""
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="How far its procedure is; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=BAREMETAL.name,
    version=BAREMETAL.version,
    plural="volumes",
    scope=Scope.NAMESPACED,
    categories=("quorate", "storage"),
    columns=(
        Column("Location", ".spec.Location"),
        Column("Node", ".spec.NodeId"),
        Column("Health", ".status.health"),
        Column("Usage", ".status.usage"),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.Location", ".spec.NodeId"),
)
class Volume(Resource):
    """Data on a drive that is on its way out."""

    spec: VolumeSpec
    status: VolumeStatus = VolumeStatus()

    @property
    def given_up(self) -> bool:
        """A person is ready for the drive's removal, and what this stands for may go. That it is deleted says less."""
        return self.deleting and self.metadata.annotations.get(annotation_keys.GIVEN_UP) == "true"
