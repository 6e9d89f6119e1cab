"""Answers to trees. What has nothing to say is left out, as protobuf's JSON does with fields that are not given."""

from __future__ import annotations

from typing import Any, Final

from quorate.api.maintenance.action import Marker, StatusCode
from quorate.maintenance import messages
from quorate.server.broker.json_trees import Tree
from quorate.server.broker.translation.actions import action_tree, filled, permission_tree, status_tree
from quorate.server.broker.translation.config import config_tree

#: Wall-E's words for the broker's codes. Any other code is an error of the call, not a state of the task.
WALLE_WORDS: Final = {
    StatusCode.OK: "ok",
    StatusCode.ALLOW: "ok",
    StatusCode.DISALLOW_TEMP: "in-process",
    StatusCode.DISALLOW: "rejected",
}


def permission_response(answer: messages.PermissionResponse) -> Tree:
    """TPermissionResponse."""
    return _answered(
        answer.status,
        RequestId=answer.request_id,
        Permissions=[permission_tree(permission) for permission in answer.permissions],
        Deadline=answer.deadline,
        Refused=[action_tree(action) for action in answer.refused],
    )


def manage_request_response(answer: messages.ManageRequestResponse) -> Tree:
    """TManageRequestResponse."""
    return _answered(answer.status, Requests=[_scheduled_tree(request) for request in answer.requests])


def _scheduled_tree(request: messages.ScheduledRequest) -> Tree:
    tree: Tree = {
        "RequestId": request.request_id,
        "Owner": request.owner,
        "Actions": [action_tree(action) for action in request.actions],
        "PartialPermissionAllowed": request.partial_permission_allowed,
        "AvailabilityMode": request.availability_mode.value,
        "Priority": request.priority,
    }
    return tree | filled({"Reason": request.reason, "Position": request.position or None, "Run": request.run})


def manage_permission_response(answer: messages.ManagePermissionResponse) -> Tree:
    """TManagePermissionResponse."""
    return _answered(answer.status, Permissions=[permission_tree(permission) for permission in answer.permissions])


def notification_response(answer: messages.NotificationResponse) -> Tree:
    """TNotificationResponse."""
    return _answered(answer.status, NotificationId=answer.notification_id)


def manage_notification_response(answer: messages.ManageNotificationResponse) -> Tree:
    """TManageNotificationResponse."""
    return _answered(answer.status, Notifications=[_notification_tree(stored) for stored in answer.notifications])


def _notification_tree(stored: messages.StoredNotification) -> Tree:
    tree: Tree = {
        "NotificationId": stored.notification_id,
        "Owner": stored.owner,
        "Actions": [action_tree(action) for action in stored.actions],
        "Time": stored.time,
    }
    return tree | filled({"Reason": stored.reason})


def plan_response(answer: messages.PlanResponse) -> Tree:
    """TPlanResponse."""
    tree = _answered(
        answer.status,
        Rounds=[{"Hosts": list(each.hosts), "Start": each.start, "End": each.end} for each in answer.rounds],
        Blocked=[action_tree(action) for action in answer.blocked],
    )
    if answer.estimated_end is not None:
        tree["LowerBound"] = answer.lower_bound
        tree["LowerBoundReason"] = answer.lower_bound_reason
        tree["EstimatedEnd"] = answer.estimated_end
    return tree


def ok_to_stop_response(answer: messages.OkToStopResponse) -> Tree:
    """TOkToStopResponse."""
    tree = _answered(answer.status, Refused=[action_tree(action) for action in answer.refused])
    if answer.status.code is StatusCode.OK:
        tree["Hosts"] = list(answer.hosts)
        tree["UpperBound"] = answer.upper_bound
    return tree


def status_only(answer: messages.MarkerResponse | messages.ConfigResponse | messages.WalleTaskAnswer) -> Tree:
    """An answer that is nothing but its status."""
    return _answered(answer.status)


def bare_status(status: messages.Status) -> Tree:
    """The same, where the broker answers with nothing else."""
    return _answered(status)


def cluster_state_response(answer: messages.ClusterStateResponse) -> Tree:
    """TClusterStateResponse; the state is there only if it could be told."""
    hosts = [_node_tree(node) for node in answer.hosts]
    state = {"Hosts": hosts, "Timestamp": answer.timestamp}
    return _answered(answer.status, State=state if answer.status.code is StatusCode.OK else None)


def _node_tree(node: messages.NodeState) -> Tree:
    tree: Tree = {"Name": node.name, "State": node.state.value, "Timestamp": node.timestamp, "NodeId": node.node_id}
    return tree | filled(
        {
            "InterconnectPort": node.interconnect_port or None,
            "Markers": _marker_names(node.markers),
            "Location": filled({"DataCenter": node.data_center, "Room": node.room, "Rack": node.rack}),
            "StartTimeSeconds": node.start_time_seconds or None,
            "Services": [_service_tree(service) for service in node.services],
            "Devices": [_device_tree(device) for device in node.devices],
            "Tenant": node.tenant,
        }
    )


def _service_tree(service: messages.ServiceState) -> Tree:
    return {"Name": service.name, "State": service.state.value, "Timestamp": service.timestamp}


def _device_tree(device: messages.DeviceState) -> Tree:
    tree: Tree = {"Name": device.name, "State": device.state.value, "Timestamp": device.timestamp}
    return tree | filled({"Markers": _marker_names(device.markers), "Title": device.title})


def _marker_names(markers: tuple[Marker, ...]) -> list[str]:
    return [marker.value for marker in markers]


def config_response(answer: messages.ConfigResponse) -> Tree:
    """TGetConfigResponse."""
    tree = status_only(answer)
    if answer.status.code is StatusCode.OK:
        tree["Config"] = config_tree(answer.config)
    return tree


def log_tail_response(answer: messages.LogTailResponse) -> Tree:
    """TGetLogTailResponse."""
    return _answered(answer.status, LogRecords=[_record_tree(record) for record in answer.records])


def _record_tree(record: messages.LogLine) -> Tree:
    tree: Tree = {"Timestamp": record.timestamp, "RecordType": record.record_type.value}
    return tree | filled({"Data": dict(record.data), "Message": record.message})


def walle_create_response(answer: messages.WalleTaskAnswer) -> Tree:
    """TWalleCreateTaskResponse: the task, under the status of the call and not its own."""
    return _task_tree(answer) | status_only(answer)


def walle_list_response(answer: messages.WalleTasksResponse) -> Tree:
    """TWalleListTasksResponse."""
    return _answered(answer.status, Tasks=[_task_tree(task) for task in answer.tasks])


def walle_check_response(answer: messages.WalleTaskAnswer) -> Tree:
    """TWalleCheckTaskResponse; no task where there is none."""
    return _answered(answer.status, Task=_task_tree(answer) if answer.status.code in WALLE_WORDS else None)


def change(happened: messages.Change) -> Tree:
    """TChange."""
    tree: Tree = {"Kind": happened.kind.value, "Verb": happened.verb.value}
    answer = permission_response(happened.answer) if happened.answer is not None else None
    return tree | filled({"Id": happened.id, "Owner": happened.owner, "Answer": answer})


def _task_tree(answer: messages.WalleTaskAnswer) -> Tree:
    status = WALLE_WORDS.get(answer.status.code, "")
    task = {"Hosts": answer.task.hosts, "Status": status, "Devices": answer.task.devices}
    return {"TaskId": answer.task.id} | filled(task)


def _answered(status: messages.Status, **fields: Any) -> Tree:
    return {"Status": status_tree(status)} | filled(fields)
