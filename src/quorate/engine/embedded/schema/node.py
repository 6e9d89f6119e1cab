"""A structural schema, compiled once per kind into a tree of nodes that the other modules walk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from quorate.api.schema import Schema
from quorate.engine.embedded.schema.rules import CompiledRule

_BOUNDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
)
_KNOWN = _BOUNDS | {
    *("type", "properties", "additionalProperties", "items", "required", "default", "nullable", "enum"),
    *("description", "format", "pattern", "anyOf", "x-kubernetes-int-or-string", "x-kubernetes-map-type"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
}


@dataclass(frozen=True, slots=True)
class Node:
    """The schema of one value."""

    #: JSON type; empty where anything goes or where an integer or a text does.
    type: str
    int_or_string: bool
    #: Unknown fields are kept.
    preserve: bool
    nullable: bool
    #: None when there is none.
    default: Any
    properties: dict[str, Node]
    #: The schema of a map's values.
    additional: Node | None
    items: Node | None
    required: tuple[str, ...]
    #: The properties that have a default.
    defaulted: tuple[str, ...]
    enum: tuple[Any, ...]
    format: str
    pattern: str
    regex: re.Pattern[str] | None
    #: The remaining bounds, by their name in the schema.
    bounds: dict[str, Any]
    list_type: str
    map_keys: tuple[str, ...]
    rules: tuple[CompiledRule, ...]
    #: Whether this value or one inside it has rules, and which properties do.
    has_rules: bool
    ruled: tuple[str, ...]
    #: The properties that are more than text; None where there may be values beside the properties.
    inexact: tuple[str, ...] | None

    @property
    def children(self) -> tuple[Node, ...]:
        """The schemas of everything inside."""
        inner = (*self.properties.values(), self.additional, self.items)
        return tuple(node for node in inner if node is not None)


def compile_node(schema: Schema, *, preserve: bool = False) -> Node:
    """The node of a schema; raises on a keyword that nobody here would enforce.

    With ``preserve``, unknown fields are kept in it and in everything inside.
    """
    unknown = sorted(schema.keys() - _KNOWN)
    if unknown:
        raise TypeError(f"the embedded engine does not enforce {', '.join(unknown)} in a schema")
    properties = {name: compile_node(part, preserve=preserve) for name, part in schema.get("properties", {}).items()}
    additional = (
        compile_node(schema["additionalProperties"], preserve=preserve) if "additionalProperties" in schema else None
    )
    items = compile_node(schema["items"], preserve=preserve) if "items" in schema else None
    rules = tuple(CompiledRule.compile(rule) for rule in schema.get("x-kubernetes-validations", ()))
    inner = (*properties.values(), additional, items)
    pattern = schema.get("pattern", "")
    kept = preserve or schema.get("x-kubernetes-preserve-unknown-fields", False)
    closed = bool(properties) and additional is None and not kept
    return Node(
        type=schema.get("type", ""),
        int_or_string=schema.get("x-kubernetes-int-or-string", False),
        preserve=kept,
        nullable=schema.get("nullable", False),
        default=schema.get("default"),
        properties=properties,
        additional=additional,
        items=items,
        required=tuple(schema.get("required", ())),
        defaulted=tuple(name for name, node in properties.items() if node.default is not None),
        enum=tuple(schema.get("enum", ())),
        format=schema.get("format", ""),
        pattern=pattern,
        regex=re.compile(_as_python(pattern), re.ASCII) if pattern else None,
        bounds={name: schema[name] for name in schema if name in _BOUNDS},
        list_type=schema.get("x-kubernetes-list-type", ""),
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
        rules=rules,
        has_rules=bool(rules) or any(node is not None and node.has_rules for node in inner),
        ruled=tuple(name for name, node in properties.items() if node.has_rules),
        inexact=tuple(name for name, node in properties.items() if node.type != "string") if closed else None,
    )


def _as_python(pattern: str) -> str:
    r"""Kubernetes' regular expressions are RE2: ``$`` is only the very end, not also before a last newline."""
    return re.sub(r"(\\.|\[(?:\\.|[^\]])*\])|\$", lambda found: found.group(1) or r"\Z", pattern)
