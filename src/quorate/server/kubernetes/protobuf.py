"""Protobuf's wire format, read into JSON values by tables of fields.

Go writes absent texts, numbers and lists as empty ones, and leaves empty ones out of JSON; so do we. A field that
is not in a table is skipped, as an unknown field would be. Whatever is wrong is a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

#: From what is on the wire (a number, or bytes) to a JSON value.
Decode = Callable[[Any], Any]


class Many:
    """A repeated field."""

    def __init__(self, decode: Decode) -> None:
        self.decode = decode


class Map:
    """A map from text; on the wire, a repeated message of key and value."""

    def __init__(self, decode: Decode) -> None:
        self.entry = message({1: ("key", text), 2: ("value", decode)})


#: Field numbers to names and decoders.
Table = dict[int, tuple[str, Decode | Many | Map]]


def message(table: Table) -> Decode:
    """A message to a dict."""

    def decode(data: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, value in _fields(raw(data)):
            if number not in table:
                continue
            name, how = table[number]
            if isinstance(how, Many):
                found.setdefault(name, []).append(how.decode(value))
            elif isinstance(how, Map):
                entry = how.entry(value)
                found.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
            else:
                found[name] = how(value)
        return {name: value for name, value in found.items() if value}

    return decode


def raw(value: Any) -> bytes:
    """Bytes as they are."""
    if not isinstance(value, bytes):
        raise ValueError("protobuf: a number where bytes were expected")
    return value


def text(value: Any) -> str:
    """Text."""
    return raw(value).decode()


def integer(value: Any) -> int:
    """A signed number."""
    if not isinstance(value, int):
        raise ValueError("protobuf: bytes where a number was expected")
    return value - (1 << 64) if value >> 63 else value


def flag(value: Any) -> bool:
    """A boolean."""
    return bool(integer(value))


def time(value: Any) -> str | None:
    """Kubernetes' Time: whole seconds."""
    moment = _moment(value)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def micro_time(value: Any) -> str | None:
    """Kubernetes' MicroTime: six digits of fraction."""
    moment = _moment(value)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment else None


def quantity(value: Any) -> str:
    """Kubernetes' Quantity: its text."""
    return str(message({1: ("text", text)})(value).get("text", "0"))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(value: Any) -> datetime | None:
    parts = message({1: ("seconds", integer), 2: ("nanos", integer)})(value)
    # Go writes its zero time, in the year 1, for none.
    if parts.get("seconds", 0) <= 0:
        return None
    try:
        return _EPOCH + timedelta(seconds=parts["seconds"], microseconds=parts.get("nanos", 0) // 1000)
    except OverflowError:
        raise ValueError("protobuf: a time that no calendar has") from None


#: Of one message, repeated ones counted.
MOST_FIELDS = 20_000

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and raw values of a message."""
    position = count = 0
    while position < len(data):
        count += 1
        if count > MOST_FIELDS:
            raise ValueError(f"protobuf: a message of more than {MOST_FIELDS} fields")
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"protobuf: wire type {wire_type} at {position} is not known")
        if position + size > len(data):
            raise ValueError("protobuf: it ends in the middle of a field")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("protobuf: a number does not end")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
