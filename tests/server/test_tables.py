"""Rows have the kind's columns, each cell of its column's type or empty."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from quorate.api.kind import Column, Kind, Scope
from quorate.api.meta import Resource
from quorate.errors import BadRequest
from quorate.server.kubernetes.tables import Include, column_definitions, parse_include, row, table
from tests.support.kinds import Widget

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
OBJECT = {
    "apiVersion": "test.quorate.io/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"owner": "me", "nodeName": "n1"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


def kind_with(*columns: Column) -> Kind:
    return Kind("g", "v1", "Thing", "things", Scope.CLUSTER, Resource, columns=columns)


def cell_of(column: Column, **content: object) -> object:
    raw = msgspec.json.encode({"metadata": {"name": "a"}, **content})
    return row(kind_with(column), raw, Include.NOTHING, NOW)["cells"][1]


def test_a_row_follows_the_declared_columns() -> None:
    assert row(Widget.KIND, msgspec.json.encode(OBJECT), Include.NOTHING, NOW) == {
        "cells": ["a", "me", "True", "n1", "10m"],
        "object": None,
    }


def test_the_heading_names_type_and_priority_of_each_column() -> None:
    shown = [(one["name"], one["type"], one["priority"]) for one in column_definitions(Widget.KIND)]
    assert shown == [
        ("Name", "string", 0),
        ("Owner", "string", 0),
        ("Ready", "string", 0),
        ("Node", "string", 1),
        ("Age", "date", 0),
    ]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (
            Include.METADATA,
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"]},
        ),
        (Include.OBJECT, OBJECT),
        (Include.NOTHING, None),
    ],
)
def test_a_row_brings_as_much_of_the_object_as_asked_for(include: Include, expected: Any) -> None:
    made = table(
        [row(Widget.KIND, msgspec.json.encode(OBJECT), include, NOW)], metadata={"resourceVersion": "7"}, columns=None
    )
    sent = msgspec.json.decode(msgspec.json.encode(made))
    assert sent["rows"][0]["object"] == expected
    assert sent["metadata"] == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    ("type_", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", 5, "5"),
        ("string", True, "true"),
        ("string", ["n1", "n2"], '["n1","n2"]'),
        ("string", {"a": 1}, '{"a":1}'),
        ("string", None, None),
        ("integer", 5, 5),
        ("integer", 5.9, 5),
        ("integer", "5", None),
        ("integer", True, None),
        ("number", 5, 5.0),
        ("boolean", False, False),
        ("boolean", "false", None),
        ("date", "2026-01-01T00:00:00Z", "10m"),
        ("date", "2026-01-01T00:00:00.000000Z", "10m"),
        ("date", "yesterday", "<invalid>"),
        ("date", "2026-01-01T00:00:00", "<invalid>"),
        ("date", 5, None),
    ],
)
def test_a_cell_has_its_columns_type_or_is_empty(type_: str, value: Any, cell: Any) -> None:
    found = cell_of(Column("X", ".x", type_), x=value)
    assert found == cell
    assert type(found) is type(cell)


def test_an_absent_value_is_an_empty_cell() -> None:
    assert cell_of(Column("X", ".spec.x")) is None


def test_how_much_of_the_object_is_one_of_three() -> None:
    assert parse_include("") is Include.METADATA
    assert parse_include("Object") is Include.OBJECT
    with pytest.raises(BadRequest, match="must be 'Metadata', 'Object', 'None'"):
        parse_include("Everything")
