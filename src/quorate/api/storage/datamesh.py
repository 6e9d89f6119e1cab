"""The datamesh: the members of a volume that know one another, and the transitions that change who they are.

A revision is one state of the datamesh. A transition is a walk over revisions, in steps; a step is over when every
member that must know has reported its revision.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.quantity import Quantity
from quorate.api.scalars import MAX_MEMBERS, Count, NodeId, NodeRef, ReasonCode, ReplicaRef, Word
from quorate.api.storage.configuration import NetworkName, NetworkNames
from quorate.api.storage.drbd import Address, NodeIds, ReplicaType
from quorate.api.struct import Rule, Struct, list_map

WaitMessage = Annotated[str, Meta(max_length=512)]


class NetworkAddress(Struct):
    """Where a replica listens in one of the networks."""

    system_network_name: NetworkName
    address: Address


NetworkAddresses = Annotated[tuple[NetworkAddress, ...], Meta(max_length=16), list_map("systemNetworkName")]


class Member(Struct):
    """A replica that takes part."""

    name: ReplicaRef
    type: ReplicaType
    node_name: NodeRef
    node_id: NodeId
    zone: str = ""
    addresses: NetworkAddresses = ()
    lvm_volume_group_name: str = ""
    lvm_volume_group_thin_pool_name: str = ""
    attached: Annotated[bool, Meta(description="Meant to be Primary.")] = False
    hidden: Annotated[bool, Meta(description="Not counted for quorum: joining, leaving, or an access replica.")] = False
    down: Annotated[bool, Meta(description="Told to bring its resource down; it may still come back.")] = False
    excused: Annotated[
        bool, Meta(description="Down or stale: the others have taken it out of their files, its vote still counts.")
    ] = False
    returns_to: (
        Annotated[
            ReplicaRef,
            Meta(
                description="It was the younger of two primaries when their link was lost: it links only to this one,"
                " the older, until it is Secondary."
            ),
        ]
        | None
    ) = None


class Datamesh(Struct):
    """Who takes part, and in what."""

    members: Annotated[tuple[Member, ...], Meta(max_length=MAX_MEMBERS), list_map("name")] = ()
    size: Annotated[Quantity, Meta(description="The usable size, in whole 4 KiB blocks.")] | None = None
    copy_growth: Annotated[
        bool, Meta(description="The last growth is not known to be zero everywhere: members copy it from one another.")
    ] = False
    system_network_names: NetworkNames = ()
    forget: Annotated[NodeIds, Meta(description="Ids of members that left and that the diskful ones must forget.")] = ()


class TransitionType(StrEnum):
    """What changes."""

    FORMATION = "Formation"
    ADD_REPLICA = "AddReplica"
    REMOVE_REPLICA = "RemoveReplica"
    CHANGE_REPLICA_TYPE = "ChangeReplicaType"
    FORCE_REMOVE_REPLICA = "ForceRemoveReplica"
    CHANGE_QUORUM = "ChangeQuorum"
    ATTACH = "Attach"
    DETACH = "Detach"
    FORCE_DETACH = "ForceDetach"
    ENABLE_MULTIATTACH = "EnableMultiattach"
    DISABLE_MULTIATTACH = "DisableMultiattach"
    RESIZE_VOLUME = "ResizeVolume"


class TransitionGroup(StrEnum):
    """Which transitions may run beside one another."""

    FORMATION = "Formation"
    VOTING_MEMBERSHIP = "VotingMembership"
    NON_VOTING_MEMBERSHIP = "NonVotingMembership"
    QUORUM = "Quorum"
    ATTACHMENT = "Attachment"
    MULTIATTACH = "Multiattach"
    RESIZE = "Resize"
    EMERGENCY = "Emergency"


class StepStatus(StrEnum):
    """How far a step is."""

    PENDING = "Pending"
    ACTIVE = "Active"
    COMPLETED = "Completed"


class Step(Struct):
    """One step: one revision, confirmed before the next."""

    name: Word
    status: StepStatus
    datamesh_revision: Annotated[int, Meta(ge=0, description="What members must report; 0: nothing was changed.")] = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
    message: WaitMessage = ""


class FormationPhase(StrEnum):
    """How far the birth of a volume is."""

    PRECONFIGURE = "Preconfigure"
    ESTABLISH_CONNECTIVITY = "EstablishConnectivity"
    BOOTSTRAP_DATA = "BootstrapData"
    #: Written before anything is deleted, so that a crash in between is seen.
    RESTARTING = "Restarting"


class Formation(Struct):
    """What only a Formation has."""

    phase: FormationPhase = FormationPhase.PRECONFIGURE
    phase_started_at: Annotated[datetime, Meta(description="The phase's timeout counts from here (M8).")] | None = None
    asked_at: (
        Annotated[
            datetime,
            Meta(description="When everybody was last asked to show its disk, before anything is thrown away."),
        ]
        | None
    ) = None


class Transition(Struct):
    """A change under way."""

    RULES = (
        Rule(
            "has(self.formation) == (self.type == 'Formation')",
            "formation must be given exactly when type is Formation",
            field_path=".formation",
        ),
        Rule(
            "has(self.replicaName) != (self.type in ['Formation', 'EnableMultiattach', 'DisableMultiattach',"
            " 'ChangeQuorum', 'ResizeVolume'])",
            "replicaName must be given exactly when the transition is about one replica",
            field_path=".replicaName",
        ),
    )

    type: TransitionType
    group: TransitionGroup
    replica_name: ReplicaRef | None = None
    replica_type: ReplicaType | None = None
    from_replica_type: ReplicaType | None = None
    to_replica_type: ReplicaType | None = None
    started_at: datetime
    datamesh_revision: Annotated[int, Meta(ge=0, description="Of the active step.")] = 0
    reason: Annotated[ReasonCode, Meta(description="Why it waits.")] = ""
    message: WaitMessage = ""
    steps: Annotated[tuple[Step, ...], Meta(max_length=16)] = ()
    formation: Formation | None = None


class PendingTransition(Struct):
    """What a replica asks of the datamesh: to join (member true), to leave (false), or to change (absent)."""

    member: bool | None = None
    type: ReplicaType | None = None
    lvm_volume_group_name: str = ""
    lvm_volume_group_thin_pool_name: str = ""


class PendingReplicaTransition(Struct):
    """A replica's request, with the volume's answer."""

    name: ReplicaRef
    transition: PendingTransition
    first_observed_at: datetime
    reason: ReasonCode = ""
    message: WaitMessage = ""


class EffectiveLayout(Struct):
    """What the volume can survive from here, evaluated on live, fresh reports."""

    failures_to_tolerate: (
        Annotated[int, Meta(description="Further losses survived; below zero: I/O stands.")] | None
    ) = None
    guaranteed_minimum_data_redundancy: (
        Annotated[int, Meta(description="Up-to-date copies beyond the one needed; below zero: none is left.")] | None
    ) = None
    total_voters: Count = 0
    reachable_voters: Count = 0
    up_to_date_voters: Count = 0
    total_tie_breakers: Count = 0
    reachable_tie_breakers: Count = 0
    stale_agents: Annotated[Count, Meta(description="Members whose own report does not count now.")] = 0
    message: WaitMessage = ""
