"""Output for people: tables, and metadata without the rest."""

from __future__ import annotations

from tests.conformance.scenarios.objects import GADGETS, WIDGETS, gadget, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import MERGE, TABLE

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
READY = {"type": "Ready", "status": "True", "reason": "Good", "lastTransitionTime": "2026-11-16T00:00:00Z"}


async def tables(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", nodeName="n1"))
    await scene.post(WIDGETS, widget("b"))
    await scene.patch(f"{WIDGETS}/a/status", {"status": {"conditions": [READY]}}, MERGE)
    await scene.get(WIDGETS, accept=TABLE)
    await scene.get(f"{WIDGETS}/a", accept=TABLE)
    await scene.get(f"{WIDGETS}/missing", accept=TABLE)
    for include in ("None", "Object", "Metadata", "Everything"):
        await scene.get(f"{WIDGETS}/b", accept=TABLE, query={"includeObject": include})
    await scene.get(WIDGETS, accept=f"{TABLE},application/json", query={"limit": "1"})
    await scene.get(WIDGETS, accept=f"{TABLE},application/json", query={"labelSelector": "none=here"})
    await scene.post(GADGETS, gadget("g"))
    await scene.get(GADGETS, accept=TABLE, about="no columns but the age")
    await scene.get(WIDGETS, accept="application/json;as=Table;v=v9;g=meta.k8s.io")
    await scene.post(WIDGETS, widget("c"), accept=TABLE, about="as the answer to a write")


async def partial_objects(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", {"labels": {"x": "y"}}))
    await scene.get(f"{WIDGETS}/a", accept=PARTIAL)
    await scene.get(WIDGETS, accept=PARTIAL_LIST)
    await scene.get(WIDGETS, accept=PARTIAL)
