"""The broker's vocabulary: what may be asked, what is answered, and why not.

Values are the names of the broker's protobuf enumerations, so that one word means one thing on every interface.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from quorate.api.duration import Duration
from quorate.api.scalars import Message, Word
from quorate.api.struct import Struct

#: The most actions in one request; beyond, a clear refusal.
MAX_ACTIONS = 2000

UserName = Annotated[str, Meta(min_length=1, max_length=128)]
#: Such as ``alice-r-17``.
BrokerId = Annotated[str, Meta(min_length=1, max_length=160)]
Host = Annotated[str, Meta(max_length=253, description="A host name, or a node id in decimal.")]


class ActionType(StrEnum):
    """What somebody wants to do. Those that the broker does not support are answered with ERROR."""

    START_SERVICES = "START_SERVICES"
    RESTART_SERVICES = "RESTART_SERVICES"
    STOP_SERVICES = "STOP_SERVICES"
    ADD_HOST = "ADD_HOST"
    SHUTDOWN_HOST = "SHUTDOWN_HOST"
    DECOMMISSION_HOST = "DECOMMISSION_HOST"
    ADD_DEVICES = "ADD_DEVICES"
    REPLACE_DEVICES = "REPLACE_DEVICES"
    REMOVE_DEVICES = "REMOVE_DEVICES"


class TenantPolicy(StrEnum):
    """Whether a tenant's limits count."""

    NONE = "NONE"
    DEFAULT = "DEFAULT"


class AvailabilityMode(StrEnum):
    """How much of the cluster's redundancy may be spent."""

    MAX_AVAILABILITY = "MODE_MAX_AVAILABILITY"
    KEEP_AVAILABLE = "MODE_KEEP_AVAILABLE"
    FORCE_RESTART = "MODE_FORCE_RESTART"


class StatusCode(StrEnum):
    """The broker's answer."""

    OK = "OK"
    ALLOW = "ALLOW"
    ALLOW_PARTIAL = "ALLOW_PARTIAL"
    DISALLOW = "DISALLOW"
    DISALLOW_TEMP = "DISALLOW_TEMP"
    WRONG_REQUEST = "WRONG_REQUEST"
    ERROR = "ERROR"
    ERROR_TEMP = "ERROR_TEMP"
    UNAUTHORIZED = "UNAUTHORIZED"
    NO_SUCH_HOST = "NO_SUCH_HOST"
    NO_SUCH_DEVICE = "NO_SUCH_DEVICE"
    NO_SUCH_SERVICE = "NO_SUCH_SERVICE"


class IssueType(StrEnum):
    """Which rule refused."""

    GENERIC = "GENERIC"
    TOO_MANY_UNAVAILABLE_VDISKS = "TOO_MANY_UNAVAILABLE_VDISKS"
    TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS = "TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS"
    DISABLED_NODES_LIMIT_REACHED = "DISABLED_NODES_LIMIT_REACHED"
    TENANT_DISABLED_NODES_LIMIT_REACHED = "TENANT_DISABLED_NODES_LIMIT_REACHED"


class LockKind(StrEnum):
    """What holds an object."""

    PERMISSION = "Permission"
    NOTIFICATION = "Notification"
    SCHEDULED_REQUEST = "ScheduledRequest"
    #: An earlier action of the same request.
    TEMPORARY = "Temporary"
    #: A change of a volume's members that is not confirmed yet.
    TRANSITION = "Transition"


class HostState(StrEnum):
    """Whether a host, a device or a service is up."""

    UNKNOWN = "UNKNOWN"
    UP = "UP"
    RESTART = "RESTART"
    DOWN = "DOWN"


class Marker(StrEnum):
    """What a person, or the disk monitor, says of a disk."""

    DISK_BROKEN = "MARKER_DISK_BROKEN"
    DISK_FAULTY = "MARKER_DISK_FAULTY"
    DISK_ACTIVE = "MARKER_DISK_ACTIVE"
    DISK_INACTIVE = "MARKER_DISK_INACTIVE"


class Action(Struct):
    """One thing to do with a host, its services or its devices."""

    type: ActionType
    host: Host = ""
    services: Annotated[
        tuple[Word, ...], Meta(max_length=8, description="The services of the host that it is about.")
    ] = ()
    devices: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...],
        Meta(max_length=64, description="Such as pdisk-1-2 or vdisk-0-1-0-0-0."),
    ] = ()
    duration: Annotated[Duration, Meta(description="How long it will be away.")] | None = None


class Blocker(Struct):
    """What stands in the way, who holds it, and until when."""

    object: Annotated[str, Meta(max_length=253, description="A host, a device, a replica or a volume.")]
    lock: LockKind | None = None
    id: Annotated[str, Meta(max_length=160, description="Of the permission, request or notification.")] = ""
    owner: Annotated[str, Meta(max_length=128, description="Whose it is.")] = ""
    until: Annotated[datetime, Meta(description="Until when it stands in the way, as far as is known.")] | None = None


class Issue(Struct):
    """Why an action is refused."""

    type: IssueType = IssueType.GENERIC
    message: Message = ""
    blockers: Annotated[tuple[Blocker, ...], Meta(max_length=16, description="Who or what stands in the way.")] = ()
