"""Server-sent events: what happens is told at once, to those whom it concerns, until the server stops."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quorate.maintenance.messages import Caller, Change, ChangeKind, ChangeVerb
from quorate.server.broker import Streams, pushing
from tests.server.broker.conftest import Client
from tests.server.broker.fake import FakeBroker

EVENTS = "/cms/api/events"
ENDED = Change(kind=ChangeKind.PERMISSION, verb=ChangeVerb.ENDED, id="u-p-1", owner="u")


async def test_a_change_is_an_event(client: Client, broker: FakeBroker) -> None:
    async with client.session.get(f"{EVENTS}?User=u&RequestId=u-r-1") as stream:
        assert stream.content_type == "text/event-stream"
        assert await stream.content.readuntil(b"\n\n") == b": listening\n\n"
        assert broker.watched == [("u", "u-r-1")]
        broker.happening.put_nowait(ENDED)
        event, data = (await stream.content.readuntil(b"\n\n")).decode().strip().split("\n")
    assert event == "event: change"
    assert json.loads(data.removeprefix("data: ")) == {
        "Kind": "PERMISSION",
        "Verb": "ENDED",
        "Id": "u-p-1",
        "Owner": "u",
    }


async def test_silence_is_told_of(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "_SILENCE", 0.01)
    async with client.session.get(EVENTS) as stream:
        await stream.content.readuntil(b"\n\n")
        assert await stream.content.readuntil(b"\n\n") == b": listening\n\n"


async def test_a_parameter_that_is_not_there(client: Client, broker: FakeBroker) -> None:
    code, answer = await client.get(f"{EVENTS}?user=u")
    assert (code, broker.watched) == (400, [])
    assert answer["Status"]["Reason"].startswith("user: ")


async def test_a_stopping_server_ends_its_streams(client: Client) -> None:
    async with client.session.get(EVENTS) as stream:
        await stream.content.readuntil(b"\n\n")
        assert client.stop is not None
        await client.stop()
        assert await stream.content.read() == b""


async def test_the_end_of_the_broker_is_the_end_of_its_streams(client: Client, broker: FakeBroker) -> None:
    broker.happening.put_nowait(None)
    async with client.session.get(EVENTS) as stream:
        assert await stream.content.read() == b": listening\n\n"


@pytest.mark.parametrize(
    ("caller", "asked", "shown"),
    [
        (Caller(anyone=True), "", ""),
        (Caller(anyone=True), "bob", "bob"),
        (Caller(name="root", admin=True), "", ""),
        (Caller(name="root", admin=True), "bob", "bob"),
        (Caller(name="alice"), "", "alice"),
        (Caller(name="alice"), "alice", "alice"),
    ],
)
def test_everybody_sees_their_own(caller: Caller, asked: str, shown: str) -> None:
    assert Streams.allowed(caller, asked) == shown


async def test_a_listener_that_leaves_is_forgotten(broker: FakeBroker) -> None:
    left = asyncio.Event()

    async def changes(**_: Any) -> Any:
        try:
            yield ENDED
            await asyncio.Event().wait()
        finally:
            left.set()

    broker.changes = changes  # type: ignore[method-assign]
    stream = Streams(broker.as_broker).changes("", "")
    assert [await anext(stream) is None for _ in range(2)] == [True, False]
    await stream.aclose()
    assert left.is_set()
