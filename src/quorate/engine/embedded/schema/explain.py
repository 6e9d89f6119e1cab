"""Everything that is wrong with a value, in Kubernetes' words.

This is the slow and complete judge. It runs when the fast one (the typed decoder and ``checks``) has refused, to
say why, and collects every fault instead of the first; a property test holds the two to the same verdict.

A value that is equal to the stored one is not judged: an update is not refused for what it did not touch
(ratcheting). Items of a list are matched with old ones only where the list is a map with keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

from quorate.engine.embedded import causes
from quorate.engine.embedded.causes import NO_FIELD
from quorate.engine.embedded.schema.formats import is_base64, is_date_time
from quorate.engine.embedded.schema.node import Node
from quorate.engine.embedded.schema.trees import ABSENT, item_identity, item_key, old_items, same
from quorate.errors import Cause

_FORMATS = {"date-time": is_date_time, "byte": is_base64}
#: Characters of a text that has not the format it should have, in a message.
_LONGEST_TEXT = 256
_INT64 = range(-(2**63), 2**63)


def explain(value: Any, old: Any, node: Node, prefix: str = "") -> list[Cause]:
    """The faults of a value; ``prefix`` is where it is in its object (``status``, or nothing for the whole)."""
    found = islice(_value(value, old, node, ""), causes.MOST + 1)
    return [Cause(cause.reason, cause.message, _join(prefix, cause.field)) for cause in found]


def duplicates(value: Any, node: Node, path: str = "") -> Iterator[Cause]:
    """Items that a list of distinct items has twice, anywhere inside; each is reported once."""
    if type(value) is list:
        yield from _list_duplicates(value, node, path)
        if node.items is not None:
            for index, item in enumerate(value):
                yield from duplicates(item, node.items, f"{path}[{index}]")
    elif type(value) is dict:
        for name, part in value.items():
            if name in node.properties:
                yield from duplicates(part, node.properties[name], f"{path}.{name}" if path else name)
            elif node.additional is not None:
                yield from duplicates(part, node.additional, f"{path}[{name}]")


def _list_duplicates(value: list[Any], node: Node, path: str) -> Iterator[Cause]:
    if node.list_type not in ("set", "map"):
        return
    if node.list_type == "map":
        for index, item in enumerate(value):
            if item is not None and type(item) is not dict:
                yield causes.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
                return
    times: dict[Hashable, int] = {}
    for index, item in enumerate(value):
        found = item_identity(item, node)
        times[found] = times.get(found, 0) + 1
        if times[found] == 2:
            yield causes.duplicate(f"{path}[{index}]", item_key(item, node))


def _join(prefix: str, field: str) -> str:
    if not prefix:
        return field or NO_FIELD
    if field in ("", NO_FIELD):
        return prefix
    return f"{prefix}.{field}"


def _value(value: Any, old: Any, node: Node, path: str) -> Iterator[Cause]:
    if old is not ABSENT and same(value, old):
        return
    yield from _type(value, node, path)
    match value:
        case bool() | None:
            pass
        case str():
            yield from _text(value, node, path)
        case int() | float():
            yield from _number(value, node, path)
        case list():
            yield from _list(value, old, node, path)
        case dict():
            yield from _object(value, old, node, path)
    if node.enum and value not in node.enum:
        yield causes.not_supported(path, value, node.enum)


def _type(value: Any, node: Node, path: str) -> Iterator[Cause]:
    found = _type_name(value)
    if node.int_or_string:
        if found not in ("integer", "string"):
            yield _wrong_type(path, "integer,string", found)
            yield causes.invalid(NO_FIELD, "", f'"{path}" must validate at least one schema (anyOf)')
            yield _wrong_type(path, "integer", found)
        return
    if not node.type or found == node.type or (value is None and node.nullable):
        return
    if found == "integer" and node.type == "number":
        return
    if found == "number" and node.type == "integer":
        yield _wrong_type(path, "int64", "float64")
        yield causes.invalid(NO_FIELD, "", f"Checked value must be of type integer with format int64 in {path}")
        return
    yield _wrong_type(path, node.type, found)


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() if value in _INT64:
            return "integer"
        case int() | float():
            # JSON has no integers beyond 64 bits in Kubernetes: they are read as floating point.
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _wrong_type(path: str, wanted: str, found: str) -> Cause:
    found = found[:_LONGEST_TEXT]
    return causes.type_invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')


def _text(value: str, node: Node, path: str) -> Iterator[Cause]:
    bounds = node.bounds
    if "maxLength" in bounds and len(value) > bounds["maxLength"]:
        yield causes.too_long(path, bounds["maxLength"])
    elif "minLength" in bounds and len(value) < bounds["minLength"]:
        yield _breaks(path, value, f"should be at least {bounds['minLength']} chars long")
    elif node.regex is not None and not node.regex.search(value):
        yield _breaks(path, value, f"should match '{node.pattern}'")
    known = _FORMATS.get(node.format)
    if known is not None and not known(value):
        yield _wrong_type(path, node.format, value)


def _number(value: float, node: Node, path: str) -> Iterator[Cause]:
    bounds = node.bounds
    if "multipleOf" in bounds and value % bounds["multipleOf"]:
        yield _breaks(path, value, f"should be a multiple of {bounds['multipleOf']}")
    if "minimum" in bounds:
        lowest, exclusive = bounds["minimum"], bounds.get("exclusiveMinimum", False)
        if value < lowest or (exclusive and value == lowest):
            yield _breaks(path, value, f"should be greater than {'' if exclusive else 'or equal to '}{lowest}")
    if "maximum" in bounds:
        highest, exclusive = bounds["maximum"], bounds.get("exclusiveMaximum", False)
        if value > highest or (exclusive and value == highest):
            yield _breaks(path, value, f"should be less than {'' if exclusive else 'or equal to '}{highest}")


def _list(value: list[Any], old: Any, node: Node, path: str) -> Iterator[Cause]:
    if node.items is not None:
        matched = old_items(old, node)
        for index, item in enumerate(value):
            yield from _value(item, matched(item), node.items, f"{path}[{index}]")
    if len(value) < node.bounds.get("minItems", 0):
        yield _breaks(path, len(value), f"should have at least {node.bounds['minItems']} items")
    if "maxItems" in node.bounds and len(value) > node.bounds["maxItems"]:
        yield causes.too_many(path, len(value), node.bounds["maxItems"])


def _object(value: dict[str, Any], old: Any, node: Node, path: str) -> Iterator[Cause]:
    if len(value) < node.bounds.get("minProperties", 0):
        yield _breaks(path, len(value), f"should have at least {node.bounds['minProperties']} properties")
    if "maxProperties" in node.bounds and len(value) > node.bounds["maxProperties"]:
        yield causes.too_many(path, len(value), node.bounds["maxProperties"])
    before = old if type(old) is dict else {}
    for name, part in value.items():
        child = node.properties.get(name, node.additional)
        if child is not None:
            yield from _value(part, before.get(name, ABSENT), child, f"{path}.{name}" if path else name)
    for name in node.required:
        if name not in value:
            yield causes.required(f"{path}.{name}" if path else name)


def _breaks(path: str, value: Any, rule: str) -> Cause:
    return causes.invalid(path, value, f"{path} in body {rule}")
