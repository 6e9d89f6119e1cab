"""Every fault of an object is named, with the reason and the field that Kubernetes gives."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from quorate.errors import Cause
from tests.engine.embedded.schema.exotic import EXOTIC
from tests.engine.embedded.support import WIDGET, Tree, rules_of, widget

CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Fine",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}


def judge(tree: Tree, kind: Any = WIDGET, before: Tree | None = None) -> list[Cause]:
    return rules_of(kind).schema.judge(msgspec.json.encode(tree), tree, before, None)[1]


def spec(**fields: Any) -> Tree:
    return widget(spec={"owner": "me", "colour": "Red", **fields})


def fault(reason: str, field: str, message: str) -> Cause:
    return Cause(f"FieldValue{reason}", message, field)


def wrong_type(field: str, wanted: str, found: str, body: str = "") -> Cause:
    return fault(
        "TypeInvalid", field, f'Invalid value: "{found}": {body or field} in body must be of type {wanted}: "{found}"'
    )


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (spec(), []),
        (spec(size="10Gi", low=1, high=2, ratio=0.5, enabled=False, tags=["a", "b"], weights={"a": 0}), []),
        (spec(size=5, ratio=0.25, parts=[{"name": "a", "count": 0}, {"name": "b"}]), []),
        (widget(spec={"colour": "Red"}), [fault("Required", "spec.owner", "Required value")]),
        (widget(spec="x"), [wrong_type("spec", "object", "string")]),
        (widget(spec=[]), [wrong_type("spec", "object", "array")]),
        (spec(owner=1), [wrong_type("spec.owner", "string", "integer")]),
        (spec(enabled="yes"), [wrong_type("spec.enabled", "boolean", "string")]),
        (spec(tags="x"), [wrong_type("spec.tags", "array", "string")]),
        (spec(tags=[None]), [wrong_type("spec.tags[0]", "string", "null")]),
        (spec(weights=[]), [wrong_type("spec.weights", "object", "array")]),
        (spec(low=True), [wrong_type("spec.low", "integer", "boolean")]),
        (spec(owner="x" * 21), [fault("TooLong", "spec.owner", "Too long: may not be more than 20 bytes")]),
        (
            spec(owner=""),
            [fault("Invalid", "spec.owner", 'Invalid value: "": spec.owner in body should be at least 1 chars long')],
        ),
        (
            spec(owner="ABC"),
            [fault("Invalid", "spec.owner", "Invalid value: \"ABC\": spec.owner in body should match '^[a-z]+$'")],
        ),
        (
            spec(owner="abc\n"),
            [fault("Invalid", "spec.owner", "Invalid value: \"abc\\n\": spec.owner in body should match '^[a-z]+$'")],
        ),
        (
            spec(colour="Blue"),
            [fault("NotSupported", "spec.colour", 'Unsupported value: "Blue": supported values: "Red", "Green"')],
        ),
        (
            spec(colour=5),
            [
                wrong_type("spec.colour", "string", "integer"),
                fault("NotSupported", "spec.colour", 'Unsupported value: 5: supported values: "Red", "Green"'),
            ],
        ),
        (
            spec(low=-1, high=1001),
            [
                fault(
                    "Invalid", "spec.low", "Invalid value: -1: spec.low in body should be greater than or equal to 0"
                ),
                fault(
                    "Invalid",
                    "spec.high",
                    "Invalid value: 1001: spec.high in body should be less than or equal to 1000",
                ),
            ],
        ),
        (spec(ratio=1), [fault("Invalid", "spec.ratio", "Invalid value: 1: spec.ratio in body should be less than 1")]),
        (
            spec(ratio=0),
            [fault("Invalid", "spec.ratio", "Invalid value: 0: spec.ratio in body should be greater than 0")],
        ),
        (spec(tags=list("abcdef")), [fault("TooMany", "spec.tags", "Too many: 6: must have at most 5 items")]),
        (
            spec(tags=["a", "a", "b", "b", "b"]),
            [
                fault("Duplicate", "spec.tags[1]", 'Duplicate value: "a"'),
                fault("Duplicate", "spec.tags[3]", 'Duplicate value: "b"'),
            ],
        ),
        (
            spec(parts=[{"name": "a"}, {"name": "a"}]),
            [fault("Duplicate", "spec.parts[1]", 'Duplicate value: {"name":"a"}')],
        ),
        (
            spec(parts=[{"name": "a", "count": 101}, {"count": 1}]),
            [
                fault(
                    "Invalid",
                    "spec.parts[0].count",
                    "Invalid value: 101: spec.parts[0].count in body should be less than or equal to 100",
                ),
                fault("Required", "spec.parts[1].name", "Required value"),
            ],
        ),
        (
            spec(weights={"a": -1}),
            [
                fault(
                    "Invalid",
                    "spec.weights.a",
                    "Invalid value: -1: spec.weights.a in body should be greater than or equal to 0",
                )
            ],
        ),
        (spec(low=5, high=1), [fault("Invalid", "spec", "Invalid value: low must not be above high")]),
        (spec(motto="TODO"), [fault("Invalid", "spec.motto", 'Invalid value: "TODO": a motto must be written')]),
    ],
)
def test_a_widget(tree: Tree, expected: list[Cause]) -> None:
    found = [cause for cause in judge(tree) if "some validation rules were not checked" not in cause.message]
    assert found == expected


@pytest.mark.parametrize(
    ("size", "fields"),
    [
        ([], ["spec.size", "<nil>", "spec.size"]),
        (True, ["spec.size", "<nil>", "spec.size"]),
        ("x", ["spec.size"]),
        ("1" * 65, ["spec.size"]),
        ("10Gi\n", ["spec.size"]),
    ],
)
def test_a_quantity_is_an_integer_or_a_text_of_a_pattern(size: Any, fields: list[str]) -> None:
    found = judge(spec(size=size))
    assert [cause.field for cause in found if "not checked" not in cause.message] == fields


@pytest.mark.parametrize("number", [1.5, 2**63, 10**30, -(2**63) - 1])
def test_an_integer_is_whole_and_has_64_bits(number: float) -> None:
    reasons = [(cause.field, cause.reason) for cause in judge(spec(weights={"a": number}))]
    assert ("spec.weights.a", "FieldValueTypeInvalid") in reasons


@pytest.mark.parametrize("number", [2**63 - 1])
def test_the_largest_integer_is_accepted(number: int) -> None:
    assert judge(spec(weights={"a": number})) == []


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2020-01-01T00:00:00Z", True),
        ("2020-01-01T00:00:00.123456789Z", True),
        ("2020-01-01T00:00:00+02:00", True),
        ("2020-01-01t00:00:00z", True),
        ("2020-01-01T00:00:00-00:00", True),
        ("2020-01-01 00:00:00Z", False),
        ("2020-01-01T00:00:00", False),
        ("2020-13-01T00:00:00Z", False),
        ("2020-02-30T00:00:00Z", False),
        ("20200101T000000Z", False),
        ("2020-01-01T24:00:00Z", False),
        ("2020-01-01T00:00Z", False),
        ("2020-01-01T00:00:60Z", False),
        ("2020-01-01T00:00:00.Z", False),
        ("2020-01-01T00:00:00+0200", False),
        ("2020-01-01", False),
        ("", False),
    ],
)
def test_a_date_time_is_rfc_3339_with_a_zone(text: str, good: bool) -> None:
    tree = {**widget(), "status": {"conditions": [{**CONDITION, "lastTransitionTime": text}]}}
    found = [(cause.field, cause.reason) for cause in judge(tree) if cause.field != "<nil>"]
    assert found == ([] if good else [("status.conditions[0].lastTransitionTime", "FieldValueTypeInvalid")])


def exotic(**fields: Any) -> Tree:
    return {"apiVersion": EXOTIC.api_version, "kind": "Exotic", "metadata": {"name": "e"}, "spec": fields}


INNER = {"left": 1, "right": "a", "level": 5}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (exotic(anything={"a": [1, {"b": None}]}, blob="YQ==", code="12-x", delay="1h", mode="on", numbers=[1, 2]), []),
        (exotic(pairs=[INNER, {**INNER, "right": "b"}, {**INNER, "left": 2}], steps=[5, 10], quotas={"a": "1Gi"}), []),
        (exotic(blob="a"), [("spec.blob", "TypeInvalid")]),
        (exotic(code="1٣-x"), [("spec.code", "Invalid")]),
        (exotic(code="1-x\n"), [("spec.code", "Invalid")]),
        (exotic(delay="soon"), [("spec.delay", "Invalid")]),
        (exotic(mode="maybe"), [("spec.mode", "NotSupported")]),
        (exotic(numbers=[1, 2, 1]), [("spec.numbers[2]", "Duplicate")]),
        (exotic(pairs=[INNER, INNER]), [("spec.pairs[1]", "Duplicate")]),
        (exotic(pairs=["x", INNER]), [("spec.pairs[0]", "TypeInvalid"), ("spec.pairs[0]", "Invalid")]),
        (exotic(quotas={}), [("spec.quotas", "Invalid")]),
        (exotic(quotas={"a": "1", "b": "1", "c": "1"}), [("spec.quotas", "TooMany")]),
        (exotic(quotas={"a": "x"}), [("spec.quotas.a", "Invalid")]),
        (exotic(steps=[]), [("spec.steps", "Invalid")]),
        (exotic(steps=[5, 7]), [("spec.steps[1]", "Invalid")]),
        (exotic(words={"a": "well", "b": "never"}), [("spec.words[b]", "Invalid")]),
        ({**exotic(), "metadata": {"name": "forbidden"}}, [("<nil>", "Forbidden")]),
    ],
)
def test_an_exotic_kind(tree: Tree, expected: list[tuple[str, str]]) -> None:
    found = [
        (cause.field, cause.reason.removeprefix("FieldValue"))
        for cause in judge(tree, EXOTIC)
        if "not checked" not in cause.message
    ]
    assert found == expected


def test_rules_are_not_tried_on_an_object_that_is_too_broken() -> None:
    found = judge(spec(low=5, high=1, colour="Blue"))
    assert [cause.field for cause in found] == ["spec.colour", "<nil>"]
    assert "some validation rules were not checked" in found[-1].message


def test_rules_are_tried_beside_a_broken_bound() -> None:
    assert [cause.field for cause in judge(spec(low=5, high=1, owner="ABC"))] == ["spec.owner", "spec"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"owner": "me"}, {"owner": "you"}, [("spec.owner", 'Invalid value: "you": owner is immutable')]),
        ({"nodeName": "a"}, {"nodeName": "b"}, [("spec.nodeName", "Invalid value: nodeName is immutable once set")]),
        ({"nodeName": "a"}, {}, [("spec.nodeName", "Invalid value: nodeName is immutable once set")]),
        ({}, {"nodeName": "a"}, []),
        ({"low": 1}, {"low": 2}, []),
    ],
)
def test_rules_of_change_compare_with_what_was(before: Tree, after: Tree, expected: list[tuple[str, str]]) -> None:
    assert [(cause.field, cause.message) for cause in judge(spec(**after), before=spec(**before))] == expected


def test_duplicates_that_were_there_before_may_stay() -> None:
    before = spec(tags=["a", "a"])
    assert judge(spec(tags=["a", "a"], low=1), before=before) == []
    assert judge(spec(tags=["a", "a", "b"]), before=before) == []
