"""Who may connect, how many, and for how long without asking anything.

aiohttp waits an hour for a request that was begun, and asyncio accepts until the process has no descriptor left, for
its own files neither. So connections are accepted here, before TLS:

- as many as the descriptors allow that the process does not keep back for itself, and of one peer only a part of them;
  where there is no room, whoever has waited longest without asking makes some, or else the newcomer is turned away;
- a handshake, the first request's headers and every body have a deadline, and so has a reader who does not read;
- whatever happens a thousand times a second is one line in the log a minute.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any, Final

from aiohttp import web

from quorate.engine.logs import get_logger
from quorate.errors import CannotListen

_log = get_logger(__name__)

#: Seconds for a TLS handshake, and for the headers of a connection's first request.
HEADERS_DEADLINE: Final = 10.0
#: Seconds that a connection is kept without a request: longer than clients keep theirs, so that they hang up first.
KEPT_OPEN: Final = 120.0
#: Seconds for a body whose handler has no deadline of its own.
BODY_DEADLINE: Final = 60.0
#: Seconds without a byte taken by a client to whom something is being sent.
READING_DEADLINE: Final = 60.0
#: Seconds that the rest of a refused body is read for, so that its sender sees the answer before the end.
_LINGERING: Final = 1.0
#: Seconds between two looks at all connections, and between two lines in the log.
_LOOK: Final = 1.0
_SELDOM: Final = 60.0
#: The most connections, whatever the descriptors allow: each takes memory.
_MOST: Final = 16384
#: Connections that are looked through, oldest first, for one that makes room.
_LOOKED_THROUGH: Final = 256
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be in all, and of one peer; of this machine itself half."""

    total: int
    per_peer: int

    @classmethod
    def of_this_process(cls) -> ConnectionLimits:
        """Half of the descriptors that the process may have; it asks for as many as it can get."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST * 2 if hard == resource.RLIM_INFINITY else min(hard, _MOST * 2)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                soft = wanted
        total = max(min(soft // 2, _MOST), 4) if soft != resource.RLIM_INFINITY else _MOST
        return cls(total, max(total // 4, 2))

    def of_peer(self, peer: str) -> int:
        """Users of this machine share one address."""
        return max(self.total // 2, self.per_peer) if peer.startswith("127.") or peer == "::1" else self.per_peer


def peer_of(address: str) -> str:
    """Whose connection it is: an address, and of IPv6 the network of 64 bits that one machine has to itself."""
    found = ip_address(address.partition("%")[0])
    if found.version == 4 or found.is_loopback or found.is_link_local:
        return str(found)
    return str(ip_network((found, 64), strict=False))


class Seldom:
    """One line for many events."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._told: dict[str, float] = {}

    def warn(self, event: str, **details: object) -> None:
        """Say it, and how often it was so; if it was said a short while ago, count it."""
        now = asyncio.get_running_loop().time()
        self._counts[event] += 1
        if now - self._told.get(event, -_SELDOM) >= _SELDOM:
            self._told[event] = now
            _log.warning(event, times=self._counts.pop(event), **details)


class _QuietLogger(logging.Logger):
    """aiohttp's: a request that cannot be read is the sender's affair, and no reason for a page of traceback each."""

    def __init__(self, seldom: Seldom) -> None:
        super().__init__("quorate.http")
        self._seldom = seldom

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        error = kwargs.get("exc_info")
        self._seldom.warn("a request could not be read", last=str(error or (str(msg) % args))[:200])


@dataclass(slots=True, eq=False)
class _Connection:
    peer: str
    #: When it began to wait for a request, or to be worked for.
    since: float
    #: Nobody before the handshake is done.
    protocol: web.RequestHandler | None = None
    #: As of the last look: the requests that came, whether one is worked on, what waits to be sent and since when.
    requests: int = 0
    busy: bool = False
    unsent: int = 0
    unsent_since: float = 0.0
    beginning: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def gone(self) -> bool:
        return self.beginning is None and (self.protocol is None or not self.protocol.connected)

    @property
    def waits(self) -> bool:
        return self.protocol is None or not self.protocol._request_in_progress

    def drop(self) -> None:
        if self.protocol is not None:
            # In this order: a transport that is being closed sends first what it has, to somebody who does not read.
            if self.protocol.transport is not None:
                self.protocol.transport.abort()
            self.protocol.force_close()
        elif self.beginning is not None:
            self.beginning.cancel()

    def is_overdue(self, now: float) -> bool:
        """Look at it; whether it has used up its time."""
        if self.protocol is None:
            return now - self.since > 2 * HEADERS_DEADLINE
        transport, requests = self.protocol.transport, self.protocol._request_count
        busy = self.protocol._request_in_progress
        if (requests, busy) != (self.requests, self.busy):
            self.requests, self.busy, self.since = requests, busy, now
        unsent = transport.get_write_buffer_size() if transport is not None else 0
        if not unsent or unsent != self.unsent:
            self.unsent, self.unsent_since = unsent, now
        if now - self.unsent_since > READING_DEADLINE:
            return True
        waited = now - self.since
        if not busy:
            return waited > (KEPT_OPEN if requests else HEADERS_DEADLINE)
        request = self.protocol._current_request
        return waited > BODY_DEADLINE and request is not None and not request.content.is_eof()


class Connections:
    """Everybody who is connected to one listener."""

    def __init__(
        self,
        make: Callable[[], web.RequestHandler],
        listeners: Sequence[socket.socket],
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits,
        seldom: Seldom,
    ) -> None:
        self._make = make
        self._listeners = listeners
        self._tls = tls
        self._limits = limits
        self._seldom = seldom
        self._loop = asyncio.get_running_loop()
        self._all: dict[_Connection, None] = {}
        self._of_peer: Counter[str] = Counter()
        self._tasks = [
            asyncio.create_task(self._look(), name="connections: look"),
            *(asyncio.create_task(self._accept(one), name="connections: accept") for one in listeners),
        ]

    async def close(self) -> None:
        """Accept nothing more. Whoever is connected stays so: ending that is the server's own affair."""
        beginning = [one.beginning for one in self._all if one.beginning is not None]
        for task in (*self._tasks, *beginning):
            task.cancel()
        await asyncio.gather(*self._tasks, *beginning, return_exceptions=True)
        for listener in self._listeners:
            listener.close()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            # While somebody waits to be accepted nothing below gives way: a flood would have the loop to itself.
            await asyncio.sleep(0)
            try:
                accepted, address = await self._loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._seldom.warn("no descriptor is left for connections", error=error.strerror)
                    self._make_room(None)
                    await asyncio.sleep(_LOOK / 10)
                continue
            peer = peer_of(str(address[0])) if isinstance(address, tuple) else ""
            if not self._has_room(peer):
                accepted.close()
                self._seldom.warn("a connection was turned away: there are too many", peer=peer, open=len(self._all))
                continue
            connection = _Connection(peer, self._loop.time())
            self._all[connection] = None
            self._of_peer[peer] += 1
            connection.beginning = asyncio.create_task(self._begin(connection, accepted))
            connection.beginning.add_done_callback(partial(self._begun, connection, accepted))

    async def _begin(self, connection: _Connection, accepted: socket.socket) -> None:
        with suppress(OSError, TimeoutError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            deadline = HEADERS_DEADLINE if self._tls is not None else None
            _, connection.protocol = await self._loop.connect_accepted_socket(
                self._make, accepted, ssl=self._tls, ssl_handshake_timeout=deadline
            )

    def _begun(self, connection: _Connection, accepted: socket.socket, _: asyncio.Task[None]) -> None:
        """Also where the task was ended before it ran at all."""
        connection.beginning = None
        if connection.protocol is None:
            accepted.close()
        if connection.gone:
            self._forget(connection)

    def _has_room(self, peer: str) -> bool:
        """Whether one more may come of this peer, if need be in the place of another."""
        for of, most in ((peer, self._limits.of_peer(peer)), (None, self._limits.total)):
            if self._count(of) >= most:
                self._forget_the_gone()
                if self._count(of) >= most and not self._make_room(of):
                    return False
        return True

    def _count(self, peer: str | None) -> int:
        return len(self._all) if peer is None else self._of_peer[peer]

    def _make_room(self, peer: str | None) -> bool:
        """End the connection that has waited longest without asking anything, of this peer or of anybody."""
        candidates = (one for one in self._all if one.waits and (peer is None or one.peer == peer))
        longest = min(islice(candidates, _LOOKED_THROUGH), key=lambda one: (one.requests > 0, one.since), default=None)
        if longest is None:
            return False
        self._seldom.warn("connections that asked nothing made room for others", peer=longest.peer)
        self._forget(longest)
        longest.drop()
        return True

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            now = self._loop.time()
            for connection in [one for one in self._all if one.gone or one.is_overdue(now)]:
                self._forget(connection)
                if not connection.gone:
                    self._seldom.warn("connections were ended that took too long", peer=connection.peer)
                    connection.drop()

    def _forget_the_gone(self) -> None:
        for connection in [one for one in self._all if one.gone]:
            self._forget(connection)

    def _forget(self, connection: _Connection) -> None:
        if connection in self._all:
            del self._all[connection]
            self._of_peer[connection.peer] -= 1
            if not self._of_peer[connection.peer]:
                del self._of_peer[connection.peer]


@dataclass(frozen=True, slots=True)
class HttpServer:
    """An application that is served at an address."""

    host: str
    port: int
    _runner: web.AppRunner
    _connections: Connections

    async def close(self) -> None:
        """Accept nothing more, end what does not end by itself, let the rest finish."""
        await self._connections.close()
        await self._runner.cleanup()


async def serve(
    app: web.Application,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    patience: float,
    limits: ConnectionLimits | None = None,
) -> HttpServer:
    """Serve an application; port 0 lets the system choose. ``patience``: seconds for requests under way at the end."""
    seldom = Seldom()
    # A client that hangs up ends its handler: that is how a watch learns that nobody listens any more.
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=patience,
        keepalive_timeout=KEPT_OPEN,
        lingering_time=_LINGERING,
        logger=_QuietLogger(seldom),
    )
    await runner.setup()
    try:
        listeners = await _listen(host, port)
    except OSError as error:
        await runner.cleanup()
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    assert runner.server is not None
    limits = limits if limits is not None else ConnectionLimits.of_this_process()
    connections = Connections(runner.server, listeners, tls, limits, seldom)
    return HttpServer(host, listeners[0].getsockname()[1], runner, connections)


async def _listen(host: str, port: int) -> list[socket.socket]:
    """On every address that a name stands for, all with one port."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], port, *address[2:]))
            listener.listen(128)
            port = port or listener.getsockname()[1]
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners
