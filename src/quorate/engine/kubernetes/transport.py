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
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from yarl import URL

from quorate import __version__
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.answers import refusal
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import Identity
from quorate.engine.kubernetes.pool import NotConnected, Pool
from quorate.engine.kubernetes.proxy import without_password
from quorate.engine.kubernetes.tls import tls_context
from quorate.engine.kubernetes.wire import Answer, Broken, Silent, Wire
from quorate.errors import (
    ConfigError,
    OutcomeUnknown,
    ServiceUnavailable,
    StoreUnreachable,
    TooManyRequests,
    Unauthorized,
)

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


class Transport:
    """Must be made inside a running event loop, and closed."""

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
        server = URL(connection.server)
        self._host = server.host_port_subcomponent or ""
        self._pool = Pool(connection, connect_timeout=limits.connect_timeout)
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._path = server.raw_path.rstrip("/")
        # Compression saves bytes that a cluster's network has, and costs CPU that the API server lacks.
        self._headers = {
            "Host": self._host,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": user_agent,
        }
        if connection.proxy and server.scheme == "http":
            # Without TLS a proxy sees the requests themselves, and must be told where they are to go.
            self._path = f"http://{self._host}{self._path}"
            self._headers |= without_password(connection.proxy)[1]
        self._encrypts = "https" in (server.scheme, URL(connection.proxy or "").scheme)
        # What the current identity is sent as; made anew only when the identity changes.
        self._identity: Identity | None = None
        self._head = ""

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
            async with asyncio.timeout(self._limits.write_timeout), self._slots:
                return (await self._answer(exchange)).body
        except TimeoutError as error:
            problem = f"no answer to {method} {target} within {self._limits.write_timeout:g} s"
            if exchange.sent:
                raise self._unknown(problem) from error
            raise self._unreachable(f"{problem}: it was not sent") from error
        except Broken as error:
            raise self._unknown(f"the connection broke during {method} {target} ({error})") from error

    @asynccontextmanager
    async def stream(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET whose answer does not end: its lines as they come. Not counted among the requests in flight."""
        exchange = _Exchange("GET", target, None, None, self._clock.monotonic() + self._limits.read_timeout, watch=True)
        try:
            async with asyncio.timeout(self._limits.read_timeout):
                await self._answer(exchange)
        except (Broken, TimeoutError) as error:
            raise self._unreachable(f"no answer to GET {target} ({str(error) or type(error).__name__})") from error
        assert exchange.wire is not None
        try:
            async with aclosing(self._lines(exchange.wire, target)) as lines:
                yield lines
        finally:
            exchange.wire.abort()

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._pool.close()

    async def _lines(self, wire: Wire, target: str) -> AsyncGenerator[bytes, None]:
        try:
            while (lines := await wire.lines()) is not None:
                for line in lines:
                    yield line
        except Silent as error:
            silence = f"nothing came from GET {target} for {self._limits.watch_silence:g} s"
            raise self._unreachable(silence) from error
        except Broken as error:
            raise self._unreachable(f"the connection of GET {target} broke ({error})") from error

    async def _read(self, target: str) -> bytes:
        exchange = _Exchange("GET", target, None, None, self._clock.monotonic() + self._limits.read_timeout)
        for attempt in range(self._limits.retries + 1):
            try:
                return (await self._answer(exchange)).body
            except Broken as error:
                if attempt == self._limits.retries:
                    raise self._unreachable(f"the connection of GET {target} broke ({error})") from error
            await self._clock.sleep(self._limits.retry_pause * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    async def _answer(self, exchange: _Exchange) -> Answer:
        """The server's acceptance. Refusals that mean "not now" or "who are you" are dealt with here."""
        renewed = False
        patience = self._limits.retries
        while True:
            identity = await self._connection.credentials.identity()
            answer = await self._send(exchange, identity)
            status = answer.head.status
            if status < 300:
                return answer
            error = refusal(status, answer.body, retry_after=answer.head.retry_after)
            exchange.sent = False
            if isinstance(error, Unauthorized) and not renewed:
                renewed = True
                if await self._connection.credentials.renew(identity) is not identity:
                    continue
            writes = exchange.body is not None
            if status == 502 and writes:
                raise Broken(f"a gateway in between answered 502: {error}")
            not_now = isinstance(error, TooManyRequests) or (isinstance(error, ServiceUnavailable) and not writes)
            if not_now and error.retry_after is not None and patience:
                patience -= 1
                if self._clock.monotonic() + error.retry_after < exchange.deadline:
                    await self._clock.sleep(error.retry_after)
                    continue
            raise error

    async def _send(self, exchange: _Exchange, identity: Identity) -> Answer:
        if identity is not self._identity:
            self._present(identity)
        request = self._request(exchange)
        started = self._clock.monotonic()
        code = "<error>"
        wire = None
        try:
            # A watch keeps its connection, and starting one must not fail because a kept connection turns out dead.
            wire = await (self._pool.connect() if exchange.watch else self._pool.take())
            exchange.sent = True
            answer = await wire.ask(request, silence=self._limits.watch_silence if exchange.watch else None)
            code = str(answer.head.status)
        except NotConnected as error:
            raise self._unreachable(str(error)) from error
        except BaseException:
            # Its answer may still come, and must not be taken for that of another request.
            if wire is not None:
                wire.abort()
            raise
        finally:
            if self._observe is not None:
                self._observe(exchange.method, self._host, code, self._clock.monotonic() - started)
        if exchange.watch and answer.head.status < 300:
            exchange.wire = wire
        else:
            self._pool.give_back(wire)
        return answer

    def _request(self, exchange: _Exchange) -> bytes:
        first = f"{exchange.method} {self._path}{exchange.target} HTTP/1.1\r\n{self._head}"
        if exchange.body is None:
            return f"{first}\r\n".encode("ascii")
        described = f"Content-Type: {exchange.content_type}\r\nContent-Length: {len(exchange.body)}\r\n\r\n"
        return (first + described).encode("ascii") + exchange.body

    def _present(self, identity: Identity) -> None:
        connection = self._connection
        known = self._identity.certificate if self._identity is not None else None
        if self._encrypts and (self._identity is None or identity.certificate != known):
            self._pool.use(
                tls_context(
                    ca=connection.ca,
                    verify=connection.verify,
                    certificate=identity.certificate,
                    origin=connection.origin,
                )
            )
        headers = self._headers
        if identity.token is not None:
            headers = headers | {"Authorization": f"Bearer {identity.token.reveal()}"}
            if not headers["Authorization"].isprintable() or not headers["Authorization"].isascii():
                raise ConfigError(f"{connection.origin}: the token has characters that no token has")
        self._head = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        self._identity = identity

    def _unknown(self, problem: str) -> OutcomeUnknown:
        return OutcomeUnknown(f"{self._connection.server}: {problem}; it may or may not have been done")

    def _unreachable(self, problem: str) -> StoreUnreachable:
        return StoreUnreachable(f"{self._connection.server}: {problem}")


class _Exchange:
    """One request and how far it got."""

    __slots__ = ("body", "content_type", "deadline", "method", "sent", "target", "watch", "wire")

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
        #: What the answer to a watch goes on coming on.
        self.wire: Wire | None = None
