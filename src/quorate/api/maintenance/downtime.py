"""Downtime: when a node or a drive was away. The disk monitor's memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.scalars import Message, ObjectRef
from quorate.api.struct import Struct, immutable


class DowntimeObject(StrEnum):
    """What can be away."""

    NODE = "Node"
    DRIVE = "Drive"


class DowntimeSpec(Struct):
    """Whose downtime."""

    kind: Annotated[DowntimeObject, immutable("is immutable")]
    name: Annotated[ObjectRef, immutable("is immutable"), Meta(description="The name of what was down.")]


class Segment(Struct):
    """One stretch of absence."""

    start: Annotated[datetime, Meta(description="When it went down.")]
    end: Annotated[datetime, Meta(description="Absent: it goes on.")] | None = None
    reason: Message = ""


class DowntimeStatus(Struct):
    """The stretches, oldest first; neighbours closer than the ignored gap are joined."""

    segments: Annotated[
        tuple[Segment, ...], Meta(max_length=1000, description="When it was down, the oldest first.")
    ] = ()


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="downtimes",
    categories=("quorate", "maintenance"),
    columns=(Column("Kind", ".spec.kind"), Column("Object", ".spec.name")),
)
class Downtime(Resource):
    """When a node or a drive was away."""

    spec: DowntimeSpec
    status: DowntimeStatus = DowntimeStatus()
