"""What a request brings: who sends it, its body of bounded size; and the warnings that go back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from quorate.errors import BadRequest, TooLarge, TooManyRequests, UnsupportedMediaType
from quorate.server.kubernetes.bodies import Parsed, parse_json, parse_yaml
from quorate.server.kubernetes.callers import Caller
from quorate.server.kubernetes.core_messages import parse_protobuf

#: As a real API server: a larger body is not read.
MAX_BODY = 3 * 1024 * 1024

#: A body above this is read by a thread, or everybody else would wait for it.
_INLINE = 32 * 1024
#: One thread, because every busy one makes the event loop wait for the interpreter; so many bodies wait for it.
_aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="quorate-body")
_MOST_ASIDE = 16
_waiting_aside = [0]
#: Seconds in which a body must have come.
BODY_DEADLINE = 30.0
#: What warnings may have in all, in characters, and each where they have more: as with a real API server. And how many:
#: many a client reads no answer of more than a hundred headers.
_WARNINGS, _WARNING, _MOST_WARNINGS = 4096, 256, 32

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
    parse = _PARSERS[given]
    body = await _read(request)
    try:
        return await _parsed(parse, body, aside=parse is parse_yaml or len(body) > _INLINE)
    except ValueError as error:
        raise BadRequest(f"the body of the request cannot be read: {error}") from None


async def read_optional_tree(request: web.Request) -> Any:
    """The body of a DELETE, which most clients leave out; None then."""
    return (await read_tree(request)).value if request.body_exists and request.content_length != 0 else None


async def read_patch(request: web.Request) -> Parsed:
    """A patch's body, always JSON."""
    try:
        body = await _read(request)
        return await _parsed(parse_json, body, aside=len(body) > _INLINE)
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None


def duplicates(parsed: Parsed) -> tuple[str, ...]:
    """Complaints about keys given twice, as Kubernetes words them."""
    return tuple(f'duplicate field "{path}"' for path in parsed.duplicates)


def warning_headers(warnings: Iterable[str]) -> CIMultiDict[str]:
    """One ``Warning: 299`` header each, as far as a client reads so many; kubectl prints them."""
    headers: CIMultiDict[str] = CIMultiDict()
    given = list(warnings)
    long = sum(map(len, given)) > _WARNINGS
    left = _WARNINGS
    for warning in given[:_MOST_WARNINGS]:
        if long:
            warning = warning[:_WARNING]
            left -= len(warning)
            if left < 0:
                break
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        printable = "".join(character if character.isprintable() else " " for character in escaped)
        headers.add("Warning", f'299 - "{printable}"')
    return headers


async def _parsed(parse: Callable[[bytes], Parsed], body: bytes, *, aside: bool) -> Parsed:
    if not aside:
        return parse(body)
    if _waiting_aside[0] >= _MOST_ASIDE:
        raise TooManyRequests("too many large bodies are being read: try again", retry_after=1)
    _waiting_aside[0] += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_aside, parse, body)
    finally:
        _waiting_aside[0] -= 1


async def _read(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_DEADLINE):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason=f"the body did not come within {BODY_DEADLINE:.0f} s") from None
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"Request entity too large: limit is {MAX_BODY}") from None
