"""Between the service layer's words and those of objects: the same, with whole microseconds instead of durations."""

from __future__ import annotations

from quorate.api.duration import Duration
from quorate.api.maintenance.action import Action as ActionSpec
from quorate.api.maintenance.action import ActionType
from quorate.api.maintenance.notification import NotificationSpec
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.maintenance.messages import Action, NotificationRequest, PermissionRequest
from quorate.maintenance.moments import from_datetime

_SECOND = 1_000_000


def asked_by(spec: PermissionRequestSpec) -> PermissionRequest:
    """What a PermissionRequest object asks."""
    return PermissionRequest(
        user=spec.user,
        actions=tuple(_action(action) for action in spec.actions),
        partial_permission_allowed=spec.partial_permission_allowed,
        schedule=spec.schedule,
        dry_run=spec.dry_run,
        reason=spec.reason,
        duration=spec.duration.microseconds if spec.duration is not None else None,
        tenant_policy=spec.tenant_policy,
        availability_mode=spec.availability_mode,
        priority=spec.priority,
    )


def told_by(spec: NotificationSpec) -> NotificationRequest:
    """What a Notification object tells."""
    actions = tuple(_action(action) for action in spec.actions)
    return NotificationRequest(user=spec.user, actions=actions, time=from_datetime(spec.time), reason=spec.reason)


def shown(action: Action) -> ActionSpec:
    """An action in an object. One on a tenant's hosts has been made one on each of them before."""
    return ActionSpec(
        type=action.type or ActionType.SHUTDOWN_HOST,
        host=action.host,
        services=action.services,
        devices=action.devices,
        duration=span(action.duration) if action.duration is not None else None,
    )


def span(microseconds: int) -> Duration:
    """In the largest unit that is exact."""
    if microseconds % _SECOND:
        return Duration(f"{microseconds}us")
    return Duration(f"{microseconds // _SECOND}s")


def _action(action: ActionSpec) -> Action:
    return Action(
        type=action.type,
        host=action.host,
        services=action.services,
        devices=action.devices,
        duration=action.duration.microseconds if action.duration is not None else None,
    )
