"""An HTTP server that does, request by request, what a test tells it: answer, hang, or cut the connection."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


#: What to do with one request; returns whether the connection stays open.
Action = Callable[[Request, asyncio.StreamWriter], Awaitable[bool]]


def answer(code: int, body: object = None, **headers: str) -> Action:
    """A whole response; keyword ``Retry_After`` becomes the header Retry-After."""

    async def act(_request: Request, writer: asyncio.StreamWriter) -> bool:
        content = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(content)}", "Content-Type: application/json"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()
        return True

    return act


def status(code: int, reason: str, message: str = "no", **headers: str) -> Action:
    """A Kubernetes refusal."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return answer(code, {**body, "message": message}, **headers)


async def cut(_request: Request, _writer: asyncio.StreamWriter) -> bool:
    """Close the connection without a word, after the whole request was read."""
    return False


async def cut_in_answer(_request: Request, writer: asyncio.StreamWriter) -> bool:
    """Promise a body, send half of it, and close."""
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"metadata"')
    await writer.drain()
    return False


async def hang(_request: Request, _writer: asyncio.StreamWriter) -> bool:
    """Never answer."""
    await asyncio.Event().wait()
    return False


def stream(*chunks: bytes, then: str = "end") -> Action:
    """A chunked response; then it ends properly (``end``), is ``cut``, or falls ``silent``."""

    async def act(_request: Request, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if then == "silent":
            await asyncio.Event().wait()
        if then == "end":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return then == "end"

    return act


@dataclass
class ScriptedServer:
    script: list[Action]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    #: Set at the first request.
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    #: How many requests were being answered at once, at most.
    busiest: int = 0
    _busy: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read(reader):
                self.requests.append(request)
                self.asked.set()
                action = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                self._busy += 1
                self.busiest = max(self.busiest, self._busy)
                try:
                    if not await action(request, writer):
                        break
                finally:
                    self._busy -= 1
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *rest = head.strip().split("\r\n")
    method, target, _version = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


@asynccontextmanager
async def scripted(*script: Action, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """The last action is repeated for whatever comes after it."""
    made = ScriptedServer(list(script))
    async with listening(made.serve, tls) as made.url:
        yield made


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve every connection to the URL that this gives; all of them end with it."""
    tasks: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(serve(reader, writer)))
        writers.append(writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()  # closing alone would wait for the other side to take leave of TLS
            with suppress(OSError):
                await writer.wait_closed()
