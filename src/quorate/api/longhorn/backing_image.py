"""BackingImage: data that is kept in several copies, on disks that the same ledger guards."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api.groups import LONGHORN
from quorate.api.kind import Column, Scope, kind
from quorate.api.longhorn.node import ProbedCondition, Tags
from quorate.api.meta import Bytes, Resource
from quorate.api.quantity import Quantity
from quorate.api.scalars import ByteCount, Count, ImagePath, Message, Percent
from quorate.api.struct import Rule, Struct, immutable_once_set, list_map, positive_quantity

#: A disk's UUID: the key of both maps.
DiskUUID = Annotated[str, Meta(min_length=1, max_length=64)]
MAX_COPIES = 64
#: What fits into a label.
MAX_NAME_LENGTH = 63


class DiskFileSpec(Struct):
    """A copy that should be on a disk. Nothing to say about it yet: that the key is there is the wish."""


class BackingImageSpec(Struct):
    """What the image is, and how many copies there should be."""

    RULES = (
        immutable_once_set("size"),
        immutable_once_set("sourcePath"),
        immutable_once_set("checksum"),
    )

    min_number_of_copies: Annotated[int, Meta(ge=1, le=MAX_COPIES, description="How many copies there are to be.")] = 1
    size: (
        Annotated[
            Quantity,
            Meta(description="An image of unknown size asks for no space."),
            positive_quantity("size must be more than zero"),
        ]
        | None
    ) = None
    source_path: (
        Annotated[
            ImagePath,
            Meta(
                description="A regular file beneath the image directory of a node's agent, by its path from there, that"
                " fills the copy there; absent: left empty."
            ),
        ]
        | None
    ) = None
    checksum: Annotated[str, Meta(max_length=128, description="SHA-512 in hex; a copy that differs fails.")] | None = (
        None
    )
    node_selector: Annotated[Tags, Meta(description="Only nodes with all these tags.")] = ()
    disk_selector: Annotated[Tags, Meta(description="Only disks with all these tags.")] = ()
    disk_file_spec_map: Annotated[
        Mapping[DiskUUID, DiskFileSpec],
        Meta(max_length=MAX_COPIES, description="By the UUID of a disk: a copy that is to be there."),
    ] = field(default_factory=dict)


class CopyState(StrEnum):
    """How a copy is."""

    PENDING = "pending"
    IN_PROGRESS = "in-progress"
    READY = "ready"
    FAILED = "failed"
    UNKNOWN = "unknown"


class DiskFileStatus(Struct):
    """A copy as it is."""

    state: CopyState = CopyState.PENDING
    progress: Annotated[Percent, Meta(description="Percent copied.")] = 0
    message: Message = ""
    last_state_transition_time: Annotated[datetime, Meta(description="When its state last changed.")] | None = None


class BackingImageStatus(Struct):
    """Where copies are."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    size: Annotated[ByteCount, Meta(description="Bytes; 0: not known yet.")] = Bytes(0)
    checksum: Annotated[str, Meta(description="SHA-512 of the image, as its first ready copy has it.")] = ""
    ready_copies: Annotated[Count, Meta(description="How many copies can be used.")] = 0
    disk_file_status_map: Annotated[
        Mapping[DiskUUID, DiskFileStatus],
        Meta(max_length=2 * MAX_COPIES, description="By the UUID of a disk: how the copy there is."),
    ] = field(default_factory=dict)
    conditions: Annotated[
        tuple[ProbedCondition, ...],
        list_map("type"),
        Meta(description="How the image is; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=LONGHORN.name,
    version=LONGHORN.version,
    plural="backingimages",
    scope=Scope.NAMESPACED,
    short_names=("lhbi",),
    categories=("quorate", "storage"),
    columns=(
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Copies", ".status.readyCopies", "integer"),
        Column("Wanted", ".spec.minNumberOfCopies", "integer"),
        Column("Size", ".spec.size"),
    ),
)
class BackingImage(Resource):
    """Data kept in several copies on the cluster's disks."""

    RULES = (
        Rule(
            f"self.metadata.name.size() <= {MAX_NAME_LENGTH}",
            f"an image's name has at most {MAX_NAME_LENGTH} characters: its copies are labelled with it",
        ),
    )

    spec: BackingImageSpec
    status: BackingImageStatus = BackingImageStatus()
