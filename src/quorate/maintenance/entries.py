"""What the ledger holds. Frozen, encoded as JSON; a new ledger is a new value.

``order`` is the number in an id: it is what first come, first served goes by.
"""

from __future__ import annotations

from quorate.api.maintenance.action import AvailabilityMode, Marker, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_ledger import LedgerCounters
from quorate.api.struct import Struct
from quorate.maintenance.messages import Action


class PermissionEntry(Struct):
    """A permission in force: it locks what its action names."""

    id: str
    order: int
    owner: str
    action: Action
    deadline: int
    granted_at: int
    #: What it was granted under; to last longer it is asked once more under the same.
    availability_mode: AvailabilityMode = AvailabilityMode.MAX_AVAILABILITY
    tenant_policy: TenantPolicy = TenantPolicy.DEFAULT
    request_id: str = ""
    reason: str = ""
    #: What it spoils, where it was only granted by force.
    cost: str = ""
    #: Of the Kubernetes object that asked, if one did.
    object_uid: str = ""
    #: Past its deadline and with nothing of it down it let go of its locks, for good: whatever goes down later is
    #: broken. It is only listed from then on.
    lapsed: bool = False
    #: Of the rolling restart that asked, if one did.
    run: str = ""


class RequestEntry(Struct):
    """A stored request: what is left of it. Its actions carry why they were refused last."""

    id: str
    order: int
    owner: str
    actions: tuple[Action, ...]
    partial_permission_allowed: bool
    reason: str
    duration: int | None
    tenant_policy: TenantPolicy
    availability_mode: AvailabilityMode
    priority: int
    stored_at: int
    #: When somebody last asked about it, and until when the last answer told them to wait: from the later of the two on
    #: it is silent, and one day stops blocking others. Neither is written for every question: see ``broker.renewal``.
    renewed_at: int
    last_deadline: int
    object_uid: str = ""
    run: str = ""


class NotificationEntry(Struct):
    """Announced work."""

    id: str
    order: int
    owner: str
    actions: tuple[Action, ...]
    time: int
    reason: str
    object_uid: str = ""


class TaskEntry(Struct):
    """A task of Wall-E and what it became."""

    id: str
    type: str
    issuer: str
    action: str
    hosts: tuple[str, ...]
    devices: tuple[str, ...]
    request_id: str
    permission_ids: tuple[str, ...]


class ServedEntry(Struct):
    """A Kubernetes object that has its answer for good: asking again gives nothing more, until it is deleted."""

    object_uid: str
    code: StatusCode
    reason: str = ""


class MarkerEntry(Struct):
    """A marker set by a person, or by the monitor; ``item`` is a device's name or ``node-<id>``."""

    item: str
    marker: Marker
    since: int
    #: Who; the monitor is ``quorate-monitor``.
    by: str


class Ledger(Struct):
    """Everything that was decided."""

    epoch: int = 0
    holder: str = ""
    #: Of this value: one more with every write. With the epoch it tells whose write is the one in the store.
    revision: int = 0
    time_high_water: int = 0
    counters: LedgerCounters = LedgerCounters()
    permissions: tuple[PermissionEntry, ...] = ()
    requests: tuple[RequestEntry, ...] = ()
    notifications: tuple[NotificationEntry, ...] = ()
    tasks: tuple[TaskEntry, ...] = ()
    served: tuple[ServedEntry, ...] = ()
    markers: tuple[MarkerEntry, ...] = ()
