"""gRPC with a real client: the envelope, bytes that are no message, health and reflection, a stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quorate.api.maintenance.action import ActionType, Blocker, Issue, LockKind, StatusCode
from quorate.errors import CannotListen, StorageFull
from quorate.maintenance.messages import (
    Action,
    Caller,
    Change,
    ChangeKind,
    ChangeVerb,
    CheckRequest,
    ManagePermissionResponse,
    Permission,
    PermissionResponse,
    Status,
)
from quorate.server.broker import Access, GrpcListener, rpc, rpc_health, serve_grpc
from quorate.server.broker.proto import cms_pb2
from tests.server.broker.fake import FakeBroker

ALLOWED = PermissionResponse(status=Status(code=StatusCode.ALLOW))


@pytest.fixture
async def listener(broker: FakeBroker) -> AsyncIterator[GrpcListener]:
    found = await serve_grpc(broker.as_broker, Access(), host="127.0.0.1", port=0)
    yield found
    await found.close()


@pytest.fixture
async def channel(listener: GrpcListener) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}") as found:
        yield found


async def call(channel: grpc.aio.Channel, body: bytes, **more: Any) -> cms_pb2.TCmsResponse:
    method: Any = channel.unary_unary("/quorate.cms.Cms/Call", response_deserializer=cms_pb2.TCmsResponse.FromString)
    answer = await method(body, **more)
    assert isinstance(answer, cms_pb2.TCmsResponse)
    return answer


def checking(**fields: Any) -> bytes:
    return cms_pb2.TCmsRequest(CheckRequest=cms_pb2.TCheckRequest(**fields)).SerializeToString()


async def test_a_refused_extension_carries_its_blockers(channel: grpc.aio.Channel, broker: FakeBroker) -> None:
    issue = Issue(blockers=(Blocker(object="h2", lock=LockKind.PERMISSION, id="v-p-2"),))
    refused = Permission(id="u-p-1", action=Action(type=ActionType.SHUTDOWN_HOST, host="h1", issue=issue), deadline=7)
    broker.answers["manage_permission"] = ManagePermissionResponse(
        status=Status(code=StatusCode.DISALLOW), permissions=(refused,)
    )
    asked = cms_pb2.TManagePermissionRequest(User="u", Command=cms_pb2.TManagePermissionRequest.EXTEND)
    answer = await call(channel, cms_pb2.TCmsRequest(ManagePermissionRequest=asked).SerializeToString())
    (permission,) = answer.ManagePermissionResponse.Permissions
    assert [blocker.Id for blocker in permission.Action.Issue.Blockers] == ["v-p-2"]


async def test_a_question_goes_through_and_its_answer_comes_back(channel: grpc.aio.Channel, broker: FakeBroker) -> None:
    broker.answers["check_request"] = ALLOWED
    answer = await call(channel, checking(User="u", RequestId="u-r-1"))
    assert answer.PermissionResponse.Status.Code == answer.Status.Code == cms_pb2.TStatus.ALLOW
    # A mode that is not given is not the default one.
    asked = CheckRequest(user="u", request_id="u-r-1", availability_mode=None)
    assert broker.asked == [("check_request", asked, Caller(anyone=True))]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "exactly one kind of request: none is given"),
        (
            cms_pb2.TCmsRequest(
                GetConfigRequest=cms_pb2.TGetConfigRequest(), CheckRequest=cms_pb2.TCheckRequest()
            ).SerializeToString(),
            "CheckRequest, GetConfigRequest are given",
        ),
    ],
)
async def test_the_envelope_holds_one_question(
    channel: grpc.aio.Channel, broker: FakeBroker, body: bytes, said: str
) -> None:
    answer = await call(channel, body)
    assert answer.Status.Code == cms_pb2.TStatus.WRONG_REQUEST
    assert said in answer.Status.Reason
    assert [field.name for field, _ in answer.ListFields()] == ["Status"]
    assert broker.asked == []


async def test_a_number_without_a_name_is_a_wrong_request(channel: grpc.aio.Channel, broker: FakeBroker) -> None:
    # CheckRequest { AvailabilityMode: 9 }
    answer = await call(channel, b"\x12\x02\x20\x09")
    assert answer.PermissionResponse.Status.Code == cms_pb2.TStatus.WRONG_REQUEST
    assert answer.Status.Reason.startswith("CheckRequest.AvailabilityMode: must be one of MODE_MAX_AVAILABILITY")
    assert broker.asked == []


async def test_bytes_that_are_no_message_are_an_invalid_argument(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(channel, b"\xff\xff\xff")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_conditions_are_not_supported(channel: grpc.aio.Channel) -> None:
    asked = cms_pb2.TCmsRequest(ConditionalPermissionRequest=cms_pb2.TConditionalPermissionRequest())
    answer = await call(channel, asked.SerializeToString())
    assert answer.ConditionalPermissionResponse.Status.Code == cms_pb2.TStatus.ERROR


@pytest.mark.parametrize(
    ("failure", "code"),
    [(StorageFull("no space left"), cms_pb2.TStatus.ERROR_TEMP), (ZeroDivisionError("secret"), cms_pb2.TStatus.ERROR)],
)
async def test_what_goes_wrong_inside_is_a_status(
    channel: grpc.aio.Channel, broker: FakeBroker, failure: Exception, code: int
) -> None:
    broker.answers["check_request"] = failure
    answer = await call(channel, checking())
    assert answer.PermissionResponse.Status.Code == code
    assert "secret" not in answer.Status.Reason


async def test_it_says_that_it_is_well(channel: grpc.aio.Channel) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    for service in ("", "quorate.cms.Cms"):
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Check(health_pb2.HealthCheckRequest(service="other"))
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_broker_without_the_ledger_is_not_well_and_whoever_watches_is_told(
    channel: grpc.aio.Channel, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_health, "_PACE", 0.01)
    stub: Any = health_pb2_grpc.HealthStub(channel)
    watching = aiter(stub.Watch(health_pb2.HealthCheckRequest()))
    told = [(await anext(watching)).status]
    broker.leading = False
    told.append((await anext(watching)).status)
    told.append((await stub.Check(health_pb2.HealthCheckRequest())).status)
    statuses = health_pb2.HealthCheckResponse
    assert told == [statuses.SERVING, statuses.NOT_SERVING, statuses.NOT_SERVING]


async def test_a_client_without_the_proto_file_can_ask_for_it(channel: grpc.aio.Channel) -> None:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(cast("grpc.Channel", channel))
    asked = reflection_pb2.ServerReflectionRequest
    questions = iter([asked(list_services=""), asked(file_containing_symbol="quorate.cms.Cms")])
    found = [answer async for answer in stub.ServerReflectionInfo(questions)]
    services = [service.name for service in found[0].list_services_response.service]
    assert "quorate.cms.Cms" in services
    assert b"TPermissionRequest" in b"".join(found[1].file_descriptor_response.file_descriptor_proto)


async def test_changes_are_pushed(channel: grpc.aio.Channel, broker: FakeBroker) -> None:
    broker.happening.put_nowait(Change(kind=ChangeKind.PERMISSION, verb=ChangeVerb.ENDED, id="u-p-1", owner="u"))
    broker.happening.put_nowait(None)
    method: Any = channel.unary_stream("/quorate.cms.Cms/Watch", response_deserializer=cms_pb2.TChange.FromString)
    asked = cms_pb2.TWatchRequest(User="u", RequestId="u-r-1").SerializeToString()
    pushed = [change async for change in method(asked)]
    expected = cms_pb2.TChange(Kind=cms_pb2.TChange.PERMISSION, Verb=cms_pb2.TChange.ENDED, Id="u-p-1", Owner="u")
    assert pushed == [expected]
    assert broker.watched == [("u", "u-r-1")]


async def test_a_watch_for_nobody_who_can_be_is_refused(channel: grpc.aio.Channel) -> None:
    method: Any = channel.unary_stream("/quorate.cms.Cms/Watch")
    for body in (b"\xff", b"\x0a\x01\xc9"):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            [change async for change in method(body)]
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_port_that_is_taken(listener: GrpcListener, broker: FakeBroker) -> None:
    with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1 port {listener.port}"):
        await serve_grpc(broker.as_broker, Access(), host="127.0.0.1", port=listener.port)


async def test_a_connection_on_which_nothing_is_asked_is_let_go(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "_IDLE", 200)
    listener = await serve_grpc(broker.as_broker, Access(), host="127.0.0.1", port=0)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}") as channel, asyncio.timeout(10):
            await channel.channel_ready()
            await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
    finally:
        await listener.close()
