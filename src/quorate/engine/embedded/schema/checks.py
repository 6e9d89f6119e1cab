"""What the typed decoder does not check: the rest of the fast path.

The decoder judges types, bounds, enums, lengths and required fields, in C. What is left is compiled here, per
kind, into as few calls as possible: list items that must be distinct, 64-bit integers, regular expressions where
Python's and Kubernetes' dialects may differ, and times and base64 that the decoder reads too generously.

A check is asked only about values that the decoder accepted, so it may take their types for granted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from quorate.engine.embedded.schema.formats import looks_like_date_time
from quorate.engine.embedded.schema.node import Node
from quorate.engine.embedded.schema.trees import item_identity

#: Whether a value is good, given the value that it replaces: what is the very same is not looked at again.
Check = Callable[[Any, Any], bool]

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def compile_check(node: Node) -> Check | None:
    """The check of a value and everything inside; None when the decoder's word is enough."""
    if node.type == "object" and node.additional is None:
        return _check_struct(node)
    if node.type == "array":
        return _check_list(node)
    check = _compile_plain(node)
    return None if check is None else lambda value, old: check(value)


def _compile_plain(node: Node) -> Callable[[Any], bool] | None:
    if node.int_or_string:
        search = _search(node)
        return lambda value: _LOWEST <= value <= _HIGHEST if type(value) is int else search(value)
    match node.type:
        case "string":
            return _check_text(node)
        case "integer" if not node.bounds.keys() >= {"minimum", "maximum"}:
            return lambda value: _LOWEST <= value <= _HIGHEST
        case "object" if node.additional is not None:
            return _check_map(node.additional)
        case _:
            return None


def _check_text(node: Node) -> Callable[[str], bool] | None:
    if node.format == "date-time":
        return lambda value: looks_like_date_time(value) is not None
    if node.format == "byte":
        return lambda value: value != ""
    # Without these two the dialects agree.
    if "$" in node.pattern or "\\" in node.pattern:
        return _search(node)
    return None


def _search(node: Node) -> Callable[[str], bool]:
    if node.regex is None:
        return lambda value: True
    search = node.regex.search
    return lambda value: search(value) is not None


def _check_list(node: Node) -> Check | None:
    assert node.items is not None, "a structural schema says what a list holds"
    check_item = compile_check(node.items)
    distinct = _distinct(node) if node.list_type in ("set", "map") else _whatever
    if check_item is None:
        return None if distinct is _whatever else lambda value, old: distinct(value)

    def check(value: list[Any], old: Any) -> bool:
        before = old[: len(value)] if type(old) is list else ()
        for item, last in zip_longest(value, before):
            if item is not last and not check_item(item, None):
                return False
        return distinct(value)

    return check


def _whatever(value: list[Any]) -> bool:
    return True


def _distinct(node: Node) -> Callable[[list[Any]], bool]:
    assert node.items is not None
    if node.list_type == "map" and len(node.map_keys) == 1:
        (key,) = node.map_keys
        if node.items.properties[key].type == "string":
            return lambda value: len(value) < 2 or len({item.get(key) for item in value}) == len(value)
    if node.list_type == "set" and node.items.type == "string":
        return lambda value: len(value) < 2 or len(set(value)) == len(value)
    return lambda value: len(value) < 2 or len({item_identity(item, node) for item in value}) == len(value)


def _check_map(values: Node) -> Callable[[dict[str, Any]], bool] | None:
    check_value = compile_check(values)
    if check_value is None:
        return None
    return lambda value: all(check_value(part, None) for part in value.values())


def _check_struct(node: Node) -> Check | None:
    compiled = {name: compile_check(child) for name, child in node.properties.items()}
    checks = tuple((name, check) for name, check in compiled.items() if check is not None)
    if not checks:
        return None

    def check(value: dict[str, Any], old: Any) -> bool:
        before = old if type(old) is dict else {}
        for name, check_part in checks:
            part = value.get(name)
            if part is not None:
                last = before.get(name)
                if part is not last and not check_part(part, last):
                    return False
        return True

    return check
