"""Every message that answers, exactly as it comes out as JSON; and the configuration, both ways."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance.action import (
    ActionType,
    AvailabilityMode,
    Blocker,
    HostState,
    Issue,
    IssueType,
    LockKind,
    Marker,
    StatusCode,
    TenantPolicy,
)
from quorate.api.maintenance.broker_config import (
    BrokerConfigSpec,
    CallerPriority,
    Limits,
    LogConfig,
    LogLevel,
    MonitorConfig,
)
from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance import messages as m
from quorate.server.broker import json_trees
from quorate.server.broker.description import default_of, description
from quorate.server.broker.json_trees import Malformed
from quorate.server.broker.proto import cms_pb2
from quorate.server.broker.translation import answers
from quorate.server.broker.translation.config import config_of, config_tree

OK = m.Status(code=StatusCode.OK)
SHUTDOWN = m.Action(type=ActionType.SHUTDOWN_HOST, host="h1", duration=60)

ISSUE = Issue(
    type=IssueType.TOO_MANY_UNAVAILABLE_VDISKS,
    message="group 0 would lose two",
    blockers=(
        Blocker(
            object="vdisk-0-1-0-1-0",
            lock=LockKind.PERMISSION,
            id="v-p-2",
            owner="v",
            until=datetime(2026, 1, 1, tzinfo=UTC),
        ),
        Blocker(object="pdisk-3-1"),
    ),
)
ISSUE_JSON = {
    "Type": "TOO_MANY_UNAVAILABLE_VDISKS",
    "Message": "group 0 would lose two",
    "Blockers": [
        {"Object": "vdisk-0-1-0-1-0", "Lock": "PERMISSION", "Id": "v-p-2", "Owner": "v", "Until": "1767225600000000"},
        {"Object": "pdisk-3-1"},
    ],
}
ACTION_JSON = {"Type": "SHUTDOWN_HOST", "Host": "h1", "Duration": "60"}
PERMISSION = m.Permission(
    id="u-p-1",
    action=SHUTDOWN,
    deadline=2**64 - 1,
    hosts=(m.HostInfo(name="h1", state=HostState.UP, node_id=12, interconnect_port=19001),),
)
PERMISSION_JSON = {
    "Id": "u-p-1",
    "Action": ACTION_JSON,
    "Deadline": "18446744073709551615",
    "Extentions": [
        {"Type": "HostInfo", "Hosts": [{"Name": "h1", "State": "UP", "NodeId": 12, "InterconnectPort": 19001}]}
    ],
}
TASK = m.WalleTask(id="t", hosts=("h",), devices=("pdisk-1-1",))

ANSWERED: list[tuple[str, Any, Any, dict[str, Any]]] = [
    (
        "TPermissionResponse",
        answers.permission_response,
        m.PermissionResponse(status=m.Status(code=StatusCode.ALLOW), permissions=(PERMISSION,)),
        {"Status": {"Code": "ALLOW"}, "Permissions": [PERMISSION_JSON]},
    ),
    (
        "TPermissionResponse",
        answers.permission_response,
        m.PermissionResponse(
            status=m.Status(code=StatusCode.DISALLOW_TEMP, reason="wait"),
            request_id="u-r-1",
            deadline=5,
            refused=(m.Action(type=ActionType.REPLACE_DEVICES, devices=("pdisk-1-1",), issue=ISSUE),),
        ),
        {
            "Status": {"Code": "DISALLOW_TEMP", "Reason": "wait"},
            "RequestId": "u-r-1",
            "Deadline": "5",
            "Refused": [{"Type": "REPLACE_DEVICES", "Devices": ["pdisk-1-1"], "Issue": ISSUE_JSON}],
        },
    ),
    (
        "TPermissionResponse",  # of a dry run: no ids
        answers.permission_response,
        m.PermissionResponse(
            status=m.Status(code=StatusCode.ALLOW), permissions=(m.Permission(id="", action=m.Action(), deadline=0),)
        ),
        {"Status": {"Code": "ALLOW"}, "Permissions": [{"Action": {"Type": "UNKNOWN"}, "Deadline": "0"}]},
    ),
    (
        "TManageRequestResponse",
        answers.manage_request_response,
        m.ManageRequestResponse(
            status=OK,
            requests=(
                m.ScheduledRequest(
                    request_id="u-r-1",
                    owner="u",
                    actions=(SHUTDOWN,),
                    partial_permission_allowed=True,
                    reason="why",
                    availability_mode=AvailabilityMode.KEEP_AVAILABLE,
                    priority=-1,
                    position=2,
                ),
            ),
        ),
        {
            "Status": {"Code": "OK"},
            "Requests": [
                {
                    "RequestId": "u-r-1",
                    "Owner": "u",
                    "Actions": [ACTION_JSON],
                    "PartialPermissionAllowed": True,
                    "Reason": "why",
                    "AvailabilityMode": "MODE_KEEP_AVAILABLE",
                    "Priority": -1,
                    "Position": 2,
                }
            ],
        },
    ),
    (
        "TManagePermissionResponse",
        answers.manage_permission_response,
        m.ManagePermissionResponse(status=OK, permissions=(PERMISSION,)),
        {"Status": {"Code": "OK"}, "Permissions": [PERMISSION_JSON]},
    ),
    (
        "TManagePermissionResponse",
        answers.manage_permission_response,
        m.ManagePermissionResponse(status=OK),
        {"Status": {"Code": "OK"}},
    ),
    (
        "TNotificationResponse",
        answers.notification_response,
        m.NotificationResponse(status=OK, notification_id="u-n-1"),
        {"Status": {"Code": "OK"}, "NotificationId": "u-n-1"},
    ),
    (
        "TManageNotificationResponse",
        answers.manage_notification_response,
        m.ManageNotificationResponse(
            status=OK,
            notifications=(
                m.StoredNotification(notification_id="u-n-1", owner="u", actions=(SHUTDOWN,), time=5, reason="x"),
            ),
        ),
        {
            "Status": {"Code": "OK"},
            "Notifications": [
                {"NotificationId": "u-n-1", "Owner": "u", "Actions": [ACTION_JSON], "Time": "5", "Reason": "x"}
            ],
        },
    ),
    (
        "TClusterStateResponse",
        answers.cluster_state_response,
        m.ClusterStateResponse(
            status=OK,
            timestamp=9,
            hosts=(
                m.NodeState(
                    name="h1",
                    state=HostState.DOWN,
                    node_id=1,
                    timestamp=3,
                    interconnect_port=19001,
                    start_time_seconds=4,
                    tenant="t",
                    data_center="a",
                    rack="k",
                    markers=(Marker.DISK_BROKEN,),
                    services=(m.ServiceState(name="storage", state=HostState.UP),),
                    devices=(m.DeviceState(name="pdisk-1-1", state=HostState.UP, markers=(Marker.DISK_ACTIVE,)),),
                ),
                m.NodeState(name="h2", state=HostState.UNKNOWN, node_id=2),
            ),
        ),
        {
            "Status": {"Code": "OK"},
            "State": {
                "Timestamp": "9",
                "Hosts": [
                    {
                        "Name": "h1",
                        "State": "DOWN",
                        "Timestamp": "3",
                        "NodeId": 1,
                        "InterconnectPort": 19001,
                        "Markers": ["MARKER_DISK_BROKEN"],
                        "Location": {"DataCenter": "a", "Rack": "k"},
                        "StartTimeSeconds": "4",
                        "Services": [{"Name": "storage", "State": "UP", "Timestamp": "0"}],
                        "Devices": [
                            {"Name": "pdisk-1-1", "State": "UP", "Timestamp": "0", "Markers": ["MARKER_DISK_ACTIVE"]}
                        ],
                        "Tenant": "t",
                    },
                    {"Name": "h2", "State": "UNKNOWN", "Timestamp": "0", "NodeId": 2},
                ],
            },
        },
    ),
    (
        "TClusterStateResponse",
        answers.cluster_state_response,
        m.ClusterStateResponse(status=m.Status(code=StatusCode.NO_SUCH_HOST, reason="h9")),
        {"Status": {"Code": "NO_SUCH_HOST", "Reason": "h9"}},
    ),
    (
        "TSetMarkerResponse",
        answers.status_only,
        m.MarkerResponse(status=m.Status(code=StatusCode.NO_SUCH_DEVICE)),
        {"Status": {"Code": "NO_SUCH_DEVICE"}},
    ),
    (
        "TGetLogTailResponse",
        answers.log_tail_response,
        m.LogTailResponse(
            status=OK,
            records=(
                m.LogLine(timestamp=1, record_type=RecordType.CMS_LOADED, message="here", data={"NodeId": 1}),
                m.LogLine(timestamp=2, record_type=RecordType.PERMISSION_ENDED),
            ),
        ),
        {
            "Status": {"Code": "OK"},
            "LogRecords": [
                {"Timestamp": "1", "RecordType": "CMS_LOADED", "Message": "here", "Data": {"NodeId": 1}},
                {"Timestamp": "2", "RecordType": "PERMISSION_ENDED"},
            ],
        },
    ),
    (
        "TWalleCreateTaskResponse",
        answers.walle_create_response,
        m.WalleTaskAnswer(status=m.Status(code=StatusCode.ALLOW), task=TASK),
        {"Status": {"Code": "ALLOW"}, "TaskId": "t", "Hosts": ["h"], "Devices": ["pdisk-1-1"]},
    ),
    (
        "TWalleListTasksResponse",
        answers.walle_list_response,
        m.WalleTasksResponse(
            status=OK, tasks=(m.WalleTaskAnswer(status=m.Status(code=StatusCode.DISALLOW_TEMP), task=TASK),)
        ),
        {
            "Status": {"Code": "OK"},
            "Tasks": [{"TaskId": "t", "Hosts": ["h"], "Status": "in-process", "Devices": ["pdisk-1-1"]}],
        },
    ),
    (
        "TWalleCheckTaskResponse",
        answers.walle_check_response,
        m.WalleTaskAnswer(status=m.Status(code=StatusCode.DISALLOW, reason="no"), task=TASK),
        {
            "Status": {"Code": "DISALLOW", "Reason": "no"},
            "Task": {"TaskId": "t", "Hosts": ["h"], "Status": "rejected", "Devices": ["pdisk-1-1"]},
        },
    ),
    (
        "TWalleCheckTaskResponse",
        answers.walle_check_response,
        m.WalleTaskAnswer(status=m.Status(code=StatusCode.WRONG_REQUEST, reason="no task t"), task=m.WalleTask(id="t")),
        {"Status": {"Code": "WRONG_REQUEST", "Reason": "no task t"}},
    ),
    ("TAcceptTimeResponse", answers.bare_status, OK, {"Status": {"Code": "OK"}}),
    (
        "TPlanResponse",
        answers.plan_response,
        m.PlanResponse(
            status=OK,
            rounds=(m.Round(hosts=("h1", "h2"), start=1, end=2),),
            lower_bound=1,
            lower_bound_reason="group 0",
            estimated_end=2,
            blocked=(m.Action(type=ActionType.SHUTDOWN_HOST, host="h3", issue=ISSUE),),
        ),
        {
            "Status": {"Code": "OK"},
            "Rounds": [{"Hosts": ["h1", "h2"], "Start": "1", "End": "2"}],
            "LowerBound": 1,
            "LowerBoundReason": "group 0",
            "EstimatedEnd": "2",
            "Blocked": [{"Type": "SHUTDOWN_HOST", "Host": "h3", "Issue": ISSUE_JSON}],
        },
    ),
    (
        "TOkToStopResponse",
        answers.ok_to_stop_response,
        m.OkToStopResponse(status=OK, hosts=("h1",), upper_bound=1, refused=(SHUTDOWN,)),
        {"Status": {"Code": "OK"}, "Hosts": ["h1"], "UpperBound": 1, "Refused": [ACTION_JSON]},
    ),
    (
        "TChange",
        answers.change,
        m.Change(
            kind=m.ChangeKind.REQUEST,
            verb=m.ChangeVerb.ANSWER,
            id="u-r-1",
            owner="u",
            answer=m.PermissionResponse(status=m.Status(code=StatusCode.ALLOW)),
        ),
        {
            "Kind": "REQUEST",
            "Verb": "ANSWER",
            "Id": "u-r-1",
            "Owner": "u",
            "Answer": {"Status": {"Code": "ALLOW"}},
        },
    ),
]


@pytest.mark.parametrize(("message", "write", "answer", "expected"), ANSWERED)
def test_an_answer_looks_like_this(message: str, write: Any, answer: Any, expected: dict[str, Any]) -> None:
    shape = cms_pb2.DESCRIPTOR.message_types_by_name[message]
    body = json_trees.dump(write(answer), shape)
    assert msgspec.json.decode(body) == expected
    json_trees.parse(body, shape)  # and nothing in it is unknown to the proto file


@pytest.mark.parametrize(
    ("enum", "words"),
    [
        ("TStatus.ECode", StatusCode),
        ("TAction.EType", ActionType),
        ("TAction.TIssue.EType", IssueType),
        ("EState", HostState),
        ("EMarker", Marker),
        ("EAvailabilityMode", AvailabilityMode),
        ("ETenantPolicy", TenantPolicy),
        ("TLogRecord.EType", RecordType),
        ("TLogConfig.ELevel", LogLevel),
        ("TChange.EKind", m.ChangeKind),
        ("TChange.EVerb", m.ChangeVerb),
        ("TManageRequestRequest.ECommand", m.RequestCommand),
        ("TManagePermissionRequest.ECommand", m.PermissionCommand),
        ("TManageNotificationRequest.ECommand", m.NotificationCommand),
        ("TGetLogTailRequest.ETextFormat", m.LogText),
    ],
)
def test_every_word_of_ours_is_one_of_the_messages(enum: str, words: Any) -> None:
    ours = {word.value for word in words}
    theirs = set(description()["enums"][enum])
    assert ours <= theirs
    assert {name for name in theirs - ours if "UNKNOWN" not in name} == set()


def test_defaults_of_the_configuration_are_the_same_in_the_proto_file_and_in_the_object() -> None:
    shown = config_tree(BrokerConfigSpec())
    for part, message in {
        "TenantLimits": "TLimits",
        "ClusterLimits": "TLimits",
        "MonitorConfig": "TMonitorConfig",
        "LogConfig": "TLogConfig",
        "Quotas": "TQuotas",
    }.items():
        shape = cms_pb2.DESCRIPTOR.message_types_by_name[message]
        assert {field.name: default_of(field) for field in shape.fields} == shown.pop(part)
    assert shown.pop("Priorities") == []
    whole = cms_pb2.DESCRIPTOR.message_types_by_name["TCmsConfig"]
    assert {field.name: default_of(field) for field in whole.fields if field.has_default_value} == shown


def test_a_configuration_comes_back_as_it_was_set() -> None:
    config = BrokerConfigSpec(
        default_retry_time=Duration("1500ms"),
        tenant_limits=Limits(disabled_nodes_limit=3, disabled_nodes_ratio_limit=0),
        monitor_config=MonitorConfig(enable_auto_updates=True, rack_ratio=10),
        log_config=LogConfig(default_level=LogLevel.DISABLED, ttl=Duration("1h")),
        priorities=(CallerPriority(user="Wall-E", priority=20), CallerPriority(user="night-shift", priority=-5)),
    )
    assert config_of(config_tree(config)) == config
    assert config_of({"DefaultRetryTime": 60_000_000}).default_retry_time.text == "60s"


def test_a_share_of_more_than_all_is_refused() -> None:
    with pytest.raises(Malformed) as refused:
        config_of({"ClusterLimits": {"DisabledNodesRatioLimit": 101}})
    assert refused.value.field == "Config.ClusterLimits.DisabledNodesRatioLimit"
    assert "100" in refused.value.problem
