"""The contract: names, numbers, types and defaults as the specification prints them, and generated code that fits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from quorate.server.broker import proto
from quorate.server.broker.description import all_enums, all_messages, description, short_name
from quorate.server.broker.questions import QUESTIONS

HERE = Path(proto.__file__).parent
#: As the specification has them. A field is "[repeated ]type Name = number[ default]".
SEED_MESSAGES = {
    "TAction": """
        TAction.EType Type = 1
        string Host = 2
        repeated string Services = 3
        repeated string Devices = 4
        uint64 Duration = 5
    """,
    "TPermissionRequest": """
        string User = 1
        repeated TAction Actions = 2
        bool PartialPermissionAllowed = 3 False
        bool Schedule = 4
        bool DryRun = 5
        string Reason = 6
        uint64 Duration = 7
        ETenantPolicy TenantPolicy = 8 DEFAULT
        EAvailabilityMode AvailabilityMode = 9 MODE_MAX_AVAILABILITY
    """,
    "TPermission": """
        string Id = 1
        TAction Action = 2
        uint64 Deadline = 3
        repeated TPermissionExtension Extentions = 4
    """,
    "TStatus": """
        TStatus.ECode Code = 1
        string Reason = 2
    """,
    "TPermissionResponse": """
        TStatus Status = 1
        string RequestId = 2
        repeated TPermission Permissions = 3
        uint64 Deadline = 4
    """,
    "TManageRequestRequest": """
        string User = 1
        TManageRequestRequest.ECommand Command = 2
        string RequestId = 3
        bool DryRun = 4
    """,
    "TManageRequestResponse": """
        TStatus Status = 1
        repeated TManageRequestResponse.TScheduledRequest Requests = 2
    """,
    "TManageRequestResponse.TScheduledRequest": """
        string RequestId = 1
        string Owner = 2
        repeated TAction Actions = 3
        bool PartialPermissionAllowed = 4
        string Reason = 5
    """,
    "TCheckRequest": """
        string User = 1
        string RequestId = 2
        bool DryRun = 3
        EAvailabilityMode AvailabilityMode = 4 MODE_MAX_AVAILABILITY
    """,
    "TManagePermissionRequest": """
        string User = 1
        TManagePermissionRequest.ECommand Command = 2
        repeated string Permissions = 3
        uint64 Deadline = 4
        bool DryRun = 5
    """,
    "TManagePermissionResponse": """
        TStatus Status = 1
        repeated TPermission Permissions = 2
    """,
    "TNotification": """
        string User = 1
        repeated TAction Actions = 2
        uint64 Time = 3
        string Reason = 4
    """,
    "TNotificationResponse": """
        TStatus Status = 1
    """,
    "TManageNotificationRequest": """
        string User = 1
        TManageNotificationRequest.ECommand Command = 2
        string NotificationId = 3
        bool DryRun = 4
    """,
    "TManageNotificationResponse": """
        TStatus Status = 1
        repeated TManageNotificationResponse.TStoredNotification Notifications = 2
    """,
    "TManageNotificationResponse.TStoredNotification": """
        string NotificationId = 1
        string Owner = 2
        repeated TAction Actions = 3
        uint64 Time = 4
        string Reason = 5
    """,
    "TSetMarkerRequest": """
        EMarker Marker = 1
        TItems Items = 2
        string UserToken = 10
    """,
}
#: Those that the specification numbers, and the codes, states and markers that came with facts.
NUMBERED = {
    "TAction.EType": "UNKNOWN START_SERVICES RESTART_SERVICES STOP_SERVICES ADD_HOST SHUTDOWN_HOST DECOMMISSION_HOST"
    " ADD_DEVICES REPLACE_DEVICES REMOVE_DEVICES",
    "TStatus.ECode": "UNKNOWN OK ALLOW ALLOW_PARTIAL DISALLOW DISALLOW_TEMP WRONG_REQUEST ERROR ERROR_TEMP UNAUTHORIZED"
    " NO_SUCH_HOST NO_SUCH_DEVICE NO_SUCH_SERVICE",
    "TManageRequestRequest.ECommand": "UNKNOWN LIST GET REJECT",
    "TManagePermissionRequest.ECommand": "UNKNOWN LIST GET DONE EXTEND REJECT",
    "TManageNotificationRequest.ECommand": "UNKNOWN LIST GET REJECT",
    "ETenantPolicy": "NONE DEFAULT",
    "EAvailabilityMode": "MODE_MAX_AVAILABILITY MODE_KEEP_AVAILABLE MODE_FORCE_RESTART",
    "EState": "UNKNOWN UP RESTART DOWN",
    "EMarker": "MARKER_UNKNOWN MARKER_DISK_BROKEN MARKER_DISK_FAULTY MARKER_DISK_ACTIVE MARKER_DISK_INACTIVE",
}


def field_lines(message: str) -> list[str]:
    lines = []
    for field in description()["messages"][message]:
        repeated = "repeated " if field["repeated"] else ""
        default = f" {field['default']}" if "default" in field else ""
        lines.append(f"{repeated}{field['type']} {field['name']} = {field['number']}{default}")
    return lines


@pytest.mark.parametrize("message", SEED_MESSAGES)
def test_the_specifications_fields_keep_their_numbers_types_and_defaults(message: str) -> None:
    wanted = [line.strip() for line in SEED_MESSAGES[message].strip().splitlines()]
    assert [line for line in field_lines(message) if line in wanted] == wanted


@pytest.mark.parametrize("enum", NUMBERED)
def test_enumerations_count_from_zero_in_the_specifications_order(enum: str) -> None:
    assert description()["enums"][enum] == {name: number for number, name in enumerate(NUMBERED[enum].split())}


def test_urgency_is_where_the_original_has_it() -> None:
    assert "int32 Priority = 12 0" in field_lines("TPermissionRequest")


def test_the_envelope_numbers_requests_in_the_order_in_which_they_are_described() -> None:
    names = [line.rsplit(" ", 3)[1] for line in field_lines("TCmsRequest")]
    assert names == [question.field for question in QUESTIONS]
    assert [line.rsplit(" ", 1)[1] for line in field_lines("TCmsRequest")] == [str(n) for n in range(1, len(names) + 1)]


def test_every_question_is_answered_in_a_field_of_the_answer_of_its_type() -> None:
    answered = {line.split(" ")[1]: line.split(" ")[0] for line in field_lines("TCmsResponse")}
    assert {question.answered_in: question.response.name for question in QUESTIONS} == {
        name: kind for name, kind in answered.items() if name != "Status"
    }


def test_names_of_messages_and_enumerations_are_unique() -> None:
    found: list[Descriptor | EnumDescriptor] = [*all_messages(), *all_enums()]
    assert len({short_name(one) for one in found}) == len(found)


def test_generating_again_gives_what_is_committed(tmp_path: Path) -> None:
    name = "quorate/server/broker/proto/cms.proto"
    source = HERE.parents[3]
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{source}"]
    outputs = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")]
    subprocess.run([*command, *outputs, name], check=True, timeout=60)
    for generated in ("cms_pb2.py", "cms_pb2.pyi", "cms_pb2_grpc.py"):
        assert (tmp_path / name).with_name(generated).read_text() == (HERE / generated).read_text(), "run make proto"
