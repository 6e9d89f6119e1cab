"""The generated schemas are what an API server calls structural, and say what the types say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from msgspec import Meta

from quorate.api.kind import Kind, all_kinds
from quorate.api.meta import Resource
from quorate.api.schema import metadata_schema, structural_schema
from quorate.api.struct import Struct, list_map
from tests.api.paths import lookup
from tests.support.kinds import Widget

ALL = all_kinds()


def problems(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """What would make a schema non-structural, or an API server refuse it."""
    int_or_string = schema.get("x-kubernetes-int-or-string", False)
    if not ("type" in schema or int_or_string or schema.get("x-kubernetes-preserve-unknown-fields")):
        yield f"{path}: no type"
    if {"$ref", "oneOf", "allOf", "not", "title", "examples"} & schema.keys() or ("anyOf" in schema) != int_or_string:
        yield f"{path}: not structural"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: properties beside additionalProperties"
    if set(schema.get("required", ())) - schema.get("properties", {}).keys():
        yield f"{path}: requires what it has not"
    items = schema.get("items", {})
    if schema.get("type") == "array":
        yield from problems(items, f"{path}[]")
    if schema.get("x-kubernetes-list-type") == "map":
        for key in schema["x-kubernetes-list-map-keys"]:
            field = items.get("properties", {}).get(key)
            if field is None or ("default" not in field and key not in items.get("required", ())):
                yield f"{path}: key {key} is neither required nor defaulted"
    if schema.get("x-kubernetes-list-type") == "set" and items.get("type") == "object":
        yield f"{path}: a set of objects"
    for rule in schema.get("x-kubernetes-validations", ()):
        field, inner = rule.get("fieldPath", "").lstrip("."), schema
        for part in field.split(".") if field else ():
            inner = inner.get("properties", {}).get(part, {})
        if not inner:
            yield f"{path}: a rule speaks of {field}, which is not there"
    for name, field in schema.get("properties", {}).items():
        yield from problems(field, f"{path}.{name}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from problems(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("kind", ALL, ids=repr)
def test_a_schema_is_structural(kind: Kind) -> None:
    assert list(problems(structural_schema(kind))) == []


class Item(Struct):
    """An item."""

    key: str = ""


class Careless(Resource):
    """A kind whose list has a key that may be absent."""

    items: Annotated[tuple[Item, ...], list_map("key")] = ()


def test_the_check_finds_what_an_api_server_would_refuse() -> None:
    found = structural_schema(Kind(group="x", version="v1", name="Careless", plural="y", scope=None, type=Careless))  # type: ignore[arg-type]
    assert list(problems(found)) == [".items: key key is neither required nor defaulted"]
    assert list(problems({})) == [": no type"]


@pytest.mark.parametrize("kind", ALL, ids=repr)
def test_printer_columns_and_selectable_fields_are_fields(kind: Kind) -> None:
    for column in kind.columns[:-1]:
        field = lookup(kind, column.path.split("[?")[0].lstrip("."))
        assert field is not None, column.path
        expected = {"integer": "integer", "boolean": "boolean", "date": "string"}.get(column.type)
        assert expected is None or field["type"] == expected, column.path
    for path in kind.selectable_fields:
        field = lookup(kind, path.lstrip("."))
        assert field is not None, path
        assert field["type"] in {"string", "boolean"}, path


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind.crd], ids=repr)
def test_every_object_is_described_for_kubectl_explain(kind: Kind) -> None:
    def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
        if schema.get("type") == "object" and "properties" in schema:
            if not schema.get("description") and path != ".metadata":
                yield path
            for name, field in schema["properties"].items():
                yield from undescribed(field, f"{path}.{name}")
        if "items" in schema:
            yield from undescribed(schema["items"], f"{path}[]")

    assert list(undescribed(structural_schema(kind), "")) == []


def test_bounds_enums_defaults_and_descriptions_come_from_the_declaration() -> None:
    def at(path: str) -> Any:
        return lookup(Widget.KIND, path)

    assert at("spec.colour") == {"type": "string", "enum": ["Red", "Green"], "default": "Red"}
    assert at("spec.low") == {"type": "integer", "format": "int64", "minimum": 0, "maximum": 1000}
    assert at("spec.ratio") == {
        "type": "number",
        "format": "double",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
        "exclusiveMaximum": True,
    }
    assert at("spec.parts")["x-kubernetes-list-map-keys"] == ["name"]
    assert at("spec.parts")["maxItems"] == 5
    assert at("spec.tags")["x-kubernetes-list-type"] == "set"
    assert at("spec.weights{}") == {"type": "integer", "format": "int64", "minimum": 0}
    assert at("spec.size")["x-kubernetes-int-or-string"] is True
    assert at("spec")["required"] == ["owner"]
    assert at("")["description"] == "A cluster-scoped kind for tests."


def test_what_does_not_map_is_refused() -> None:
    class Ambiguous(Resource):
        both: int | str = 0

    with pytest.raises(TypeError, match="not structural: a union of 2 types"):
        structural_schema(Kind(group="x", version="v1", name="A", plural="a", scope=None, type=Ambiguous))  # type: ignore[arg-type]


def test_rules_of_several_annotations_add_up() -> None:
    field = lookup(next(kind for kind in ALL if kind.name == "LVMLogicalVolume"), "spec.size")
    assert field is not None
    assert [rule["message"] for rule in field["x-kubernetes-validations"]] == [
        "size must be more than zero",
        "size must not shrink",
    ]


def test_metadata_has_its_own_schema_for_explain() -> None:
    assert {"name", "labels", "finalizers", "ownerReferences"} <= metadata_schema()["properties"].keys()


def test_a_description_is_the_first_paragraph_in_one_line() -> None:
    class Talkative(Resource):
        """First
        line.

        Second paragraph.
        """

        field: Annotated[int, Meta(description="A number.")] = 0

    schema = structural_schema(Kind(group="x", version="v1", name="T", plural="t", scope=None, type=Talkative))  # type: ignore[arg-type]
    assert schema["description"] == "First line."
    assert schema["properties"]["field"]["description"] == "A number."
