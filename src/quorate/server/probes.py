"""Health and metrics of a process that serves nothing else.

An agent runs on every node, so this is not the server that ``quorate up`` has: that one takes a tenth of a second and
8 MB to import, to answer three questions. Here a connection is one question: it is answered and closed, and whoever has
not asked in ten seconds, or is in the way of somebody new, is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from quorate.engine.health import Health, report
from quorate.engine.logs import get_logger
from quorate.errors import CannotListen

_log = get_logger(__name__)

#: Seconds for a question and its answer.
DEADLINE: Final = 10.0
#: Connections at one time: a kubelet and a Prometheus or two. The descriptors are for the node's work.
_MOST: Final = 64
#: Bytes of a request's line and headers.
_LONGEST: Final = 16 * 1024

_TEXT: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
}


class Probes:
    """``/livez``, ``/readyz``, ``/healthz`` and ``/metrics`` for anybody who can connect: nothing secret is in them."""

    def __init__(self, health: Callable[[], Health], registry: CollectorRegistry) -> None:
        self._health = health
        self._registry = registry
        self._server: asyncio.Server | None = None
        #: Who is connected, whoever came first before the others.
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def listen(self, host: str, port: int) -> int:
        """Start serving; returns the port, which the system chooses when 0 is given."""
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=_LONGEST)
        except OSError as error:
            raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Serve no more."""
        if self._server is None:
            return
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(self._open) >= _MOST:
            first = next(iter(self._open))
            self._open.pop(first).transport.abort()
            first.cancel()
        task = asyncio.create_task(self._serve(reader, writer), name="probe")
        self._open[task] = writer
        task.add_done_callback(lambda ended: self._open.pop(ended, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Whoever hangs up, is too slow or sends too much gets no answer.
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(DEADLINE):
                    head = await reader.readuntil(b"\r\n\r\n")
                    try:
                        answer = self._answer(head)
                    except Exception as error:  # of a metric's own, say: whoever asks must not wait for nothing
                        _log.error("a probe failed in a way nobody foresaw", exc_info=error)
                        answer = _response(500, b"an error of ours; the log has the details\n")
                    writer.write(answer)
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            writer.transport.abort()

    def _answer(self, head: bytes) -> bytes:
        words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(400, b"this is no HTTP\n")
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return _response(405, b"only GET and HEAD\n")
        try:
            url = urlsplit(target)
        except ValueError:
            return _response(400, b"this is no path\n")
        status, body, media_type = self._page(url.path, parse_qs(url.query, keep_blank_values=True))
        return _response(status, body, media_type, head_only=method == "HEAD")

    def _page(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes, str]:
        if path == "/metrics":
            return 200, generate_latest(self._registry), CONTENT_TYPE_LATEST
        if path not in ("/livez", "/healthz", "/readyz"):
            return 404, b"404 page not found\n", _TEXT
        found = self._health()
        problems = found.not_live + (found.not_ready if path == "/readyz" else ())
        status, text = report(problems, verbose="verbose" in query)
        return status, text.encode(errors="backslashreplace"), _TEXT


def _response(status: int, body: bytes, media_type: str = _TEXT, *, head_only: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if head_only else body)
