"""Kinds that Kubernetes has of its own, as far as we use them."""

from __future__ import annotations

from typing import Any

from tests.conformance.transcript import Scene
from tests.conformance.wire import MERGE

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"


async def leases(scene: Scene) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "conformance"},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-11-16T00:00:00.000000Z",
            "leaseTransitions": 0,
        },
    }
    made: Any = await scene.post(LEASES, lease)
    path = f"{LEASES}/conformance"
    await scene.get(path)
    await scene.patch(path, {"spec": {"renewTime": "2026-11-16T00:00:01.000000Z"}}, MERGE)
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"holderIdentity": "you"}}
    await scene.patch(path, stale, MERGE, about="the lock is somebody else's")
    await scene.patch(path, {"spec": {"leaseDurationSeconds": 0}}, MERGE, about="no duration")
    await scene.patch(path, {"spec": {"leaseTransitions": -1}}, MERGE)
    await scene.delete(path)


async def events(scene: Scene) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "conformance.1"},
        "involvedObject": {"apiVersion": "test.quorate.io/v1", "kind": "Widget", "name": "w", "uid": "u"},
        "reason": "Tested",
        "message": "it was tested",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2026-11-16T00:00:00Z",
        "lastTimestamp": "2026-11-16T00:00:00Z",
        "source": {"component": "quorate"},
    }
    await scene.post(EVENTS, event)
    path = f"{EVENTS}/conformance.1"
    await scene.patch(path, {"count": 2, "lastTimestamp": "2026-11-16T00:01:00Z"}, MERGE, about="seen again")
    await scene.get(EVENTS, query={"fieldSelector": "involvedObject.kind=Widget,involvedObject.name=w"})
    await scene.get(EVENTS, query={"fieldSelector": "involvedObject.name=other"})
    await scene.get(EVENTS, query={"fieldSelector": "reason=Tested,type=Normal"})
    elsewhere = {**event, "metadata": {"name": "conformance.2"}, "involvedObject": {"kind": "Widget", "namespace": "x"}}
    await scene.post(EVENTS, elsewhere, about="of an object in another namespace")
    await scene.delete(path)


async def nodes(scene: Scene) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "conformance", "labels": {"zone": "a"}}}
    await scene.post(NODES, node)
    path = f"{NODES}/conformance"
    await scene.patch(path, {"spec": {"unschedulable": True}}, MERGE)
    await scene.get(NODES, query={"labelSelector": "zone=a"})
    await scene.patch(path, {"metadata": {"annotations": {"storage.deckhouse.io/evacuate": "true"}}}, MERGE)
    ready = {"type": "Ready", "status": "Unknown", "reason": "AgentSilent", "message": "m"}
    await scene.patch(f"{path}/status", {"status": {"conditions": [ready]}}, MERGE)
    await scene.delete(path)


async def namespaces(scene: Scene) -> None:
    await scene.get(f"{NAMESPACES}/default")
    await scene.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    await scene.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Bad_Name"}})
    await scene.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}})
    dry = {"dryRun": "All"}
    await scene.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}, query=dry)
    await scene.patch(f"{NAMESPACES}/default", {"metadata": {"labels": {"x": "y"}}}, MERGE, query=dry)
    await scene.delete(f"{NAMESPACES}/kube-system", about="one that must stay")
    await scene.delete(f"{NAMESPACES}/missing")
