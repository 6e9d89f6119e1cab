"""What nobody may ask is refused at every door, in the same words."""

from __future__ import annotations

from typing import Any

import aiohttp
import grpc
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict

from quorate.server.broker.proto import cms_pb2, cms_pb2_grpc
from tests.server.broker.real import Running, over_a_small_cluster

ACTION = {"Type": "SHUTDOWN_HOST", "Host": "h1"}


async def by_http(broker: Running, path: str, question: dict[str, Any]) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.post(f"{broker.url}/cms/api/{path}", json=question) as said:
        found: dict[str, Any] = await said.json()
        return found


async def by_grpc(broker: Running, field: str, question: dict[str, Any]) -> dict[str, Any]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{broker.grpc_port}") as channel:
        asked = ParseDict({field: question}, cms_pb2.TCmsRequest())
        answer = await cms_pb2_grpc.CmsStub(channel).Call(asked)  # type: ignore[no-untyped-call]
    found: dict[str, Any] = MessageToDict(answer, preserving_proto_field_name=True)
    return found


@pytest.mark.parametrize("duration", [2**63, 2**64 - 1, 7_776_000_000_001])
async def test_nothing_is_away_for_ever_through_any_door(duration: int) -> None:
    allowed = f"is {duration}: allowed are 0 to 7776000000000 microseconds (quotas.duration of the BrokerConfig)"
    asking = {"User": "u", "Actions": [{**ACTION, "Duration": str(duration)}]}
    telling = {**asking, "Time": "1767225600000000"}
    questions = (("permissionrequest", "PermissionRequest", asking), ("notification", "Notification", telling))
    async with over_a_small_cluster() as broker:
        before = broker.decided()
        for path, field, question in questions:
            for answer in (await by_http(broker, path, question), await by_grpc(broker, field, question)):
                assert answer["Status"] == {"Code": "WRONG_REQUEST", "Reason": f"Actions[0].Duration {allowed}"}
        assert broker.decided() == before
