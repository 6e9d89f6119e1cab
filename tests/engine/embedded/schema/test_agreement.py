"""The fast judge and the thorough one give the same verdict, and so do the two ways to decode.

What an update leaves alone is not looked at again: that never changes what comes of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.api.kind import Kind
from quorate.api.schema import structural_schema
from quorate.engine import merge
from quorate.engine.embedded import Record, semantics
from quorate.engine.embedded.schema.checks import compile_check
from quorate.engine.embedded.schema.explain import duplicates, explain
from quorate.engine.embedded.schema.node import Node, compile_node
from quorate.engine.embedded.schema.shape import shape
from quorate.engine.embedded.schema.trees import ABSENT, same
from quorate.engine.embedded.schema.typed import TypedDecoder
from quorate.errors import ApiError
from tests.engine.embedded.schema.exotic import EXOTIC
from tests.engine.embedded.support import WIDGET, Tree, rules_of

KINDS = (WIDGET, EXOTIC)
NODES = {kind: compile_node(structural_schema(kind)) for kind in KINDS}
CHECKS = {kind: compile_check(node) for kind, node in NODES.items()}
DECODERS = {kind: TypedDecoder(kind) for kind in KINDS}

Draw = Callable[[st.SearchStrategy[Any]], Any]

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
    before = data.draw(contents(kind))
    after = shape(_succeeding(data.draw, before, data.draw(contents(kind))), before, NODES[kind], "", [])
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


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@patient
@given(st.data())
def test_what_is_sent_gets_its_shape_whatever_was_there_before(kind: Kind, data: st.DataObject) -> None:
    before = data.draw(contents(kind))
    sent = _succeeding(data.draw, before, data.draw(contents(kind)))
    if not accepted_fast(kind, before):
        return
    for part in ("spec", "status"):
        node, dropped, again = NODES[kind].properties[part], list[str](), list[str]()
        shaped = shape(sent.get(part), before.get(part), node, part, dropped)
        assert same(shaped, shape(sent.get(part), None, node, part, again))
        assert dropped == again


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@patient
@given(st.data())
def test_a_check_need_not_look_at_what_was_good_before(kind: Kind, data: st.DataObject) -> None:
    before, check = data.draw(contents(kind)), CHECKS[kind]
    after = shape(_succeeding(data.draw, before, data.draw(contents(kind))), before, NODES[kind], "", [])
    if check is not None and accepted_fast(kind, before):
        try:
            DECODERS[kind].first(msgspec.json.encode(after))
        except msgspec.ValidationError:
            return
        assert check(after, before) == check(after, None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@patient
@given(st.data())
def test_a_patch_of_an_object_parsed_in_part_comes_to_the_same(kind: Kind, data: st.DataObject) -> None:
    try:
        old = _stored(kind, data.draw(contents(kind)))
    except ApiError:
        return
    fresh = _succeeding(data.draw, old.tree, data.draw(contents(kind)))
    part = data.draw(st.sampled_from(["spec", "status"]))
    value = fresh.get(part)
    names = data.draw(st.sets(st.sampled_from(sorted(value)))) if value and isinstance(value, dict) else set()
    patch = {part: {name: value[name] for name in names} if names else value}
    schema, changed = rules_of(kind).schema, frozenset({part})
    parts = schema.read_with(changed)
    assert parts is not None
    fields = patch["status"] if part == "status" and isinstance(patch["status"], dict) else None
    partly = _patched(old, old.tree_of(parts, fields), patch)
    assert partly == _patched(old, old.tree, patch)


def _stored(kind: Kind, tree: Tree) -> Record:
    """An object with spec and status."""
    rules = rules_of(kind)
    made = semantics.created(rules, tree, version=7, now=datetime(2026, 1, 2, tzinfo=UTC), uid="the-uid")
    if not kind.status_subresource or "status" not in tree:
        return made
    new = {**made.tree, "status": tree["status"]}
    return semantics.updated(rules, made, made.tree, new, version=8, status=True, patch=True) or made


def _patched(old: Record, before: Tree, patch: Tree) -> tuple[object, ...]:
    """What a merge patch of spec or status comes to: the next state, or why it is refused."""
    rules = rules_of(old.kind)
    try:
        received = semantics.received(rules, merge.apply(before, patch), before, patch=True)
        status = "status" in patch and old.kind.status_subresource
        new = semantics.updated(rules, old, before, received.tree, version=9, status=status, patch=True)
    except ApiError as error:
        return (type(error), str(error), error.causes)
    return (new and new.raw, new and new.typed)


def _succeeding(draw: Draw, old: Any, fresh: Any) -> Any:
    """``fresh`` with much of ``old`` in it: the very same values, equal ones, and those that Python takes for equal."""
    match draw(st.sampled_from(["the same", "equal", "confused", "fresh", "inside", "inside", "inside"])):
        case "the same":
            return old
        case "equal":
            return copy.deepcopy(old)
        case "confused":
            return _confused(old)
        case "inside" if isinstance(old, dict) and isinstance(fresh, dict):
            both = {name: _succeeding(draw, old[name], part) for name, part in fresh.items() if name in old}
            return {**(old if draw(st.booleans()) else {}), **fresh, **both}
        case "inside" if isinstance(old, list) and isinstance(fresh, list):
            return [_succeeding(draw, *pair) for pair in zip(old, fresh, strict=False)] + fresh[len(old) :]
        case _:
            return fresh


def _confused(value: Any) -> Any:
    """The same to Python's ``==``, something else in JSON."""
    if isinstance(value, dict):
        return {name: _confused(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_confused(part) for part in value]
    if value in (0, 1) and not isinstance(value, bool):
        return bool(value)
    if isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, int) and abs(value) < 2**53 else value


def test_the_generator_makes_both_good_and_bad_objects() -> None:
    verdicts = set()

    @patient
    @given(contents(WIDGET))
    def look(tree: Tree) -> None:
        verdicts.add(accepted_slow(WIDGET, tree))

    look()
    assert verdicts == {True, False}
