"""Permission: what the broker has granted, while it lasts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.maintenance.action import Action, HostState, UserName
from quorate.api.meta import Resource
from quorate.api.scalars import Count, Message
from quorate.api.struct import Struct


class PermissionSpec(Struct):
    """What was granted to whom. A projection of the broker's ledger: changing it here changes nothing."""

    user: Annotated[UserName, Meta(description="Whose it is: who asked for it.")]
    action: Action
    request_id: Annotated[str, Meta(max_length=160, description="The request it came from, if that is kept.")] = ""
    reason: Message = ""


class HostInfo(Struct):
    """A node of the host that the permission is for."""

    name: Annotated[str, Meta(description="The node's name.")]
    state: HostState = HostState.UNKNOWN
    node_id: Annotated[Count, Meta(description="The number by which the broker knows the node.")] = 0
    interconnect_port: Annotated[Count, Meta(description="A port of the host; 0: it has none.")] = 0


class PermissionStatus(Struct):
    """How long it lasts."""

    id: Annotated[str, Meta(max_length=160, description="<user>-p-<N>.")] = ""
    deadline: Annotated[datetime, Meta(description="To go down later is a breakage; absent: never ends.")] | None = None
    hosts: Annotated[
        tuple[HostInfo, ...],
        Meta(max_length=64, description="The hosts that it is about, as they were when it was given."),
    ] = ()
    cost: Annotated[Message, Meta(description="What it spoils, where it was only granted by force.")] = ""
    held_down: Annotated[
        bool, Meta(description="The deadline is over and the host is down: it keeps its lock until it is up.")
    ] = False


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="permissions",
    categories=("quorate", "maintenance"),
    columns=(
        Column("User", ".spec.user"),
        Column("Action", ".spec.action.type"),
        Column("Host", ".spec.action.host"),
        Column("Deadline", ".status.deadline"),
        Column("Id", ".status.id", priority=1),
        Column("Reason", ".spec.reason", priority=1),
    ),
    selectable_fields=(".spec.user",),
)
class Permission(Resource):
    """A permission that is in force."""

    spec: PermissionSpec
    status: PermissionStatus = PermissionStatus()
