"""What a storage class promises, and the copy of it that each volume lives by."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.duration import Duration
from quorate.api.scalars import ObjectRef, Zone
from quorate.api.struct import Struct, list_set

ZoneSet = Annotated[tuple[Zone, ...], Meta(max_length=10), list_set()]
NetworkName = Annotated[str, Meta(min_length=1, max_length=64)]
NetworkNames = Annotated[tuple[NetworkName, ...], Meta(max_length=16), list_set()]


class Replication(StrEnum):
    """A level of replication; what each promises is in the table of ``docs`` and of the placement package."""

    NONE = "None"
    AVAILABILITY = "Availability"
    CONSISTENCY = "Consistency"
    CONSISTENCY_AND_AVAILABILITY = "ConsistencyAndAvailability"


class Topology(StrEnum):
    """How replicas spread over zones."""

    ZONAL = "Zonal"
    TRANS_ZONAL = "TransZonal"
    IGNORED = "Ignored"
    #: The older spelling of Ignored (M7): accepted, and the same to every reader through ``ignores_zones``.
    ANY = "Any"

    @property
    def ignores_zones(self) -> bool:
        """Whether zones play no part."""
        return self in {Topology.IGNORED, Topology.ANY}


class VolumeAccess(StrEnum):
    """From where a volume may be used."""

    LOCAL = "Local"
    EVENTUALLY_LOCAL = "EventuallyLocal"
    PREFERABLY_LOCAL = "PreferablyLocal"
    ANY = "Any"


class EligibleNodesPolicy(Struct):
    """What happens to a node's eligibility, and to its replicas, when it is not ready."""

    not_ready_grace_period: (
        Annotated[
            Duration,
            Meta(description="How long a node may be NotReady before it counts as lost; absent: ClusterConfig's."),
        ]
        | None
    ) = None
    remove_lost_replica: Annotated[
        bool,
        Meta(
            description="Whether a lost replica is removed once its replacement is in sync. With false it is kept,"
            " and the volume is not Resilient until a person decides."
        ),
    ] = True


class Configuration(Struct):
    """The promise of a storage class, resolved: everything that placement and formation need to know."""

    replicated_storage_pool_name: Annotated[
        ObjectRef, Meta(description="The ReplicatedStoragePool whose disks are used.")
    ]
    replication: Replication
    topology: Topology
    volume_access: VolumeAccess
    failures_to_tolerate: Annotated[
        int, Meta(ge=0, le=2, description="Member losses that the volume survives with I/O running (FTT).")
    ]
    guaranteed_minimum_data_redundancy: Annotated[
        int, Meta(ge=0, le=2, description="Copies of every acknowledged write beyond the one that is needed (GMDR).")
    ]
    zones: Annotated[ZoneSet, Meta(description="The zones that copies may be in; empty: all of the pool's.")] = ()
