"""The simulated hardware of ``quorate up`` over HTTP: what ``quorate fault`` and ``quorate lab status`` speak to.

POST /lab/v1/faults   a fault (``lab.faults``); the answer says what was done, and comes when that is saved
GET  /lab/v1/truth    how everything really is

Guarded like everything else, and closed to agents: a node does not pull its neighbour's plug.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from quorate.errors import BadRequest, Forbidden
from quorate.lab.cluster import Cluster
from quorate.lab.errors import FaultRefused
from quorate.lab.faults import Fault
from quorate.lab.truth import truth_of
from quorate.server.kubernetes.requests import CALLER

_faults = msgspec.json.Decoder(Fault)


def routes(cluster: Cluster, saved: Callable[[], Awaitable[None]]) -> list[web.RouteDef]:
    """What the server serves of a cluster. ``saved``: waits until its hardware is."""

    async def inject(request: web.Request) -> web.Response:
        _check(request)
        try:
            done = cluster.inject(_faults.decode(await request.read()))
        except (msgspec.DecodeError, FaultRefused) as error:
            raise BadRequest(str(error)) from None
        await saved()
        return _json({"message": done})

    async def truth(request: web.Request) -> web.Response:
        _check(request)
        return _json(truth_of(cluster))

    return [web.post("/lab/v1/faults", inject), web.get("/lab/v1/truth", truth)]


def _check(request: web.Request) -> None:
    if request[CALLER].agent_of:
        raise Forbidden("an agent has no business with the lab")


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
