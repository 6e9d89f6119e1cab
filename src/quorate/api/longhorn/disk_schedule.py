"""DiskSchedule: the ledger of one disk, and the only gate to its space.

``spec`` says what is asked for, ``status`` what was granted. Asking is a merge patch of one key of ``spec``; deciding
is one compare-and-swap write of ``status``. A key in spec and not in status is pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from quorate.api.groups import LONGHORN
from quorate.api.kind import Column, Scope, kind
from quorate.api.longhorn.node import ProbedCondition
from quorate.api.meta import Bytes, NodeName, Resource
from quorate.api.scalars import ByteCount, Count, Message, ReasonCode
from quorate.api.struct import Rule, Struct, list_map

#: A ledger must fit into one object; beyond, a clear refusal.
MAX_ENTRIES = 1000

EntryName = Annotated[str, Meta(min_length=1, max_length=253)]
Requests = Annotated[Mapping[EntryName, ByteCount], Meta(max_length=MAX_ENTRIES)]


class DiskScheduleSpec(Struct):
    """What is asked of the disk, in bytes. Removing a key gives the space back."""

    RULES = (
        Rule(
            "(has(self.replicas) ? self.replicas.size() : 0)"
            f" + (has(self.backingImages) ? self.backingImages.size() : 0) <= {MAX_ENTRIES}",
            f"a disk holds at most {MAX_ENTRIES} replicas and backing images together",
        ),
    )

    # Where the disk is may change: a drive that is moved to another node takes its ledger along.
    # Whoever makes one by hand may leave both to the disks controller, which knows the disk by its UUID.
    name: Annotated[str, Meta(max_length=317, description="The disk, as the node's inventory names it.")] = ""
    node_id: Annotated[NodeName, Meta(max_length=253, description="The node that has the disk.")] = field(
        default=NodeName(""), name="nodeID"
    )
    replicas: Annotated[Requests, Meta(description="Replica name to bytes.")] = field(default_factory=dict)
    backing_images: Annotated[Requests, Meta(description="Image name to bytes.")] = field(default_factory=dict)


class EntryState(StrEnum):
    """The answer to a request; no entry means that there is none yet."""

    SCHEDULED = "scheduled"
    REJECTED = "rejected"


class DiskScheduledResourcesStatus(Struct):
    """The answer to one request."""

    state: EntryState
    scheduled_size: Annotated[
        ByteCount, Meta(description="Granted, in bytes; a rejected growth keeps what it had.")
    ] = Bytes(0)
    requested_size: Annotated[
        ByteCount, Meta(description="What was asked for when this was decided: the answer stands while it is the same.")
    ] = Bytes(0)
    reason: ReasonCode = ""
    message: Message = ""
    orphaned_since: (
        Annotated[datetime, Meta(description="Since when nobody is seen whose it is; it goes after a while.")] | None
    ) = None


Answers = Annotated[Mapping[EntryName, DiskScheduledResourcesStatus], Meta(max_length=MAX_ENTRIES)]


class DiskScheduleStatus(Struct):
    """What was granted."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    replicas: Annotated[Answers, Meta(description="By replica: what the disk has granted it, or why not.")] = field(
        default_factory=dict
    )
    backing_images: Annotated[Answers, Meta(description="By image: the same for its copy.")] = field(
        default_factory=dict
    )
    storage_scheduled: Annotated[ByteCount, Meta(description="The sum of all scheduledSize.")] = Bytes(0)
    storage_available: Annotated[
        ByteCount, Meta(description="The most that may be scheduled, as it was at the last decision.")
    ] = Bytes(0)
    conditions: Annotated[
        tuple[ProbedCondition, ...],
        list_map("type"),
        Meta(description="How the disk is; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=LONGHORN.name,
    version=LONGHORN.version,
    plural="diskschedules",
    scope=Scope.NAMESPACED,
    short_names=("lhds",),
    categories=("quorate", "storage"),
    columns=(
        Column("Node", ".spec.nodeID"),
        Column("Disk", ".spec.name"),
        Column("Schedulable", '.status.conditions[?(@.type=="Schedulable")].status'),
        Column("Scheduled", ".status.storageScheduled", "integer"),
        Column("Available", ".status.storageAvailable", "integer"),
        Column("OverCommitted", '.status.conditions[?(@.type=="OverCommitted")].status', priority=1),
    ),
    selectable_fields=(".spec.nodeID",),
)
class DiskSchedule(Resource):
    """The ledger of one disk: who asked for how much, and what was granted. Named by the disk's UUID."""

    spec: DiskScheduleSpec
    status: DiskScheduleStatus = DiskScheduleStatus()
