"""DRBDResourceOperation: one command that a node's agent runs once, such as giving a new volume its first data."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api import labels
from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.scalars import Count, Message, NodeId, NodeRef, ReplicaRef
from quorate.api.struct import Rule, Struct, rule


class OperationType(StrEnum):
    """What to do. An agent that does not know an operation fails it and says so."""

    CREATE_NEW_UUID = "CreateNewUUID"
    FORCE_PRIMARY = "ForcePrimary"
    INVALIDATE = "Invalidate"
    OUTDATE = "Outdate"
    VERIFY = "Verify"
    ZERO_RANGE = "ZeroRange"
    RENEW_ACTIVITY_LOG = "RenewActivityLog"
    REJOIN = "Rejoin"
    CREATE_SNAPSHOT = "CreateSnapshot"


class CreateNewUUID(Struct):
    """How the first data generation begins: declare all members equal, or copy from this one."""

    RULES = (
        Rule(
            "(has(self.clearBitmap) && self.clearBitmap) != (has(self.forceResync) && self.forceResync)",
            "exactly one of clearBitmap and forceResync must be true",
        ),
    )

    clear_bitmap: Annotated[
        bool, Meta(description="All members are equal already: only if every one's space is known to be zero.")
    ] = False
    force_resync: Annotated[bool, Meta(description="Copy everything from this member to the others.")] = False


class Rejoin(Struct):
    """Whom to connect to, giving up whatever was written here since the two lost touch."""

    peer_node_id: NodeId


class ByteRange(Struct):
    """A part of the device, in bytes; whole blocks of 4 KiB. What lies beyond the device's end is left out."""

    RULES = (
        Rule("self.start < self.end", "end must be more than start", field_path=".end"),
        Rule("self.start % 4096 == 0 && self.end % 4096 == 0", "a range is of whole blocks of 4096 bytes"),
    )

    start: Annotated[Count, Meta(description="The first byte.")]
    end: Annotated[Count, Meta(description="The byte after the last.")]


class DRBDResourceOperationSpec(Struct):
    """What to run, and where."""

    RULES = (
        Rule(
            "has(self.createNewUUID) == (self.type == 'CreateNewUUID')",
            "createNewUUID must be given exactly when type is CreateNewUUID",
            field_path=".createNewUUID",
        ),
        Rule(
            "has(self.range) ? self.type in ['Verify', 'ZeroRange'] : self.type != 'ZeroRange'",
            "range must be given when type is ZeroRange, and is allowed only there and when type is Verify",
            field_path=".range",
        ),
        Rule(
            "has(self.rejoin) == (self.type == 'Rejoin')",
            "rejoin must be given exactly when type is Rejoin",
            field_path=".rejoin",
        ),
    )

    node_name: NodeRef
    drbd_resource_name: Annotated[ReplicaRef, Meta(description="The ReplicatedVolumeReplica to act on.")]
    type: OperationType
    create_new_uuid: CreateNewUUID | None = field(default=None, name="createNewUUID")
    rejoin: Rejoin | None = None
    range: Annotated[ByteRange, Meta(description="Absent: the whole device.")] | None = None


class OperationPhase(StrEnum):
    """How far an operation is. Succeeded and Failed are final."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class DRBDResourceOperationStatus(Struct):
    """What came of it. Written by the node's agent."""

    phase: OperationPhase | None = None
    message: Message = ""
    started_at: Annotated[datetime, Meta(description="When its agent began.")] | None = None
    completed_at: Annotated[datetime, Meta(description="When it was over, whatever came of it.")] | None = None


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="drbdresourceoperations",
    short_names=("drbdrop",),
    categories=("quorate", "storage"),
    columns=(
        Column("Replica", ".spec.drbdResourceName"),
        Column("Node", ".spec.nodeName"),
        Column("Type", ".spec.type"),
        Column("Phase", ".status.phase"),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.nodeName", ".spec.drbdResourceName"),
    immutable_labels=(labels.NODE,),
)
class DRBDResourceOperation(Resource):
    """One command on one replica, run once. Its spec is immutable: to run again, make another."""

    spec: Annotated[DRBDResourceOperationSpec, rule("self == oldSelf", "an operation's spec is immutable")]
    status: DRBDResourceOperationStatus = DRBDResourceOperationStatus()
