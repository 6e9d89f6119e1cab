"""Patches do to an object what their media type says, and say so when they cannot."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from quorate.api.core import Node
from quorate.api.kind import Kind
from quorate.errors import BadRequest, Invalid, TooLarge, UnsupportedMediaType
from quorate.server.kubernetes.patches import JSON, MAX_OPERATIONS, MERGE, STRATEGIC, change_of, check_media_type
from tests.support.kinds import Widget

CURRENT = {"metadata": {"name": "a"}, "spec": {"x": 1, "list": [1, 2]}}


def patched(media_type: str, patch: object) -> object:
    before = copy.deepcopy(CURRENT)
    result = change_of(Widget.KIND, media_type, patch)(CURRENT)
    assert before == CURRENT, "the patch changed the object in place"
    return result


@pytest.mark.parametrize(
    ("media_type", "patch", "spec"),
    [
        (MERGE, {"spec": {"x": 2}}, {"x": 2, "list": [1, 2]}),
        (MERGE, {"spec": {"x": None, "list": [3]}}, {"list": [3]}),
        (JSON, [], {"x": 1, "list": [1, 2]}),
        (JSON, [{"op": "replace", "path": "/spec/x", "value": 2}], {"x": 2, "list": [1, 2]}),
        (JSON, [{"op": "replace", "path": "/spec/new", "value": 2}], {"x": 1, "list": [1, 2], "new": 2}),
        (JSON, [{"op": "replace", "path": "/spec/list/0", "value": 9}], {"x": 1, "list": [9, 2]}),
        (JSON, [{"op": "add", "path": "/spec/list/-", "value": 3}], {"x": 1, "list": [1, 2, 3]}),
        (JSON, [{"op": "remove", "path": "/spec/x"}], {"list": [1, 2]}),
        (JSON, [{"op": "move", "from": "/spec/x", "path": "/spec/y"}], {"y": 1, "list": [1, 2]}),
        (JSON, [{"op": "copy", "from": "/spec/x", "path": "/spec/y"}], {"x": 1, "y": 1, "list": [1, 2]}),
        (
            JSON,
            [{"op": "test", "path": "/spec/x", "value": 1}, {"op": "remove", "path": "/spec/list"}],
            {"x": 1},
        ),
    ],
)
def test_a_patch_changes_what_it_names(media_type: str, patch: Any, spec: Any) -> None:
    assert patched(media_type, patch) == {"metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/x", "value": 2},
        {"op": "test", "path": "/spec/missing", "value": 2},
        {"op": "remove", "path": "/spec/missing"},
        {"op": "replace", "path": "/spec/missing/deeper", "value": 2},
        {"op": "replace", "path": "/spec/list/7", "value": 2},
        {"op": "add", "path": "/spec/list/7", "value": 2},
        {"op": "add", "path": "spec", "value": 2},
        {"op": "frob", "path": "/spec/x"},
        {"op": "add", "path": "/spec/x"},
        {"op": "add"},
        {"op": "copy", "path": "/spec/x"},
        {"op": "copy", "from": "/spec/missing", "path": "/spec/x"},
        {"op": "copy", "from": 5, "path": "/spec/x"},
        {"path": "/spec/x", "value": 2},
    ],
)
def test_a_json_patch_that_does_not_apply_is_invalid(operation: Any) -> None:
    with pytest.raises(Invalid, match="the patch does not apply"):
        patched(JSON, [operation])


@pytest.mark.parametrize(
    ("media_type", "patch", "problem"),
    [
        (MERGE, [], "expected an object, got an array"),
        (MERGE, "x", "expected an object, got a string"),
        (MERGE, None, "expected an object, got null"),
        (MERGE, 5, "expected an object, got a number"),
        (JSON, {}, "expected a list of operations, got an object"),
        (JSON, ["x"], "expected a list of operations"),
        (JSON, [{"op": "replace", "path": "", "value": 5}], "replaces the whole object"),
    ],
)
def test_what_is_no_patch_at_all_is_a_bad_request(media_type: str, patch: Any, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        patched(media_type, patch)


def test_a_json_patch_has_a_longest_length() -> None:
    with pytest.raises(TooLarge, match="at most 1000"):
        patched(JSON, [{"op": "test", "path": "/spec/x", "value": 1}] * (MAX_OPERATIONS + 1))


def test_copies_that_double_the_object_stop_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.server.kubernetes.patches.MAX_COPIED", 1000)
    doubling = [{"op": "copy", "from": "/spec", "path": f"/spec/{number}"} for number in range(12)]
    with pytest.raises(TooLarge, match="at most 1000 bytes"):
        patched(JSON, doubling)
    patched(JSON, doubling[:3])


def test_every_application_of_a_patch_has_the_whole_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.server.kubernetes.patches.MAX_COPIED", 10)
    change = change_of(Widget.KIND, JSON, [{"op": "copy", "from": "/spec/list", "path": "/spec/y"}])
    assert change(CURRENT) == change(CURRENT)


def test_core_kinds_take_a_strategic_merge_and_custom_kinds_do_not() -> None:
    check_media_type(Node.KIND, STRATEGIC)
    with pytest.raises(UnsupportedMediaType, match=r"json-patch.json, application/merge-patch.json$"):
        check_media_type(Widget.KIND, STRATEGIC)


@pytest.mark.parametrize("kind", [Widget.KIND, Node.KIND])
def test_server_side_apply_is_refused_with_a_way_out(kind: Kind) -> None:
    with pytest.raises(UnsupportedMediaType, match="kubectl apply without --server-side"):
        check_media_type(kind, "application/apply-patch+yaml")
