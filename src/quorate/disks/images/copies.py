"""A copy of an image: the logical volume that holds it, and how it is.

The name of a copy's volume ends in ``-copy`` and the disk's hash, a replica's in its number and the hash: no image can
take a replica's name. On the node it begins with ``image-``, because LVM keeps some beginnings for itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.api import finalizers, labels, names
from quorate.api.longhorn import BackingImage, DiskSchedule
from quorate.api.longhorn.backing_image import CopyState, DiskFileStatus
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage.llv import (
    LogicalVolumePhase,
    LogicalVolumeSource,
    LogicalVolumeType,
    LVMLogicalVolume,
    LVMLogicalVolumeSpec,
    ThinSource,
)
from quorate.api.struct import replace

#: On the logical volume of a copy: its image. Both are in different scopes, so there can be no owner reference.
IMAGE_LABEL: Final = "longhorn.io/backing-image"
#: What the name of a copy adds to that of its image.
COPY: Final = "-copy"


def logical_volume_name(image: str, volume_group: str, thin_pool: str = "") -> str:
    """The LVMLogicalVolume of an image's copy on a disk."""
    return names.logical_volume(f"{image}{COPY}", volume_group, thin_pool)


def copy_on(image: BackingImage, schedule: DiskSchedule, size: int) -> LVMLogicalVolume:
    """The logical volume for a copy, with its finalizers from the start (M33)."""
    group, _, pool = schedule.spec.name.partition("/")
    name = logical_volume_name(image.name, group, pool)
    path = image.spec.source_path
    return LVMLogicalVolume(
        metadata=ObjectMeta(
            name=name,
            labels={
                labels.NODE: schedule.spec.node_id,
                labels.LVM_VOLUME_GROUP: labels.value(group),
                IMAGE_LABEL: labels.value(image.name),
            },
            finalizers=finalizers.OF_A_NEW_LOGICAL_VOLUME,
        ),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=f"image-{name}",
            type=LogicalVolumeType.THIN if pool else LogicalVolumeType.THICK,
            size=Quantity.of_bytes(size),
            lvm_volume_group_name=group,
            thin=ThinSource(pool_name=pool) if pool else None,
            source=None if path is None else LogicalVolumeSource(path=path, checksum=image.spec.checksum or ""),
        ),
    )


def state_of(volume: LVMLogicalVolume) -> tuple[CopyState, str]:
    """How the copy in a logical volume is, and what its agent says of it."""
    status = volume.status
    match status.phase:
        case LogicalVolumePhase.CREATED | LogicalVolumePhase.RESIZING:
            return CopyState.READY, ""
        case LogicalVolumePhase.FAILED:
            return CopyState.FAILED, f"{status.reason}: {status.message}" if status.reason else status.message
        case _:
            return CopyState.IN_PROGRESS, status.message


def reported(known: DiskFileStatus | None, state: CopyState, message: str, now: datetime) -> DiskFileStatus:
    """A copy's line in the image's status; its time moves only with its state."""
    if known is None or known.state is not state:
        known = DiskFileStatus(last_state_transition_time=now.replace(microsecond=0))
    progress = 100 if state is CopyState.READY else 0
    return replace(known, state=state, progress=progress, message=message[:1024])
