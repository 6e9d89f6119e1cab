"""Connections to one server: made when there is none to spare, directly or through a proxy, and kept for the next."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque

from yarl import URL

from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.proxy import without_password
from quorate.engine.kubernetes.wire import Broken, Wire

#: Seconds for which an idle connection is kept. The longer, the more often the server closes one just as a write is
#: sent on it, and the outcome of that write is unknown.
KEEP = 15.0

_BUFFER = 1 << 18

#: Seconds after which the next address of a host is tried beside the first, as RFC 8305 has it.
_NEXT_ADDRESS = 0.25


class NotConnected(Exception):
    """No connection came about, so nothing was sent."""


class Pool:
    """Must be made inside a running event loop, and closed."""

    def __init__(self, connection: Connection, *, connect_timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = URL(connection.server)
        # With the dot that keeps a resolver from trying other domains no certificate would fit.
        self._server_name = connection.tls_server_name or (self._server.raw_host or "").rstrip(".")
        self._connect_timeout = connect_timeout
        self._proxy: URL | None = None
        self._proxy_headers: dict[str, str] = {}
        if connection.proxy:
            self._proxy, self._proxy_headers = without_password(connection.proxy)
        #: What errors call the way there.
        self._there = _address(self._server) + (f" through the proxy {_address(self._proxy)}" if self._proxy else "")
        self._closed = asyncio.Event()
        self._buffer = memoryview(bytearray(_BUFFER))
        self._tls: ssl.SSLContext | None = None
        #: All that are open, and what each was made with.
        self._open: dict[Wire, ssl.SSLContext | None] = {}
        #: Idle ones and since when, the latest last. All were made with the current TLS context.
        self._idle: deque[tuple[float, Wire]] = deque()

    def use(self, tls: ssl.SSLContext) -> None:
        """Make connections like this from now on, and use no others."""
        self._tls = tls
        while self._idle:
            self._idle.pop()[1].abort()

    async def take(self) -> Wire:
        """A connection that nobody else uses; NotConnected if none can be made."""
        kept_since = self._loop.time() - KEEP
        while self._idle and self._idle[0][0] < kept_since:
            self._idle.popleft()[1].abort()
        while self._idle:
            wire = self._idle.pop()[1]
            if wire.idle:
                return wire
        return await self.connect()

    async def connect(self) -> Wire:
        """A new connection; NotConnected if it cannot be made."""
        if self._closed.is_set():
            raise NotConnected("the client was closed")
        tls = self._tls
        via = self._proxy or self._server
        host = via.raw_host or ""
        secured = via.scheme == "https"
        name = host.rstrip(".") if self._proxy else self._server_name
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, wire = await self._loop.create_connection(
                    lambda: Wire(self._buffer),
                    host,
                    via.port or 0,
                    ssl=tls if secured else None,
                    server_hostname=name if secured else None,
                    happy_eyeballs_delay=_NEXT_ADDRESS,
                )
                _notice_a_dead_peer(wire.transport)
                if self._proxy is not None and self._server.scheme == "https":
                    assert tls is not None, "use() was not called"
                    await self._tunnel(wire, tls)
        except TimeoutError as error:
            raise NotConnected(f"cannot connect to {self._there} within {self._connect_timeout:g} s") from error
        except (OSError, ValueError) as error:  # ValueError: a name that no host can have
            raise NotConnected(f"cannot connect to {self._there}: {str(error) or type(error).__name__}") from error
        if self._closed.is_set():
            wire.abort()
            raise NotConnected("the client was closed")
        if not wire.idle:
            raise NotConnected(f"{self._there} closed the connection at once")
        self._open[wire] = tls
        wire.closed.add_done_callback(lambda _: self._open.pop(wire))
        return wire

    def give_back(self, wire: Wire) -> None:
        """Keep it for the next request, if it can still be used."""
        if wire.idle and self._open[wire] is self._tls:
            self._idle.append((self._loop.time(), wire))
        else:
            wire.abort()

    async def close(self) -> None:
        """Close all connections, also those that are in use. Idempotent."""
        self._closed.set()
        self._idle.clear()
        under_way = tuple(self._open)
        for wire in under_way:
            wire.abort()
        for wire in under_way:
            await wire.closed

    async def _tunnel(self, wire: Wire, tls: ssl.SSLContext) -> None:
        """Have the proxy connect us, and begin TLS with the server inside of that."""
        to = _address(self._server)
        lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
        lines += [f"{name}: {value}" for name, value in self._proxy_headers.items()]
        try:
            answer = await wire.ask("\r\n".join([*lines, "", ""]).encode("ascii"), tunnel=True)
            if answer.head.status >= 300:
                raise NotConnected(f"the proxy answered {answer.head.status} {answer.head.reason}")
            if not wire.idle:
                raise Broken("it went on speaking, or closed")
            inside = await self._loop.start_tls(wire.transport, wire, tls, server_hostname=self._server_name)
            if inside is None:
                raise Broken("it was lost as soon as it was encrypted")
            wire.transport = inside
        except Broken as error:
            wire.abort()
            raise NotConnected(f"the connection to the proxy broke: {error}") from None
        except BaseException:
            wire.abort()
            raise


def _address(url: URL) -> str:
    return f"{url.host_subcomponent}:{url.port}"


def _notice_a_dead_peer(transport: asyncio.Transport) -> None:
    """Within half a minute, also while only a watch waits on it."""
    made = transport.get_extra_info("socket")
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
