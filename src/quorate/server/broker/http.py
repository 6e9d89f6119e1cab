"""The broker's messages as JSON: ``/cms/api/<message>``, the log, the descriptions, and a stream of changes."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import Final

from aiohttp import web
from google.protobuf.descriptor import FieldDescriptor

from quorate.api.maintenance.action import StatusCode
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import Caller
from quorate.server.broker import json_trees
from quorate.server.broker.access import Access
from quorate.server.broker.answering import Handler, encoded, guarded, json
from quorate.server.broker.description import description
from quorate.server.broker.json_trees import Malformed, Tree
from quorate.server.broker.proto import cms_pb2
from quorate.server.broker.pushing import Streams
from quorate.server.broker.questions import QUESTIONS, Question, refusal

PREFIX: Final = "/cms/api"
#: Wall-E has an interface of its own.
ASKED_BY_MESSAGE: Final = tuple(question for question in QUESTIONS if not question.field.startswith("Walle"))

_LOG: Final = next(question for question in QUESTIONS if question.field == "GetLogTailRequest")
_CHANGE: Final = cms_pb2.DESCRIPTOR.message_types_by_name["TChange"]
_UINT32_MAX: Final = json_trees.BOUNDS[FieldDescriptor.TYPE_UINT32][1]
_UINT64_MAX: Final = json_trees.BOUNDS[FieldDescriptor.TYPE_UINT64][1]


def routes(broker: Broker, access: Access, streams: Streams) -> list[web.RouteDef]:
    """What is served of a broker, but for Wall-E's."""
    found = []
    for question in ASKED_BY_MESSAGE:
        handler = guarded(access, _asking(broker, question))
        found.append(web.post(f"{PREFIX}/{question.path}", handler))
        if question.bare:
            found.append(web.get(f"{PREFIX}/{question.path}", handler))
    described = json(description()).body
    assert isinstance(described, bytes)

    async def describe(_: web.Request, __: Caller) -> web.Response:
        return encoded(described)

    async def tail(request: web.Request, caller: Caller) -> web.Response:
        return encoded(json_trees.dump(await _LOG.ask(broker, _log_question(request), caller), _LOG.response))

    async def watch(request: web.Request, caller: Caller) -> web.StreamResponse:
        return await _stream(request, caller, streams)

    async def no_sentinel(_: web.Request, __: Caller) -> web.Response:
        reason = (
            "there is no Sentinel; what the disk monitor did is in json/log, its markers are in clusterstaterequest"
        )
        return json(refusal(StatusCode.ERROR, reason))

    return [
        *found,
        web.get(f"{PREFIX}/json/log", guarded(access, tail)),
        web.get(f"{PREFIX}/json/proto", guarded(access, describe)),
        web.get(f"{PREFIX}/json/sentinel", guarded(access, no_sentinel)),
        web.get(f"{PREFIX}/events", guarded(access, watch)),
    ]


def _asking(broker: Broker, question: Question) -> Handler:
    request_shape, response_shape = question.request, question.response

    async def ask(request: web.Request, caller: Caller) -> web.Response:
        body = await request.read()
        if not body and request.method == "GET":
            body = b"{}"
        tree = json_trees.parse(body, request_shape)
        return encoded(json_trees.dump(await question.ask(broker, tree, caller), response_shape))

    return ask


def _log_question(request: web.Request) -> Tree:
    """The parameters of ``json/log`` as the message that they stand for."""
    given = request.query
    if unknown := sorted(set(given) - {"limit", "from", "to", "detailed", "data"}):
        raise Malformed("there is no such parameter; there are limit, from, to, detailed, data", unknown[0])
    fields = (
        ("limit", "Limit", _UINT32_MAX),
        ("from", "MinTimestamp", _UINT64_MAX),
        ("to", "MaxTimestamp", _UINT64_MAX),
    )
    filtered = {field: _number(given[name], name, most) for name, field, most in fields if name in given}
    return {
        "LogFilter": filtered,
        "IncludeData": _flag(given.get("data", "0"), "data"),
        "TextFormat": "DETAILED" if _flag(given.get("detailed", "0"), "detailed") else "SHORT",
    }


def _number(text: str, name: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) <= most):
        raise Malformed(f"must be a whole number from 0 to {most}, not {text[:60]!r}", name)
    return int(text)


def _flag(text: str, name: str) -> bool:
    if text not in ("0", "1", "false", "true"):
        raise Malformed(f"must be 1 or 0, not {text[:60]!r}", name)
    return text in ("1", "true")


async def _stream(request: web.Request, caller: Caller, streams: Streams) -> web.StreamResponse:
    if unknown := sorted(set(request.query) - {"User", "RequestId"}):
        raise Malformed("there is no such parameter; there are User, RequestId", unknown[0])
    user = streams.allowed(caller, request.query.get("User", ""))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    with suppress(ConnectionError):  # whoever hangs up has heard enough
        await response.prepare(request)
        async with aclosing(streams.changes(user, request.query.get("RequestId", ""))) as changes:
            async for tree in changes:
                await response.write(b": listening\n\n" if tree is None else _event(tree))
    return response


def _event(tree: Tree) -> bytes:
    return b"event: change\ndata: " + json_trees.dump(tree, _CHANGE) + b"\n\n"
