"""Metadata is cleaned on the way in, and held to Kubernetes' rules."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.engine.embedded import metadata
from quorate.errors import Cause

OWNER = {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}


def clean(sent: Any) -> tuple[dict[str, Any], list[str]]:
    unknown: list[str] = []
    return metadata.clean(sent, unknown), unknown


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (None, {}),
        ({}, {}),
        ({"name": "a", "labels": {}, "annotations": None, "finalizers": [], "generation": 0, "uid": ""}, {"name": "a"}),
        ({"labels": {"a": None}}, {"labels": {"a": ""}}),
        ({"finalizers": [None]}, {"finalizers": [""]}),
        ({"deletionGracePeriodSeconds": 0}, {"deletionGracePeriodSeconds": 0}),
        ({"creationTimestamp": "2026-01-02T05:04:05.6+02:00"}, {"creationTimestamp": "2026-01-02T03:04:05Z"}),
        ({"managedFields": [{"manager": "m"}], "selfLink": "/x"}, {}),
        (
            {"ownerReferences": [{"name": "o", "controller": True, "blockOwnerDeletion": None}]},
            {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": "", "controller": True}]},
        ),
    ],
)
def test_what_is_empty_is_left_out(sent: Any, stored: dict[str, Any]) -> None:
    assert clean(sent) == (stored, [])


def test_unknown_fields_are_dropped_and_named() -> None:
    assert clean({"name": "a", "colour": "red", "ownerReferences": [{**OWNER, "size": 1}]}) == (
        {"name": "a", "ownerReferences": [OWNER]},
        ["metadata.colour", "metadata.ownerReferences[0].size"],
    )


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ("x", "metadata: expected an object, got text"),
        ([], "metadata: expected an object, got a list"),
        ({"name": 1}, "metadata.name: expected text, got a number"),
        ({"labels": {"a": 1}}, "metadata.labels.a: expected text, got a number"),
        ({"labels": ["a"]}, "metadata.labels: expected an object of texts, got a list"),
        ({"finalizers": "x"}, "metadata.finalizers: expected a list of texts, got text"),
        ({"finalizers": [True]}, r"metadata.finalizers\[0\]: expected text, got a boolean"),
        ({"generation": 1.5}, "metadata.generation: expected a whole number, got a number"),
        ({"creationTimestamp": "yesterday"}, "metadata.creationTimestamp: 'yesterday' is not an RFC 3339 time"),
        ({"creationTimestamp": "2026-01-02T03:04:05"}, "is not an RFC 3339 time"),
        ({"ownerReferences": {}}, "metadata.ownerReferences: expected a list of owner references"),
        ({"ownerReferences": ["x"]}, r"metadata.ownerReferences\[0\]: expected an owner reference, got text"),
        ({"ownerReferences": [{"controller": "x"}]}, "controller: expected a boolean, got text"),
    ],
)
def test_a_value_of_the_wrong_type_makes_no_sense(sent: Any, complaint: str) -> None:
    with pytest.raises(metadata.Malformed, match=complaint):
        clean(sent)


def summary(found: list[Cause]) -> list[tuple[str, str]]:
    return [(cause.field.removeprefix("metadata."), cause.reason.removeprefix("FieldValue")) for cause in found]


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"labels": {"a": "b", "x.io/c": ""}, "annotations": {"UP.io/x": "any\nthing"}}, []),
        ({"labels": {"a b": "c"}}, [("labels", "Invalid")]),
        ({"labels": {"a": "b c"}}, [("labels", "Invalid")]),
        ({"annotations": {"a b": "c"}}, [("annotations", "Invalid")]),
        ({"annotations": {"a": "x" * (256 * 1024 - 1)}}, []),
        ({"annotations": {"a": "x" * (256 * 1024)}}, [("annotations", "TooLong")]),
        ({"finalizers": ["plain", "x.io/y"]}, []),
        ({"finalizers": ["a/b/c", "x y"]}, [("finalizers", "Invalid"), ("finalizers", "Invalid")]),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, [("finalizers", "Invalid")]),
        ({"ownerReferences": [OWNER, {**OWNER, "controller": True}]}, []),
        ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, [("ownerReferences", "Invalid")]),
        ({"ownerReferences": [{**OWNER, "kind": "Event"}]}, [("ownerReferences", "Invalid")]),
        ({"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]}, [("ownerReferences.apiVersion", "Invalid")]),
        (
            {"ownerReferences": [dict.fromkeys(OWNER, "")]},
            [(f"ownerReferences.{part}", "Invalid") for part in ("apiVersion", "kind", "name", "uid")],
        ),
    ],
)
def test_metadata_that_breaks_a_rule_is_named(meta: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert summary(metadata.problems(meta)) == found


BEFORE = {"name": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x.io/a", "x.io/b"]}
DELETING = {**BEFORE, "deletionTimestamp": "2026-01-01T00:00:01Z", "deletionGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("old", "change", "found"),
    [
        (BEFORE, {}, []),
        (BEFORE, {"labels": {"a": "b"}, "finalizers": ["x.io/c"]}, []),
        (BEFORE, {"uid": "v"}, [("uid", "Invalid")]),
        (BEFORE, {"name": "b"}, [("name", "Invalid")]),
        (BEFORE, {"deletionTimestamp": "2026-01-01T00:00:01Z"}, [("deletionTimestamp", "Invalid")]),
        (BEFORE, {"deletionGracePeriodSeconds": 5}, [("deletionGracePeriodSeconds", "Invalid")]),
        (DELETING, {"finalizers": ["x.io/b"]}, []),
        (DELETING, {"finalizers": []}, []),
        (DELETING, {"finalizers": ["x.io/b", "x.io/a"]}, []),
        (DELETING, {"finalizers": ["x.io/a", "x.io/c"]}, [("finalizers", "Forbidden")]),
    ],
)
def test_an_update_may_not_do_everything_to_metadata(
    old: dict[str, Any], change: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert summary(metadata.change_problems({**old, **change}, old)) == found


def test_a_finalizer_that_others_might_choose_too_is_advised_against() -> None:
    new = {"finalizers": ["plain", "a.b", "x.io/y", "kubernetes", "old"]}
    warnings = metadata.finalizer_warnings(new, {"finalizers": ["old"]})
    assert [warning.split('"')[1] for warning in warnings] == ["a.b", "plain"]
