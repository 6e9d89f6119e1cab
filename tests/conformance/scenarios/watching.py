"""watch: order, selections, versions, bookmarks."""

from __future__ import annotations

from typing import Any

from tests.conformance.scenarios.objects import ALL_GADGETS, GADGETS, WIDGETS, gadget, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import MERGE, TABLE

A = f"{WIDGETS}/a"


async def everything_in_order(scene: Scene) -> None:
    start: Any = (await scene.get(WIDGETS))["metadata"]["resourceVersion"]
    await scene.post(WIDGETS, widget("a"))
    await scene.patch(A, {"spec": {"low": 1}}, MERGE)
    await scene.patch(A, {"spec": {"low": 1}}, MERGE, about="changes nothing: no event")
    await scene.patch(A, {"spec": {"low": 2}}, MERGE, query={"dryRun": "All"}, about="dry: no event")
    await scene.patch(f"{A}/status", {"status": {"phase": "x"}}, MERGE)
    await scene.post(WIDGETS, widget("b", {"finalizers": ["test.quorate.io/hold"]}))
    await scene.delete(f"{WIDGETS}/b")
    await scene.delete(A)
    await scene.patch(f"{WIDGETS}/b", {"metadata": {"finalizers": None}}, MERGE)
    await scene.post(WIDGETS, widget("a"), about="the same name again")
    await scene.watch(WIDGETS, {"resourceVersion": start}, count=8)


async def from_a_middle(scene: Scene) -> None:
    made = await scene.post(WIDGETS, widget("a"))
    await scene.post(WIDGETS, widget("b"))
    await scene.post(WIDGETS, widget("c"))
    await scene.watch(WIDGETS, {"resourceVersion": made["metadata"]["resourceVersion"]}, count=2)


async def from_now_and_from_anything(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("b"))
    await scene.post(WIDGETS, widget("a"))
    await scene.watch(WIDGETS, {}, count=2, about="without a version: what is there, first")
    await scene.watch(WIDGETS, {"resourceVersion": "0"}, count=2, about="zero: the same")


async def versions(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    await scene.watch(WIDGETS, {"resourceVersion": "nonsense"}, count=1, about="no number")
    await scene.watch(WIDGETS, {"resourceVersion": "-5"}, count=1, about="less than nothing")
    await scene.watch(WIDGETS, {"labelSelector": "a/b/c"}, count=1)
    await scene.watch(WIDGETS, {"fieldSelector": "spec.owner=me"}, count=1)
    await scene.watch(WIDGETS, {"timeoutSeconds": "x"}, count=1)


async def a_selection(scene: Scene) -> None:
    start: Any = (await scene.get(WIDGETS))["metadata"]["resourceVersion"]
    await scene.post(WIDGETS, widget("a", {"labels": {"x": "1"}}))
    await scene.post(WIDGETS, widget("b"))
    await scene.patch(A, {"spec": {"low": 1}}, MERGE)
    await scene.patch(A, {"metadata": {"labels": {"x": "2"}}}, MERGE, about="leaves the selection")
    await scene.patch(A, {"spec": {"low": 2}}, MERGE, about="unseen")
    await scene.patch(f"{WIDGETS}/b", {"metadata": {"labels": {"x": "1"}}}, MERGE, about="enters it")
    await scene.delete(f"{WIDGETS}/b")
    await scene.watch(WIDGETS, {"resourceVersion": start, "labelSelector": "x=1"}, count=5)


async def a_field_selection(scene: Scene) -> None:
    start: Any = (await scene.get(WIDGETS))["metadata"]["resourceVersion"]
    await scene.post(WIDGETS, widget("a", nodeName="n1"))
    await scene.post(WIDGETS, widget("b"))
    await scene.patch(f"{WIDGETS}/b", {"spec": {"nodeName": "n1"}}, MERGE, about="enters it")
    await scene.post(WIDGETS, widget("c", nodeName="n2"))
    await scene.delete(A)
    await scene.watch(WIDGETS, {"resourceVersion": start, "fieldSelector": "spec.nodeName=n1"}, count=3)
    await scene.watch(WIDGETS, {"resourceVersion": start, "fieldSelector": "metadata.name=c"}, count=1)


async def one_namespace(scene: Scene) -> None:
    other = "/apis/test.quorate.io/v1/namespaces/kube-system/gadgets"
    start: Any = (await scene.get(ALL_GADGETS))["metadata"]["resourceVersion"]
    await scene.post(other, gadget("elsewhere"))
    await scene.post(GADGETS, gadget("here"))
    await scene.watch(GADGETS, {"resourceVersion": start}, count=1)
    await scene.watch(ALL_GADGETS, {"resourceVersion": start}, count=2)
    await scene.watch(f"{GADGETS}/here", {"resourceVersion": start}, count=1, about="one object by its path")


async def an_end_by_the_server(scene: Scene) -> None:
    start: Any = (await scene.get(WIDGETS))["metadata"]["resourceVersion"]
    await scene.post(WIDGETS, widget("a"))
    query = {"resourceVersion": start, "allowWatchBookmarks": "true", "timeoutSeconds": "4"}
    await scene.watch(WIDGETS, query, count=99, about="before the server ends it")
    await scene.watch(WIDGETS, {**query, "allowWatchBookmarks": "false", "timeoutSeconds": "1"}, count=99)


async def initial_events(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("b"))
    await scene.post(WIDGETS, widget("a"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "5",
    }
    await scene.watch(WIDGETS, query, count=3, about="a list as a stream, closed by a bookmark")
    await scene.watch(WIDGETS, {"sendInitialEvents": "true"}, count=1, about="without resourceVersionMatch")


async def as_tables(scene: Scene) -> None:
    start: Any = (await scene.get(WIDGETS))["metadata"]["resourceVersion"]
    await scene.post(WIDGETS, widget("a"))
    await scene.patch(A, {"spec": {"low": 1}}, MERGE)
    await scene.watch(WIDGETS, {"resourceVersion": start}, count=2, accept=TABLE)
