"""A facade over a store in memory, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from quorate.api.core import Event, Lease, Namespace, Node, PersistentVolumeClaim
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.server.kubernetes import Access, Facade, Listener, listen
from tests.support.kinds import Gadget, Widget

KINDS = tuple(cls.KIND for cls in (Widget, Gadget, Namespace, Node, Event, Lease, PersistentVolumeClaim))
WIDGETS = "/apis/test.quorate.io/v1/widgets"
GADGETS = "/apis/test.quorate.io/v1/namespaces/default/gadgets"


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


class Client:
    """HTTP without a Kubernetes client in between."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def __call__(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json", **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = kind
        async with self.session.request(method, path, data=data, headers=sent) as response:
            return Answer(response.status, dict(response.headers), await response.read())

    async def watch(self, path: str, count: int, **headers: str) -> list[Any]:
        """The first events of a watch."""
        found: list[Any] = []
        async with self.session.get(path, headers=headers) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                found.append(json.loads(line))
                if len(found) == count:
                    break
        return found


@asynccontextmanager
async def facade(store: EmbeddedStore, access: Access | None = None) -> AsyncIterator[Listener]:
    clock = SystemClock()
    served = Facade(
        store, kinds=KINDS, clock=clock, chance=Random(1), access=access or Access(), registry=CollectorRegistry()
    )
    listener = await listen(served, host="127.0.0.1", port=0)
    try:
        yield listener
    finally:
        await listener.close()


@pytest.fixture
async def store() -> AsyncIterator[EmbeddedStore]:
    opened = await EmbeddedStore.open(None, kinds=KINDS, clock=SystemClock(), random=Random(1))
    yield opened
    await opened.close()


@pytest.fixture
async def server(store: EmbeddedStore) -> AsyncIterator[Listener]:
    async with facade(store) as listener:
        yield listener


@pytest.fixture
async def http(server: Listener) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(server.url) as session:
        yield Client(session)


def widget(name: str, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "test.quorate.io/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"owner": "me", **spec},
    }
