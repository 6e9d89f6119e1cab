"""LVMLogicalVolume: a piece of a disk, for one replica or one copy of an image."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api import labels, names
from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.reserved import logical_volume_name
from quorate.api.scalars import DevicePath, ImagePath, Message, ObjectRef, ReasonCode, Word
from quorate.api.struct import Rule, Struct, growing_quantity, immutable, immutable_optional, positive_quantity

LVM_NAME_PATTERN = "^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$"


class LogicalVolumeType(StrEnum):
    """Whether space is given whole or as it is written."""

    THICK = "Thick"
    THIN = "Thin"


class ThinSource(Struct):
    """Where a thin volume comes from."""

    pool_name: Annotated[
        Word,
        Meta(pattern=LVM_NAME_PATTERN, description="The thin pool of its group that it takes its space from."),
        logical_volume_name(),
    ]


class LogicalVolumeSource(Struct):
    """What a new volume is filled with: a file on its node."""

    path: Annotated[ImagePath, Meta(description="From the image directory of the node's agent; a regular file.")]
    checksum: Annotated[str, Meta(max_length=128, description="SHA-512 in hex; verified after filling.")] = ""


class LVMLogicalVolumeSpec(Struct):
    """Which piece of which disk. Only its size may change, and only upwards."""

    RULES = (
        Rule(
            "has(self.thin) == (self.type == 'Thin')",
            "thin must be given exactly when type is Thin",
            field_path=".thin",
        ),
        immutable_optional("thin"),
        immutable_optional("source"),
        immutable_optional("zeroed"),
    )

    actual_lv_name_on_the_node: Annotated[
        str,
        Meta(min_length=1, max_length=127, pattern=LVM_NAME_PATTERN, description="What LVM calls it."),
        logical_volume_name(),
        immutable("is immutable"),
    ] = field(name="actualLVNameOnTheNode")
    type: Annotated[LogicalVolumeType, immutable("is immutable")]
    size: Annotated[
        Quantity,
        positive_quantity("size must be more than zero"),
        growing_quantity("size must not shrink"),
        Meta(description="How large it is to be; rounded up to whole extents."),
    ]
    lvm_volume_group_name: Annotated[
        ObjectRef, immutable("is immutable"), Meta(description="The LVMVolumeGroup that it lies in.")
    ]
    thin: ThinSource | None = None
    zeroed: Annotated[
        bool,
        Meta(
            description="Zero a thick volume whole before it counts as Created; otherwise only its two ends are wiped."
            " Takes as long as writing it, and saves a replicated volume its first copy."
        ),
    ] = False
    source: (
        Annotated[LogicalVolumeSource, Meta(description="Absent: the contents are the owner's business.")] | None
    ) = None


class LogicalVolumePhase(StrEnum):
    """How far it is. Created means usable."""

    PENDING = "Pending"
    CREATED = "Created"
    RESIZING = "Resizing"
    FAILED = "Failed"
    TERMINATING = "Terminating"


class UsedDevice(Struct):
    """A device that holds a part of a volume."""

    path: DevicePath
    drive_uuid: Annotated[str, Meta(max_length=253, description="The Drive behind the device.")] = field(
        default="", name="driveUUID"
    )


class LVMLogicalVolumeStatus(Struct):
    """What the node has. Written by its agent."""

    phase: LogicalVolumePhase | None = None
    reason: Annotated[ReasonCode, Meta(description="A code, such as LVExists; empty when nothing is wrong.")] = ""
    message: Message = ""
    actual_size: (
        Annotated[Quantity, Meta(description="New extents of a thick volume are zeroed before they count.")] | None
    ) = None
    known_zero: Annotated[
        bool,
        Meta(
            description="Every byte not written since creation reads as zero: zeroed by the agent, or by a thin pool."
        ),
    ] = False
    grown_zero: Annotated[
        bool,
        Meta(
            description="What it grows by reads as zero, whatever was on it when it was created: DRBD may take it into"
            " use without copying it."
        ),
    ] = False
    checksum: Annotated[str, Meta(max_length=128, description="Of what was filled in, as read back.")] = ""
    devices: Annotated[
        tuple[UsedDevice, ...], Meta(max_length=64, description="The devices it lies on, as lvs tells.")
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="lvmlogicalvolumes",
    short_names=("llv",),
    categories=("quorate", "storage"),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Group", ".spec.lvmVolumeGroupName"),
        Column("Size", ".spec.size"),
        Column("Actual", ".status.actualSize", priority=1),
        Column("Reason", ".status.reason", priority=1),
    ),
    selectable_fields=(".spec.lvmVolumeGroupName",),
    immutable_labels=(labels.NODE,),
)
class LVMLogicalVolume(Resource):
    """A logical volume on a node's disk."""

    spec: LVMLogicalVolumeSpec
    status: LVMLogicalVolumeStatus = LVMLogicalVolumeStatus()

    @property
    def volume_name(self) -> VolumeName | None:
        """The volume whose replica it is for; None: it is for none. The label says whether, the name whose it is."""
        if labels.REPLICATED_VOLUME not in self.metadata.labels:
            return None
        return names.volume_of_logical_volume(self.name)
