"""Bring an object into the shape of its schema: the first thing that happens to what somebody sent.

In this order, as Kubernetes: fields that the schema does not know are dropped (and reported), nulls of fields
that cannot be null are dropped, defaults are filled in, and whole numbers written like 1.0 become integers.

Nothing is changed in place. What needs no change is returned as it is, and what is the very same value as in
``old``, which has its shape already, is not looked at: a patch of one field costs what that field costs. An item of a
list that is equal to the old one in its place becomes the old one: so whoever comes next need not look at it either.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from quorate.engine.embedded.schema.node import Node, compile_node
from quorate.engine.embedded.schema.trees import same

#: Dropped fields that are told of.
MOST_UNKNOWN = 100

#: Beyond this a JSON number is not safely whole.
_EXACT = 2**53 - 1

#: No value: neither null nor equal to any.
_ABSENT = object()

#: The schema of what a list without a schema holds: no fields at all.
_NOTHING = compile_node({})


def shape(value: Any, old: Any, node: Node, path: str, unknown: list[str]) -> Any:
    """``value`` in the shape of ``node``; the paths of dropped fields are added to ``unknown``."""
    if value is old:
        return value
    kind = type(value)
    if kind is dict:
        return _shape_object(value, old if type(old) is dict else {}, node, path, unknown)
    if kind is list:
        return _shape_list(value, old if type(old) is list else [], node, path, unknown)
    if kind is float and node.type == "integer" and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value


def _shape_object(
    value: dict[str, Any], old: dict[str, Any], node: Node, path: str, unknown: list[str]
) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    prefix = f"{path}." if path else ""
    properties, additional = node.properties, node.additional
    for name, part in value.items():
        child = properties.get(name, additional)
        if child is None:
            if not node.preserve:
                if len(unknown) < MOST_UNKNOWN:
                    unknown.append(prefix + name)
                changes[name] = _ABSENT
        elif part is None:
            if not child.nullable:
                # Where there is a default, a null asks for it.
                changes[name] = _default(child)
        elif type(part) is not str:
            shaped = shape(part, old.get(name), child, prefix + name, unknown)
            if shaped is not part:
                changes[name] = shaped
    for name in node.defaulted:
        if name not in value:
            changes[name] = _default(properties[name])
    if not changes:
        return value
    return {name: part for name, part in (value | changes).items() if part is not _ABSENT}


def _shape_list(value: list[Any], old: list[Any], node: Node, path: str, unknown: list[str]) -> list[Any]:
    items = node.items
    if items is None:
        if node.preserve:
            return value
        items = _NOTHING
    result = []
    changed = False
    for index, (part, last) in enumerate(zip_longest(value, old[: len(value)], fillvalue=_ABSENT)):
        shaped = part
        if part is None:
            if items.default is not None and not items.nullable:
                shaped = _default(items)
        elif part is last or (type(part) is dict and _unchanged(part, last, items)):
            shaped = last
        elif type(part) is not str:
            # Inside an item nothing is compared with an old one: it may be another item.
            shaped = shape(part, _ABSENT, items, f"{path}[{index}]", unknown)
        changed = changed or shaped is not part
        result.append(shaped)
    return result if changed else value


def _unchanged(item: dict[str, Any], last: Any, node: Node) -> bool:
    """Whether it is the same item, exactly (:func:`same`): text is never taken for something else, numbers may be."""
    if item != last:
        return False
    if node.inexact is None:
        return same(item, last)
    return all(same(item.get(name), last.get(name)) for name in node.inexact)


def _default(node: Node) -> Any:
    """The default of a value, with the defaults inside it."""
    return _ABSENT if node.default is None else shape(node.default, _ABSENT, node, "", [])
