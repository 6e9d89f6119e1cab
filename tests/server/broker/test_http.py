"""The JSON interface: paths, codes, bodies. What the broker answers is somebody else's test."""

from __future__ import annotations

import io
from typing import Any

import pytest

from quorate.api.maintenance.action import AvailabilityMode, StatusCode
from quorate.errors import StorageFull
from quorate.maintenance.messages import (
    Caller,
    CheckRequest,
    ClusterStateResponse,
    LogTailRequest,
    LogTailResponse,
    LogText,
    ManageRequestResponse,
    MarkerResponse,
    PermissionResponse,
    Status,
)
from quorate.server.broker.answering import MAX_BODY
from tests.server.broker.conftest import Client
from tests.server.broker.fake import FakeBroker

API = "/cms/api"
OK = Status(code=StatusCode.OK)
ALLOWED = PermissionResponse(status=Status(code=StatusCode.ALLOW))


async def test_a_question_goes_through_and_its_answer_comes_back(client: Client, broker: FakeBroker) -> None:
    broker.answers["check_request"] = ALLOWED
    body = {"User": "u", "RequestId": "u-r-1", "AvailabilityMode": "MODE_KEEP_AVAILABLE"}
    assert await client.post(f"{API}/checkrequest", body) == (200, {"Status": {"Code": "ALLOW"}})
    asked = CheckRequest(user="u", request_id="u-r-1", availability_mode=AvailabilityMode.KEEP_AVAILABLE)
    assert broker.asked == [("check_request", asked, Caller(anyone=True))]


@pytest.mark.parametrize(
    ("path", "method", "answer"),
    [
        ("permissionrequest", "permission_request", ALLOWED),
        ("managerequestrequest", "manage_request", ManageRequestResponse(status=OK)),
        ("setmarkerrequest", "set_marker", MarkerResponse(status=OK)),
        ("resetmarkerrequest", "set_marker", MarkerResponse(status=OK)),
        ("clusterstaterequest", "cluster_state", ClusterStateResponse(status=OK)),
    ],
)
async def test_an_empty_message_is_a_message(
    client: Client, broker: FakeBroker, path: str, method: str, answer: Any
) -> None:
    broker.answers[method] = answer
    code, said = await client.post(f"{API}/{path}", {})
    assert code == 200
    assert said["Status"]["Code"] == answer.status.code.value
    assert [name for name, _, _ in broker.asked] == [method]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b'{"Uzer": "u"}', "Uzer: there is no such field"),
        (b'{"Actions": [{"Type": "NO"}]}', "Actions[0].Type: must be one of"),
    ],
)
async def test_malformed_input_is_told_where(client: Client, broker: FakeBroker, body: bytes, said: str) -> None:
    code, answer = await client.post(f"{API}/permissionrequest", body)
    assert code == 400
    assert answer["Status"]["Code"] == "WRONG_REQUEST"
    assert said in answer["Status"]["Reason"]
    assert broker.asked == []


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("permissionrequest", {"Actions": [{"Issue": {}}]}, "Actions[0].Issue: is only for answers"),
        ("setconfigrequest", {"Config": {"ClusterLimits": {"DisabledNodesRatioLimit": 101}}}, "Config.ClusterLimits"),
    ],
)
async def test_what_fits_but_makes_no_sense_is_a_wrong_request(
    client: Client, broker: FakeBroker, path: str, body: Any, said: str
) -> None:
    code, answer = await client.post(f"{API}/{path}", body)
    assert (code, answer["Status"]["Code"], broker.asked) == (200, "WRONG_REQUEST", [])
    assert answer["Status"]["Reason"].startswith(said)


async def test_a_body_without_end_is_refused(client: Client) -> None:
    code, answer = await client.call("POST", f"{API}/permissionrequest", data=io.BytesIO(b" " * (MAX_BODY + 1)))
    assert (code, answer["Status"]["Code"]) == (413, "WRONG_REQUEST")


@pytest.mark.parametrize("path", ["/nothing", f"{API}/nothing", f"{API}/PermissionRequest", f"{API}/walle/v14/tasks"])
async def test_a_path_that_is_not_there(client: Client, path: str) -> None:
    code, answer = await client.post(path, {})
    assert (code, answer["Status"]["Reason"]) == (404, f"there is nothing at {path}")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", f"{API}/permissionrequest", "POST"),
        ("PUT", f"{API}/clusterstaterequest", "GET, HEAD, POST"),
        ("POST", f"{API}/json/log", "GET, HEAD"),
        ("PATCH", f"{API}/walle/v11/tasks/t", "DELETE, GET, HEAD"),
        ("DELETE", f"{API}/walle/v11/tasks", "GET, HEAD, POST"),
    ],
)
async def test_a_method_that_a_path_does_not_take(client: Client, method: str, path: str, allowed: str) -> None:
    async with client.session.request(method, path) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == allowed
        assert f"takes {allowed}, not {method}" in (await answer.json())["Status"]["Reason"]


async def test_the_cluster_may_be_asked_for_without_a_body(client: Client, broker: FakeBroker) -> None:
    broker.answers["cluster_state"] = ClusterStateResponse(status=OK, timestamp=7)
    code, answer = await client.get(f"{API}/clusterstaterequest")
    assert (code, answer) == (200, {"Status": {"Code": "OK"}, "State": {"Hosts": [], "Timestamp": "7"}})


async def test_conditions_are_not_supported(client: Client, broker: FakeBroker) -> None:
    code, answer = await client.post(f"{API}/conditionalpermissionrequest", {})
    assert (code, answer["Status"]["Code"], broker.asked) == (200, "ERROR", [])


async def test_the_log_takes_parameters(client: Client, broker: FakeBroker) -> None:
    broker.answers["get_log_tail"] = LogTailResponse(status=OK)
    code, _ = await client.get(f"{API}/json/log?limit=5&from=1&to=18446744073709551615&detailed=1&data=1")
    assert code == 200
    await client.get(f"{API}/json/log")
    detailed = LogTailRequest(
        limit=5, min_timestamp=1, max_timestamp=2**64 - 1, include_data=True, text_format=LogText.DETAILED
    )
    assert [asked for _, asked, _ in broker.asked] == [detailed, LogTailRequest()]


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=x", "limit=", "from=18446744073709551616", "to=1.5", "data=2", "detailed=yes", "x=1"]
)
async def test_parameters_of_the_log_that_make_no_sense_are_named(client: Client, query: str) -> None:
    code, answer = await client.get(f"{API}/json/log?{query}")
    assert code == 400
    assert answer["Status"]["Reason"].startswith(query.partition("=")[0] + ": ")


async def test_what_the_messages_look_like_can_be_read(client: Client) -> None:
    code, found = await client.get(f"{API}/json/proto")
    assert code == 200
    assert found["enums"]["TStatus.ECode"]["NO_SUCH_SERVICE"] == 12
    assert {"name": "Issue", "number": 7, "type": "TAction.TIssue", "repeated": False} in found["messages"]["TAction"]


async def test_a_broker_that_cannot_write_says_come_back(client: Client, broker: FakeBroker) -> None:
    broker.answers["permission_request"] = StorageFull("no space left")
    code, answer = await client.post(f"{API}/permissionrequest", {})
    assert (code, answer) == (200, {"Status": {"Code": "ERROR_TEMP", "Reason": "no space left"}})


async def test_a_bug_is_an_error_of_the_server_and_stays_inside(client: Client, broker: FakeBroker) -> None:
    broker.answers["permission_request"] = ZeroDivisionError("secret")
    code, answer = await client.post(f"{API}/permissionrequest", {})
    assert (code, answer["Status"]["Code"]) == (500, "ERROR")
    assert "secret" not in str(answer)


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
async def test_pages_of_others_cannot_use_an_open_server(
    client: Client, broker: FakeBroker, headers: dict[str, str]
) -> None:
    code, _ = await client.post(f"{API}/permissionrequest", {}, headers=headers)
    assert (code, broker.asked) == (403, [])
