"""Printer columns find what they point at, and a column that cannot be read is refused before anybody uses it."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.kind import all_kinds
from quorate.server.kubernetes.jsonpath import compile_path

TREE = {
    "spec": {"nodeName": "n1", "a.b": 1, "size": 0, "on": False, "none": None},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "age": 3},
            {"type": "Synced", "status": "False", "age": 7.5, "urgent": True},
        ],
        "matrix": [[1, 2], [3]],
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.nodeName", ["n1"]),
        (".spec['a.b']", [1]),
        (r".spec.a\.b", [1]),
        (".spec.size", [0]),
        (".spec.on", [False]),
        (".spec.none", [None]),
        (".spec.missing.deeper", []),
        (".spec.nodeName.deeper", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Synced')].status", ["False"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Synced"]),
        (".status.conditions[?(@.age>3)].type", ["Synced"]),
        (".status.conditions[?(@.age>=3)].type", ["Ready", "Synced"]),
        (".status.conditions[?(@.age<=3.5)].type", ["Ready"]),
        (".status.conditions[?(@.age<1)].type", []),
        (".status.conditions[?(@.urgent)].type", ["Synced"]),
        (".status.conditions[?(@.urgent==true)].type", ["Synced"]),
        (".status.conditions[?(@.urgent==1)].type", []),
        ('.status.conditions[?(@.age=="3")].type', []),
        ('.spec[?(@.type=="Ready")]', []),
        (".status.conditions[*].type", ["Ready", "Synced"]),
        (".status.conditions[0].type", ["Ready"]),
        (".status.conditions[-1].type", ["Synced"]),
        (".status.conditions[-2].type", ["Ready"]),
        (".status.conditions[5].type", []),
        (".status.conditions[0:1].type", ["Ready"]),
        (".status.conditions[1:].type", ["Synced"]),
        (".status.matrix[*][0]", [1, 3]),
        (".spec[0]", []),
    ],
)
def test_a_path_finds_what_it_points_at(path: str, found: list[Any]) -> None:
    assert compile_path(path).find(TREE) == found


def test_the_first_value_is_none_where_there_is_none() -> None:
    assert compile_path(".spec.missing").first(TREE) is None
    assert compile_path(".status.conditions[*].type").first(TREE) == "Ready"


@pytest.mark.parametrize(
    "path", ["spec", "..name", ".spec[", ".spec[]", ".a[?(type)]", ".a[?(@.x==y)]", ".a b", "{.spec}", ".a[1:2:3:4]"]
)
def test_a_path_in_another_language_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a JSONPath of a printer column"):
        compile_path(path)


def test_every_column_of_every_kind_can_be_read() -> None:
    for kind in all_kinds():
        for column in kind.columns:
            compile_path(column.path)
