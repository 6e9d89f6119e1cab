"""WalleTask: a task of the Wall-E automation, and the request it became."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.maintenance.action import BrokerId, Host
from quorate.api.meta import Resource
from quorate.api.scalars import Message
from quorate.api.struct import Struct


class WalleTaskSpec(Struct):
    """What Wall-E asked for. A projection of the broker's ledger."""

    task_id: Annotated[str, Meta(min_length=1, max_length=253, description="The task, as Wall-E names it.")]
    type: Annotated[str, Meta(max_length=64, description="What Wall-E says that it is.")] = ""
    issuer: Annotated[str, Meta(max_length=128, description="Who had Wall-E make it.")] = ""
    action: Annotated[str, Meta(max_length=64, description="Such as reboot or change-disk.")]
    hosts: Annotated[tuple[Host, ...], Meta(max_length=1000, description="The hosts that it is about.")] = ()
    devices: Annotated[tuple[str, ...], Meta(max_length=64, description="The drives that it is about.")] = ()


class WalleTaskState(StrEnum):
    """As Wall-E's interface spells it."""

    OK = "ok"
    IN_PROCESS = "in-process"
    REJECTED = "rejected"


class WalleTaskStatus(Struct):
    """Where it stands."""

    status: WalleTaskState | None = None
    message: Message = ""
    request_id: Annotated[str, Meta(max_length=160, description="The request that was made for it.")] = ""
    permission_ids: Annotated[
        tuple[BrokerId, ...], Meta(max_length=1000, description="The permissions that it has.")
    ] = ()


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="walletasks",
    categories=("quorate", "maintenance"),
    columns=(
        Column("Task", ".spec.taskId"),
        Column("Action", ".spec.action"),
        Column("Status", ".status.status"),
        Column("Issuer", ".spec.issuer", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
)
class WalleTask(Resource):
    """A task of Wall-E."""

    spec: WalleTaskSpec
    status: WalleTaskStatus = WalleTaskStatus()
