"""What somebody sent is brought into the shape of its schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.api.core import Node
from quorate.engine.embedded.schema import KindSchema
from quorate.engine.embedded.schema.node import compile_node
from quorate.engine.embedded.schema.shape import shape
from tests.engine.embedded.support import WIDGET, rules_of, widget

NESTED = compile_node(
    {
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "count": {"type": "integer", "default": 3},
            "maybe": {"type": "string", "nullable": True},
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
            },
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "box": {
                "type": "object",
                "default": {"b": 2},
                "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "integer"}},
            },
        },
    }
)
FILLED = {"count": 3, "box": {"b": 2, "a": 1}}


@pytest.mark.parametrize(
    ("value", "shaped", "unknown"),
    [
        ({}, FILLED, []),
        ({"plain": None, "count": None}, FILLED, []),
        ({"maybe": None}, {"maybe": None, **FILLED}, []),
        ({"nope": 1, "plain": "p"}, {"plain": "p", **FILLED}, ["nope"]),
        ({"box": None}, FILLED, []),
        ({"box": {}}, {"box": {"a": 1}, "count": 3}, []),
        ({"box": {"c": 1}}, {"box": {"a": 1}, "count": 3}, ["box.c"]),
        ({"list": [{}, {"x": 1}, None]}, {"list": [{"n": 1}, {"n": 1}, None], **FILLED}, ["list[1].x"]),
        ({"map": {"a": None, "b": "y"}}, {"map": {"a": "x", "b": "y"}, **FILLED}, []),
        ({"free": {"a": {"b": None}}}, {"free": {"a": {"b": None}}, **FILLED}, []),
        ({"count": 4.0}, {"count": 4, "box": FILLED["box"]}, []),
        ({"count": 4.5}, {"count": 4.5, "box": FILLED["box"]}, []),
        ({"count": 1e300}, {"count": 1e300, "box": FILLED["box"]}, []),
        ({"plain": {"a": 1}}, {"plain": {}, **FILLED}, ["plain.a"]),
        ({"plain": [{"a": 1}]}, {"plain": [{}], **FILLED}, ["plain[0].a"]),
        ("text", "text", []),
    ],
)
def test_shape(value: Any, shaped: Any, unknown: list[str]) -> None:
    found: list[str] = []
    before = copy.deepcopy(value)
    result = shape(value, None, NESTED, "", found)
    assert (result, found) == (shaped, unknown)
    assert type(result.get("count") if isinstance(result, dict) else 0) is type(
        shaped.get("count") if isinstance(shaped, dict) else 0
    )
    assert value == before, "what was sent is not changed"


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["plain", "count", "box", "map", "list", "n", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json)
def test_what_is_in_shape_stays_as_it_is(value: Any) -> None:
    once = shape(value, None, NESTED, "", [])
    unknown: list[str] = []
    assert shape(once, None, NESTED, "", unknown) is once
    assert unknown == []


def test_what_did_not_change_is_not_looked_at() -> None:
    odd = {"unknown": 1}
    tree = widget(spec=odd)
    schema = rules_of(WIDGET).schema
    unknown: list[str] = []
    assert schema.shape({**tree, "status": {}}, tree, unknown)["spec"] is odd
    assert unknown == []


def test_unknown_fields_of_kubernetes_own_kinds_are_kept() -> None:
    schema = KindSchema(Node.KIND)
    tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}, "x": 1}}
    unknown: list[str] = []
    assert schema.shape(tree, None, unknown) == tree
    assert unknown == []


def test_a_keyword_that_would_not_be_enforced_is_refused() -> None:
    with pytest.raises(TypeError, match="does not enforce oneOf"):
        compile_node({"type": "object", "properties": {"a": {"oneOf": []}}})
