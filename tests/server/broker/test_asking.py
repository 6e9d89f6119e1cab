"""Every message that asks: what the broker is asked by it."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.maintenance.action import ActionType, AvailabilityMode, Marker, TenantPolicy
from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance import messages as m
from quorate.server.broker.json_trees import Malformed
from quorate.server.broker.questions import QUESTIONS
from quorate.server.broker.translation import questions

SHUTDOWN = m.Action(type=ActionType.SHUTDOWN_HOST, host="h1", duration=60)

ASKED: list[tuple[Any, dict[str, Any], Any]] = [
    (questions.permission_request, {}, m.PermissionRequest()),
    (
        questions.permission_request,
        {
            "User": "u",
            "Actions": (
                {"Type": "SHUTDOWN_HOST", "Host": "h1", "Duration": 60},
                {"Type": "RESTART_SERVICES", "Host": "2", "Services": ("storage",), "Duration": 0},
                {"Type": "REPLACE_DEVICES", "Devices": ("pdisk-1-1", "vdisk-0-1-0-0-0")},
                {"Type": "UNKNOWN", "Tenant": "t"},
                {},
            ),
            "PartialPermissionAllowed": True,
            "Schedule": True,
            "DryRun": True,
            "Reason": "why",
            "Duration": 7,
            "TenantPolicy": "NONE",
            "AvailabilityMode": "MODE_FORCE_RESTART",
            "Priority": -3,
            "Run": "20260101T000000-1-abc",
        },
        m.PermissionRequest(
            user="u",
            actions=(
                SHUTDOWN,
                m.Action(type=ActionType.RESTART_SERVICES, host="2", services=("storage",), duration=0),
                m.Action(type=ActionType.REPLACE_DEVICES, devices=("pdisk-1-1", "vdisk-0-1-0-0-0")),
                m.Action(tenant="t"),
                m.Action(),
            ),
            partial_permission_allowed=True,
            schedule=True,
            dry_run=True,
            reason="why",
            duration=7,
            tenant_policy=TenantPolicy.NONE,
            availability_mode=AvailabilityMode.FORCE_RESTART,
            priority=-3,
            run="20260101T000000-1-abc",
        ),
    ),
    (questions.check_request, {"User": "u", "RequestId": "u-r-1"}, m.CheckRequest(user="u", request_id="u-r-1")),
    (
        questions.check_request,
        {"AvailabilityMode": "MODE_MAX_AVAILABILITY", "DryRun": True},
        m.CheckRequest(availability_mode=AvailabilityMode.MAX_AVAILABILITY, dry_run=True),
    ),
    (questions.manage_request, {}, m.ManageRequest(command=None)),
    (questions.manage_request, {"Command": "UNKNOWN"}, m.ManageRequest(command=None)),
    (
        questions.manage_request,
        {"User": "u", "Command": "REJECT", "RequestId": "u-r-1", "DryRun": True},
        m.ManageRequest(command=m.RequestCommand.REJECT, user="u", request_id="u-r-1", dry_run=True),
    ),
    (
        questions.manage_permission,
        {"User": "u", "Command": "EXTEND", "Permissions": ("u-p-1",), "Deadline": 9, "DryRun": True},
        m.ManagePermission(
            command=m.PermissionCommand.EXTEND, user="u", permissions=("u-p-1",), deadline=9, dry_run=True
        ),
    ),
    (questions.manage_permission, {"Deadline": 0}, m.ManagePermission(command=None, deadline=0)),
    (
        questions.notification,
        {"User": "u", "Actions": ({"Type": "SHUTDOWN_HOST", "Host": "h1", "Duration": 60},), "Time": 5, "Reason": "x"},
        m.NotificationRequest(user="u", actions=(SHUTDOWN,), time=5, reason="x"),
    ),
    (
        questions.manage_notification,
        {"User": "u", "Command": "GET", "NotificationId": "u-n-1", "DryRun": True},
        m.ManageNotification(command=m.NotificationCommand.GET, user="u", notification_id="u-n-1", dry_run=True),
    ),
    (questions.cluster_state, {"Hosts": ("h1", "2")}, m.ClusterStateRequest(hosts=("h1", "2"))),
    (
        questions.set_marker,
        {
            "Marker": "MARKER_DISK_FAULTY",
            "Items": {"Hosts": ("h",), "Nodes": (1,), "PDisks": ("pdisk-1-1",), "VDisks": ("vdisk-0-1-0-0-0",)},
            "UserToken": "secret",
        },
        m.SetMarker(
            marker=Marker.DISK_FAULTY,
            items=m.MarkedItems(hosts=("h",), nodes=(1,), drives=("pdisk-1-1",), vdisks=("vdisk-0-1-0-0-0",)),
            user_token="secret",
        ),
    ),
    (questions.reset_marker, {"Marker": "MARKER_UNKNOWN"}, m.SetMarker(marker=None, reset=True)),
    (questions.get_config, {}, m.GetConfig()),
    (questions.set_config, {}, m.SetConfig()),
    (questions.log_tail, {}, m.LogTailRequest()),
    (
        questions.log_tail,
        {
            "LogFilter": {
                "RecordType": "CMS_LOADED",
                "MinTimestamp": 1,
                "MaxTimestamp": 2,
                "Limit": 3,
                "Offset": 4,
            },
            "IncludeData": True,
            "TextFormat": "NONE",
        },
        m.LogTailRequest(
            record_type=RecordType.CMS_LOADED,
            min_timestamp=1,
            max_timestamp=2,
            limit=3,
            offset=4,
            include_data=True,
            text_format=m.LogText.NONE,
        ),
    ),
    (
        questions.walle_create,
        {
            "TaskId": "t",
            "Type": "automated",
            "Issuer": "i",
            "Action": "reboot",
            "Hosts": ("h",),
            "Devices": ("pdisk-1-1",),
            "DryRun": True,
        },
        m.WalleCreateTask(
            task=m.WalleTask(
                id="t", action="reboot", type="automated", issuer="i", hosts=("h",), devices=("pdisk-1-1",)
            ),
            dry_run=True,
        ),
    ),
    (questions.walle_list, {}, m.WalleListTasks()),
    (questions.accept_time, {}, None),
    (questions.walle_check, {"TaskId": "t"}, m.WalleCheckTask(task_id="t")),
    (
        questions.plan,
        {
            "User": "u",
            "Hosts": ("h1",),
            "AvailabilityMode": "MODE_KEEP_AVAILABLE",
            "TenantPolicy": "NONE",
            "Duration": 9,
        },
        m.PlanRequest(
            user="u",
            hosts=("h1",),
            availability_mode=AvailabilityMode.KEEP_AVAILABLE,
            tenant_policy=TenantPolicy.NONE,
            duration=9,
        ),
    ),
    (questions.walle_remove, {"TaskId": "t"}, m.WalleRemoveTask(task_id="t")),
]


@pytest.mark.parametrize(("read", "tree", "question"), ASKED)
def test_a_message_asks_what_it_says(read: Any, tree: dict[str, Any], question: Any) -> None:
    assert read(tree) == question


def test_every_question_is_in_the_table() -> None:
    assert {question.read for question in QUESTIONS if question.method is not None} == {read for read, _, _ in ASKED}


def test_an_issue_in_a_question_is_refused() -> None:
    with pytest.raises(Malformed, match=r"Actions\[1\].Issue: is only for answers"):
        questions.permission_request({"Actions": ({}, {"Issue": {}})})
