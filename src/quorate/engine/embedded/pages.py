"""Lists, whole or page by page. All pages of a list show the version of the first.

A list may be long and its selector dear, so it is read in turns: whoever shares an event loop with others lets them go
on between two of them (``in_turns``).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Generator
from typing import TypeVar

import msgspec

from quorate.engine.embedded.record import Key, Page, Record
from quorate.engine.embedded.selection import Selection
from quorate.engine.embedded.state import Collection
from quorate.errors import BadRequest, Expired

T = TypeVar("T")

#: Seconds that one turn lasts.
_TURN = 0.005


def at_once(work: Generator[None, None, T]) -> T:
    """What comes of it, without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found


async def in_turns(work: Generator[None, None, T]) -> T:
    """The same, while others go on."""
    loop = asyncio.get_running_loop()
    end_of_turn = loop.time() + _TURN
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found
        if loop.time() > end_of_turn:
            await asyncio.sleep(0)
            end_of_turn = loop.time() + _TURN


def read_page(
    collection: Collection, selection: Selection, *, namespace: str, version: int, floor: int, limit: int, token: str
) -> Generator[None, None, Page]:
    """The next ``limit`` objects (0: all of them) at ``version``, or where the token says."""
    after: Key | None = None
    if token:
        version, after = _parse(token)
        if version < floor:
            raise Expired(
                "The continue token is too old to display a consistent list: start a new list without it",
            )
    keys, record = collection.as_of(version)
    start = bisect_right(keys, after) if after is not None else bisect_left(keys, (namespace, ""))
    # "\0" can be in no name: (namespace + "\0", "") is where the next namespace begins.
    end = bisect_left(keys, (f"{namespace}\0", "")) if namespace else len(keys)
    found: list[Record] = []
    position = start
    while position < end and not (limit and len(found) == limit):
        candidate = record(keys[position])
        position += 1
        yield
        if candidate in selection:
            found.append(candidate)
    if position == end:
        return Page(tuple(found), version)
    remaining = None if selection.narrowed else end - position
    return Page(tuple(found), version, _token(version, keys[position - 1]), remaining)


def _token(version: int, last: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((version, last))).decode().rstrip("=")


def _parse(token: str) -> tuple[int, Key]:
    try:
        decoded = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.json.decode(decoded, type=tuple[int, Key])
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise BadRequest("invalid continue token: it is not one that this server gave") from None
