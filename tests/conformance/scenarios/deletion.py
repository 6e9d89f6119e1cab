"""delete, finalizers, preconditions, collections."""

from __future__ import annotations

from typing import Any

from tests.conformance.scenarios.objects import ALL_GADGETS, GADGETS, WIDGETS, gadget, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import MERGE

A = f"{WIDGETS}/a"
HOLD = "test.quorate.io/hold"


def options(**fields: Any) -> dict[str, Any]:
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


async def delete(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    await scene.delete(A)
    await scene.get(A)
    await scene.delete(A, about="it is gone")
    await scene.post(GADGETS, gadget("g"))
    await scene.delete(f"{GADGETS}/g", options())
    await scene.post(WIDGETS, widget("a"), about="the name is free: another uid")


async def finalizers(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", {"finalizers": [HOLD, "test.quorate.io/other"]}))
    await scene.delete(A)
    await scene.get(A, about="held")
    await scene.delete(A, about="again")
    await scene.patch(A, {"spec": {"low": 1}}, MERGE, about="it can still be changed")
    await scene.patch(f"{A}/status", {"status": {"phase": "Terminating"}}, MERGE)
    more = {"metadata": {"finalizers": [HOLD, "test.quorate.io/other", "test.quorate.io/late"]}}
    await scene.patch(A, more, MERGE, about="a new finalizer is too late")
    await scene.patch(A, {"metadata": {"deletionTimestamp": None}}, MERGE, about="there is no way back")
    await scene.patch(A, {"metadata": {"finalizers": [HOLD]}}, MERGE, about="one less")
    await scene.patch(A, {"metadata": {"finalizers": []}}, MERGE, about="the last one")
    await scene.get(A)


async def finalizers_removed_by_put(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", {"finalizers": [HOLD]}))
    held: Any = await scene.delete(A)
    metadata = {key: value for key, value in held["metadata"].items() if key != "finalizers"}
    await scene.put(A, {**held, "metadata": metadata})
    await scene.get(A)


async def finalizers_of_a_living_object(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    await scene.patch(A, {"metadata": {"finalizers": [HOLD]}}, MERGE)
    await scene.patch(A, {"metadata": {"finalizers": [HOLD, HOLD]}}, MERGE, about="twice")
    await scene.patch(A, {"metadata": {"finalizers": None}}, MERGE)
    await scene.get(A)


async def preconditions(scene: Scene) -> None:
    made: Any = await scene.post(WIDGETS, widget("a"))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    await scene.patch(A, {"spec": {"low": 1}}, MERGE)
    await scene.delete(A, options(preconditions={"uid": "00000000-0000-4000-8000-000000000000"}), about="another uid")
    await scene.delete(A, options(preconditions={"resourceVersion": version}), about="a stale version")
    await scene.delete(A, options(preconditions={"uid": uid, "resourceVersion": version}), about="one of two")
    await scene.delete(A, options(preconditions={"uid": uid}), about="the right uid")
    made = await scene.post(WIDGETS, widget("a"))
    await scene.delete(A, options(preconditions={"resourceVersion": made["metadata"]["resourceVersion"]}))
    missing = options(preconditions={"uid": uid})
    await scene.delete(f"{WIDGETS}/missing", missing)


async def delete_options(scene: Scene) -> None:
    """Not Orphan and Foreground: they are the garbage collector's, and the embedded engine has none."""
    for about, body in (
        ("background", options(propagationPolicy="Background")),
        ("an unknown policy", options(propagationPolicy="Sideways")),
        ("a grace period", options(gracePeriodSeconds=30)),
        ("at once", options(gracePeriodSeconds=0)),
        ("a negative grace period", options(gracePeriodSeconds=-1)),
        ("the older way", options(orphanDependents=False)),
        ("two ways at once", options(orphanDependents=True, propagationPolicy="Background")),
        ("an unknown field", options(strange=1)),
        ("another kind", {"kind": "Widget", "apiVersion": "test.quorate.io/v1"}),
        ("no JSON", b"{"),
        ("an unknown dry run", options(dryRun=["Some"])),
    ):
        await scene.post(WIDGETS, widget("a"), about=f"for: {about}")
        await scene.delete(A, body, about=about)
        await scene.patch(A, {"metadata": {"finalizers": None}}, MERGE, about="let it go")
        await scene.delete(A, about="what is left")
    await scene.post(WIDGETS, widget("a"))
    await scene.delete(A, query={"propagationPolicy": "Background", "gracePeriodSeconds": "0"}, about="in the query")


async def delete_collection(scene: Scene) -> None:
    for name, labels in {"a": {"x": "1"}, "b": {"x": "1"}, "c": {"x": "2"}, "d": {}}.items():
        await scene.post(WIDGETS, widget(name, {"labels": labels, **({"finalizers": [HOLD]} if name == "b" else {})}))
    await scene.delete(WIDGETS, query={"labelSelector": "x=1"})
    await scene.get(WIDGETS)
    await scene.delete(WIDGETS, query={"fieldSelector": "metadata.name=c", "dryRun": "All"})
    await scene.delete(WIDGETS, query={"fieldSelector": "metadata.name=c"})
    await scene.delete(WIDGETS, query={"labelSelector": "a/b/c"})
    await scene.delete(WIDGETS)
    await scene.get(WIDGETS)
    await scene.delete(WIDGETS, about="nothing is left but what is held")
    await scene.post(GADGETS, gadget("g"))
    await scene.delete(ALL_GADGETS, about="in all namespaces at once")
    await scene.delete(GADGETS)
    await scene.get(GADGETS)
