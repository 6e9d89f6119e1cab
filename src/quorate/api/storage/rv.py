"""ReplicatedVolume: a block device with copies on several nodes."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.quantity import Quantity
from quorate.api.reserved import no_resource_rule
from quorate.api.scalars import (
    MAX_MEMBERS,
    VOLUME_NAME_MAX_LENGTH,
    Count,
    DeviceMinor,
    Message,
    NodeRef,
    ObjectRef,
    ReplicaRef,
)
from quorate.api.storage.configuration import Configuration
from quorate.api.storage.datamesh import Datamesh, EffectiveLayout, PendingReplicaTransition, Transition
from quorate.api.storage.drbd import QuorumCount, SharedSecret, SharedSecretAlgorithm
from quorate.api.struct import Rule, Struct, list_map, list_set, lowered_only_to, positive_quantity


class ReplicatedVolumeSpec(Struct):
    """What somebody wants."""

    size: Annotated[
        Quantity,
        positive_quantity("size must be more than zero"),
        Meta(
            description="Usable bytes. Raised to grow the volume; until it has begun to grow, it can be lowered again"
            " to what the volume has."
        ),
    ]
    replicated_storage_class_name: Annotated[
        ObjectRef, Meta(description="The ReplicatedStorageClass: how many copies, and where.")
    ]
    publish_on: Annotated[
        tuple[NodeRef, ...],
        Meta(max_length=2, description="Nodes on which the volume is to be usable; two for a migration."),
        list_set(),
    ] = ()


class VolumePhase(StrEnum):
    """For people; no code reads it. The first that fits."""

    TERMINATING = "Terminating"
    FORMING = "Forming"
    DEGRADED = "Degraded"
    SYNCHRONIZING = "Synchronizing"
    READY = "Ready"


class AttachSource(StrEnum):
    """Who asked for an attachment."""

    ATTACHMENT = "Attachment"
    PUBLISH_ON = "PublishOn"


class AttachRequest(Struct):
    """A place in the queue: first come, first served."""

    node_name: NodeRef
    since: Annotated[datetime, Meta(description="Since when.")]
    source: AttachSource


class ComparisonReason(StrEnum):
    """Why copies may differ although DRBD says that they do not."""

    RESIZE = "Resize"
    TWO_PRIMARIES = "TwoPrimaries"
    #: Members that are both up to date show bits against one another.
    MARKS = "Marks"
    #: A primary lost quorum, and may have acknowledged what was blocked without one of its peers.
    QUORUM_LOST = "QuorumLost"


class Comparison(Struct):
    """A part of the volume in which copies may differ, until they have been compared and made equal."""

    revision: Annotated[int, Meta(ge=1, description="The revision of the datamesh that it came with; names it.")]
    reason: ComparisonReason
    since: Annotated[datetime, Meta(description="Since when.")]
    reference: Annotated[ReplicaRef, Meta(description="Whose copy counts.")]
    start: Annotated[Count, Meta(description="The first byte.")] = 0
    end: Annotated[Count, Meta(description="The byte after the last; absent: to the end.")] | None = None
    overwrite: Annotated[
        bool, Meta(description="Nobody has used that part yet: it is overwritten with zeros instead of compared.")
    ] = False
    stale: Annotated[
        tuple[ReplicaRef, ...],
        Meta(max_length=MAX_MEMBERS, description="Copies that others have shown bits against."),
        list_set(),
    ] = ()
    resumed: Annotated[
        bool,
        Meta(description="The one that lost quorum has gone on since: what was blocked may have been acknowledged."),
    ] = False
    prevented: Annotated[
        bool,
        Meta(description="It was given a new generation in time: peers copied when they met it. Holds nobody back."),
    ] = False
    undecided: Annotated[
        bool,
        Meta(
            description="The copy in use may be the one that lacks something: nothing is overwritten before a person"
            " says whose copy counts."
        ),
    ] = False
    decided: Annotated[bool, Meta(description="A person has said whose copy counts.")] = False
    attempts: Annotated[Count, Meta(description="How often it was tried in vain.")] = 0
    tried_at: Annotated[datetime, Meta(description="When it was last tried in vain.")] | None = None


class MarkedPair(Struct):
    """Bits that one member shows against another, and that a comparison has shown to mean nothing."""

    name: Annotated[str, Meta(max_length=512, description="Both, as <who shows them>/<against whom>.")]
    compared_at: Annotated[datetime, Meta(description="When the two were last found equal.")]


class Promotion(Struct):
    """Who was last made Primary, and who could not be asked then."""

    replica: ReplicaRef
    unheard: Annotated[
        tuple[ReplicaRef, ...],
        Meta(
            max_length=MAX_MEMBERS,
            description="Copies whose agents were silent: bits that they show later may be older than this use.",
        ),
        list_set(),
    ] = ()


class VolumeDrbdConfig(Struct):
    """What all members share: the one home of these values."""

    device_minor: (
        Annotated[DeviceMinor, Meta(description="Unique in the cluster; the device is /dev/drbd<minor>.")] | None
    ) = None
    shared_secret: SharedSecret | None = None
    shared_secret_alg: SharedSecretAlgorithm | None = None
    quorum: (
        Annotated[QuorumCount, Meta(description="For people: derived from the number of diskful members.")] | None
    ) = None
    quorum_minimum_redundancy: (
        Annotated[QuorumCount, Meta(description="How many up-to-date copies every write needs.")] | None
    ) = None
    allow_two_primaries: Annotated[bool, Meta(description="Two nodes may use it at once, for a migration.")] = False


class VolumeDrbd(Struct):
    """DRBD, as far as it concerns the whole volume."""

    config: VolumeDrbdConfig = VolumeDrbdConfig()


class ReplicatedVolumeStatus(Struct):
    """What is known of a volume."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    phase: VolumePhase | None = None
    message: Annotated[Message, Meta(description="What it is doing, or what it waits for.")] = ""
    actual_size: Annotated[Quantity, Meta(description="The smallest usable size among diskful members.")] | None = None
    growing_to: (
        Annotated[Quantity, Meta(description="What its disks are being grown to. It is not taken back below this.")]
        | None
    ) = None
    published_on: Annotated[
        tuple[NodeRef, ...], Meta(max_length=MAX_MEMBERS, description="Nodes where the volume is Primary."), list_set()
    ] = ()
    attach_requests: Annotated[
        tuple[AttachRequest, ...],
        Meta(max_length=1000, description="The nodes that want to use it, in the order in which they came."),
        list_map("nodeName"),
    ] = ()
    configuration: (
        Annotated[Configuration, Meta(description="The class's promise, as this volume keeps it.")] | None
    ) = None
    configuration_generation: Annotated[int, Meta(ge=0, description="The class's generation it was copied from.")] = 0
    drbd: VolumeDrbd = VolumeDrbd()
    datamesh: Datamesh = Datamesh()
    datamesh_revision: Annotated[int, Meta(ge=0, description="Grows with every step; 0: never formed.")] = 0
    datamesh_transitions: Annotated[
        tuple[Transition, ...], Meta(max_length=16, description="Changes of members that are under way, step by step.")
    ] = ()
    datamesh_pending_replica_transitions: Annotated[
        tuple[PendingReplicaTransition, ...],
        Meta(max_length=MAX_MEMBERS, description="What replicas ask for, and why it is not done yet."),
        list_map("name"),
    ] = ()
    comparisons: Annotated[
        tuple[Comparison, ...],
        Meta(max_length=16, description="Open ones, oldest first; no second primary and no growing meanwhile."),
        list_map("revision"),
    ] = ()
    compared_marks: Annotated[
        tuple[MarkedPair, ...],
        Meta(max_length=56, description="Bits between copies that were compared and are equal."),
        list_map("name"),
    ] = ()
    compared_at: Annotated[datetime, Meta(description="When all copies were last found, or made, equal.")] | None = None
    last_promotion: Annotated[Promotion, Meta(description="The last use of the volume.")] | None = None
    membership_layout: Annotated[str, Meta(max_length=32, description="Such as 2D+1TB.")] = ""
    effective_layout: EffectiveLayout = EffectiveLayout()
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="How the volume is; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="replicatedvolumes",
    short_names=("rv",),
    categories=("quorate", "storage"),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Resilient", '.status.conditions[?(@.type=="Resilient")].status'),
        Column("Layout", ".status.membershipLayout"),
        Column("Size", ".status.actualSize"),
        Column("Published", ".status.publishedOn"),
        Column("Asked", ".spec.size", priority=1),
        Column("Class", ".spec.replicatedStorageClassName", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.replicatedStorageClassName",),
)
class ReplicatedVolume(Resource):
    """A block device with copies on several nodes."""

    RULES = (
        Rule(
            f"self.metadata.name.size() <= {VOLUME_NAME_MAX_LENGTH}",
            f"a volume's name has at most {VOLUME_NAME_MAX_LENGTH} characters: its replicas' names are longer",
        ),
        no_resource_rule("metadata.name"),
        lowered_only_to(
            "spec.size",
            "status.datamesh.size",
            "status.growingTo",
            message="a volume cannot shrink: its size can be lowered to what it has (status.datamesh.size), and not"
            " below what its disks are being grown to (status.growingTo)",
        ),
    )

    spec: ReplicatedVolumeSpec
    status: ReplicatedVolumeStatus = ReplicatedVolumeStatus()
