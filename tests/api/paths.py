"""Looking things up in a schema by path: ``status.drbd.config.peers[].nodeId``, ``spec.replicas{}``."""

from __future__ import annotations

import re
from typing import Any

from quorate.api.kind import Kind
from quorate.api.schema import structural_schema

_STEP = re.compile(r"\.?([^.\[\]{}]+)|(\[\])|(\{\})")


def lookup(kind: Kind, path: str) -> dict[str, Any] | None:
    """The schema of a field, or None if there is no such field."""
    schema: dict[str, Any] | None = structural_schema(kind)
    for name, item, value in _STEP.findall(path):
        if schema is None:
            return None
        if item:
            schema = schema.get("items")
        elif value:
            schema = schema.get("additionalProperties")
        else:
            # A name inside a map is one of its keys.
            schema = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return schema
