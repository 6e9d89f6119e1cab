"""A strategic merge patch merges lists as kubectl, built with Kubernetes' types, expects."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from quorate.api.core import Lease, Node
from quorate.errors import BadRequest
from quorate.server.kubernetes import strategic

NODE: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {"a": "1", "b": "2"}, "finalizers": ["x.io/1"]},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDRs": ["10.0.0.0/24"]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Fine"},
            {"type": "DiskPressure", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        ({"spec": {"unschedulable": True}}, ("spec", "unschedulable"), True),
        ({"metadata": {"labels": {"a": None, "c": "3"}}}, ("metadata", "labels"), {"b": "2", "c": "3"}),
        # A list that does not merge is replaced: taints are atomic.
        ({"spec": {"taints": [{"key": "z"}]}}, ("spec", "taints"), [{"key": "z"}]),
        ({"spec": {"taints": None}}, ("spec",), {"podCIDRs": ["10.0.0.0/24"]}),
        # By key: one is changed, the other stays.
        (
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            ("status", "conditions"),
            [{"type": "Ready", "status": "False", "reason": "Fine"}, {"type": "DiskPressure", "status": "False"}],
        ),
        (
            {"status": {"conditions": [{"type": "New", "status": "True"}]}},
            ("status", "conditions"),
            [{"type": "New", "status": "True"}, *NODE["status"]["conditions"]],
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
            ("status", "conditions"),
            [{"type": "DiskPressure", "status": "False"}],
        ),
        (
            {"status": {"conditions": [{"$patch": "replace"}, {"type": "Only", "status": "True"}]}},
            ("status", "conditions"),
            [{"type": "Only", "status": "True"}],
        ),
        (
            {"status": {"$setElementOrder/conditions": [{"type": "DiskPressure"}, {"type": "Ready"}]}},
            ("status", "conditions"),
            [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True", "reason": "Fine"}],
        ),
        # Distinct scalars.
        ({"metadata": {"finalizers": ["x.io/2", "x.io/1"]}}, ("metadata", "finalizers"), ["x.io/2", "x.io/1"]),
        ({"metadata": {"finalizers": ["x.io/2"]}}, ("metadata", "finalizers"), ["x.io/2", "x.io/1"]),
        ({"metadata": {"finalizers": None}}, ("metadata",), {"name": "n1", "labels": {"a": "1", "b": "2"}}),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/1"]}}, ("metadata", "finalizers"), []),
        (
            {"metadata": {"finalizers": ["x.io/0"], "$setElementOrder/finalizers": ["x.io/0", "x.io/1"]}},
            ("metadata", "finalizers"),
            ["x.io/0", "x.io/1"],
        ),
        # Whole objects.
        ({"metadata": {"labels": {"$patch": "replace", "z": "9"}}}, ("metadata", "labels"), {"z": "9"}),
        ({"metadata": {"labels": {"$patch": "delete"}}}, ("metadata", "labels"), {}),
        ({"metadata": {"labels": {"$retainKeys": ["b"], "b": "3"}}}, ("metadata", "labels"), {"b": "3"}),
        ({"status": {"addresses": [{"type": "InternalIP"}]}}, ("status", "addresses"), [{"type": "InternalIP"}]),
    ],
)
def test_a_directive_does_what_it_says(patch: Any, path: tuple[str, ...], expected: Any) -> None:
    before = copy.deepcopy(NODE)
    result = strategic.apply(Node.KIND, NODE, patch)
    assert before == NODE, "the patch changed the object in place"
    for key in path:
        result = result[key]
    assert result == expected


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        # Recorded from a real API server.
        ("M", {"conditions": "Z"}, "ZM"),
        ("ZM", {"conditions": "A"}, "AZM"),
        ("AZM", {"conditions": "BY"}, "BYAZM"),
        ("BYAZM", {"conditions": "YC"}, "BYCAZM"),
        ("BYCAZM", {"conditions": "Q", "$setElementOrder/conditions": "QYB"}, "QYBCAZM"),
    ],
)
def test_new_items_come_before_those_that_the_client_did_not_name(
    before: str, patch: dict[str, str], after: str
) -> None:
    node = {"status": {"conditions": [{"type": letter} for letter in before]}}
    sent = {"status": {key: [{"type": letter} for letter in letters] for key, letters in patch.items()}}
    result = strategic.apply(Node.KIND, node, sent)
    assert "".join(one["type"] for one in result["status"]["conditions"]) == after


def test_directives_never_reach_the_object() -> None:
    result = strategic.apply(Lease.KIND, {}, {"spec": {"$patch": "merge", "holder": {"$retainKeys": [], "x": 1}}})
    assert result == {"spec": {"holder": {"x": 1}}}


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ({"status": {"conditions": [{"status": "True"}]}}, "does not have its merge key type"),
        ({"status": {"conditions": ["Ready"]}}, "does not have its merge key type"),
        ({"status": {"conditions": [{"type": ["Ready"]}]}}, "does not have its merge key type"),
        ({"metadata": {"finalizers": [{"a": "b"}]}}, "is not a text"),
        ({"metadata": {"finalizers": 5}}, "finalizers at metadata.finalizers must be a list"),
        ({"metadata": {"finalizers": {"a": "b"}}}, "must be a list"),
        ({"metadata": {"$setElementOrder/finalizers": 5}}, "must be a list"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}, "must be a list"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": [{}]}}, "is not a text"),
        ({"spec": {"$retainKeys": 5}}, "retainKeys at spec must be a list"),
        ({"spec": {"$patch": "explode"}}, "unknown patch type: 'explode' at spec"),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(patch: Any, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        strategic.apply(Node.KIND, NODE, patch)
