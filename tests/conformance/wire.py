"""Raw HTTP to an API server or the facade: no client of ours in between."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.support.certificates import KeyPair

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
#: Longest time that a watch is waited for.
PATIENCE = 10.0


@dataclass(frozen=True)
class Answer:
    code: int
    #: Parsed JSON, or the text if it is none.
    body: Any
    warnings: tuple[str, ...] = ()


class Wire:
    """One server."""

    def __init__(
        self, url: str, *, token: str | None = None, ca_file: str | None = None, certificate: KeyPair | None = None
    ) -> None:
        self._url = url
        context: ssl.SSLContext | bool = True
        if ca_file:
            context = ssl.create_default_context(cafile=ca_file)
            if certificate is not None:
                context.load_cert_chain(certificate.certificate, certificate.key)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # One connection per request: a server that refuses before it has read the body hangs up afterwards.
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        self._session = aiohttp.ClientSession(headers=headers, connector=connector)

    async def close(self) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str | None = None,
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """``body`` is sent as JSON; bytes are sent as they are."""
        headers = {"Accept": accept}
        data = None
        if body is not None:
            # A file, because aiohttp warns about large bytes.
            data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
            headers["Content-Type"] = content_type or "application/json"
        async with self._session.request(
            method, self._url + path, data=data, headers=headers, params=query or {}, allow_redirects=False
        ) as response:
            return Answer(
                response.status, _parsed(await response.read()), tuple(response.headers.getall("Warning", ()))
            )

    async def watch(
        self, path: str, query: Mapping[str, str], *, count: int, accept: str = "application/json"
    ) -> Answer:
        """The first ``count`` events (fewer if the server ends it), bookmarks included."""
        parameters = {"watch": "true", **query}
        events: list[Any] = []
        async with (
            asyncio.timeout(PATIENCE),
            self._session.get(self._url + path, params=parameters, headers={"Accept": accept}) as response,
        ):
            if response.status != 200:
                return Answer(response.status, _parsed(await response.read()))
            while len(events) < count and (line := await response.content.readline()):
                events.append(json.loads(line))
        return Answer(200, events)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
