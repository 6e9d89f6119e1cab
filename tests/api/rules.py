"""Trying a kind's rules on whole objects, as an admission would: defaults first, then every rule in the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quorate.api import cel
from quorate.api.kind import Kind
from quorate.api.schema import structural_schema


def messages(kind: Kind, new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """The messages of the rules that a write would break."""
    schema = structural_schema(kind)
    return list(_broken(schema, _defaulted(schema, new), None if old is None else _defaulted(schema, old)))


def _broken(schema: dict[str, Any], new: Any, old: Any) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if not cel.evaluate(rule["rule"], new, old):
            yield rule["message"]
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name, value in new.items():
            field = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if field:
                yield from _broken(field, value, before.get(name))
    elif isinstance(new, list):
        # Items of a plain list have no past: nobody can tell which was which.
        for item in new:
            yield from _broken(schema["items"], item, None)


def _defaulted(schema: dict[str, Any], value: Any) -> Any:
    if isinstance(value, list):
        return [_defaulted(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    filled = {name: field["default"] for name, field in properties.items() if "default" in field} | value
    return {
        name: _defaulted(properties.get(name, schema.get("additionalProperties") or {}), inner)
        for name, inner in filled.items()
    }
