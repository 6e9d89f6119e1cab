"""HTTP to one API server: bounded, honest about what it does not know, and cheap.

- At most ``in_flight`` requests at a time (watches apart), and no rate limit: the server has its own fairness and
  says 429, which is obeyed.
- A deadline covers a whole request: waiting for a slot, for credentials, for Retry-After, and for the answer. The
  leader's fencing rests on it: no write can leave this process, or still be under way, longer than
  ``write_timeout`` after it was asked for.
- A write is sent again only when the server has said that it did not act on it: after 401 once, if there are other
  credentials, and after 429 with Retry-After. 502 and 503 may come from a gateway that lost the server in the middle
  of a write, so only reads are sent again after them, and only if they say when (Retry-After). If the connection
  breaks after a write was sent, or a gateway answers it with 502, the truth is OutcomeUnknown.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import hdrs
from yarl import URL

from quorate import __version__
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.answers import refusal
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import Identity
from quorate.engine.kubernetes.proxy import without_password
from quorate.engine.kubernetes.tls import tls_context
from quorate.errors import OutcomeUnknown, ServiceUnavailable, StoreUnreachable, TooManyRequests, Unauthorized

#: Called after every answer with method, host, code (or ``<error>``) and seconds.
Observer = Callable[[str, str, str, float], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much; seconds where it is time."""

    #: Requests at a time, watches not counted.
    in_flight: int = 32
    #: A whole write. The leader lease must allow for it: write_timeout < lease duration - renew deadline.
    write_timeout: float = 4.0
    #: A whole read; a page of a list may be megabytes.
    read_timeout: float = 30.0
    #: To reach the server at all, TLS included.
    connect_timeout: float = 3.0
    #: A watch that says nothing for so long, not even a bookmark (one comes every minute), is dead.
    watch_silence: float = 90.0
    #: How often a read is tried again after a broken connection, and a request after an answer that means "not now".
    retries: int = 3
    #: First pause before a read is tried again; doubles.
    retry_pause: float = 0.05


DEFAULT_LIMITS = Limits()


class _Broken(Exception):
    """The connection broke after the request may have been sent."""


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from repeating a DELETE by itself when a kept-alive connection breaks: it may have been done."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken(_why(error)) from error


_ONCE = (_send_once,)


class Transport:
    """One aiohttp session. Must be made inside a running event loop, and closed."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        limits: Limits = DEFAULT_LIMITS,
        observe: Observer | None = None,
        user_agent: str = f"quorate/{__version__}",
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._host = URL(connection.server).authority
        proxy, proxy_authorization = without_password(connection.proxy) if connection.proxy else (None, {})
        # Inside TLS a proxy sees only what it is asked to connect to; without TLS, the requests themselves.
        tunnels = connection.server.startswith("https:")
        self._proxy_headers = proxy_authorization if tunnels else {}
        self._plain_headers = {} if tunnels else proxy_authorization
        self._slots = asyncio.Semaphore(limits.in_flight)
        # What the current identity is sent as; rebuilt only when the identity changes.
        self._identity: Identity | None = None
        self._authorization: dict[str, str] = {}
        self._tls: ssl.SSLContext | bool = True
        self._timeout = aiohttp.ClientTimeout(total=None, connect=limits.connect_timeout)
        self._watch_timeout = aiohttp.ClientTimeout(
            total=None, connect=limits.connect_timeout, sock_read=limits.watch_silence
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compression saves bytes that a cluster's network has, and costs CPU that the API server lacks.
            headers={hdrs.ACCEPT: "application/json", hdrs.ACCEPT_ENCODING: "identity", hdrs.USER_AGENT: user_agent},
            auto_decompress=False,
            proxy=proxy,
            timeout=self._timeout,
        )

    async def read(self, target: str) -> bytes:
        """GET; ``target`` is path and query, already quoted."""
        try:
            async with asyncio.timeout(self._limits.read_timeout), self._slots:
                return await self._read(target)
        except TimeoutError as error:
            raise self._unreachable(f"no answer to GET {target} within {self._limits.read_timeout:g} s") from error

    async def write(self, method: str, target: str, body: bytes, content_type: str = "application/json") -> bytes:
        """POST, PATCH or DELETE. Raises OutcomeUnknown when it may have been done."""
        exchange = _Exchange(method, target, body, content_type, self._clock.monotonic() + self._limits.write_timeout)
        try:
            async with (
                asyncio.timeout(self._limits.write_timeout),
                self._slots,
                await self._answer(exchange) as response,
            ):
                return await response.read()
        except TimeoutError as error:
            problem = f"no answer to {method} {target} within {self._limits.write_timeout:g} s"
            if exchange.sent:
                raise self._unknown(problem) from error
            raise self._unreachable(f"{problem}: it was not sent") from error
        except (_Broken, aiohttp.ClientError) as error:
            raise self._unknown(f"the connection broke during {method} {target} ({_why(error)})") from error

    @asynccontextmanager
    async def stream(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET whose answer does not end: its lines as they come. Not counted among the requests in flight."""
        exchange = _Exchange("GET", target, None, None, self._clock.monotonic() + self._limits.read_timeout, watch=True)
        try:
            async with asyncio.timeout(self._limits.read_timeout):
                response = await self._answer(exchange)
        except (_Broken, aiohttp.ClientError, TimeoutError) as error:
            raise self._unreachable(f"no answer to GET {target} ({_why(error)})") from error
        try:
            async with aclosing(self._lines(response, target)) as lines:
                yield lines
        finally:
            response.close()

    async def close(self) -> None:
        """Close the session and its connections. Idempotent."""
        await self._session.close()

    async def _lines(self, response: aiohttp.ClientResponse, target: str) -> AsyncGenerator[bytes, None]:
        """Complete lines; a last one without its newline was cut off and is dropped."""
        rest = b""
        try:
            async for chunk in response.content.iter_any():
                *complete, rest = (rest + chunk).split(b"\n")
                for line in complete:
                    yield line
        except TimeoutError as error:
            silence = f"nothing came from GET {target} for {self._limits.watch_silence:g} s"
            raise self._unreachable(silence) from error
        except aiohttp.ClientError as error:
            raise self._unreachable(f"the connection of GET {target} broke ({_why(error)})") from error

    async def _read(self, target: str) -> bytes:
        exchange = _Exchange("GET", target, None, None, self._clock.monotonic() + self._limits.read_timeout)
        for attempt in range(self._limits.retries + 1):
            try:
                async with await self._answer(exchange) as response:
                    return await response.read()
            except (_Broken, aiohttp.ClientError) as error:
                if attempt == self._limits.retries:
                    raise self._unreachable(f"the connection of GET {target} broke ({_why(error)})") from error
            await self._clock.sleep(self._limits.retry_pause * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    async def _answer(self, exchange: _Exchange) -> aiohttp.ClientResponse:
        """The server's acceptance. Refusals that mean "not now" or "who are you" are dealt with here."""
        renewed = False
        patience = self._limits.retries
        while True:
            identity = await self._connection.credentials.identity()
            response = await self._send(exchange, identity)
            if response.status < 300:
                return response
            async with response:
                error = refusal(
                    response.status, await response.read(), retry_after=response.headers.get(hdrs.RETRY_AFTER)
                )
            exchange.sent = False
            if isinstance(error, Unauthorized) and not renewed:
                renewed = True
                if await self._connection.credentials.renew(identity) is not identity:
                    continue
            writes = exchange.body is not None
            if response.status == 502 and writes:
                raise _Broken(f"a gateway in between answered 502: {error}")
            not_now = isinstance(error, TooManyRequests) or (isinstance(error, ServiceUnavailable) and not writes)
            if not_now and error.retry_after is not None and patience:
                patience -= 1
                if self._clock.monotonic() + error.retry_after < exchange.deadline:
                    await self._clock.sleep(error.retry_after)
                    continue
            raise error

    async def _send(self, exchange: _Exchange, identity: Identity) -> aiohttp.ClientResponse:
        if identity is not self._identity:
            self._present(identity)
        headers = self._authorization
        if exchange.content_type is not None:
            headers = {**headers, hdrs.CONTENT_TYPE: exchange.content_type}
        started = self._clock.monotonic()
        code = "<error>"
        exchange.sent = True
        try:
            response = await self._session.request(
                exchange.method,
                URL(self._connection.server + exchange.target, encoded=True),
                data=exchange.body,
                headers=headers,
                proxy_headers=self._proxy_headers,
                ssl=self._tls,
                server_hostname=self._connection.tls_server_name,
                allow_redirects=False,
                timeout=self._watch_timeout if exchange.watch else self._timeout,
                middlewares=_ONCE if exchange.method == "DELETE" else (),
            )
            code = str(response.status)
            return response
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            exchange.sent = False
            raise self._unreachable(_why(error)) from error
        except aiohttp.ClientHttpProxyError as error:
            exchange.sent = False
            # Not with the error as its cause: that one carries the request's headers, and so the proxy's password.
            raise self._unreachable(f"the proxy answered {error.status} {error.message}") from None
        finally:
            if self._observe is not None:
                self._observe(exchange.method, self._host, code, self._clock.monotonic() - started)

    def _present(self, identity: Identity) -> None:
        connection = self._connection
        known = self._identity.certificate if self._identity is not None else None
        if connection.server.startswith("https:") and (self._identity is None or identity.certificate != known):
            # A new context also means new connections: aiohttp keeps them apart by context.
            self._tls = tls_context(
                ca=connection.ca, verify=connection.verify, certificate=identity.certificate, origin=connection.origin
            )
        token = identity.token
        bearer = {hdrs.AUTHORIZATION: f"Bearer {token.reveal()}"} if token is not None else {}
        self._authorization = self._plain_headers | bearer
        self._identity = identity

    def _unknown(self, problem: str) -> OutcomeUnknown:
        return OutcomeUnknown(f"{self._connection.server}: {problem}; it may or may not have been done")

    def _unreachable(self, problem: str) -> StoreUnreachable:
        return StoreUnreachable(f"{self._connection.server}: {problem}")


class _Exchange:
    """One request and how far it got."""

    __slots__ = ("body", "content_type", "deadline", "method", "sent", "target", "watch")

    def __init__(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str | None,
        deadline: float,
        *,
        watch: bool = False,
    ) -> None:
        self.method = method
        self.target = target
        self.body = body
        self.content_type = content_type
        self.deadline = deadline
        self.watch = watch
        #: Whether the server may be acting on it right now.
        self.sent = False


def _socket(address: tuple[int, int, int, str, object]) -> socket.socket:
    """A socket that notices a dead peer within half a minute, also while only a watch waits on it."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return made


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__
