"""ReplicatedVolumeAttachment: somebody wants a volume on a node."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.scalars import Count, Message, NodeRef, VolumeRef
from quorate.api.struct import Struct, immutable, list_map


class ReplicatedVolumeAttachmentSpec(Struct):
    """Which volume, on which node. Fixed: to attach elsewhere, make another."""

    replicated_volume_name: Annotated[VolumeRef, immutable("is immutable")]
    node_name: Annotated[NodeRef, immutable("is immutable")]


class AttachmentPhase(StrEnum):
    """For people; no code reads it."""

    PENDING = "Pending"
    ATTACHING = "Attaching"
    ATTACHED = "Attached"
    DETACHING = "Detaching"
    TERMINATING = "Terminating"


class ReplicatedVolumeAttachmentStatus(Struct):
    """Where the attachment stands."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    phase: AttachmentPhase | None = None
    message: Message = ""
    device_path: Annotated[str, Meta(max_length=512, description="The block device on the node, while attached.")] = ""
    io_suspended: Annotated[bool, Meta(description="The device is there and I/O on it waits.")] | None = None
    in_use: Annotated[bool, Meta(description="Somebody holds the device open: it cannot be detached.")] | None = None
    conditions: Annotated[
        tuple[Condition, ...], list_map("type"), Meta(description="How far it is; docs/conditions.md has every one.")
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="replicatedvolumeattachments",
    short_names=("rva",),
    categories=("quorate", "storage"),
    columns=(
        Column("Volume", ".spec.replicatedVolumeName"),
        Column("Node", ".spec.nodeName"),
        Column("Phase", ".status.phase"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Device", ".status.devicePath", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.nodeName", ".spec.replicatedVolumeName"),
)
class ReplicatedVolumeAttachment(Resource):
    """A wish to use a volume on a node. Deleting it asks for the detachment."""

    spec: ReplicatedVolumeAttachmentSpec
    status: ReplicatedVolumeAttachmentStatus = ReplicatedVolumeAttachmentStatus()
