"""A watch's byte stream as typed events.

The server sends one JSON document per line: ``{"type": …, "object": …}``. What the object is depends on the type,
so the envelope is decoded first with the object left as it is, and then the object straight into its type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from quorate.api import codec
from quorate.api.meta import Resource
from quorate.api.struct import Struct
from quorate.engine.kubernetes.answers import refusal
from quorate.engine.store import EventType, WatchEvent
from quorate.errors import Expired, InternalError, UndecodableObject

R = TypeVar("R", bound=Resource)

#: Called for every object that a list or watch had to leave out.
OnUndecodable = Callable[[UndecodableObject], None]


class _Envelope(Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class _Names(Struct):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Named(Struct):
    metadata: _Names = _Names()


_envelope = codec.decoder(_Envelope)
_named = codec.decoder(_Named)


def typed_event(cls: type[R], line: bytes, on_undecodable: OnUndecodable) -> WatchEvent[R]:
    """One line as an event; an ERROR is raised as what it says, Expired if history is gone.

    A change that does not fit the type is a bookmark that names the object, so that a cache knows of it at once and
    nothing is listed again for it; only its deletion asks for a new list (Expired).
    """
    try:
        return _event(cls, _envelope.decode(line), on_undecodable)
    except msgspec.DecodeError as error:
        raise InternalError(f"the watch sent something that is no event: {error}") from error


def _event(cls: type[R], envelope: _Envelope, on_undecodable: OnUndecodable) -> WatchEvent[R]:
    match envelope.type:
        case "ERROR":
            raise refusal(0, bytes(envelope.object))
        case "BOOKMARK":
            return WatchEvent(EventType.BOOKMARK, _named.decode(envelope.object).metadata.resource_version)
    try:
        found = codec.decoder(cls).decode(envelope.object)
    except msgspec.ValidationError as error:
        skipped = undecodable(cls, envelope.object, error)
        on_undecodable(skipped)
        if envelope.type == "DELETED":
            # The cache cannot be told by a typed event; a new list tells it.
            raise Expired(f"deleted, and unreadable: {skipped}") from error
        # Seen, though not understood: progress counts, and the cache keeps what it knew.
        version = _named.decode(envelope.object).metadata.resource_version
        return WatchEvent(EventType.BOOKMARK, version, undecodable=(skipped.namespace, skipped.name))
    return WatchEvent(EventType(envelope.type), found.metadata.resource_version, found)


def undecodable(cls: type[Resource], body: bytes | msgspec.Raw, error: msgspec.ValidationError) -> UndecodableObject:
    """Names the object that does not fit."""
    metadata = _named.decode(body).metadata
    return UndecodableObject(kind=cls.KIND.name, namespace=metadata.namespace, name=metadata.name, problem=str(error))
