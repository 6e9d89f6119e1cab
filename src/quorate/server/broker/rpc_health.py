"""gRPC's health service, as the broker is at the moment: one that has no ledger must not be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

#: Seconds between two looks for whoever watches.
_PACE: Final = 1.0

_Context = grpc.aio.ServicerContext[Any, Any]


class Health(health_pb2_grpc.HealthServicer):
    """``grpc.health.v1.Health`` for these services; the empty name is the whole server."""

    def __init__(self, services: tuple[str, ...], serving: Callable[[], bool], stopped: asyncio.Event) -> None:
        self._services = frozenset({"", *services})
        self._serving = serving
        self._stopped = stopped

    async def Check(self, request: Any, context: _Context) -> Any:
        """How it is now."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no service {request.service!r}")
        return self._answer(request.service)

    async def Watch(self, request: Any, context: _Context) -> AsyncIterator[Any]:
        """How it is now, and again whenever that changes."""
        told = None
        while not self._stopped.is_set():
            answer = self._answer(request.service)
            if answer != told:
                yield (told := answer)
            try:
                await asyncio.wait_for(self._stopped.wait(), _PACE)
            except TimeoutError:
                continue

    def _answer(self, service: str) -> Any:
        statuses = health_pb2.HealthCheckResponse
        if service not in self._services:
            return statuses(status=statuses.SERVICE_UNKNOWN)
        return statuses(status=statuses.SERVING if self._serving() else statuses.NOT_SERVING)
