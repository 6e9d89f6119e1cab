"""Trees to questions. What is not given gets the message's default; where presence means something, it stays None."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from quorate.api.maintenance.action import AvailabilityMode, Marker, TenantPolicy
from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance import messages
from quorate.server.broker.json_trees import Tree
from quorate.server.broker.translation.actions import UNKNOWN, actions_of
from quorate.server.broker.translation.config import config_of

E = TypeVar("E", bound=StrEnum)


def permission_request(tree: Tree) -> messages.PermissionRequest:
    """TPermissionRequest."""
    return messages.PermissionRequest(
        user=tree.get("User", ""),
        actions=actions_of(tree),
        partial_permission_allowed=tree.get("PartialPermissionAllowed", False),
        schedule=tree.get("Schedule", False),
        dry_run=tree.get("DryRun", False),
        reason=tree.get("Reason", ""),
        duration=tree.get("Duration"),
        tenant_policy=TenantPolicy(tree.get("TenantPolicy", TenantPolicy.DEFAULT)),
        availability_mode=AvailabilityMode(tree.get("AvailabilityMode", AvailabilityMode.MAX_AVAILABILITY)),
        priority=tree.get("Priority", 0),
        run=tree.get("Run", ""),
    )


def check_request(tree: Tree) -> messages.CheckRequest:
    """TCheckRequest: without a mode, the stored one holds."""
    mode = tree.get("AvailabilityMode")
    return messages.CheckRequest(
        user=tree.get("User", ""),
        request_id=tree.get("RequestId", ""),
        dry_run=tree.get("DryRun", False),
        availability_mode=None if mode is None else AvailabilityMode(mode),
    )


def manage_request(tree: Tree) -> messages.ManageRequest:
    """TManageRequestRequest."""
    return messages.ManageRequest(
        command=_known(messages.RequestCommand, tree.get("Command", UNKNOWN)),
        user=tree.get("User", ""),
        request_id=tree.get("RequestId", ""),
        dry_run=tree.get("DryRun", False),
    )


def manage_permission(tree: Tree) -> messages.ManagePermission:
    """TManagePermissionRequest."""
    return messages.ManagePermission(
        command=_known(messages.PermissionCommand, tree.get("Command", UNKNOWN)),
        user=tree.get("User", ""),
        permissions=tree.get("Permissions", ()),
        deadline=tree.get("Deadline"),
        dry_run=tree.get("DryRun", False),
    )


def notification(tree: Tree) -> messages.NotificationRequest:
    """TNotification."""
    return messages.NotificationRequest(
        user=tree.get("User", ""),
        actions=actions_of(tree),
        time=tree.get("Time", 0),
        reason=tree.get("Reason", ""),
    )


def manage_notification(tree: Tree) -> messages.ManageNotification:
    """TManageNotificationRequest."""
    return messages.ManageNotification(
        command=_known(messages.NotificationCommand, tree.get("Command", UNKNOWN)),
        user=tree.get("User", ""),
        notification_id=tree.get("NotificationId", ""),
        dry_run=tree.get("DryRun", False),
    )


def cluster_state(tree: Tree) -> messages.ClusterStateRequest:
    """TClusterStateRequest."""
    return messages.ClusterStateRequest(hosts=tree.get("Hosts", ()))


def set_marker(tree: Tree) -> messages.SetMarker:
    """TSetMarkerRequest."""
    return _marker(tree, reset=False)


def reset_marker(tree: Tree) -> messages.SetMarker:
    """TResetMarkerRequest."""
    return _marker(tree, reset=True)


def get_config(_: Tree) -> messages.GetConfig:
    """TGetConfigRequest."""
    return messages.GetConfig()


def set_config(tree: Tree) -> messages.SetConfig:
    """TSetConfigRequest."""
    return messages.SetConfig(config=config_of(tree.get("Config", {})))


def log_tail(tree: Tree) -> messages.LogTailRequest:
    """TGetLogTailRequest."""
    filtered = tree.get("LogFilter", {})
    return messages.LogTailRequest(
        record_type=_known(RecordType, filtered.get("RecordType", UNKNOWN)),
        min_timestamp=filtered.get("MinTimestamp", 0),
        max_timestamp=filtered.get("MaxTimestamp", 0),
        limit=filtered.get("Limit", 100),
        offset=filtered.get("Offset", 0),
        include_data=tree.get("IncludeData", False),
        text_format=messages.LogText(tree.get("TextFormat", messages.LogText.SHORT)),
    )


def accept_time(_: Tree) -> None:
    """TAcceptTimeRequest says nothing."""


def walle_create(tree: Tree) -> messages.WalleCreateTask:
    """TWalleCreateTaskRequest."""
    task = messages.WalleTask(
        id=tree.get("TaskId", ""),
        action=tree.get("Action", ""),
        type=tree.get("Type", ""),
        issuer=tree.get("Issuer", ""),
        hosts=tree.get("Hosts", ()),
        devices=tree.get("Devices", ()),
    )
    return messages.WalleCreateTask(task=task, dry_run=tree.get("DryRun", False))


def walle_list(_: Tree) -> messages.WalleListTasks:
    """TWalleListTasksRequest."""
    return messages.WalleListTasks()


def walle_check(tree: Tree) -> messages.WalleCheckTask:
    """TWalleCheckTaskRequest."""
    return messages.WalleCheckTask(task_id=tree.get("TaskId", ""))


def walle_remove(tree: Tree) -> messages.WalleRemoveTask:
    """TWalleRemoveTaskRequest."""
    return messages.WalleRemoveTask(task_id=tree.get("TaskId", ""))


def plan(tree: Tree) -> messages.PlanRequest:
    """TPlanRequest, TOkToStopRequest."""
    return messages.PlanRequest(
        user=tree.get("User", ""),
        hosts=tree.get("Hosts", ()),
        availability_mode=AvailabilityMode(tree.get("AvailabilityMode", AvailabilityMode.MAX_AVAILABILITY)),
        tenant_policy=TenantPolicy(tree.get("TenantPolicy", TenantPolicy.DEFAULT)),
        duration=tree.get("Duration"),
    )


def _marker(tree: Tree, *, reset: bool) -> messages.SetMarker:
    items = tree.get("Items", {})
    return messages.SetMarker(
        marker=_known(Marker, tree.get("Marker", "")),
        items=messages.MarkedItems(
            hosts=items.get("Hosts", ()),
            nodes=items.get("Nodes", ()),
            drives=items.get("PDisks", ()),
            vdisks=items.get("VDisks", ()),
        ),
        user_token=tree.get("UserToken", ""),
        reset=reset,
    )


def _known(words: type[E], word: str) -> E | None:
    """None for protobuf's zero: the broker says what it thinks of that."""
    return words(word) if word in words._value2member_map_ else None
