"""Answers to trees. What has nothing to say is left out, as protobuf's JSON does with fields that are not given."""

from __future__ import annotations

from typing import Final

from quorate.api.maintenance.action import Marker, StatusCode
from quorate.maintenance import messages
from quorate.server.broker.json_trees import Tree
from quorate.server.broker.translation.actions import action_tree, permission_tree, status_tree
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
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.request_id:
        tree["RequestId"] = answer.request_id
    if answer.permissions:
        tree["Permissions"] = [permission_tree(permission) for permission in answer.permissions]
    if answer.deadline is not None:
        tree["Deadline"] = answer.deadline
    if answer.refused:
        tree["Refused"] = [action_tree(action) for action in answer.refused]
    return tree


def manage_request_response(answer: messages.ManageRequestResponse) -> Tree:
    """TManageRequestResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.requests:
        tree["Requests"] = [_scheduled_tree(request) for request in answer.requests]
    return tree


def _scheduled_tree(request: messages.ScheduledRequest) -> Tree:
    tree: Tree = {
        "RequestId": request.request_id,
        "Owner": request.owner,
        "Actions": [action_tree(action) for action in request.actions],
        "PartialPermissionAllowed": request.partial_permission_allowed,
        "AvailabilityMode": request.availability_mode.value,
        "Priority": request.priority,
    }
    if request.reason:
        tree["Reason"] = request.reason
    if request.position:
        tree["Position"] = request.position
    return tree


def manage_permission_response(answer: messages.ManagePermissionResponse) -> Tree:
    """TManagePermissionResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.permissions:
        tree["Permissions"] = [permission_tree(permission) for permission in answer.permissions]
    return tree


def notification_response(answer: messages.NotificationResponse) -> Tree:
    """TNotificationResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.notification_id:
        tree["NotificationId"] = answer.notification_id
    return tree


def manage_notification_response(answer: messages.ManageNotificationResponse) -> Tree:
    """TManageNotificationResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.notifications:
        tree["Notifications"] = [_notification_tree(stored) for stored in answer.notifications]
    return tree


def _notification_tree(stored: messages.StoredNotification) -> Tree:
    tree: Tree = {
        "NotificationId": stored.notification_id,
        "Owner": stored.owner,
        "Actions": [action_tree(action) for action in stored.actions],
        "Time": stored.time,
    }
    if stored.reason:
        tree["Reason"] = stored.reason
    return tree


def plan_response(answer: messages.PlanResponse) -> Tree:
    """TPlanResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.estimated_end is not None:
        tree["LowerBound"] = answer.lower_bound
        tree["LowerBoundReason"] = answer.lower_bound_reason
        tree["EstimatedEnd"] = answer.estimated_end
    if answer.rounds:
        tree["Rounds"] = [{"Hosts": list(each.hosts), "Start": each.start, "End": each.end} for each in answer.rounds]
    if answer.blocked:
        tree["Blocked"] = [action_tree(action) for action in answer.blocked]
    return tree


def ok_to_stop_response(answer: messages.OkToStopResponse) -> Tree:
    """TOkToStopResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.status.code is StatusCode.OK:
        tree["Hosts"] = list(answer.hosts)
        tree["UpperBound"] = answer.upper_bound
    if answer.refused:
        tree["Refused"] = [action_tree(action) for action in answer.refused]
    return tree


def status_only(answer: messages.MarkerResponse | messages.ConfigResponse | messages.WalleTaskAnswer) -> Tree:
    """An answer that is nothing but its status."""
    return {"Status": status_tree(answer.status)}


def bare_status(status: messages.Status) -> Tree:
    """The same, where the broker answers with nothing else."""
    return {"Status": status_tree(status)}


def cluster_state_response(answer: messages.ClusterStateResponse) -> Tree:
    """TClusterStateResponse; the state is there only if it could be told."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.status.code is StatusCode.OK:
        hosts = [_node_tree(node) for node in answer.hosts]
        tree["State"] = {"Hosts": hosts, "Timestamp": answer.timestamp}
    return tree


def _node_tree(node: messages.NodeState) -> Tree:
    location = {"DataCenter": node.data_center, "Room": node.room, "Rack": node.rack}
    optional: Tree = {
        "InterconnectPort": node.interconnect_port,
        "Markers": _marker_names(node.markers),
        "Location": {name: value for name, value in location.items() if value},
        "StartTimeSeconds": node.start_time_seconds,
        "Services": [_service_tree(service) for service in node.services],
        "Devices": [_device_tree(device) for device in node.devices],
        "Tenant": node.tenant,
    }
    tree: Tree = {"Name": node.name, "State": node.state.value, "Timestamp": node.timestamp, "NodeId": node.node_id}
    tree.update((name, value) for name, value in optional.items() if value)
    return tree


def _service_tree(service: messages.ServiceState) -> Tree:
    return {"Name": service.name, "State": service.state.value, "Timestamp": service.timestamp}


def _device_tree(device: messages.DeviceState) -> Tree:
    tree: Tree = {"Name": device.name, "State": device.state.value, "Timestamp": device.timestamp}
    if device.markers:
        tree["Markers"] = _marker_names(device.markers)
    return tree


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
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.records:
        tree["LogRecords"] = [_record_tree(record) for record in answer.records]
    return tree


def _record_tree(record: messages.LogLine) -> Tree:
    tree: Tree = {"Timestamp": record.timestamp, "RecordType": record.record_type.value}
    if record.data:
        tree["Data"] = dict(record.data)
    if record.message:
        tree["Message"] = record.message
    return tree


def walle_create_response(answer: messages.WalleTaskAnswer) -> Tree:
    """TWalleCreateTaskResponse."""
    tree = status_only(answer)
    return tree | _without_status(_task_tree(answer))


def walle_list_response(answer: messages.WalleTasksResponse) -> Tree:
    """TWalleListTasksResponse."""
    tree: Tree = {"Status": status_tree(answer.status)}
    if answer.tasks:
        tree["Tasks"] = [_task_tree(task) for task in answer.tasks]
    return tree


def walle_check_response(answer: messages.WalleTaskAnswer) -> Tree:
    """TWalleCheckTaskResponse; no task where there is none."""
    tree = status_only(answer)
    if answer.status.code in WALLE_WORDS:
        tree["Task"] = _task_tree(answer)
    return tree


def change(happened: messages.Change) -> Tree:
    """TChange."""
    tree: Tree = {"Kind": happened.kind.value, "Verb": happened.verb.value}
    if happened.id:
        tree["Id"] = happened.id
    if happened.owner:
        tree["Owner"] = happened.owner
    if happened.answer is not None:
        tree["Answer"] = permission_response(happened.answer)
    return tree


def _task_tree(answer: messages.WalleTaskAnswer) -> Tree:
    optional: Tree = {
        "Hosts": answer.task.hosts,
        "Status": WALLE_WORDS.get(answer.status.code, ""),
        "Devices": answer.task.devices,
    }
    return {"TaskId": answer.task.id} | {name: value for name, value in optional.items() if value}


def _without_status(tree: Tree) -> Tree:
    return {name: value for name, value in tree.items() if name != "Status"}
