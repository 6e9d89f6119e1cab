"""The broker's JSON as these commands read and write it: names as in its proto file, numbers also as text."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Message(msgspec.Struct, frozen=True, omit_defaults=True, rename="pascal"):
    """What goes over the wire."""


class Blocker(Message, frozen=True):
    """What stands in the way."""

    object: str = ""
    lock: str = ""
    id: str = ""
    owner: str = ""
    until: int = 0


class Issue(Message, frozen=True):
    """Why not."""

    type: str = ""
    message: str = ""
    blockers: tuple[Blocker, ...] = ()


class Action(Message, frozen=True):
    """One thing to do."""

    type: str = ""
    host: str = ""
    services: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    duration: int | None = None
    issue: Issue | None = None

    @property
    def subject(self) -> str:
        """What it is done to."""
        return " ".join((self.host, *self.services, *self.devices)).strip()


class Status(Message, frozen=True):
    """The answer in a word."""

    code: str = ""
    reason: str = ""


class PermissionRequest(Message, frozen=True):
    """May these be done?"""

    user: str
    actions: tuple[Action, ...]
    partial_permission_allowed: bool = False
    schedule: bool = False
    dry_run: bool = False
    reason: str = ""
    duration: int | None = None
    tenant_policy: str = "DEFAULT"
    availability_mode: str = "MODE_MAX_AVAILABILITY"
    priority: int = 0
    run: str = ""


class Permission(Message, frozen=True):
    """A permission."""

    id: str = ""
    action: Action = Action()
    deadline: int = 0
    #: Of the rolling restart that it was given to.
    run: str = ""
    cost: str = ""


class PermissionResponse(Message, frozen=True):
    """What is granted."""

    status: Status = Status()
    request_id: str = ""
    permissions: tuple[Permission, ...] = ()
    deadline: int = 0
    refused: tuple[Action, ...] = ()


class CheckRequest(Message, frozen=True):
    """May the rest be done now?"""

    user: str
    request_id: str
    dry_run: bool = False
    availability_mode: str | None = None


class Command(Message, frozen=True):
    """A command about stored requests, permissions or notifications."""

    user: str
    command: str
    request_id: str = ""
    permissions: tuple[str, ...] = ()
    notification_id: str = ""
    deadline: int | None = None
    dry_run: bool = False


class ScheduledRequest(Message, frozen=True):
    """A stored request."""

    request_id: str = ""
    owner: str = ""
    actions: tuple[Action, ...] = ()
    partial_permission_allowed: bool = False
    reason: str = ""
    availability_mode: str = ""
    priority: int = 0
    position: int = 0
    run: str = ""


class Requests(Message, frozen=True):
    """Stored requests."""

    status: Status = Status()
    requests: tuple[ScheduledRequest, ...] = ()


class Permissions(Message, frozen=True):
    """Permissions."""

    status: Status = Status()
    permissions: tuple[Permission, ...] = ()


class Announcement(Message, frozen=True):
    """Work that will happen."""

    user: str
    actions: tuple[Action, ...]
    time: int
    reason: str = ""


class Announced(Message, frozen=True):
    """Whether it was noted."""

    status: Status = Status()
    notification_id: str = ""


class StoredNotification(Message, frozen=True):
    """A notification."""

    notification_id: str = ""
    owner: str = ""
    actions: tuple[Action, ...] = ()
    time: int = 0
    reason: str = ""


class Notifications(Message, frozen=True):
    """Notifications."""

    status: Status = Status()
    notifications: tuple[StoredNotification, ...] = ()


class OnlyStatus(Message, frozen=True):
    """An answer with nothing but its status."""

    status: Status = Status()


class Device(Message, frozen=True):
    """A drive or a replica."""

    name: str = ""
    state: str = ""
    markers: tuple[str, ...] = ()
    title: str = ""


class Location(Message, frozen=True):
    """Where a node stands."""

    data_center: str = ""
    room: str = ""
    rack: str = ""


class Host(Message, frozen=True):
    """A node."""

    name: str = ""
    state: str = ""
    node_id: int = 0
    tenant: str = ""
    markers: tuple[str, ...] = ()
    location: Location = Location()
    devices: tuple[Device, ...] = ()


class Cluster(Message, frozen=True):
    """All nodes asked for."""

    hosts: tuple[Host, ...] = ()


class ClusterState(Message, frozen=True):
    """The cluster."""

    status: Status = Status()
    state: Cluster = Cluster()


class LogRecord(Message, frozen=True):
    """A record of the log."""

    timestamp: int = 0
    record_type: str = ""
    message: str = ""
    data: dict[str, Any] = {}


class Log(Message, frozen=True):
    """Records of the log."""

    status: Status = Status()
    log_records: tuple[LogRecord, ...] = ()


class PlanRequest(Message, frozen=True):
    """In how many rounds, or which may all stop now?"""

    user: str
    hosts: tuple[str, ...] = ()
    availability_mode: str = "MODE_MAX_AVAILABILITY"
    tenant_policy: str = "DEFAULT"
    duration: int | None = None


class Round(Message, frozen=True):
    """Hosts that go together."""

    hosts: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


class Plan(Message, frozen=True):
    """Rounds, how few there can be at all, and hosts that cannot go for now."""

    status: Status = Status()
    rounds: tuple[Round, ...] = ()
    lower_bound: int = 0
    lower_bound_reason: str = ""
    estimated_end: int = 0
    blocked: tuple[Action, ...] = ()


class OkToStop(Message, frozen=True):
    """Hosts that may all stop now, and how many there can be at most."""

    status: Status = Status()
    hosts: tuple[str, ...] = ()
    upper_bound: int = 0
    refused: tuple[Action, ...] = ()


def decode(content: bytes, cls: type[T]) -> T:
    """An answer; numbers of 64 bits come as text."""
    return msgspec.json.decode(content, type=cls, strict=False)


def encode(message: Message) -> bytes:
    """A question."""
    return msgspec.json.encode(message)
