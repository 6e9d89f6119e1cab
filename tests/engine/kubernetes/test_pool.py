"""Which connection a request goes over, and what is never sent over one again."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from quorate.engine.kubernetes import pool, wire
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import FixedCredentials
from quorate.engine.kubernetes.transport import Limits, Transport
from quorate.errors import OutcomeUnknown, QuorateError, StoreUnreachable
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.engine.kubernetes.scripted import Action, Request, ScriptedServer, answer, hang, listening, scripted, stream
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


async def test_an_answer_that_closing_cut_off_is_not_taken_for_a_whole_one() -> None:
    begun = asyncio.Event()

    async def endless(_request: Request, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nhalf of the ans")
        await writer.drain()
        begun.set()
        await asyncio.Event().wait()
        return False

    async with connected(endless) as (transport, _server):
        asking = asyncio.create_task(transport.write("POST", "/x", b"{}"))
        await begun.wait()
        await asyncio.sleep(0.02)
        await transport.close()
        with pytest.raises(OutcomeUnknown, match="closed on this side"):
            await asking


async def test_after_closing_nothing_is_sent_not_even_again() -> None:
    async with connected(hang) as (transport, server):
        asking = asyncio.create_task(transport.read("/x"))
        await server.asked.wait()
        await transport.close()
        with pytest.raises(StoreUnreachable, match="closed"):
            await asking
        with pytest.raises(StoreUnreachable, match="closed"):
            await transport.write("POST", "/x", b"{}")
        assert server.connections == 1


async def test_closing_ends_a_stream_with_an_error() -> None:
    async with connected(stream(b"one\n", then="silent")) as (transport, _server), transport.stream("/w") as lines:
        assert await anext(lines) == b"one"
        await transport.close()
        with pytest.raises(StoreUnreachable, match="closed on this side"):
            await anext(lines)


async def test_a_connection_whose_request_was_cancelled_is_not_used_again() -> None:
    async with connected(hang, answer(200, b"second")) as (transport, server):
        asking = asyncio.create_task(transport.write("POST", "/x", b"{}"))
        await server.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await transport.read("/x") == b"second"
        assert server.connections == 2


async def test_a_connection_whose_stream_was_left_is_not_used_again() -> None:
    async with connected(stream(b"one\n", b"two\n"), answer(200, b"second")) as (transport, server):
        async with transport.stream("/w") as lines:
            assert await anext(lines) == b"one"
        assert await transport.read("/x") == b"second"
        assert server.connections == 2


async def test_a_connection_that_was_busy_while_the_certificate_changed_is_not_used_again() -> None:
    async with scripted(answer(200)) as server:
        credentials = FixedCredentials(clock=ManualClock())
        made = pool.Pool(Connection(server=server.url, credentials=credentials, origin="test"), connect_timeout=2.0)
        busy = await made.take()
        made.use(ssl.create_default_context())
        made.give_back(busy)
        assert await made.take() is not busy
        await made.close()


async def test_an_idle_connection_does_not_keep_the_last_answer() -> None:
    async with connected(answer(200, b"x" * 1_000_000)) as (transport, _server):
        body = await transport.read("/x")
        await asyncio.sleep(0)  # the event loop itself holds on to what woke us until it wakes somebody again
        assert sys.getrefcount(body) == 2, "ours, and that of the call that counts"


async def test_an_answer_may_come_byte_by_byte() -> None:
    async def drip(_request: Request, writer: asyncio.StreamWriter) -> bool:
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na\nbc\n\r\n0\r\nX: y\r\n\r\n":
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        return True

    async with connected(drip) as (transport, server):
        assert await transport.read("/x") == b"a\nbc\n"
        assert await transport.read("/x") == b"a\nbc\n"
        assert server.connections == 1
        async with transport.stream("/w") as lines:
            assert [line async for line in lines] == [b"a", b"bc"]


@pytest.mark.parametrize("sent", [[b"x" * 1_000_000], [b"%d" % number for number in range(20_000)]])
async def test_lines_may_be_longer_than_what_is_read_at_once_or_many_in_it(sent: list[bytes]) -> None:
    script = stream(b"".join(line + b"\n" for line in sent))
    async with connected(script) as (transport, _server), transport.stream("/w") as lines:
        assert [line async for line in lines] == sent


@pytest.mark.parametrize("server", ["http://a..b:80", f"http://{'a' * 64}.test:80"])
async def test_a_name_that_no_host_can_have_is_no_server(server: str) -> None:
    connection = Connection(server=server, credentials=FixedCredentials(clock=ManualClock()), origin="test")
    transport = Transport(connection, clock=ManualClock(), limits=QUICK)
    with pytest.raises(StoreUnreachable, match="cannot connect to"):
        await transport.read("/x")
    await transport.close()


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

    @pytest.mark.parametrize(
        "acceptance",
        [
            b"HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 7\r\n\r\n",
        ],
    )
    async def test_a_tunnel_stays_open_whatever_its_acceptance_says_of_http(
        self, authority: Authority, acceptance: bytes
    ) -> None:
        async with (
            scripted(answer(200, b"ok"), tls=self.context(authority, "api.test")) as server,
            tunnelling(server, acceptance=acceptance) as proxy,
        ):
            transport = self.through(proxy.url, authority)
            assert await transport.read("/x") == b"ok"
            assert await transport.read("/x") == b"ok"
            assert server.connections == 1
            await transport.close()

    async def test_a_tunnel_in_which_the_proxy_speaks_first_is_not_used(self, authority: Authority) -> None:
        async with scripted(raw(b"HTTP/1.1 200 OK\r\n\r\nhello")) as proxy:
            transport = self.through(proxy.url, authority)
            with pytest.raises(StoreUnreachable, match="the proxy broke"):
                await transport.read("/x")
            await transport.close()

    async def test_a_tunnel_that_opens_after_closing_is_not_used(self, authority: Authority) -> None:
        gate = asyncio.Event()
        async with (
            scripted(answer(200), tls=self.context(authority, "api.test")) as server,
            tunnelling(server, gate=gate) as proxy,
        ):
            transport = self.through(proxy.url, authority)
            asking = asyncio.create_task(transport.write("POST", "/x", b"{}"))
            await proxy.reached.wait()
            await transport.close()
            gate.set()
            with pytest.raises(StoreUnreachable, match="closed"):
                await asking
            assert server.requests == []

    async def test_a_tunnel_that_is_lost_right_after_its_handshake_has_sent_nothing(
        self, authority: Authority, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def lost(*_arguments: object, **_settings: object) -> None:
            """What asyncio returns then."""

        monkeypatch.setattr(asyncio.get_running_loop(), "start_tls", lost)
        async with scripted(raw(b"HTTP/1.1 200 OK\r\n\r\n")) as proxy:
            transport = self.through(proxy.url, authority)
            with pytest.raises(StoreUnreachable, match="the proxy broke"):
                await transport.write("POST", "/x", b"{}")
            await transport.close()

    async def test_a_certificate_that_does_not_fit_is_told_of_the_server_and_not_of_the_proxy(
        self, authority: Authority
    ) -> None:
        async with (
            scripted(answer(200), tls=self.context(authority, "other.test")) as server,
            tunnelling(server) as proxy,
        ):
            transport = self.through(proxy.url, authority)
            with pytest.raises(StoreUnreachable, match=r"connect to api\.test:6443 through the proxy 127.*certificate"):
                await transport.read("/x")
            await transport.close()

    async def test_the_dot_at_the_end_of_a_name_is_not_looked_for_in_a_certificate(self, authority: Authority) -> None:
        async with (
            scripted(answer(200, b"ok"), tls=self.context(authority, "api.test")) as server,
            tunnelling(server) as proxy,
        ):
            transport = self.through(proxy.url, authority, server="https://api.test.:6443")
            assert await transport.read("/x") == b"ok"
            await transport.close()

    @pytest.mark.parametrize(
        ("server", "asked"),
        [
            ("https://[fd00::1]:6443", "CONNECT [fd00::1]:6443"),
            ("http://[fd00::1]:8080", "GET http://[fd00::1]:8080/x"),
        ],
    )
    async def test_an_address_of_ipv6_stays_in_its_brackets(
        self, authority: Authority, server: str, asked: str
    ) -> None:
        async with scripted(answer(403)) as proxy:
            transport = self.through(proxy.url, authority, server=server)
            with pytest.raises(QuorateError):
                await transport.read("/x")
            await transport.close()
            request = proxy.requests[0]
            assert f"{request.method} {request.target}" == asked
            assert request.headers["host"] == server.split("//")[1]

    async def test_a_server_without_tls_is_reached_through_a_proxy_with_it(self, authority: Authority) -> None:
        async with scripted(answer(200, b"ok"), tls=self.context(authority, "localhost")) as proxy:
            transport = self.through(proxy.url, authority, server="http://api.test:8080")
            assert await transport.read("/x") == b"ok"
            assert proxy.requests[0].target == "http://api.test:8080/x"
            await transport.close()

    async def test_a_handshake_that_takes_too_long_is_given_up(self, authority: Authority) -> None:
        async with scripted(hang) as server:
            host = server.url.removeprefix("http://")
            connection = Connection(
                server=f"https://{host}", credentials=FixedCredentials(clock=ManualClock()), origin="test"
            )
            transport = Transport(connection, clock=ManualClock(), limits=Limits(connect_timeout=0.1))
            with pytest.raises(StoreUnreachable, match=f"cannot connect to {host} within 0.1 s"):
                await transport.write("POST", "/x", b"{}")
            await transport.close()

    async def test_a_proxy_that_breaks_off_has_sent_nothing(self, authority: Authority) -> None:
        async with scripted(raw(b"", stays=False)) as proxy:
            transport = self.through(proxy.url, authority)
            with pytest.raises(StoreUnreachable, match="the proxy broke"):
                await transport.write("POST", "/x", b"{}")
            await transport.close()

    def through(self, proxy: str, authority: Authority, server: str = "https://api.test:6443") -> Transport:
        connection = Connection(
            server=server,
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
        self.reached = asyncio.Event()


@asynccontextmanager
async def tunnelling(
    server: ScriptedServer,
    tls: ssl.SSLContext | None = None,
    *,
    acceptance: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
    gate: asyncio.Event | None = None,
) -> AsyncIterator[Proxy]:
    """A proxy that connects everybody to this server, once the gate is open."""
    made = Proxy()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
        made.reached.set()
        if gate is not None:
            await gate.wait()
        there, onward = await asyncio.open_connection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
        writer.write(acceptance)
        await asyncio.gather(_pipe(reader, onward), _pipe(there, writer))

    async with listening(serve, tls) as made.url:
        yield made


async def _pipe(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            drain.write(data)
            await drain.drain()
    finally:
        drain.close()
        with suppress(OSError):
            await drain.wait_closed()
