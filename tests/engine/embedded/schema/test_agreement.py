"""The fast judge and the thorough one give the same verdict, and so do the two ways to decode."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.api.kind import Kind
from quorate.api.schema import structural_schema
from quorate.engine.embedded.schema.checks import compile_check
from quorate.engine.embedded.schema.explain import duplicates, explain
from quorate.engine.embedded.schema.node import Node, compile_node
from quorate.engine.embedded.schema.shape import shape
from quorate.engine.embedded.schema.trees import ABSENT
from quorate.engine.embedded.schema.typed import TypedDecoder
from tests.engine.embedded.schema.exotic import EXOTIC
from tests.engine.embedded.support import WIDGET, Tree

KINDS = (WIDGET, EXOTIC)
NODES = {kind: compile_node(structural_schema(kind)) for kind in KINDS}
CHECKS = {kind: compile_check(node) for kind, node in NODES.items()}
DECODERS = {kind: TypedDecoder(kind) for kind in KINDS}

#: How long an example takes says something about the machine, not about the engine.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

#: Values that somebody might send anywhere, among them those that two readers might read differently.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 1.0, 1.5, 10**30, 2**53, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1),
        *("", "a", "abc\n", "Red", "True", "on", "12-x", "1٣-x", "12-é", "YQ==", "YQ=", [], {}),
        *("10Gi", "1e3", "10Gi\n", "1" * 65, "1h", "1h\n"),
        *("2020-01-01T00:00:00Z", "2020-01-01 00:00:00Z", "2020-01-01T00:00:00", "2020-02-30T00:00:00Z"),
        *("2020-01-01T00:00:00+24:00", "0000-01-01T00:00:00Z", "2020-01-01t00:00:00.5z", "2020-01-01T00:00:00+0200"),
    ]
)


def values(node: Node) -> st.SearchStrategy[Any]:
    """Mostly values that fit a schema, with an odd one here and there."""
    return st.integers(0, 9).flatmap(lambda draw: ODD if draw == 0 else _fitting(node))


def _fitting(node: Node) -> st.SearchStrategy[Any]:
    if node.enum:
        return st.sampled_from(node.enum)
    if node.int_or_string:
        return st.sampled_from([1, "10Gi", "1.5", "-3", ".5m", "1e3", "+1"])
    if node.format == "date-time":
        return st.sampled_from(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.25+02:00"])
    if node.format == "byte":
        return st.sampled_from(["YQ==", ""])
    if node.pattern:
        return st.from_regex(node.pattern, alphabet=st.characters(codec="ascii")) | st.sampled_from(["1h", "12-x"])
    match node.type:
        case "string":
            return st.text(min_size=0, max_size=22)
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(-2, 110) | st.sampled_from([1000, 1001])
        case "number":
            return st.floats(-0.5, 1.5) | st.integers(0, 1)
        case "array":
            assert node.items is not None
            return st.lists(values(node.items), max_size=6)
        case "object" if node.additional is not None:
            return st.dictionaries(st.sampled_from(["a", "b", "c"]), values(node.additional))
        case "object":
            required = {name: values(node.properties[name]) for name in node.required}
            optional = {name: values(child) for name, child in node.properties.items() if name not in node.required}
            return st.fixed_dictionaries(required, optional=optional)
        case _:
            return ODD


@st.composite
def contents(draw: st.DrawFn, kind: Kind) -> Tree:
    """An object's parts, in shape."""
    parts = {name: node for name, node in NODES[kind].properties.items() if name in ("spec", "status")}
    tree = {name: draw(values(node)) for name, node in parts.items() if name == "spec" or draw(st.booleans())}
    shaped: Tree = shape(tree, None, NODES[kind], "", [])
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, **shaped}


def accepted_fast(kind: Kind, tree: Tree) -> bool:
    try:
        DECODERS[kind].first(msgspec.json.encode(tree))
    except msgspec.ValidationError:
        return False
    check = CHECKS[kind]
    return check is None or check(tree, None)


def accepted_slow(kind: Kind, tree: Tree) -> bool:
    return not explain(tree, ABSENT, NODES[kind]) and not any(duplicates(tree, NODES[kind]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@patient
@given(st.data())
def test_both_judges_give_the_same_verdict(kind: Kind, data: st.DataObject) -> None:
    tree = data.draw(contents(kind))
    assert accepted_fast(kind, tree) == accepted_slow(kind, tree)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@patient
@given(st.data())
def test_the_next_state_decodes_as_if_it_were_the_first(kind: Kind, data: st.DataObject) -> None:
    before, after = data.draw(contents(kind)), data.draw(contents(kind))
    for name in ("spec", "status"):
        if name in before and data.draw(st.booleans()):
            after[name] = before[name]
    after["metadata"] = data.draw(st.sampled_from([{"name": "x", "resourceVersion": "2"}, {"name": "x", "uid": "u"}]))
    decoder = DECODERS[kind]
    try:
        last = decoder.first(msgspec.json.encode(before))
    except msgspec.ValidationError:
        return
    try:
        expected = decoder.first(msgspec.json.encode(after))
    except msgspec.ValidationError:
        with pytest.raises(msgspec.ValidationError):
            decoder.next(last, before, after)
    else:
        assert decoder.next(last, before, after) == expected


def test_the_generator_makes_both_good_and_bad_objects() -> None:
    verdicts = set()

    @patient
    @given(contents(WIDGET))
    def look(tree: Tree) -> None:
        verdicts.add(accepted_slow(WIDGET, tree))

    look()
    assert verdicts == {True, False}
