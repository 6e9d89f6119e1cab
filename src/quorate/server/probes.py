"""Health and metrics of a process that serves nothing else."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from quorate.engine.health import Health
from quorate.server.connections import ConnectionLimits, HttpServer, serve
from quorate.server.kubernetes.health import report

#: A kubelet and a Prometheus or two; the descriptors are for the node's work.
_LIMITS = ConnectionLimits(total=64, per_peer=16)


class Probes:
    """``/livez``, ``/readyz``, ``/healthz`` and ``/metrics`` for anybody who can connect: nothing secret is in them."""

    def __init__(self, health: Callable[[], Health], registry: CollectorRegistry) -> None:
        self._health = health
        self._registry = registry
        self._server: HttpServer | None = None

    async def listen(self, host: str, port: int) -> int:
        """Start serving; returns the port, which the system chooses when 0 is given."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/livez", self._live),
                web.get("/healthz", self._live),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._metrics),
            ]
        )
        self._server = await serve(application, host, port, patience=1.0, limits=_LIMITS)
        return self._server.port

    async def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            await self._server.close()

    async def _live(self, request: web.Request) -> web.Response:
        return report(self._health().not_live, verbose="verbose" in request.query)

    async def _ready(self, request: web.Request) -> web.Response:
        found = self._health()
        return report(found.not_live + found.not_ready, verbose="verbose" in request.query)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
