"""The status subresource."""

from __future__ import annotations

from typing import Any

from tests.conformance.scenarios.objects import WIDGETS, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import JSON_PATCH, MERGE

A = f"{WIDGETS}/a"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "AllGood",
    "message": "",
    "lastTransitionTime": "2026-11-16T00:00:00Z",
}


async def patch_status(scene: Scene) -> None:
    made: Any = await scene.post(WIDGETS, widget("a"))
    await scene.get(f"{A}/status")
    await scene.patch(f"{A}/status", {"status": {"phase": "x", "conditions": [READY]}}, MERGE)
    await scene.patch(f"{A}/status", {"status": {"phase": "x"}}, MERGE, about="the same again")
    await scene.patch(
        f"{A}/status",
        {"spec": {"low": 7}, "metadata": {"labels": {"x": "y"}, "finalizers": ["a.io/b"]}, "status": {"phase": "y"}},
        MERGE,
        about="spec, labels and finalizers are not written here",
    )
    await scene.patch(f"{A}/status", {"spec": {"low": 7}}, MERGE, about="nothing but those")
    await scene.patch(f"{A}/status", {"status": {"count": -1}}, MERGE, about="an invalid status")
    twice = {"status": {"conditions": [READY, {**READY, "status": "False"}]}}
    await scene.patch(f"{A}/status", twice, MERGE, about="a condition twice")
    await scene.patch(f"{A}/status", {"status": {"strange": 1}}, MERGE, about="an unknown field")
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"phase": "z"}}
    await scene.patch(f"{A}/status", stale, MERGE, about="a stale version")
    await scene.patch(f"{A}/status", [{"op": "replace", "path": "/status/phase", "value": "j"}], JSON_PATCH)
    await scene.patch(f"{A}/status", {"status": None}, MERGE, about="removed")
    await scene.patch(f"{WIDGETS}/missing/status", {"status": {"phase": "x"}}, MERGE)
    await scene.get(A)


async def put_status(scene: Scene) -> None:
    made: Any = await scene.post(WIDGETS, widget("a"))
    written = await scene.put(f"{A}/status", {**made, "status": {"phase": "x"}, "spec": {"owner": "you"}})
    await scene.put(f"{A}/status", {**made, "status": {"phase": "y"}}, about="a stale version")
    await scene.put(f"{A}/status", {**written, "status": {"phase": 5}}, about="invalid")
    await scene.put(f"{A}/status", {**widget("a"), "status": {"phase": "y"}}, about="without a version")
    await scene.put(f"{WIDGETS}/missing/status", widget("missing"))
    await scene.post(f"{A}/status", made, about="POST")
    await scene.delete(f"{A}/status", about="DELETE")
