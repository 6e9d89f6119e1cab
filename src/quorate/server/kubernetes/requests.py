"""What a request brings: who sends it, its body of bounded size; and the warnings that go back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from quorate.errors import BadRequest, TooLarge, UnsupportedMediaType
from quorate.server.kubernetes.bodies import Parsed, parse_json, parse_yaml
from quorate.server.kubernetes.callers import Caller
from quorate.server.kubernetes.core_messages import parse_protobuf

#: As a real API server: a larger body is not read.
MAX_BODY = 3 * 1024 * 1024

#: Who sends it.
CALLER = web.RequestKey("caller", Caller)

PROTOBUF = "application/vnd.kubernetes.protobuf"

_PARSERS: dict[str, Callable[[bytes], Parsed]] = {
    "": parse_json,
    "application/json": parse_json,
    "application/yaml": parse_yaml,
    "application/x-yaml": parse_yaml,
    "text/yaml": parse_yaml,
    PROTOBUF: lambda body: Parsed(parse_protobuf(body)),
}


def media_type(request: web.Request) -> str:
    """The body's media type without parameters; empty if the client did not say."""
    return request.headers.get("Content-Type", "").split(";")[0].strip().lower()


async def read_tree(request: web.Request) -> Parsed:
    """A JSON or YAML body; or protobuf, for what typed Go clients send so."""
    given = media_type(request)
    if given not in _PARSERS:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml"
        )
    body, parse = await _read(request), _PARSERS[given]
    try:
        # YAML of the largest size takes seconds: nobody else should wait for it.
        return await asyncio.to_thread(parse, body) if parse is parse_yaml else parse(body)
    except ValueError as error:
        raise BadRequest(f"the body of the request cannot be read: {error}") from None


async def read_optional_tree(request: web.Request) -> Any:
    """The body of a DELETE, which most clients leave out; None then."""
    return (await read_tree(request)).value if request.body_exists and request.content_length != 0 else None


async def read_patch(request: web.Request) -> Parsed:
    """A patch's body, always JSON."""
    try:
        return parse_json(await _read(request))
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None


def duplicates(parsed: Parsed) -> tuple[str, ...]:
    """Complaints about keys given twice, as Kubernetes words them."""
    return tuple(f'duplicate field "{path}"' for path in parsed.duplicates)


def warning_headers(warnings: Iterable[str]) -> CIMultiDict[str]:
    """One ``Warning: 299`` header each; kubectl prints them."""
    headers: CIMultiDict[str] = CIMultiDict()
    for warning in warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        printable = "".join(character if character.isprintable() else " " for character in escaped)
        headers.add("Warning", f'299 - "{printable}"')
    return headers


async def _read(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"Request entity too large: limit is {MAX_BODY}") from None
