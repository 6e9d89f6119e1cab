"""How each entry of the ledger looks as an object. Pure: an entry, and what else is known, to an object."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from quorate.api.maintenance import Notification, Permission, PermissionRequest, WalleTask
from quorate.api.maintenance.action import ActionType, Issue, StatusCode
from quorate.api.maintenance.notification import NotificationSpec, NotificationStatus
from quorate.api.maintenance.permission import HostInfo, PermissionSpec, PermissionStatus
from quorate.api.maintenance.permission_request import (
    PermissionRequestSpec,
    PermissionRequestStatus,
    RefusedAction,
)
from quorate.api.maintenance.walle_task import WalleTaskSpec, WalleTaskState, WalleTaskStatus
from quorate.api.meta import ObjectMeta
from quorate.api.struct import replace
from quorate.maintenance.broker.answers import bare
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry, TaskEntry
from quorate.maintenance.live import words
from quorate.maintenance.messages import PermissionResponse
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import to_datetime

_ON_HOSTS: Final = (ActionType.RESTART_SERVICES, ActionType.SHUTDOWN_HOST)
#: What is later than any date is as good as the last one.
_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=0)
#: So many refusals are shown; all of them, each with its blockers, might be more than an object can hold.
REFUSED: Final = 200
#: What a message and a list of hosts have room for.
MESSAGE: Final = 1024
_HOSTS: Final = 64


def permission(entry: PermissionEntry, name: str, model: ClusterModel, *, held_down: bool) -> Permission:
    """A permission in force."""
    nodes = model.nodes_of(entry.action.host) if entry.action.type in _ON_HOSTS else ()
    hosts = tuple(
        # A number below zero is not one that anybody was told.
        HostInfo(name=node.host, state=node.state, node_id=max(node.id, 0), interconnect_port=node.interconnect_port)
        for node in nodes[:_HOSTS]
    )
    return Permission(
        metadata=ObjectMeta(name=name),
        spec=PermissionSpec(
            user=entry.owner, action=words.shown(entry.action), request_id=entry.request_id, reason=entry.reason
        ),
        status=PermissionStatus(
            id=entry.id, deadline=to_datetime(entry.deadline), hosts=hosts, cost=entry.cost, held_down=held_down
        ),
    )


def request(
    entry: RequestEntry,
    name: str,
    place: int,
    permissions: tuple[PermissionEntry, ...],
    *,
    now: PermissionResponse | None = None,
) -> PermissionRequest:
    """A stored request: what is left of it, and why. ``now``: what it would be answered, if that is known."""
    said = {bare(action): action.issue for action in now.refused} if now is not None else {}
    left = tuple(replace(action, issue=said.get(bare(action))) for action in entry.actions) if said else entry.actions
    reasons = [action.issue.message for action in left if action.issue is not None]
    return PermissionRequest(
        metadata=ObjectMeta(name=name),
        spec=PermissionRequestSpec(
            user=entry.owner,
            actions=tuple(words.shown(action) for action in entry.actions),
            partial_permission_allowed=entry.partial_permission_allowed,
            schedule=True,
            reason=entry.reason,
            duration=words.span(entry.duration) if entry.duration is not None else None,
            tenant_policy=entry.tenant_policy,
            availability_mode=entry.availability_mode,
            priority=entry.priority,
        ),
        status=PermissionRequestStatus(
            id=entry.id,
            code=StatusCode.ALLOW_PARTIAL if permissions else StatusCode.DISALLOW_TEMP,
            message=reasons[0][:MESSAGE] if reasons else "",
            deadline=to_datetime(entry.last_deadline) if entry.last_deadline else None,
            position=place,
            permissions=tuple(each.id for each in permissions),
            refused=tuple(
                RefusedAction(action=words.shown(action), issue=action.issue or Issue()) for action in left[:REFUSED]
            ),
        ),
    )


def notification(entry: NotificationEntry, name: str) -> Notification:
    """Announced work: what is still to come of it."""
    return Notification(
        metadata=ObjectMeta(name=name),
        spec=NotificationSpec(
            user=entry.owner,
            actions=tuple(words.shown(action) for action in entry.actions),
            time=to_datetime(entry.time) or _LAST,
            reason=entry.reason,
        ),
        status=NotificationStatus(id=entry.id),
    )


def task(entry: TaskEntry, name: str) -> WalleTask:
    """A task of Wall-E."""
    waiting = bool(entry.request_id)
    return WalleTask(
        metadata=ObjectMeta(name=name),
        spec=WalleTaskSpec(
            task_id=entry.id,
            type=entry.type,
            issuer=entry.issuer,
            action=entry.action,
            hosts=entry.hosts,
            devices=entry.devices,
        ),
        status=WalleTaskStatus(
            status=WalleTaskState.IN_PROCESS if waiting else WalleTaskState.OK,
            request_id=entry.request_id,
            permission_ids=entry.permission_ids,
        ),
    )
