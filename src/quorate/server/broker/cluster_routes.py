"""A described cluster from outside: how it is, what happens to it, and how time passes.

GET  /cluster                                as it is now, in the form of its file
PUT  /cluster/nodes/{id}/state               {"state": "UP" | "DOWN" | "RESTART" | "UNKNOWN"}
PUT  /cluster/drives/{node}/{drive}/state
PUT  /cluster/vdisks/{name}/state
PUT  /cluster/config                         limits and durations, under the keys of the file; what is not given stays
GET  /cluster/clock                          what time it is there
POST /cluster/clock                          {"advance": "600s"}

For admins, where callers are told apart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import msgspec
from aiohttp import web

from quorate.api.codec import to_builtins
from quorate.api.duration import Duration
from quorate.api.maintenance import BrokerConfig
from quorate.api.maintenance.action import HostState, StatusCode
from quorate.api.schema import structural_schema
from quorate.errors import BadRequest, ConfigError, Forbidden, NotFound, ServiceUnavailable
from quorate.maintenance.broker import Broker
from quorate.maintenance.described import settings, state
from quorate.maintenance.messages import Caller, GetConfig, SetConfig, Status
from quorate.maintenance.monitor.watching import Monitor
from quorate.maintenance.nouns import DriveId
from quorate.server.broker.access import Access
from quorate.server.broker.answering import Handler, guarded, json, message
from quorate.server.broker.json_trees import not_json
from quorate.server.broker.keeping import Kept
from quorate.server.broker.openapi import Json, body, nullable, operation, parameter
from quorate.server.broker.picture import config_picture, picture

_Change = Callable[[HostState], Awaitable[None]]

_NODE: Final = "/cluster/nodes/{id}/state"
_DRIVE: Final = "/cluster/drives/{node}/{drive}/state"
_VDISK: Final = "/cluster/vdisks/{name}/state"


def routes(kept: Kept, broker: Broker, monitor: Monitor, access: Access) -> list[web.RouteDef]:
    """What is served of a described cluster."""

    async def show(_: web.Request, __: Caller) -> web.Response:
        return json(picture(kept.cluster))

    async def set_node(request: web.Request, _: Caller) -> web.Response:
        node = _number(request, "id")
        return await changed(request, node, lambda word: kept.set_node_state(node, word))

    async def set_drive(request: web.Request, _: Caller) -> web.Response:
        drive = DriveId(_number(request, "node"), _number(request, "drive"))
        return await changed(request, drive.node, lambda word: kept.set_drive_state(drive, word))

    async def set_vdisk(request: web.Request, _: Caller) -> web.Response:
        name = request.match_info["name"]
        return await changed(request, None, lambda word: kept.set_vdisk_state(name, word))

    async def changed(request: web.Request, node: int | None, change: _Change) -> web.Response:
        word = state(await _only(request, "state"))
        broker.cluster_changed()  # whatever has ended by now has not ended because of this
        await change(word)
        broker.cluster_changed()
        if node is not None:  # the monitor watches drives, not replicas
            await monitor.notice(node)
        return json({"state": word.value})

    async def configure(request: web.Request, caller: Caller) -> web.Response:
        given = await _object(request)
        found = await broker.get_config(GetConfig(), caller)
        _check(found.status)
        merged = _merged(to_builtins(found.config), given)
        answer = await broker.set_config(SetConfig(config=settings(merged)), caller)
        _check(answer.status)
        return json(config_picture((await broker.get_config(GetConfig(), caller)).config))

    async def time(_: web.Request, __: Caller) -> web.Response:
        return json({"now": str(broker.now())})

    async def advance(request: web.Request, caller: Caller) -> web.Response:
        span = _span(await _only(request, "advance"))
        try:
            await kept.advance(span)
        except ValueError as error:
            raise BadRequest(f"advance: {error}") from None
        broker.cluster_changed()
        await monitor.look(time_was_moved=True)
        return await time(request, caller)

    return [
        web.get("/cluster", guarded(access, show, message)),
        web.put(_NODE, guarded(access, _changing(set_node), message)),
        web.put(_DRIVE, guarded(access, _changing(set_drive), message)),
        web.put(_VDISK, guarded(access, _changing(set_vdisk), message)),
        web.put("/cluster/config", guarded(access, _changing(configure), message)),
        web.get("/cluster/clock", guarded(access, time, message)),
        web.post("/cluster/clock", guarded(access, _changing(advance), message)),
    ]


def _config_schema() -> Json:
    """As the object has it, closed: a key that is not there is refused."""
    return _closed(structural_schema(BrokerConfig.KIND)["properties"]["spec"])


def _closed(schema: Json) -> Json:
    if "properties" not in schema:
        return schema
    parts = {name: nullable(_closed(part)) for name, part in schema["properties"].items()}
    return {**schema, "properties": parts, "additionalProperties": False}


def _changing(handler: Handler) -> Handler:
    """For admins only; what cannot be understood is the caller's mistake."""

    async def handle(request: web.Request, caller: Caller) -> web.StreamResponse:
        if not (caller.admin or caller.anyone):
            raise Forbidden(f"{caller.name} may not change the cluster: only an admin may")
        try:
            return await handler(request, caller)
        except ConfigError as error:
            raise BadRequest(str(error)) from None

    return handle


async def _object(request: web.Request) -> dict[str, Any]:
    body = await request.read()
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(not_json(body, error)) from None
    if not isinstance(value, dict):
        raise BadRequest("the body must be an object")
    return value


async def _only(request: web.Request, key: str) -> Any:
    given = await _object(request)
    if given.keys() != {key}:
        raise BadRequest(
            f"the body must have the key {key!r} and no other, not {', '.join(map(repr, given)) or 'none'}"
        )
    return given[key]


def _number(request: web.Request, name: str) -> int:
    text = request.match_info[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise NotFound(f"{name}: {text[:60]!r} is not a number")
    return int(text)


def _span(text: Any) -> timedelta:
    try:
        return Duration(text if isinstance(text, str) else repr(text)).timedelta
    except ValueError as error:
        raise BadRequest(f"advance: {error}") from None
    except OverflowError:
        raise BadRequest(f"advance: {text} is too long: time ends in the year 9000") from None


def _merged(current: Any, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    base = current if isinstance(current, dict) else {}
    return base | {key: _merged(base.get(key), value) for key, value in given.items() if value is not None}


def _check(status: Status) -> None:
    if status.code is StatusCode.UNAUTHORIZED:
        raise Forbidden(status.reason)
    if status.code is StatusCode.WRONG_REQUEST:
        raise BadRequest(status.reason)
    if status.code is not StatusCode.OK:
        raise ServiceUnavailable(f"{status.code.value}: {status.reason}")


def described() -> dict[str, Json]:
    """The same for the OpenAPI document."""
    failures = {"400": "The body makes no sense; the message says where", "413": "The body is too large"}
    missing = {**failures, "404": "It is not described"}
    number: Json = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
    word: Json = {
        "type": "object",
        "properties": {"state": {"type": "string", "enum": [one.value for one in HostState]}},
        "required": ["state"],
        "additionalProperties": False,
    }
    clock: Json = {
        "type": "object",
        "properties": {"now": {"type": "string", "pattern": "^[0-9]+$"}},
        "required": ["now"],
    }
    span: Json = {
        "type": "object",
        "properties": {"advance": {"type": "string", "pattern": "^[0-9]{1,9}(us|ms|s)$"}},
        "required": ["advance"],
        "additionalProperties": False,
    }

    def setting(summary: str, *parameters: Json) -> Json:
        return {"put": operation(summary, word, failures=missing, parameters=[*parameters], requestBody=body(word))}

    return {
        "/cluster": {"get": operation("The described cluster as it is now", {"type": "object"})},
        _NODE: setting("A node's state", parameter("id", "path", number)),
        _DRIVE: setting("A drive's state", parameter("node", "path", number), parameter("drive", "path", number)),
        _VDISK: setting("A replica's state", parameter("name", "path", {"type": "string", "minLength": 1})),
        "/cluster/config": {
            "put": operation(
                "Limits and durations",
                {"type": "object"},
                failures=failures | {"503": "The broker cannot write it"},
                requestBody=body(_config_schema()),
            )
        },
        "/cluster/clock": {
            "get": operation("What time it is there, in microseconds since 1970", clock),
            "post": operation("Time passes", clock, failures=failures, requestBody=body(span)),
        },
    }
