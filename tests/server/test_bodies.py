"""Bodies are read as JSON would have them, and keys given twice are noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.server.kubernetes.bodies import Parsed, parse_json, parse_yaml

JSON_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_a_pair_of_escapes_is_one_character() -> None:
    assert parse_json(rb'"\ud83d\ude00"').value == "\U0001f600"


@given(JSON_TREES)
def test_json_comes_back_as_it_was(tree: Any) -> None:
    parsed = parse_json(json.dumps(tree).encode())
    assert parsed.value == tree
    assert parsed.duplicates == ()


@pytest.mark.parametrize("parse", [parse_json, parse_yaml])
def test_a_key_given_twice_is_named_and_the_last_one_counts(parse: Callable[[bytes], Parsed]) -> None:
    parsed = parse(b'{"a": 1, "spec": {"x": 1, "list": [{"y": 1}, {"y": 1, "y": 2}], "x": 2}, "a": 3}')
    assert parsed.value == {"a": 3, "spec": {"x": 2, "list": [{"y": 1}, {"y": 2}]}}
    assert parsed.duplicates == ("a", "spec.x", "spec.list[1].y")


def test_a_dropped_tree_does_not_leave_its_duplicates_behind() -> None:
    parsed = parse_json(b'{"a": {"x": 1, "x": 2}, "a": {"y": 1}}')
    assert parsed.duplicates == ("a",)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"when: 2026-01-01T00:00:00Z", {"when": "2026-01-01T00:00:00Z"}),
        (b"day: 2026-01-01", {"day": "2026-01-01"}),
        (b"1: one\ntrue: yes", {"1": "one", "true": True}),
        (b"<<: text", {"<<": "text"}),
        (b"n: null\nf: 1.5\ni: 7", {"n": None, "f": 1.5, "i": 7}),
        (b"", None),
    ],
)
def test_yaml_is_read_as_json_would_have_it(text: bytes, value: Any) -> None:
    assert parse_yaml(text).value == value


@pytest.mark.parametrize(
    ("parse", "text", "problem"),
    [
        (parse_json, b"{", "Expecting"),
        (parse_json, b'{"a": NaN}', "NaN is not JSON"),
        (parse_json, rb'{"a": "\uD800"}', "surrogate"),
        (parse_json, rb'{"\udfff": 1}', "surrogate"),
        (parse_json, b"1e999", "too large"),
        (parse_json, b'{"a": [-1e999]}', "too large"),
        (parse_json, b"\xff", "decode"),
        (parse_json, b"[" * 100_000, "nested too deeply"),
        (parse_json, b"[" * 101 + b"]" * 101, "nested too deeply"),
        (parse_json, b'{"a":' * 101 + b"1" + b"}" * 101, "nested too deeply"),
        (parse_yaml, b"- " * 101 + b"1", "nested too deeply"),
        (parse_yaml, b"{", "expected"),
        (parse_yaml, b"a: .inf", "inf is not JSON"),
        (parse_yaml, b"a: 1.0e+999", "inf is not JSON"),
        (parse_yaml, b"a: &x 1\nb: *x", "aliases are not accepted"),
        (parse_yaml, b"a: !!binary aGk=", "constructor"),
        (parse_yaml, b"a: !!python/object:os.system {}", "constructor"),
        (parse_yaml, b"? [a]\n: 1", "a key must be text"),
        (parse_yaml, b"a: 1\n---\na: 2", "single document"),
        (parse_yaml, b"[" * 5000, "nested too deeply"),
    ],
)
def test_what_cannot_be_an_object_is_refused_with_the_reason(
    parse: Callable[[bytes], Parsed], text: bytes, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(text)
