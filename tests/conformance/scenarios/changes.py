"""Patches, generations and versions, dry runs, defaults, pruning."""

from __future__ import annotations

import json

from tests.conformance.scenarios.objects import GADGETS, WIDGETS, Json, gadget, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import JSON_PATCH, MERGE, STRATEGIC

A = f"{WIDGETS}/a"


async def generations_and_versions(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    await scene.patch(A, {"metadata": {"labels": {"x": "y"}}}, MERGE, about="a label")
    await scene.patch(A, {"metadata": {"annotations": {"x": "y"}}}, MERGE, about="an annotation")
    await scene.patch(A, {"spec": {"low": 1}}, MERGE, about="the spec")
    await scene.patch(A, {"spec": {"low": 1}}, MERGE, about="the same again")
    await scene.patch(A, {}, MERGE, about="nothing")
    await scene.patch(A, {"spec": {"low": None, "high": None}}, MERGE, about="one field less")
    await scene.patch(A, {"metadata": {"generation": 99}}, MERGE, about="the generation is not the client's")
    await scene.patch(A, {"metadata": {"uid": None, "creationTimestamp": None}}, MERGE, about="nor are these")
    await scene.patch(f"{A}/status", {"status": {"phase": "x"}}, MERGE, about="the status")
    await scene.get(A)


async def merge_patch(scene: Scene) -> None:
    made = await scene.post(WIDGETS, widget("a", {"labels": {"x": "1"}}, parts=[{"name": "p"}], weights={"a": 1}))
    await scene.patch(A, {"metadata": {"labels": {"x": None, "y": "2"}}}, MERGE, about="one label for another")
    await scene.patch(A, {"spec": {"parts": [{"name": "q", "count": 2}]}}, MERGE, about="a list is replaced whole")
    await scene.patch(A, {"spec": {"weights": {"b": 2}}}, MERGE, about="a map is merged")
    await scene.patch(A, {"spec": {"weights": None}}, MERGE, about="a map is removed")
    await scene.patch(A, {"spec": {"colour": None}}, MERGE, about="a field with a default is removed")
    await scene.patch(A, {"spec": None}, MERGE, about="the spec is removed")
    await scene.patch(A, {"status": {"phase": "x"}}, MERGE, about="the status, where it cannot be written")
    version = made["metadata"]["resourceVersion"]
    stale = {"metadata": {"resourceVersion": version}, "spec": {"low": 5}}
    await scene.patch(A, stale, MERGE, about="from a stale version")
    await scene.patch(A, {"metadata": {"resourceVersion": "nonsense"}}, MERGE, about="from no version")
    await scene.patch(A, {"metadata": {"uid": "other"}}, MERGE, about="of another uid")
    await scene.patch(A, {"metadata": {"name": "b"}}, MERGE, about="renaming")
    await scene.patch(A, {"metadata": {"namespace": "default"}}, MERGE, about="into a namespace")
    await scene.patch(A, {"kind": "Gadget"}, MERGE, about="of another kind")
    await scene.patch(A, {"apiVersion": "test.quorate.io/v9"}, MERGE, about="of another version")
    await scene.patch(f"{WIDGETS}/missing", {"spec": {"low": 1}}, MERGE)
    await scene.patch(A, b"[1]", MERGE, about="no object")
    await scene.patch(A, b"{", MERGE, about="no JSON")
    await scene.patch(A, b"", MERGE, about="no body")
    await scene.patch(A, b"null", MERGE, about="null")
    await scene.get(A)


async def merge_patch_with_the_current_version(scene: Scene) -> None:
    made = await scene.post(WIDGETS, widget("a"))
    current = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    await scene.patch(A, {**current, "spec": {"low": 1}}, MERGE)
    await scene.patch(A, {**current, "spec": {"low": 2}}, MERGE, about="the same version a second time")
    await scene.patch(A, {**current, "spec": {"low": 1}}, MERGE, about="stale, though nothing would change")


async def json_patch(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", {"labels": {"x": "1"}}, parts=[{"name": "p"}], tags=["s", "t"]))
    for about, operations in (
        ("add a field", [{"op": "add", "path": "/spec/low", "value": 3}]),
        ("replace it", [{"op": "replace", "path": "/spec/low", "value": 4}]),
        ("a test that holds", [{"op": "test", "path": "/spec/low", "value": 4}]),
        ("a test that fails", [{"op": "test", "path": "/spec/low", "value": 5}]),
        ("remove it", [{"op": "remove", "path": "/spec/low"}]),
        ("remove what is not there", [{"op": "remove", "path": "/spec/low"}]),
        ("replace what is not there", [{"op": "replace", "path": "/spec/low", "value": 1}]),
        ("append to a list", [{"op": "add", "path": "/spec/tags/-", "value": "u"}]),
        ("insert into a list", [{"op": "add", "path": "/spec/tags/0", "value": "r"}]),
        ("beyond the end of a list", [{"op": "add", "path": "/spec/tags/99", "value": "z"}]),
        ("copy", [{"op": "copy", "from": "/spec/tags", "path": "/metadata/annotations"}]),
        ("move", [{"op": "move", "from": "/metadata/labels/x", "path": "/metadata/labels/y"}]),
        ("a slash in a name", [{"op": "add", "path": "/metadata/labels/example.com~1x", "value": "v"}]),
        ("into what is not there", [{"op": "add", "path": "/spec/nothing/here", "value": 1}]),
        (
            "two, the second fails",
            [
                {"op": "add", "path": "/spec/low", "value": 9},
                {"op": "test", "path": "/spec/owner", "value": "you"},
            ],
        ),
        ("the status, where it cannot be written", [{"op": "add", "path": "/status", "value": {"phase": "x"}}]),
        ("an invalid result", [{"op": "add", "path": "/spec/low", "value": 5000}]),
        ("an unknown operation", [{"op": "increment", "path": "/spec/low"}]),
        ("without a path", [{"op": "remove"}]),
        ("an empty patch", []),
    ):
        await scene.patch(A, operations, JSON_PATCH, about=about)
    await scene.patch(A, {"op": "remove", "path": "/spec"}, JSON_PATCH, about="not a list")
    await scene.patch(A, b"[", JSON_PATCH, about="no JSON")
    await scene.patch(f"{WIDGETS}/missing", [{"op": "remove", "path": "/spec"}], JSON_PATCH)
    await scene.get(A)


async def other_kinds_of_patch(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    await scene.patch(A, {"spec": {"low": 1}}, STRATEGIC, about="no strategic merge for custom resources")
    await scene.patch(A, {"spec": {"low": 1}}, "application/json", about="no kind of patch at all")
    await scene.patch(A, {"spec": {"low": 1}}, "text/plain")


async def dry_runs(scene: Scene) -> None:
    dry = {"dryRun": "All"}
    await scene.post(WIDGETS, widget("a"), query=dry)
    await scene.get(A, about="it was not made")
    await scene.post(WIDGETS, widget("a", low=5000), query=dry, about="but it is validated")
    await scene.post(WIDGETS, widget("a"))
    await scene.post(WIDGETS, widget("a"), query=dry, about="and the name is looked up")
    await scene.patch(A, {"spec": {"low": 1}}, MERGE, query=dry)
    await scene.patch(A, {"spec": {"low": -1}}, MERGE, query=dry)
    await scene.patch(f"{A}/status", {"status": {"phase": "x"}}, MERGE, query=dry)
    await scene.delete(A, query=dry)
    await scene.delete(A, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}, about="in the body")
    await scene.patch(A, {"metadata": {"finalizers": ["test.quorate.io/hold"]}}, MERGE)
    await scene.delete(A, query=dry, about="held by a finalizer")
    await scene.get(A, about="all of it left no trace")
    await scene.post(WIDGETS, widget("b"), query={"dryRun": "Some"})
    await scene.post(WIDGETS, widget("b"), query={"dryRun": ""})


async def defaults(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"), about="absent: given")
    await scene.post(WIDGETS, widget("b", colour="Green"), about="present: kept")
    await scene.post(WIDGETS, widget("c", colour=None), about="null: given")
    await scene.post(WIDGETS, widget("d", parts=[{"name": "p"}, {"name": "q", "count": 0}]), about="inside a list")
    await scene.post(WIDGETS, widget("e", parts=[{"name": "p", "count": None}]), about="null inside a list")
    await scene.patch(f"{WIDGETS}/b", {"spec": {"colour": None}}, MERGE, about="removed: given")


async def nulls(scene: Scene) -> None:
    specs: list[Json] = [
        {"low": None},
        {"parts": None},
        {"tags": None},
        {"weights": None},
        {"size": None},
        {"owner": None},
        {"weights": {"a": None}},
        {"tags": [None]},
        {"parts": [None]},
        {"parts": [{"name": None}]},
    ]
    for number, spec in enumerate(specs):
        await scene.post(WIDGETS, widget(f"w{number}", **spec), about=str(spec))
    await scene.post(WIDGETS, {**widget("s"), "spec": None}, about="the whole spec")
    await scene.post(WIDGETS, {**widget("t"), "status": None}, about="the whole status")
    await scene.post(WIDGETS, {**widget("u"), "metadata": None}, about="the whole metadata")


async def unknown_fields(scene: Scene) -> None:
    strange = {**widget("a", strange=1, parts=[{"name": "p", "strange": 2}]), "extra": True}
    await scene.post(WIDGETS, strange, about="by default: dropped")
    for mode in ("Ignore", "Warn", "Strict", "Perhaps"):
        named = {**strange, "metadata": {"name": mode.lower()}}
        await scene.post(WIDGETS, named, query={"fieldValidation": mode}, about=mode)
    for mode in ("Ignore", "Warn", "Strict"):
        await scene.patch(A, {"spec": {"strange": 1}}, MERGE, query={"fieldValidation": mode}, about=mode)
    for mode in ("Ignore", "Warn", "Strict"):
        body = json.dumps(widget(f"twice-{mode.lower()}", low=1)).replace('"low": 1', '"low": 1, "low": 2')
        await scene.post(WIDGETS, body.encode(), query={"fieldValidation": mode}, about=f"a field twice, {mode}")
    in_metadata = widget("m", {"strange": "x"})
    for mode in ("Ignore", "Warn", "Strict"):
        query = {"fieldValidation": mode, "dryRun": "All"}
        await scene.post(WIDGETS, in_metadata, query=query, about=f"in metadata, {mode}")


async def two_namespaces(scene: Scene) -> None:
    other = "/apis/test.quorate.io/v1/namespaces/kube-system/gadgets"
    await scene.post(GADGETS, gadget("g"))
    await scene.post(other, gadget("g"), about="the same name elsewhere")
    await scene.patch(f"{GADGETS}/g", {"spec": {"low": 1}}, MERGE)
    await scene.get(f"{other}/g", about="another object")
    await scene.get("/apis/test.quorate.io/v1/gadgets")
    await scene.get(GADGETS)
    await scene.post(GADGETS, gadget("h", {"namespace": "kube-system"}), about="path and body disagree")
    await scene.post(GADGETS, gadget("i", {"namespace": "default"}), about="path and body agree")
    await scene.post("/apis/test.quorate.io/v1/namespaces/nowhere/gadgets", gadget("g"), about="no such namespace")
    await scene.post(WIDGETS, widget("w", {"namespace": "default"}), about="a namespace for a cluster-scoped object")
