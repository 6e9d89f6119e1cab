"""Which connection a request goes over, and what is never sent over one again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.engine.kubernetes import pool, wire
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import FixedCredentials
from quorate.engine.kubernetes.transport import Limits, Transport
from quorate.errors import OutcomeUnknown, StoreUnreachable
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.engine.kubernetes.scripted import Action, Request, ScriptedServer, answer, hang, scripted, stream
from tests.support.certificates import Authority

QUICK = Limits(write_timeout=0.3, read_timeout=0.3, connect_timeout=2.0)


def raw(content: bytes, *, stays: bool = True) -> Action:
    """Exactly these bytes."""

    async def act(_request: Request, writer: asyncio.StreamWriter) -> bool:
        writer.write(content)
        await writer.drain()
        return stays

    return act


@asynccontextmanager
async def connected(*script: Action) -> AsyncIterator[tuple[Transport, ScriptedServer]]:
    async with scripted(*script) as server:
        credentials = FixedCredentials(clock=ManualClock())
        connection = Connection(server=server.url, credentials=credentials, origin="test")
        transport = Transport(connection, clock=ManualClock(), limits=QUICK)
        try:
            yield transport, server
        finally:
            await transport.close()


@pytest.mark.parametrize(
    "first",
    [
        raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        raw(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        raw(b"HTTP/1.0 200 OK\r\n\r\nok", stays=False),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"),
    ],
    ids=["said to close", "HTTP/1.0", "ends with its connection", "too much"],
)
async def test_a_connection_that_cannot_be_trusted_with_another_request_is_not(first: Action) -> None:
    async with connected(first, answer(200, b"second")) as (transport, server):
        assert await transport.read("/x") == b"ok"
        assert await transport.write("POST", "/x", b"{}") == b"second"
        assert server.connections == 2


async def test_an_answer_that_comes_too_late_is_not_taken_for_that_of_another_request() -> None:
    late = asyncio.Event()

    async def slow(request: Request, writer: asyncio.StreamWriter) -> bool:
        await late.wait()
        return await answer(200, b"late")(request, writer)

    async with connected(slow, answer(200, b"second")) as (transport, server):
        with pytest.raises(OutcomeUnknown):
            await transport.write("POST", "/x", b"{}")
        late.set()
        assert await transport.read("/x") == b"second"
        assert server.connections == 2


async def test_what_the_server_says_unasked_ends_the_connection() -> None:
    async def talks_on(request: Request, writer: asyncio.StreamWriter) -> bool:
        await answer(200, b"first")(request, writer)
        await asyncio.sleep(0.01)
        return await answer(200, b"unasked")(request, writer)

    async with connected(talks_on, answer(200, b"second")) as (transport, server):
        assert await transport.read("/x") == b"first"
        await asyncio.sleep(0.05)
        assert await transport.write("POST", "/x", b"{}") == b"second"
        assert server.connections == 2


async def test_a_connection_that_the_server_has_closed_meanwhile_is_not_used() -> None:
    async def closes(request: Request, writer: asyncio.StreamWriter) -> bool:
        await answer(200, b"first")(request, writer)
        return False

    async with connected(closes, answer(200, b"second")) as (transport, server):
        assert await transport.read("/x") == b"first"
        await asyncio.sleep(0.05)
        assert await transport.write("POST", "/x", b"{}") == b"second"
        assert server.connections == 2


async def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(answer(200, b"ok")) as (transport, server):
        await transport.read("/x")
        monkeypatch.setattr(pool, "KEEP", 0.0)
        await transport.read("/x")
        assert server.connections == 2


async def test_closing_ends_what_is_under_way() -> None:
    async with connected(hang) as (transport, server):
        asking = asyncio.create_task(transport.write("POST", "/x", b"{}"))
        await server.asked.wait()
        await transport.close()
        with pytest.raises(OutcomeUnknown):
            await asking


async def test_a_stream_that_nobody_follows_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "BACKLOG", 100_000)
    line = b"x" * 9_999 + b"\n"
    sent = 0

    async def pour(_request: Request, writer: asyncio.StreamWriter) -> bool:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(10_000):
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")
        return True

    async with connected(pour) as (transport, _server), transport.stream("/w") as lines:
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 5_000, "the rest waits in the server"
        assert [found async for found in lines] == [line[:-1]] * 10_000


class TestTunnels:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path)

    def context(self, authority: Authority, name: str) -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        pair = authority.server(name, name)
        made.load_cert_chain(pair.certificate, pair.key)
        return made

    @pytest.mark.parametrize("secured", [False, True], ids=["http proxy", "https proxy"])
    async def test_requests_and_streams_go_through_a_proxy(self, authority: Authority, secured: bool) -> None:
        script = answer(200, b"ok"), answer(200, b"again"), stream(b"one\n")
        async with (
            scripted(*script, tls=self.context(authority, "api.test")) as server,
            tunnelling(server, self.context(authority, "localhost") if secured else None) as proxy,
        ):
            transport = self.through(proxy.url, authority)
            assert await transport.write("POST", "/x", b"{}") == b"ok"
            assert await transport.read("/x") == b"again"
            async with transport.stream("/w") as lines:
                assert [line async for line in lines] == [b"one"]
            await transport.close()
            assert proxy.asked == ["CONNECT api.test:6443 HTTP/1.1"] * 2, "a stream has a connection of its own"

    async def test_a_proxy_that_breaks_off_has_sent_nothing(self, authority: Authority) -> None:
        async with scripted(raw(b"", stays=False)) as proxy:
            transport = self.through(proxy.url, authority)
            with pytest.raises(StoreUnreachable, match="the proxy broke"):
                await transport.write("POST", "/x", b"{}")
            await transport.close()

    def through(self, proxy: str, authority: Authority) -> Transport:
        connection = Connection(
            server="https://api.test:6443",
            credentials=FixedCredentials(clock=ManualClock()),
            origin="test",
            ca=authority.certificate.read_bytes(),
            proxy=proxy,
        )
        return Transport(connection, clock=ManualClock(), limits=QUICK)


class Proxy:
    def __init__(self) -> None:
        self.url = ""
        #: The first line of each request.
        self.asked: list[str] = []


@asynccontextmanager
async def tunnelling(server: ScriptedServer, tls: ssl.SSLContext | None) -> AsyncIterator[Proxy]:
    """A proxy that connects everybody to this server."""
    made = Proxy()
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
        there, onward = await asyncio.open_connection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pipe(reader, onward), _pipe(there, writer))

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(serve(reader, writer)))

    listening = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    made.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    try:
        yield made
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pipe(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            drain.write(data)
            await drain.drain()
    finally:
        drain.close()
