"""LogRecord: a chunk of the broker's log. One object per chunk, because one per record would be too many objects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.scalars import Message
from quorate.api.struct import Struct


class RecordType(StrEnum):
    """What happened. The first three are the seed's."""

    CMS_LOADED = "CMS_LOADED"
    PDISK_MONITOR_ACTION = "PDISK_MONITOR_ACTION"
    MARKERS_MODIFICATION = "MARKERS_MODIFICATION"
    PERMISSION_GRANTED = "PERMISSION_GRANTED"
    PERMISSION_ENDED = "PERMISSION_ENDED"


class LogEntry(Struct):
    """One record. No two have the same timestamp."""

    timestamp: Annotated[datetime, Meta(description="When it happened.")]
    record_type: RecordType
    message: Message = ""
    data: Annotated[Mapping[str, Any], Meta(description="The details, by the kind of entry.")] = field(
        default_factory=dict
    )


class LogRecordStatus(Struct):
    """The records of a chunk, oldest first."""

    first_timestamp: Annotated[datetime, Meta(description="Of its oldest entry.")] | None = None
    last_timestamp: Annotated[datetime, Meta(description="Of its newest entry.")] | None = None
    entries: Annotated[tuple[LogEntry, ...], Meta(max_length=1000, description="What happened, the oldest first.")] = ()


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="logrecords",
    categories=("quorate", "maintenance"),
    columns=(Column("First", ".status.firstTimestamp"), Column("Last", ".status.lastTimestamp")),
)
class LogRecord(Resource):
    """A chunk of the broker's log."""

    status: LogRecordStatus = LogRecordStatus()
