"""ReplicatedStorageClass: the kind of volume that people ask for."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import STORAGE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.scalars import Count, Message, ObjectRef
from quorate.api.storage.configuration import (
    Configuration,
    EligibleNodesPolicy,
    Replication,
    Topology,
    VolumeAccess,
    ZoneSet,
)
from quorate.api.struct import Rule, Struct, immutable, list_map, rule


class ReclaimPolicy(StrEnum):
    """What becomes of a volume when its claim is deleted."""

    DELETE = "Delete"
    RETAIN = "Retain"


class RolloutType(StrEnum):
    """To whom a changed class applies. One value for now; a manifest that asks for another is refused, not ignored."""

    NEW_VOLUMES_ONLY = "NewVolumesOnly"


class ConfigurationRolloutStrategy(Struct):
    """How a change of this class reaches the volumes that exist."""

    type: RolloutType = RolloutType.NEW_VOLUMES_ONLY


class ReplicatedStorageClassSpec(Struct):
    """What volumes of this class promise, and where they live."""

    RULES = (
        Rule(
            "has(self.zones) == has(oldSelf.zones) && (!has(self.zones)"
            " || (self.zones.all(z, z in oldSelf.zones) && oldSelf.zones.all(z, z in self.zones)))",
            "zones are immutable",
            field_path=".zones",
        ),
        Rule(
            "self.replication != 'None' || self.topology in ['Ignored', 'Any']",
            "a single copy has no topology: replication None needs topology Ignored",
            field_path=".topology",
        ),
    )

    storage_pool: Annotated[
        ObjectRef, Meta(description="The ReplicatedStoragePool that gives the space."), immutable("is immutable")
    ]
    replication: Replication = Replication.CONSISTENCY_AND_AVAILABILITY
    topology: Annotated[
        Topology,
        rule(
            "self == oldSelf || (self in ['Ignored', 'Any'] && oldSelf in ['Ignored', 'Any'])", "topology is immutable"
        ),
    ] = Topology.IGNORED
    volume_access: Annotated[VolumeAccess, immutable("is immutable")] = VolumeAccess.PREFERABLY_LOCAL
    reclaim_policy: ReclaimPolicy = ReclaimPolicy.DELETE
    zones: Annotated[ZoneSet, Meta(description="Only nodes of these zones; empty: any zone.")] = ()
    configuration_rollout_strategy: ConfigurationRolloutStrategy = ConfigurationRolloutStrategy()
    eligible_nodes_policy: EligibleNodesPolicy = EligibleNodesPolicy()


class StorageClassPhase(StrEnum):
    """For people; no code reads it."""

    READY = "Ready"
    WAITING_FOR_STORAGE_POOL = "WaitingForStoragePool"
    INSUFFICIENT_NODES = "InsufficientNodes"
    INVALID_CONFIGURATION = "InvalidConfiguration"
    TERMINATING = "Terminating"


class StorageClassVolumes(Struct):
    """The volumes of this class, counted: pendingObservation + aligned + staleConfiguration = total."""

    total: Annotated[Count, Meta(description="Volumes of the class.")] = 0
    pending_observation: Annotated[
        Count, Meta(description="Those that have not been looked at since the class changed.")
    ] = 0
    aligned: Annotated[Count, Meta(description="Those whose configuration is that of the class.")] = 0
    stale_configuration: Annotated[Count, Meta(description="Those that have an older configuration.")] = 0
    in_conflict_with_eligible_nodes: Annotated[
        Count, Meta(description="Those with a replica where the pool does not allow one.")
    ] = 0


class ReplicatedStorageClassStatus(Struct):
    """Whether volumes of this class can be made, and what they get."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    phase: StorageClassPhase | None = None
    message: Message = ""
    configuration: Annotated[Configuration, Meta(description="What a volume made now copies.")] | None = None
    configuration_generation: Annotated[
        int, Meta(ge=0, description="The generation of this class that the configuration was made from.")
    ] = 0
    storage_pool_name: Annotated[str, Meta(description="The ReplicatedStoragePool of the configuration.")] = ""
    storage_pool_based_on_generation: Annotated[
        Count, Meta(description="The generation of the pool that this was judged by.")
    ] = 0
    storage_pool_eligible_nodes_revision: Annotated[
        Count, Meta(description="The revision of the pool's eligible nodes that this was judged by.")
    ] = 0
    volumes: StorageClassVolumes = StorageClassVolumes()
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="Whether it can be used; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=STORAGE.name,
    version=STORAGE.version,
    plural="replicatedstorageclasses",
    short_names=("rsc",),
    categories=("quorate", "storage"),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Replication", ".spec.replication"),
        Column("Pool", ".spec.storagePool"),
        Column("Volumes", ".status.volumes.total", "integer"),
        Column("Topology", ".spec.topology", priority=1),
        Column("Access", ".spec.volumeAccess", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.storagePool",),
)
class ReplicatedStorageClass(Resource):
    """A kind of replicated volume: how many copies, spread how, from which pool, used from where."""

    spec: ReplicatedStorageClassSpec
    status: ReplicatedStorageClassStatus = ReplicatedStorageClassStatus()
