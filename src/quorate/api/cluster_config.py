"""ClusterConfig: the values that controllers and agents must agree on, in one object."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.duration import Duration
from quorate.api.groups import QUORATE
from quorate.api.kind import Column, kind
from quorate.api.meta import Condition, Resource
from quorate.api.names import CLUSTER
from quorate.api.scalars import MAX_MEMBERS, Count, Percent, Port
from quorate.api.struct import Rule, Struct, list_map


class SharedSecrets(StrEnum):
    """Where the secrets are kept that members of a volume authenticate to one another with."""

    SECRET = "Secret"  # noqa: S105 - the name of a kind
    STATUS = "Status"


class DrbdSettings(Struct):
    """What DRBD resources are made with."""

    RULES = (Rule("self.minPort <= self.maxPort", "minPort must not be above maxPort", field_path=".minPort"),)

    min_port: Annotated[Port, Meta(description="Agents choose ports from here.")] = 7000
    max_port: Port = 7999
    shared_secrets: Annotated[
        SharedSecrets,
        Meta(
            description="Secret: in a Secret per volume that its members' agents may read; sharedSecret in status holds"
            " its name. Status: there in plain. Volumes that are there are carried over, either way."
        ),
    ] = SharedSecrets.SECRET
    max_peers: Annotated[int, Meta(ge=1, le=MAX_MEMBERS - 1, description="What metadata is laid out for; fixed.")] = (
        MAX_MEMBERS - 1
    )


class GracePeriods(Struct):
    """How long something may be away before it counts as lost."""

    node_not_ready: Annotated[
        Duration, Meta(description="How long a node may be away before its replicas are replaced.")
    ] = Duration("10m")
    drive_missing: Annotated[Duration, Meta(description="How long a drive may be away before it counts as lost.")] = (
        Duration("5m")
    )


class AgentSettings(Struct):
    """How an agent shows that it lives. A report counts only while the Lease is fresh."""

    RULES = (
        Rule(
            "duration(self.renewInterval) < duration(self.leaseDuration)",
            "renewInterval must be below leaseDuration",
            field_path=".renewInterval",
        ),
    )

    lease_duration: Annotated[
        Duration,
        Meta(description="An agent that has not renewed its Lease for so long is silent: its word does not count."),
    ] = Duration("40s")
    renew_interval: Annotated[Duration, Meta(description="How often an agent renews its Lease.")] = Duration("10s")


class Timeouts(Struct):
    """How long a step may take before it is given up."""

    preconfigure: Annotated[Duration, Meta(description="Formation, phase 1; waiting for space does not count.")] = (
        Duration("30s")
    )
    establish_connectivity: Annotated[Duration, Meta(description="Formation, phase 2.")] = Duration("30s")
    bootstrap_data: Annotated[Duration, Meta(description="Formation, phase 3, beside the time to copy.")] = Duration(
        "60s"
    )
    bootstrap_bytes_per_second: Annotated[
        int, Meta(ge=1, description="The slowest copy that is still progress; 100 Mbit/s.")
    ] = 12_500_000
    command: Annotated[Duration, Meta(description="Silence of a command on a node.")] = Duration("10s")


class DrainLimits(Struct):
    """How many replicas may be on the move at once."""

    max_moves: Annotated[int, Meta(ge=1, le=1000, description="In the cluster.")] = 10
    max_moves_per_node: Annotated[int, Meta(ge=1, le=100, description="From one node, and as many to one.")] = 2
    max_moves_per_rack: Annotated[
        int, Meta(ge=1, le=1000, description="From one rack (label maintenance.quorate.io/rack), and as many to one.")
    ] = 4


class DiskSettings(Struct):
    """What holds for every disk."""

    low_water_percent: Annotated[
        Percent, Meta(description="Of capacity: with less than this free, a disk takes nothing new.")
    ] = 10
    replacements_join: Annotated[
        bool,
        Meta(
            description="A clean drive in the place of one that was removed joins the volume group that selected that"
            " one by its serial number."
        ),
    ] = True


class ClusterConfigSpec(Struct):
    """The values that both sides must agree on."""

    RULES = (
        # Not on the field: removing all of drbd would bring the default back.
        Rule(
            f"(has(self.drbd) ? self.drbd.maxPeers : {MAX_MEMBERS - 1})"
            f" == (has(oldSelf.drbd) ? oldSelf.drbd.maxPeers : {MAX_MEMBERS - 1})",
            "maxPeers is immutable: the size of metadata that is in use depends on it",
            field_path=".drbd",
        ),
    )

    drbd: DrbdSettings = DrbdSettings()
    grace_periods: GracePeriods = GracePeriods()
    agent: AgentSettings = AgentSettings()
    timeouts: Timeouts = Timeouts()
    drain: DrainLimits = DrainLimits()
    disks: DiskSettings = DiskSettings()
    resync_interval: Annotated[Duration, Meta(description="How often everything is looked at again.")] = Duration("20h")


class ClusterConfigStatus(Struct):
    """Whether the leader uses it."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="Whether it is in force; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=QUORATE.name,
    version=QUORATE.version,
    plural="clusterconfigs",
    categories=("quorate",),
    columns=(
        Column("Applied", '.status.conditions[?(@.type=="Applied")].status'),
        Column("MinPort", ".spec.drbd.minPort", "integer", priority=1),
        Column("MaxPort", ".spec.drbd.maxPort", "integer", priority=1),
    ),
)
class ClusterConfig(Resource):
    """The cluster's settings. There is one, ``cluster``."""

    RULES = (Rule(f"self.metadata.name == '{CLUSTER}'", f"there is one cluster configuration, named {CLUSTER}"),)

    spec: ClusterConfigSpec
    status: ClusterConfigStatus = ClusterConfigStatus()
