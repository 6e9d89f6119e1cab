"""Everything that HTTP serves of a broker, for any application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import Caller
from quorate.server.broker import http, openapi, page, walle
from quorate.server.broker.access import Access
from quorate.server.broker.answering import encoded, guarded, json
from quorate.server.broker.pushing import Streams


def mount(
    app: web.Application, broker: Broker, access: Access, *, described: Mapping[str, dict[str, Any]] | None = None
) -> None:
    """Put the broker's routes into an application; ``described`` are other paths for the OpenAPI document."""
    streams = Streams(broker)
    app.add_routes(routes(broker, access, streams, described=described))

    async def stop(_: web.Application) -> None:
        streams.stop()

    app.on_shutdown.append(stop)


def routes(
    broker: Broker, access: Access, streams: Streams, *, described: Mapping[str, dict[str, Any]] | None = None
) -> list[web.RouteDef]:
    """The routes alone, for an application that somebody else makes; whoever stops it stops the streams first."""
    body = json(openapi.document(described)).body
    assert isinstance(body, bytes)

    async def document(_: web.Request, __: Caller) -> web.Response:
        return encoded(body)

    return [
        *http.routes(broker, access, streams),
        *walle.routes(broker, access),
        *page.routes(),
        web.get("/openapi.json", guarded(access, document)),
    ]
