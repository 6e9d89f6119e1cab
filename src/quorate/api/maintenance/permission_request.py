"""PermissionRequest: somebody asks whether hosts or drives may be taken down."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from quorate.api.duration import Duration
from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.maintenance.action import (
    MAX_ACTIONS,
    Action,
    AvailabilityMode,
    BrokerId,
    Issue,
    StatusCode,
    TenantPolicy,
    UserName,
)
from quorate.api.meta import Condition, Resource
from quorate.api.scalars import Count, Message
from quorate.api.struct import Struct, immutable, immutable_optional, list_map


class PermissionRequestSpec(Struct):
    """What is asked. Fixed, but for ``availabilityMode``: changing it is asking again with another."""

    RULES = tuple(
        immutable_optional(name)
        for name in ("partialPermissionAllowed", "schedule", "dryRun", "reason", "duration", "tenantPolicy", "priority")
    )

    user: Annotated[UserName, Meta(description="Must be the caller."), immutable("is immutable")]
    actions: Annotated[
        tuple[Action, ...],
        Meta(min_length=1, max_length=MAX_ACTIONS, description="In the order they are tried."),
        immutable("is immutable"),
    ]
    partial_permission_allowed: Annotated[bool, Meta(description="Some of the actions are better than none.")] = False
    schedule: Annotated[bool, Meta(description="Keep what cannot be granted now, and its place in the queue.")] = False
    dry_run: Annotated[bool, Meta(description="Answer, and change nothing.")] = False
    reason: Message = ""
    duration: Annotated[Duration, Meta(description="For actions without their own.")] | None = None
    tenant_policy: TenantPolicy = TenantPolicy.DEFAULT
    availability_mode: AvailabilityMode = AvailabilityMode.MAX_AVAILABILITY
    priority: Annotated[int, Meta(ge=-100, le=100, description="Lower goes first; within one, first come.")] = 0


class RefusedAction(Struct):
    """An action that is not granted yet, and why."""

    action: Action
    issue: Issue = Issue()


class PermissionRequestStatus(Struct):
    """The broker's last answer."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    id: Annotated[str, Meta(max_length=160, description="Only of a request that is kept: <user>-r-<N>.")] = ""
    code: StatusCode | None = None
    message: Message = ""
    deadline: Annotated[datetime, Meta(description="The earliest moment at which the answer can change.")] | None = None
    position: Annotated[int, Meta(ge=1, description="In the queue.")] | None = None
    permissions: Annotated[
        tuple[BrokerId, ...], Meta(max_length=MAX_ACTIONS, description="The Permissions that were given.")
    ] = ()
    refused: Annotated[
        tuple[RefusedAction, ...],
        Meta(
            max_length=MAX_ACTIONS, description="The actions that were not allowed, each with what stands in the way."
        ),
    ] = ()
    last_checked_at: (
        Annotated[datetime, Meta(description="A request that nobody asks about stops blocking.")] | None
    ) = None
    conditions: Annotated[
        tuple[Condition, ...], list_map("type"), Meta(description="How far it is; docs/conditions.md has every one.")
    ] = ()


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="permissionrequests",
    short_names=("pr",),
    categories=("quorate", "maintenance"),
    columns=(
        Column("User", ".spec.user"),
        Column("Code", ".status.code"),
        Column("Position", ".status.position", "integer"),
        Column("Deadline", ".status.deadline"),
        Column("Mode", ".spec.availabilityMode", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.user",),
)
class PermissionRequest(Resource):
    """A request to take hosts, services or drives down for a while."""

    spec: PermissionRequestSpec
    status: PermissionRequestStatus = PermissionRequestStatus()
