"""Every bound, enum, pattern, list type and rule of the test kinds, from both sides."""

from __future__ import annotations

from typing import Any

from tests.conformance.scenarios.objects import WIDGETS, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import MERGE

A = f"{WIDGETS}/a"
DRY = {"dryRun": "All"}

#: Values for single fields of the spec.
VALUES: dict[str, list[Any]] = {
    "owner": ["a", "a" * 20, "", "a" * 21, "A", "a1", "a b", 5, None, [], {}],
    "size": ["10Gi", "1", 5, 0, "1e3", "0.5", "-1", "", "10 Gi", "10gi", "Gi", 1.5, True, [], {}],
    "colour": ["Red", "Green", "Blue", "red", "", 5],
    "nodeName": ["n1", "", 5, {}],
    "low": [0, 1000, -1, 1001, 1.5, 1.0, 1e3, "1", True, 2**63, -(2**63), 10**30],
    "ratio": [0.5, 0, 1, 0.0001, 0.9999, 1.0, 0.0, -1, 2, "0.5", 1e-300],
    "enabled": [True, False, "true", 1, 0],
    "parts": [
        [],
        [{"name": "a"}],
        [{"name": "a"}, {"name": "b"}],
        [{"name": "a"}, {"name": "a"}],
        [{"name": "a"}, {"name": "a"}, {"name": "a"}],
        [{"name": "a", "count": 1}, {"name": "a", "count": 2}],
        [{}],
        [{"name": ""}],
        [{"name": "x" * 63}],
        [{"name": "x" * 64}],
        [{"name": "a", "count": 0}],
        [{"name": "a", "count": 100}],
        [{"name": "a", "count": -1}],
        [{"name": "a", "count": 101}],
        [{"name": "a", "count": "1"}],
        [{"name": str(number)} for number in range(5)],
        [{"name": str(number)} for number in range(6)],
        [{"name": "a"}, "text"],
        "text",
        {},
    ],
    "tags": [
        [],
        ["a"],
        ["a", "b"],
        ["a", "a"],
        ["a", "b", "a", "b"],
        ["a", 1],
        [""],
        list("abcde"),
        list("abcdef"),
        "a",
        {"a": "b"},
    ],
    "weights": [{}, {"a": 0}, {"a": 5, "b": 6}, {"a": -1}, {"a": "1"}, {"a": 1.5}, {"": 1}, [], "text"],
    "motto": ["fine", "", "TODO", "TODO: later", "not TODO", 5],
}

#: Several fields at once.
SPECS: list[dict[str, Any]] = [
    {"low": 1, "high": 2},
    {"low": 2, "high": 2},
    {"low": 3, "high": 2},
    {"low": 3},
    {"high": 0},
    {"low": -1, "high": 1001, "colour": "Blue", "ratio": 5},
    {"low": 5000, "high": 2},
    {"low": "text", "high": 2},
    {"owner": "A", "motto": "TODO", "tags": ["a", "a"], "low": 9, "high": 1},
    {"colour": "Blue", "motto": "TODO"},
    {"colour": "Blue", "low": 9, "high": 1},
    {"parts": [{"name": "", "count": 101}, {"count": "x"}], "weights": {"a": -1, "b": -2}},
]


async def values(scene: Scene) -> None:
    for field, given in VALUES.items():
        for value in given:
            await scene.post(WIDGETS, widget("a", **{field: value}), query=DRY, about=f"{field} = {_short(value)}")


async def combinations(scene: Scene) -> None:
    for spec in SPECS:
        await scene.post(WIDGETS, widget("a", **spec), query=DRY, about=_short(spec))


async def conditions(scene: Scene) -> None:
    good = {"type": "Ready", "status": "True", "reason": "Good", "lastTransitionTime": "2026-11-16T00:00:00Z"}
    await scene.post(WIDGETS, widget("a"))
    statuses: list[dict[str, Any]] = [
        {"observedGeneration": 1},
        {"observedGeneration": "1"},
        {"phase": 5},
        {"count": 0},
        {"count": -1},
        {"conditions": [good]},
        {"conditions": [{**good, "type": ""}]},
        {"conditions": [{**good, "type": "x" * 317}]},
        {"conditions": [{**good, "status": "Maybe"}]},
        {"conditions": [{**good, "reason": ""}]},
        {"conditions": [{**good, "reason": "not good"}]},
        {"conditions": [{**good, "reason": "Good:"}]},
        {"conditions": [{**good, "message": "x" * 32768}]},
        {"conditions": [{**good, "message": "x" * 32769}]},
        {"conditions": [{**good, "lastTransitionTime": "yesterday"}]},
        {"conditions": [{**good, "lastTransitionTime": "2026-11-16"}]},
        {"conditions": [{**good, "lastTransitionTime": "2026-11-16T00:00:00+01:00"}]},
        {"conditions": [{**good, "lastTransitionTime": "2026-11-16T00:00:00.123456Z"}]},
        {"conditions": [{**good, "lastTransitionTime": "2026-02-30T00:00:00Z"}]},
        {"conditions": [{**good, "observedGeneration": -1}]},
        {"conditions": [{"type": "Ready"}]},
        {"conditions": [good, good]},
        {"conditions": [good, {**good, "type": "Other"}]},
        {"conditions": {}},
    ]
    for status in statuses:
        await scene.patch(f"{A}/status", {"status": status}, MERGE, query=DRY, about=_short(status))


async def transitions(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    for spec in (
        {"owner": "you"},
        {"owner": None},
        {"owner": "me"},
        {"nodeName": "n1"},
        {"low": 5, "high": 4},
        {"motto": "TODO"},
        {"owner": "you", "low": -1},
        {"owner": "YOU"},
    ):
        await scene.patch(A, {"spec": spec}, MERGE, query=DRY, about=f"from nothing: {spec}")
    await scene.patch(A, {"spec": {"nodeName": "n1", "low": 5}}, MERGE)
    for spec in (
        {"nodeName": "n2"},
        {"nodeName": None},
        {"nodeName": "n1", "low": 6},
        {"high": 4},
        {"nodeName": "n2", "owner": "you"},
    ):
        await scene.patch(A, {"spec": spec}, MERGE, query=DRY, about=f"from nodeName n1, low 5: {spec}")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 120 else f"{text[:60]}… {len(text)} letters"
