"""Bytes and dicts to typed objects and back: the only place that knows msgspec's hooks."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec

from quorate.api.duration import Duration
from quorate.api.meta import Resource
from quorate.api.quantity import Quantity
from quorate.api.secret import Secret

T = TypeVar("T")
R = TypeVar("R", bound=Resource)


def _decode_hook(wanted: type, value: object) -> object:
    if wanted is Quantity and isinstance(value, str | int):
        return _quantity(value)
    if wanted is Duration and isinstance(value, str):
        return Duration(value)
    if wanted is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"expected {wanted.__name__}, got {type(value).__name__}")


@functools.lru_cache(maxsize=4096, typed=True)
def _quantity(text: str | int) -> Quantity:
    """The same few sizes are in every state of every object."""
    return Quantity(text)


def _encode_hook(value: object) -> object:
    if isinstance(value, Quantity | Duration):
        return value.text
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"{type(value).__name__} cannot be put on the wire")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)
_tree = msgspec.json.Decoder()


_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


def decoder(wanted: type[T]) -> msgspec.json.Decoder[T]:
    """The (cached) JSON decoder of a type. Unknown fields are skipped, known ones are checked."""
    known = _decoders.get(wanted)
    if known is None:
        known = _decoders[wanted] = msgspec.json.Decoder(wanted, dec_hook=_decode_hook)
    return known


def decode(wanted: type[T], data: bytes) -> T:
    """JSON bytes to a typed value; raises msgspec.ValidationError with the path of the first fault."""
    return decoder(wanted).decode(data)


def convert(wanted: type[T], value: Any) -> T:
    """A dict tree (parsed JSON or YAML) to a typed value."""
    return msgspec.convert(value, wanted, dec_hook=_decode_hook)


def encode(value: object) -> bytes:
    """Any wire value to JSON bytes. For a whole object use :func:`to_dict` first: it adds apiVersion and kind."""
    return _encoder.encode(value)


def to_builtins(value: object) -> Any:
    """A typed value as dicts, lists and scalars; absent fields stay absent."""
    # Through JSON, because msgspec.to_builtins leaves tuples as they are, and a tree of JSON has only lists.
    return _tree.decode(_encoder.encode(value))


def to_dict(resource: Resource) -> dict[str, Any]:
    """A whole object as a dict, with apiVersion and kind."""
    body: dict[str, Any] = {"apiVersion": resource.KIND.api_version, "kind": resource.KIND.name}
    body.update(to_builtins(resource))
    return body
