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

    target = _target(where)
    headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT, connect=10)
    connector = aiohttp.TCPConnector(ssl=_tls(target.authority))
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector) as session:
        yield Client(target.url, session)


@dataclass(frozen=True, slots=True)
class _Target:
    """A broker's address, who we are to it, and whom to believe that it is the broker (PEM)."""

    url: str
    token: str = field(repr=False)
    authority: str | None


def _target(where: Where) -> _Target:
    token = os.environ.get(TOKEN_VARIABLE, "")
    if where.token_file is not None:
        token = _text(where.token_file, "the token file").strip()
    authority = _text(where.ca_file, "the file of certificates") if where.ca_file is not None else None
    named = where.broker or (None if where.data else os.environ.get(BROKER_VARIABLE))
    if not named:
        return _of_data(where, token, authority)
    scheme = "https" if authority is not None else "http"
    return _Target((named if "://" in named else f"{scheme}://{named}").rstrip("/"), token, authority)


def _of_data(where: Where, token: str, authority: str | None) -> _Target:
    """That of a running `quorate up`: its API server is its broker too, and its kubeconfig says how to reach it."""
    import base64

    import yaml

    from quorate.config import load
    from quorate.errors import ConfigError

    directory = Path(load(None, os.environ, {"data": where.data}).config.data).expanduser()
    if not (directory / "kubeconfig").exists():
        raise ConfigError(
            f"which broker? Name its address with --broker or {BROKER_VARIABLE}, or the data directory of a running"
            f" `quorate up` with --data ({directory} is none)"
        )
    found = yaml.safe_load(_text(directory / "kubeconfig", "the kubeconfig"))
    cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    if authority is None and "certificate-authority-data" in cluster:
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return _Target(cluster["server"], token or user.get("token", ""), authority)


def _text(path: Path, what: str) -> str:
    from quorate.errors import ConfigError

    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what} {path} cannot be read: {error}") from None


def _tls(authority: str | None) -> bool | ssl.SSLContext:
    import ssl

    from quorate.errors import ConfigError

    try:
        return ssl.create_default_context(cadata=authority) if authority is not None else True
    except ssl.SSLError as error:
        raise ConfigError(f"the certificates of the broker's authority cannot be used: {error}") from None


def _said(content: bytes) -> str:
    return content.decode(errors="replace").strip()[:500]
