"""Connections that are opened and not used: they end, they are counted, and others are served meanwhile."""

# ruff: noqa: ASYNC110 - nobody tells when a connection ends

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from quorate.api.core import Event, Namespace
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.health import Health
from quorate.server import connections, probes
from quorate.server.connections import ConnectionLimits, peer_of
from quorate.server.kubernetes import Access, Facade, Listener, listen, requests
from quorate.server.probes import Probes

ROOT = Path(__file__).parents[2]
HALF = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = HALF + b"\r\n"
WATCH = b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
#: Half-sent requests, in all their kinds.
HALVES = {
    "nothing": b"",
    "half a line": b"GET /rea",
    "half of the headers": HALF,
    "half a header": HALF + b"Accept: app",
    "a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}
HALF_BODIES = {
    "no body": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n",
    "half a body": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    "half a chunk": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    "half a patch": b"PATCH /api/v1/namespaces/default HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/merge-patch+json\r\nContent-Length: 9\r\n\r\n{",
    "half of DeleteOptions": b"DELETE /api/v1/namespaces/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{",
}


@asynccontextmanager
async def serving(limits: ConnectionLimits | None = None) -> AsyncIterator[Listener]:
    store = await EmbeddedStore.open(None, kinds=[Namespace.KIND, Event.KIND], clock=SystemClock(), random=Random(1))
    facade = Facade(
        store,
        kinds=(Namespace.KIND, Event.KIND),
        clock=SystemClock(),
        chance=Random(1),
        access=Access(),
        registry=CollectorRegistry(),
    )
    listener = await listen(facade, host="127.0.0.1", port=0, limits=limits)
    try:
        yield listener
    finally:
        await listener.close()
        await store.close()


async def connect(
    port: int, data: bytes, *, source: str = "127.0.0.1"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    writer.write(data)
    await writer.drain()
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server hangs up."""
    async with asyncio.timeout(15):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    for name in ("HEADERS_DEADLINE", "BODY_DEADLINE", "READING_DEADLINE"):
        monkeypatch.setattr(connections, name, 0.3)
    monkeypatch.setattr(connections, "_LOOK", 0.05)
    monkeypatch.setattr(probes, "DEADLINE", 0.3)
    monkeypatch.setattr(requests, "BODY_DEADLINE", 0.3)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
async def test_a_request_that_is_not_sent_whole_is_not_waited_for(sent: bytes) -> None:
    async with serving() as listener:
        reader, writer = await connect(listener.port, sent)
        assert b"200" not in await ended(reader)
        writer.close()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("sent", HALF_BODIES.values(), ids=HALF_BODIES)
async def test_a_body_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with serving() as listener:
        reader, writer = await connect(listener.port, sent)
        assert b"201" not in await ended(reader)
        writer.close()


@pytest.mark.usefixtures("hasty")
async def test_headers_that_come_a_byte_at_a_time_are_not_waited_for() -> None:
    async with serving() as listener:
        reader, writer = await connect(listener.port, HALF)
        answer = asyncio.create_task(ended(reader))
        while not answer.done():
            writer.write(b"X")
            await asyncio.wait([answer], timeout=0.05)
        writer.close()


@pytest.mark.usefixtures("hasty")
async def test_a_client_that_does_not_read_is_not_waited_for() -> None:
    async with serving() as listener:
        async with aiohttp.ClientSession(listener.url) as session:
            for number in range(40):
                event = {"metadata": {"name": f"e{number}"}, "involvedObject": {}, "message": "x" * 500_000}
                body = {"apiVersion": "v1", "kind": "Event", **event}
                async with session.post("/api/v1/namespaces/default/events", json=body) as answer:
                    assert answer.status == 201
        client = socket.create_connection(("127.0.0.1", listener.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        held = listener._server._connections._all
        async with asyncio.timeout(15):
            while not any(one.busy and one.unsent for one in held):
                await asyncio.sleep(0.01)  # it is being sent
            while any(one.busy for one in held):
                await asyncio.sleep(0.01)  # and no longer
        client.close()


@pytest.mark.usefixtures("hasty")
async def test_who_asked_before_and_who_watches_are_left_alone() -> None:
    async with serving() as listener:
        reader, writer = await connect(listener.port, WHOLE)
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(2) == b"ok"
        watching, watcher = await connect(listener.port, WATCH)
        assert b"200 OK" in await watching.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.0)
        writer.write(WHOLE)
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        watcher.close()
        writer.close()


async def test_whoever_waits_makes_room_for_whoever_asks() -> None:
    async with serving(ConnectionLimits(total=8, per_peer=4)) as listener:
        waiting = [await connect(listener.port, HALF) for _ in range(30)]
        reader, writer = await connect(listener.port, WHOLE)
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        for _, one in waiting:
            one.close()
        writer.close()


async def test_one_peer_does_not_take_all_places() -> None:
    async with serving(ConnectionLimits(total=8, per_peer=4)) as listener:
        watching = []
        for _ in range(4):
            reader, writer = await connect(listener.port, WATCH, source="127.0.0.2")
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            watching.append(writer)
        reader, writer = await connect(listener.port, WHOLE, source="127.0.0.2")
        assert await ended(reader) == b"", "turned away"
        writer.close()
        reader, writer = await connect(listener.port, WHOLE, source="127.0.0.3")
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        writer.close()
        watching.pop().close()
        async with asyncio.timeout(10):
            while True:  # as soon as the server has noticed
                reader, writer = await connect(listener.port, WHOLE, source="127.0.0.2")
                answer = await reader.read(100)
                writer.close()
                if b"200 OK" in answer:
                    break
                await asyncio.sleep(0.05)
        for one in watching:
            one.close()


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("::1", "::1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::1"),  # that network is everybody on the wire
    ],
)
def test_a_peer_of_ipv6_is_a_network(address: str, peer: str) -> None:
    assert peer_of(address) == peer


@pytest.mark.parametrize("room", [200, 4], ids=["accepted", "turned away"])
async def test_a_flood_of_connections_leaves_everything_else_its_turn(room: int) -> None:
    async with serving(ConnectionLimits(total=room, per_peer=room)) as listener:
        accepted = 0
        count = listener._server._connections._has_room

        def counted(peer: str) -> bool:
            nonlocal accepted
            accepted += 1
            return count(peer)

        listener._server._connections._has_room = counted  # type: ignore[method-assign]
        with ExitStack() as ending:
            for _ in range(100):  # the server's loop does not run meanwhile: all of them wait in the listener's queue
                ending.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
            at_once = 0
            async with asyncio.timeout(10):
                while accepted < 100:
                    before = accepted
                    await asyncio.sleep(0)
                    at_once = max(at_once, accepted - before)
            assert at_once <= 2


@pytest.mark.usefixtures("hasty")
async def test_the_probes_of_an_agent_are_held_to_the_same() -> None:
    served = Probes(Health, CollectorRegistry())
    port = await served.listen("127.0.0.1", 0)
    try:
        waiting = [await connect(port, HALF) for _ in range(200)]
        reader, writer = await connect(port, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        for reader, _ in waiting:
            assert b"200" not in await ended(reader)
        for _, one in (*waiting, (None, writer)):
            one.close()
    finally:
        await served.close()


@contextmanager
def up_with_few_descriptors(data: Path, log: Path) -> Iterator[int]:
    """``quorate up`` that may open 128 files; its port."""
    arguments = ["up", "--data", str(data), "--port", "0", "--nodes", "0", "--log-format", "json"]
    command = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", sys.executable, "-m", "quorate", *arguments]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().rsplit(":", 1)[1])
        finally:
            process.terminate()
            assert process.wait(30) == 0


def test_at_the_limit_of_descriptors_the_server_serves_and_writes_and_keeps_its_log_short(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with up_with_few_descriptors(tmp_path / "data", log) as port, ExitStack() as ending:
        url = f"http://127.0.0.1:{port}"
        for number in range(400):
            client = ending.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            client.sendall(HALF if number % 2 else b"garbage\r\n\r\n")
        for number in range(5):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}"}}
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{url}/api/v1/namespaces", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=10) as answer:
                assert answer.status == 201
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as answer:
            assert answer.read() == b"ok"
    text = log.read_text()
    assert "Traceback" not in text
    assert len(text) < 16 * 1024, text[:4000]
