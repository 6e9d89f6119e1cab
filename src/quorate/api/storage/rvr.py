"""ReplicatedVolumeReplica: one member of a volume, on one node."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api import labels
from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.quantity import Quantity
from quorate.api.reserved import no_resource_rule
from quorate.api.scalars import MAX_MEMBERS, Count, Message, NodeRef, ObjectRef, ReplicaRef, VolumeRef, Word
from quorate.api.storage.datamesh import NetworkAddresses, PendingTransition
from quorate.api.storage.drbd import ReplicaDrbd, ReplicaType, State
from quorate.api.struct import Rule, Struct, immutable, immutable_once_set, list_map


class ReplicatedVolumeReplicaSpec(Struct):
    """What the replica is, and where."""

    RULES = (
        immutable_once_set("nodeName"),
        Rule(
            "!has(self.lvmVolumeGroupName) || has(self.nodeName)",
            "lvmVolumeGroupName needs a nodeName: a disk is on a node",
            field_path=".lvmVolumeGroupName",
        ),
        Rule(
            "!has(self.lvmVolumeGroupName) || self.type == 'Diskful'",
            "lvmVolumeGroupName is only for a Diskful replica",
            field_path=".lvmVolumeGroupName",
        ),
        Rule(
            "!has(self.lvmVolumeGroupThinPoolName) || has(self.lvmVolumeGroupName)",
            "lvmVolumeGroupThinPoolName needs a lvmVolumeGroupName",
            field_path=".lvmVolumeGroupThinPoolName",
        ),
    )

    replicated_volume_name: Annotated[VolumeRef, immutable("is immutable")]
    type: ReplicaType
    node_name: NodeRef | None = None
    lvm_volume_group_name: Annotated[ObjectRef, Meta(description="The disk, together with the thin pool.")] | None = (
        None
    )
    lvm_volume_group_thin_pool_name: (
        Annotated[Word, Meta(description="The thin pool of the disk; absent: the group's own space.")] | None
    ) = None


class ReplicaPhase(StrEnum):
    """For people; no code reads it. The first that fits."""

    TERMINATING = "Terminating"
    AGENT_NOT_READY = "AgentNotReady"
    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    CONFIGURING = "Configuring"
    WAITING_FOR_DATAMESH = "WaitingForDatamesh"
    CRITICAL = "Critical"
    PROGRESSING = "Progressing"
    SYNCHRONIZING = "Synchronizing"
    DEGRADED = "Degraded"
    PARTIALLY_DEGRADED = "PartiallyDegraded"
    HEALTHY = "Healthy"


class BackingVolume(Struct):
    """The replica's piece of a disk, as DRBD sees it."""

    size: Annotated[Quantity, Meta(description="The size of the logical volume.")] | None = None
    state: Annotated[State, Meta(description="The DRBD disk state.")] = ""
    lvm_volume_group_name: Annotated[str, Meta(description="The LVMVolumeGroup that it lies in.")] = ""
    lvm_volume_group_thin_pool_name: Annotated[str, Meta(description="The thin pool of that; empty: none.")] = ""


class ObservedPeer(Struct):
    """Another member, as this one sees it."""

    name: ReplicaRef
    type: ReplicaType | None = None
    attached: Annotated[bool, Meta(description="Whether it is Primary: in use there.")] = False
    connection_state: Annotated[State, Meta(description="The state of the link, as DRBD names it.")] = ""
    connection_established_on: Annotated[
        tuple[str, ...], Meta(max_length=16, description="The networks over which the link is up.")
    ] = ()
    backing_volume_state: Annotated[State, Meta(description="The state of the peer's disk, as DRBD names it.")] = ""
    replication_state: Annotated[State, Meta(description="What flows over the link, as DRBD names it.")] = ""


class ReplicatedVolumeReplicaStatus(Struct):
    """What is known of a replica.

    Its agent writes ``drbd.actual``, ``drbd.status``, ``drbd.errors``, ``drbd.config.address``, ``actualType`` and
    ``datameshRevision``; the volume controller everything else.
    """

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    phase: ReplicaPhase | None = None
    message: Message = ""
    actual_type: (
        Annotated[ReplicaType, Meta(description="What the kernel has; differs from spec.type on the way.")] | None
    ) = None
    datamesh_revision: Annotated[int, Meta(ge=0, description="The revision that the kernel shows.")] = 0
    datamesh_pending_transition: PendingTransition | None = None
    lvm_logical_volume_name: Annotated[
        str, Meta(max_length=253, description="The LVMLogicalVolume, once it can be used.")
    ] = ""
    addresses: Annotated[NetworkAddresses, Meta(description="Where it listens, by network.")] = ()
    backing_volume: BackingVolume | None = None
    size: Annotated[Quantity, Meta(description="The usable size of the device.")] | None = None
    peers: Annotated[
        tuple[ObservedPeer, ...],
        Meta(max_length=MAX_MEMBERS - 1, description="The other members that it has links to, as it sees them."),
        list_map("name"),
    ] = ()
    drbd: ReplicaDrbd = ReplicaDrbd()
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="How the replica is; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="replicatedvolumereplicas",
    short_names=("rvr",),
    categories=("quorate", "storage"),
    columns=(
        Column("Volume", ".spec.replicatedVolumeName"),
        Column("Node", ".spec.nodeName"),
        Column("Type", ".spec.type"),
        Column("Phase", ".status.phase"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("InSync", '.status.conditions[?(@.type=="InSync")].status'),
        Column("Role", ".status.drbd.status.role", priority=1),
        Column("Disk", ".spec.lvmVolumeGroupName", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.nodeName", ".spec.replicatedVolumeName"),
    immutable_labels=(labels.NODE,),
)
class ReplicatedVolumeReplica(Resource):
    """One member of a volume, on one node: with a disk, for access, or to break a tie."""

    RULES = (
        Rule(
            "['-0', '-1', '-2', '-3', '-4', '-5', '-6', '-7'].exists(id,"
            " self.metadata.name == self.spec.replicatedVolumeName + id)",
            "a replica's name is its replicatedVolumeName and -0 to -7",
        ),
        no_resource_rule("spec.replicatedVolumeName"),
    )

    spec: ReplicatedVolumeReplicaSpec
    status: ReplicatedVolumeReplicaStatus = ReplicatedVolumeReplicaStatus()
