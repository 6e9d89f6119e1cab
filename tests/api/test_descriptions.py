"""``kubectl explain`` has a word to say on every field of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.api import all_kinds
from quorate.api.kind import Kind
from quorate.api.schema import Schema, metadata_schema, structural_schema

#: An API server has its own words for metadata, and takes none from a CRD.
ITS_OWN = "metadata"


def fields(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every field, with its schema; through lists and maps."""
    for name, field in schema.get("properties", {}).items():
        if (path, name) != ("", ITS_OWN):
            yield f"{path}.{name}", field
            yield from fields(field, f"{path}.{name}")
    for inside in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inside, dict):
            yield from fields(inside, f"{path}[]")


#: Other tests declare kinds of their own.
OURS = [kind for kind in all_kinds() if kind.type.__module__.startswith("quorate.")]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: f"{kind.group or 'core'}/{kind.name}")
def test_every_field_has_a_description(kind: Kind) -> None:
    schema = structural_schema(kind)
    assert schema.get("description")
    assert [path for path, field in fields(schema, "") if not field.get("description", "").strip()] == []


def test_every_field_of_metadata_has_a_description() -> None:
    assert [path for path, field in fields(metadata_schema(), "metadata") if not field.get("description")] == []
