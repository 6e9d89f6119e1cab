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

    system_network_name: Annotated[
        NetworkName, Meta(description="The network; Internal is that of the nodes' InternalIP.")
    ]
    address: Address


NetworkAddresses = Annotated[tuple[NetworkAddress, ...], Meta(max_length=16), list_map("systemNetworkName")]


class Member(Struct):
    """A replica that takes part."""

    name: ReplicaRef
    type: ReplicaType
    node_name: NodeRef
    node_id: NodeId
    zone: Annotated[str, Meta(description="Its node's zone.")] = ""
    addresses: Annotated[NetworkAddresses, Meta(description="Where it listens, by network.")] = ()
    lvm_volume_group_name: Annotated[str, Meta(description="Its disk's LVMVolumeGroup.")] = ""
    lvm_volume_group_thin_pool_name: Annotated[str, Meta(description="Its disk's thin pool; empty: none.")] = ""
    attached: Annotated[bool, Meta(description="Meant to be Primary.")] = False
    force_secondary: Annotated[
        bool,
        Meta(
            description="Detached by a person's word: its agent makes it Secondary by force, whoever holds its device"
            " open, as soon as it hears of it. Until it says that it is Secondary."
        ),
    ] = False
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
    quorum_lost_at: (
        Annotated[datetime, Meta(description="The loss of quorum of this member that a comparison was last noted for.")]
        | None
    ) = None
    met_unsure_at: (
        Annotated[
            datetime,
            Meta(description="The link that this member's agent made anew, of which a comparison was last noted."),
        ]
        | None
    ) = None


class Datamesh(Struct):
    """Who takes part, and in what."""

    members: Annotated[
        tuple[Member, ...], Meta(max_length=MAX_MEMBERS, description="Who takes part, by id."), list_map("name")
    ] = ()
    size: Annotated[Quantity, Meta(description="The usable size, in whole 4 KiB blocks.")] | None = None
    copy_growth: Annotated[
        bool, Meta(description="The last growth is not known to be zero everywhere: members copy it from one another.")
    ] = False
    system_network_names: Annotated[NetworkNames, Meta(description="The networks that members meet in.")] = ()
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

    name: Annotated[Word, Meta(description="What is done in it.")]
    status: StepStatus
    datamesh_revision: Annotated[int, Meta(ge=0, description="What members must report; 0: nothing was changed.")] = 0
    started_at: Annotated[datetime, Meta(description="When it began.")] | None = None
    completed_at: Annotated[datetime, Meta(description="When everybody had confirmed it.")] | None = None
    message: Annotated[WaitMessage, Meta(description="Whom it waits for.")] = ""


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
    started_at: Annotated[datetime, Meta(description="When it began.")]
    datamesh_revision: Annotated[int, Meta(ge=0, description="Of the active step.")] = 0
    reason: Annotated[ReasonCode, Meta(description="Why it waits.")] = ""
    message: Annotated[WaitMessage, Meta(description="Why it does not go on, for people.")] = ""
    steps: Annotated[tuple[Step, ...], Meta(max_length=16, description="Its steps, in order.")] = ()
    formation: Formation | None = None


class PendingTransition(Struct):
    """What a replica asks of the datamesh: to join (member true), to leave (false), or to change (absent)."""

    member: Annotated[bool, Meta(description="True: to join. False: to leave. Absent: to change.")] | None = None
    type: ReplicaType | None = None
    lvm_volume_group_name: Annotated[str, Meta(description="The disk's LVMVolumeGroup.")] = ""
    lvm_volume_group_thin_pool_name: Annotated[str, Meta(description="The disk's thin pool.")] = ""


class PendingReplicaTransition(Struct):
    """A replica's request, with the volume's answer."""

    name: ReplicaRef
    transition: PendingTransition
    first_observed_at: Annotated[datetime, Meta(description="Since when it has been asked for.")]
    reason: ReasonCode = ""
    message: Annotated[WaitMessage, Meta(description="Why it is not done yet, for people.")] = ""


class EffectiveLayout(Struct):
    """What the volume can survive from here, evaluated on live, fresh reports."""

    failures_to_tolerate: (
        Annotated[int, Meta(description="Further losses survived; below zero: I/O stands.")] | None
    ) = None
    guaranteed_minimum_data_redundancy: (
        Annotated[int, Meta(description="Up-to-date copies beyond the one needed; below zero: none is left.")] | None
    ) = None
    total_voters: Annotated[Count, Meta(description="Members with a copy that count.")] = 0
    reachable_voters: Annotated[Count, Meta(description="Those of them that are in touch.")] = 0
    up_to_date_voters: Annotated[Count, Meta(description="Those of them whose copy is up to date.")] = 0
    total_tie_breakers: Annotated[Count, Meta(description="Tie-breakers.")] = 0
    reachable_tie_breakers: Annotated[Count, Meta(description="Those of them that are in touch.")] = 0
    stale_agents: Annotated[Count, Meta(description="Members whose own report does not count now.")] = 0
    message: Annotated[WaitMessage, Meta(description="The same in words.")] = ""
