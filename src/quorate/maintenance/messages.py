"""What the service layer is asked, and what it answers. Adapters translate; none of their own types comes in here.

Names follow the seed's messages without their T. Every question carries the caller who was authenticated; ``user`` is
whom the message names, empty for the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import field

from quorate.api.maintenance.action import (
    ActionType,
    AvailabilityMode,
    HostState,
    Issue,
    Marker,
    StatusCode,
    TenantPolicy,
)
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.log_record import RecordType
from quorate.api.struct import Struct


class Caller(Struct):
    """Who asks, as authenticated. ``anyone``: the interface is open, and the message's user is believed."""

    name: str = ""
    admin: bool = False
    anyone: bool = False


class Action(Struct):
    """One thing to do. ``duration`` is microseconds; None: not given."""

    type: ActionType | None = None
    host: str = ""
    services: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    duration: int | None = None
    #: Instead of a host: all hosts of a tenant's nodes.
    tenant: str = ""
    #: Why it is not granted yet. Only in answers.
    issue: Issue | None = None


class Status(Struct):
    """The answer in a word, and why."""

    code: StatusCode
    reason: str = ""


class PermissionRequest(Struct):
    """May these be done?"""

    user: str = ""
    actions: tuple[Action, ...] = ()
    partial_permission_allowed: bool = False
    schedule: bool = False
    dry_run: bool = False
    reason: str = ""
    duration: int | None = None
    tenant_policy: TenantPolicy = TenantPolicy.DEFAULT
    availability_mode: AvailabilityMode = AvailabilityMode.MAX_AVAILABILITY
    priority: int = 0
    #: Of a rolling restart, its name: no other run gets hosts that it still has to do with.
    run: str = ""


class CheckRequest(Struct):
    """May the rest of a stored request be done now?"""

    user: str = ""
    request_id: str = ""
    dry_run: bool = False
    #: None: the stored one.
    availability_mode: AvailabilityMode | None = None


class HostInfo(Struct):
    """A node of a permission's host."""

    name: str
    state: HostState
    node_id: int
    interconnect_port: int = 0


class Permission(Struct):
    """A permission; in a dry run without an id."""

    id: str
    action: Action
    deadline: int
    hosts: tuple[HostInfo, ...] = ()
    run: str = ""
    #: What it spoils, where only force allows it.
    cost: str = ""


class PermissionResponse(Struct):
    """What is granted. ``deadline``: when to ask again; ``refused``: the actions that are not, each with its issue."""

    status: Status
    request_id: str = ""
    permissions: tuple[Permission, ...] = ()
    deadline: int | None = None
    refused: tuple[Action, ...] = ()


class RequestCommand(StrEnum):
    """What to do with stored requests."""

    LIST = "LIST"
    GET = "GET"
    REJECT = "REJECT"


class ManageRequest(Struct):
    """List, get or withdraw stored requests."""

    command: RequestCommand | None
    user: str = ""
    request_id: str = ""
    dry_run: bool = False


class ScheduledRequest(Struct):
    """A stored request: the actions that are not granted yet."""

    request_id: str
    owner: str
    actions: tuple[Action, ...]
    partial_permission_allowed: bool
    reason: str
    availability_mode: AvailabilityMode
    priority: int = 0
    #: In the queue, from 1.
    position: int = 0
    run: str = ""


class ManageRequestResponse(Struct):
    """The requests asked for."""

    status: Status
    requests: tuple[ScheduledRequest, ...] = ()


class PermissionCommand(StrEnum):
    """What to do with permissions."""

    LIST = "LIST"
    GET = "GET"
    DONE = "DONE"
    EXTEND = "EXTEND"
    REJECT = "REJECT"


class ManagePermission(Struct):
    """List, get, end, extend or give back permissions."""

    command: PermissionCommand | None
    user: str = ""
    permissions: tuple[str, ...] = ()
    deadline: int | None = None
    dry_run: bool = False


class ManagePermissionResponse(Struct):
    """The permissions asked for, or changed; of an EXTEND that is refused those that stand as they were, and why."""

    status: Status
    permissions: tuple[Permission, ...] = ()


class NotificationRequest(Struct):
    """This will happen."""

    user: str = ""
    actions: tuple[Action, ...] = ()
    #: When it begins.
    time: int = 0
    reason: str = ""


class NotificationResponse(Struct):
    """Noted, or why not."""

    status: Status
    notification_id: str = ""


class NotificationCommand(StrEnum):
    """What to do with notifications."""

    LIST = "LIST"
    GET = "GET"
    REJECT = "REJECT"


class ManageNotification(Struct):
    """List, get or withdraw notifications."""

    command: NotificationCommand | None
    user: str = ""
    notification_id: str = ""
    dry_run: bool = False


class StoredNotification(Struct):
    """A notification as it is kept."""

    notification_id: str
    owner: str
    actions: tuple[Action, ...]
    time: int
    reason: str


class ManageNotificationResponse(Struct):
    """The notifications asked for."""

    status: Status
    notifications: tuple[StoredNotification, ...] = ()


class MarkedItems(Struct):
    """What a marker is for."""

    hosts: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    #: By their names, pdisk-… and vdisk-….
    drives: tuple[str, ...] = ()
    vdisks: tuple[str, ...] = ()


class SetMarker(Struct):
    """Mark (or, with ``reset``, unmark) items."""

    marker: Marker | None
    items: MarkedItems = MarkedItems()
    user_token: str = ""
    reset: bool = False


class MarkerResponse(Struct):
    """Marked, or why not."""

    status: Status


class ClusterStateRequest(Struct):
    """How is the cluster? Empty: all hosts."""

    hosts: tuple[str, ...] = ()


class ServiceState(Struct):
    """A service of a node."""

    name: str
    state: HostState
    timestamp: int = 0


class DeviceState(Struct):
    """A drive or a replica."""

    name: str
    state: HostState
    timestamp: int = 0
    markers: tuple[Marker, ...] = ()
    #: What people call it, if that is something else.
    title: str = ""


class NodeState(Struct):
    """A node: one entry each, also where several share a host."""

    name: str
    state: HostState
    node_id: int
    timestamp: int = 0
    interconnect_port: int = 0
    start_time_seconds: int = 0
    tenant: str = ""
    data_center: str = ""
    room: str = ""
    rack: str = ""
    markers: tuple[Marker, ...] = ()
    services: tuple[ServiceState, ...] = ()
    devices: tuple[DeviceState, ...] = ()


class ClusterStateResponse(Struct):
    """The cluster."""

    status: Status
    hosts: tuple[NodeState, ...] = ()
    timestamp: int = 0


class GetConfig(Struct):
    """Which settings are in force?"""


class ConfigResponse(Struct):
    """The settings, or why they could not be set."""

    status: Status
    config: BrokerConfigSpec = BrokerConfigSpec()


class SetConfig(Struct):
    """Use these instead, all of them: what is not given goes back to its default."""

    config: BrokerConfigSpec = BrokerConfigSpec()


class WalleTask(Struct):
    """A task of Wall-E as it asks, and as it is told."""

    id: str
    action: str = ""
    type: str = ""
    issuer: str = ""
    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


class WalleCreateTask(Struct):
    """May this task go on?"""

    task: WalleTask
    dry_run: bool = False


class WalleListTasks(Struct):
    """Which tasks are there?"""


class WalleCheckTask(Struct):
    """May it go on now?"""

    task_id: str


class WalleRemoveTask(Struct):
    """It is over: its request and its permissions go."""

    task_id: str


class WalleTaskAnswer(Struct):
    """Where a task stands, in the broker's codes; the adapter has Wall-E's words."""

    status: Status
    task: WalleTask


class WalleTasksResponse(Struct):
    """All tasks, each with where it stands: ALLOW, or DISALLOW_TEMP while it waits."""

    status: Status
    tasks: tuple[WalleTaskAnswer, ...] = ()


class LogText(StrEnum):
    """How much text a log record's message has."""

    NONE = "NONE"
    SHORT = "SHORT"
    DETAILED = "DETAILED"


class LogTailRequest(Struct):
    """The newest records that fit, oldest first."""

    record_type: RecordType | None = None
    min_timestamp: int = 0
    #: 0: no bound.
    max_timestamp: int = 0
    limit: int = 100
    offset: int = 0
    include_data: bool = False
    text_format: LogText = LogText.SHORT


class LogLine(Struct):
    """A record of the log, as it is told."""

    timestamp: int
    record_type: RecordType
    message: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


class LogTailResponse(Struct):
    """The records asked for."""

    status: Status
    records: tuple[LogLine, ...] = ()


class ChangeKind(StrEnum):
    """What a watcher is told of."""

    REQUEST = "REQUEST"
    PERMISSION = "PERMISSION"
    NOTIFICATION = "NOTIFICATION"
    TASK = "TASK"
    MARKER = "MARKER"
    CONFIG = "CONFIG"


class ChangeVerb(StrEnum):
    """What happened to it."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    #: The stored request is as it was, but asking would now be answered otherwise.
    ANSWER = "ANSWER"
    ENDED = "ENDED"


class Change(Struct):
    """One thing that is not as it was. ``answer``: what CheckRequest would say now (with ANSWER)."""

    kind: ChangeKind
    verb: ChangeVerb
    #: Of the request, permission, notification or task; for a marker the item.
    id: str = ""
    owner: str = ""
    object_uid: str = ""
    answer: PermissionResponse | None = None
    #: The answer is the same, and only why is not.
    only_reasons: bool = False


class PlanRequest(Struct):
    """In how many rounds can these hosts be served; or which of them may all stop now? No hosts: all."""

    user: str = ""
    hosts: tuple[str, ...] = ()
    availability_mode: AvailabilityMode = AvailabilityMode.MAX_AVAILABILITY
    tenant_policy: TenantPolicy = TenantPolicy.DEFAULT
    #: How long each is away.
    duration: int | None = None


class Round(Struct):
    """Hosts that can be served together, and about when."""

    hosts: tuple[str, ...]
    start: int
    end: int


class PlanResponse(Struct):
    """Rounds, how few any plan needs, and the hosts that cannot go for now."""

    status: Status
    rounds: tuple[Round, ...] = ()
    lower_bound: int = 0
    lower_bound_reason: str = ""
    estimated_end: int | None = None
    blocked: tuple[Action, ...] = ()


class OkToStopResponse(Struct):
    """Hosts that may all stop now, how many could at most, and who may not even alone."""

    status: Status
    hosts: tuple[str, ...] = ()
    upper_bound: int = 0
    refused: tuple[Action, ...] = ()
