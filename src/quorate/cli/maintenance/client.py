"""How the commands reach the broker: at ``--broker``, or at the `quorate up` whose data directory is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from quorate.cli.maintenance import wire

if TYPE_CHECKING:
    import ssl

    import aiohttp

T = TypeVar("T")

#: Also in the environment.
BROKER_VARIABLE = "QUORATE_BROKER"
TOKEN_VARIABLE = "QUORATE_BROKER_TOKEN"  # noqa: S105 - the name of a variable
_TIMEOUT = 130.0


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line says of the broker, and of who asks."""

    broker: str | None
    data: str | None
    token_file: Path | None
    ca_file: Path | None
    user: str | None

    def who(self) -> str:
        """The user of requests: as told, else the one who is logged in. A broker that knows its callers checks it."""
        import getpass

        return self.user or getpass.getuser()


@dataclass(slots=True)
class Client:
    """A connection to a broker."""

    url: str
    session: aiohttp.ClientSession = field(repr=False)

    async def ask(self, path: str, question: wire.Message | None, answer: type[T]) -> T:
        """One question; raises QuorateError for an answer that is none."""
        import aiohttp

        from quorate.errors import QuorateError, StoreUnreachable

        body = wire.encode(question) if question is not None else b"{}"
        try:
            async with self.session.post(f"{self.url}/cms/api/{path}", data=body) as response:
                content = await response.read()
                if response.status != 200:
                    raise QuorateError(f"{self.url} answers {response.status}: {_said(content)}")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise StoreUnreachable(f"no broker answers at {self.url}: {str(error) or 'it takes too long'}") from None
        return wire.decode(content, answer)

    @asynccontextmanager
    async def changes(self, user: str, request_id: str = "") -> AsyncIterator[AsyncIterator[bytes]]:
        """What changes from now on, as server-sent events' data; ends when the broker does."""
        import aiohttp

        from quorate.errors import QuorateError, StoreUnreachable

        query = {"User": user} | ({"RequestId": request_id} if request_id else {})
        forever = aiohttp.ClientTimeout(total=None, sock_read=60)
        try:
            async with self.session.get(f"{self.url}/cms/api/events", params=query, timeout=forever) as response:
                if response.status != 200:
                    raise QuorateError(f"{self.url} answers {response.status}: {_said(await response.read())}")
                yield _events(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise StoreUnreachable(f"the broker at {self.url} has hung up: {error}") from None


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for line in response.content:
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").strip()


def run(where: Where, asking: Callable[[Client], Awaitable[T]]) -> T:
    """Connect, ask, and hang up."""

    async def connected() -> T:
        async with connect(where) as client:
            return await asking(client)

    return asyncio.run(connected())


@asynccontextmanager
async def connect(where: Where) -> AsyncIterator[Client]:
    """A client, while it is needed."""
    import aiohttp

    url, token, ca_file = _address(where)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT, connect=10)
    connector = aiohttp.TCPConnector(ssl=_tls(ca_file))
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector) as session:
        yield Client(url, session)


def _address(where: Where) -> tuple[str, str, Path | None]:
    """URL, token and certificate authority of the broker."""
    from quorate.errors import ConfigError

    token = os.environ.get(TOKEN_VARIABLE, "")
    if where.token_file is not None:
        try:
            token = where.token_file.read_text().strip()
        except OSError as error:
            raise ConfigError(f"the token file {where.token_file} cannot be read: {error.strerror}") from None
    named = where.broker or (None if where.data else os.environ.get(BROKER_VARIABLE))
    if named:
        return (named if "://" in named else f"http://{named}").rstrip("/"), token, where.ca_file
    return _of_data(where, token)


def _of_data(where: Where, token: str) -> tuple[str, str, Path | None]:
    """That of a running `quorate up`, which leaves its address in its data directory."""
    from quorate.config import load
    from quorate.errors import ConfigError

    directory = Path(load(None, os.environ, {"data": where.data}).config.data).expanduser()
    try:
        url = (directory / "broker").read_text().strip()
    except OSError:
        raise ConfigError(
            f"which broker? Name its address with --broker or {BROKER_VARIABLE}, or the data directory of a running"
            f" `quorate up` with --data ({directory} has none)"
        ) from None
    authority = directory / "ca.crt"
    return url, token, where.ca_file or (authority if authority.exists() else None)


def _tls(ca_file: Path | None) -> bool | ssl.SSLContext:
    import ssl

    return ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else True


def _said(content: bytes) -> str:
    return content.decode(errors="replace").strip()[:500]
