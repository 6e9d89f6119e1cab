"""Notification: work that will happen whether the broker likes it or not."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.maintenance.action import MAX_ACTIONS, Action, UserName
from quorate.api.meta import Condition, Resource
from quorate.api.scalars import Count, Message
from quorate.api.struct import Rule, Struct, immutable, list_map


class NotificationSpec(Struct):
    """What happens, and when. Fixed: other work is another notification."""

    RULES = (
        Rule(
            "self.actions.all(a, has(a.duration) && duration(a.duration) > duration('0s'))",
            "every action of a notification needs a duration of more than zero",
            field_path=".actions",
        ),
    )

    user: Annotated[UserName, Meta(description="Must be the caller."), immutable("is immutable")]
    actions: Annotated[
        tuple[Action, ...],
        Meta(min_length=1, max_length=MAX_ACTIONS, description="What will be done, to what, and for how long."),
        immutable("is immutable"),
    ]
    time: Annotated[datetime, Meta(description="When it begins."), immutable("is immutable")]
    reason: Message = ""


class NotificationStatus(Struct):
    """Whether the broker took note."""

    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    id: Annotated[str, Meta(max_length=160, description="<user>-n-<N>.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        list_map("type"),
        Meta(description="Whether it was taken in; docs/conditions.md has every one."),
    ] = ()


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="notifications",
    categories=("quorate", "maintenance"),
    columns=(
        Column("User", ".spec.user"),
        Column("Time", ".spec.time"),
        Column("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
        Column("Reason", ".spec.reason", priority=1),
    ),
    selectable_fields=(".spec.user",),
)
class Notification(Resource):
    """Planned work that is not asked for but told."""

    spec: NotificationSpec
    status: NotificationStatus = NotificationStatus()
