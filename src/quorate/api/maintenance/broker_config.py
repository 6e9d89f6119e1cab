"""BrokerConfig: the limits that the broker keeps, and how eager the disk monitor is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.duration import Duration
from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.maintenance.action import UserName
from quorate.api.meta import Condition, Resource
from quorate.api.names import BROKER
from quorate.api.scalars import Count, Percent
from quorate.api.struct import Rule, Struct, list_map


def _above_zero(field: str) -> Rule:
    """Without any time locks would hold nothing, and timers never rest."""
    return Rule(f"duration(self.{field}) > duration('0s')", f"{field} must be more than zero", field_path=f".{field}")


class Limits(Struct):
    """How many nodes may be away at once. One is always allowed."""

    disabled_nodes_limit: Annotated[Count, Meta(description="0: no limit.")] = 0
    disabled_nodes_ratio_limit: Annotated[Percent, Meta(description="Of all nodes; 0: no limit.")] = 13


class Quotas(Struct):
    """What one user may have at once. Admins, and users of Quorate itself, may have any number of requests."""

    requests: Annotated[Count, Meta(description="Stored requests, and as many notifications; 0: no limit.")] = 100
    actions: Annotated[
        Count, Meta(description="In stored requests, notifications and permissions together; 0: no limit.")
    ] = 4000
    duration: Annotated[
        Duration, Meta(description="The longest that anything may be away, also for admins; 0s: no limit.")
    ] = Duration("2160h")


class MonitorConfig(Struct):
    """When a disk that is away, or will be, is marked; and when marking many at once is held back."""

    RULES = (_above_zero("updateInterval"),)

    enable_auto_updates: Annotated[bool, Meta(description="Without it the monitor only watches.")] = False
    update_interval: Annotated[Duration, Meta(description="How often drives are looked at.")] = Duration("60s")
    ignored_downtime_gap: Annotated[Duration, Meta(description="Downtimes closer than this are one.")] = Duration("10m")
    broken_timeout: Annotated[Duration, Meta(description="Away for this long is broken.")] = Duration("2h")
    broken_prep_timeout: Annotated[Duration, Meta(description="Marked BROKEN when it begins within this.")] = Duration(
        "10m"
    )
    faulty_prep_timeout: Annotated[Duration, Meta(description="Marked FAULTY when it begins within this.")] = Duration(
        "1h"
    )
    default_state_limit: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Equal samples in a row before a failing disk is marked, or one that failed is trusted again.",
        ),
    ] = 60
    good_state_limit: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Good ones before a disk that was away with leave only is trusted again."),
    ] = 5
    guard_window: Annotated[Duration, Meta(description="Marks of this last while count for the guards.")] = Duration(
        "24h"
    )
    data_center_ratio: Annotated[Percent, Meta(description="The most of a data centre's disks to be marked.")] = 50
    room_ratio: Annotated[Percent, Meta(description="The most of a room's disks to be marked.")] = 70
    rack_ratio: Annotated[Percent, Meta(description="The most of a rack's disks to be marked.")] = 90
    faulty_disks_per_node: Annotated[Count, Meta(description="0: no limit.")] = 0


class LogLevel(StrEnum):
    """Whether records are kept."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"


class LogConfig(Struct):
    """What the broker's log keeps, and how long."""

    default_level: LogLevel = LogLevel.ENABLED
    ttl: Annotated[Duration, Meta(description="How long entries of the log are kept.")] = Duration("336h")


class CallerPriority(Struct):
    """Whose requests go before, or after, those of others that came earlier."""

    user: Annotated[UserName, Meta(description="Who asks.")]
    priority: Annotated[int, Meta(ge=-100, le=100, description="Of requests that give none (0); lower goes first.")] = 0


class BrokerConfigSpec(Struct):
    """How the broker decides."""

    RULES = (_above_zero("defaultRetryTime"), _above_zero("defaultPermissionDuration"))

    default_retry_time: Annotated[Duration, Meta(description="When to ask again after a refusal that may pass.")] = (
        Duration("300s")
    )
    default_permission_duration: Annotated[
        Duration, Meta(description="How long a permission lasts if the request does not say.")
    ] = Duration("300s")
    tenant_limits: Limits = Limits()
    cluster_limits: Limits = Limits()
    quotas: Quotas = Quotas()
    monitor_config: MonitorConfig = MonitorConfig()
    log_config: LogConfig = LogConfig()
    priorities: Annotated[
        tuple[CallerPriority, ...],
        Meta(max_length=100, description="By user; Wall-E is one. All others: first come, first served."),
        list_map("user"),
    ] = ()

    def priority_of(self, user: str) -> int:
        """Of requests that give none themselves."""
        return next((each.priority for each in self.priorities if each.user == user), 0)

    def without_time(self) -> tuple[str, ...]:
        """The fields that break these rules, for a configuration that no store has looked at."""
        found = {
            "defaultRetryTime": self.default_retry_time,
            "defaultPermissionDuration": self.default_permission_duration,
            "monitorConfig.updateInterval": self.monitor_config.update_interval,
        }
        return tuple(field for field, span in found.items() if not span.microseconds)


class BrokerConfigStatus(Struct):
    """Whether the broker uses it."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="Whether it is in force; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="brokerconfigs",
    categories=("quorate", "maintenance"),
    columns=(
        Column("Applied", '.status.conditions[?(@.type=="Applied")].status'),
        Column("Ratio", ".spec.clusterLimits.disabledNodesRatioLimit", "integer"),
        Column("Monitor", ".spec.monitorConfig.enableAutoUpdates", "boolean", priority=1),
    ),
)
class BrokerConfig(Resource):
    """The broker's settings. There is one, ``broker``."""

    RULES = (Rule(f"self.metadata.name == '{BROKER}'", f"there is one broker configuration, named {BROKER}"),)

    spec: BrokerConfigSpec = BrokerConfigSpec()
    status: BrokerConfigStatus = BrokerConfigStatus()
