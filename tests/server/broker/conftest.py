"""The interfaces over a broker that says what a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from quorate.server.broker import Access, mount
from quorate.server.broker.answering import MAX_BODY, explained
from tests.server.broker.fake import FakeBroker


@dataclass(frozen=True, slots=True)
class Client:
    """JSON in, status and JSON out."""

    session: aiohttp.ClientSession
    stop: Callable[[], Awaitable[None]] | None = None

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        given = {"data": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        async with self.session.request(method, path, **given, **more) as answer:
            text = await answer.read()
            return answer.status, await answer.json() if text else None

    async def post(self, path: str, body: Any, **more: Any) -> tuple[int, Any]:
        return await self.call("POST", path, body, **more)

    async def get(self, path: str, **more: Any) -> tuple[int, Any]:
        return await self.call("GET", path, **more)


@asynccontextmanager
async def serving(broker: Any, access: Access) -> AsyncIterator[Client]:
    app = web.Application(client_max_size=MAX_BODY, middlewares=[explained])
    mount(app, broker, access)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
            yield Client(session, runner.cleanup)
    finally:
        await runner.cleanup()


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
async def client(broker: FakeBroker) -> AsyncIterator[Client]:
    async with serving(broker, Access()) as found:
        yield found
