"""get and list: selectors, pages, versions, and what is not there."""

from __future__ import annotations

from tests.conformance.scenarios.objects import ALL_GADGETS, GADGETS, WIDGETS, gadget, widget
from tests.conformance.transcript import Scene


async def get(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", nodeName="n1"))
    await scene.get(f"{WIDGETS}/a")
    await scene.get(f"{WIDGETS}/missing")
    await scene.post(GADGETS, gadget("g"))
    await scene.get(f"{GADGETS}/g")
    await scene.get(f"{GADGETS}/missing")
    await scene.get("/apis/test.quorate.io/v1/namespaces/nowhere/gadgets/g")
    await scene.get(f"{WIDGETS}/a", accept="application/vnd.kubernetes.protobuf", about="as protobuf")
    await scene.get(f"{WIDGETS}/a", accept="application/vnd.kubernetes.protobuf, application/json")
    await scene.get(f"{WIDGETS}/a", accept="text/html", about="as HTML")
    await scene.get(f"{WIDGETS}/a", accept="*/*")


async def get_with_a_version(scene: Scene) -> None:
    made = await scene.post(WIDGETS, widget("a"))
    await scene.get(f"{WIDGETS}/a", query={"resourceVersion": "0"})
    await scene.get(f"{WIDGETS}/a", query={"resourceVersion": made["metadata"]["resourceVersion"]})
    await scene.get(f"{WIDGETS}/a", query={"resourceVersion": "nonsense"}, about="no number")


async def paths_that_lead_nowhere(scene: Scene) -> None:
    for path in (
        "/apis/nobody.io/v1/widgets",
        "/apis/test.quorate.io/v9/widgets",
        "/apis/test.quorate.io/v1/gizmos",
        "/apis/test.quorate.io/v1/gizmos/x",
        f"{WIDGETS}/a/scale",
        f"{WIDGETS}/a/status/more",
        "/apis/test.quorate.io/v1/gadgets/g",
        "/nothing",
    ):
        await scene.get(path)
    await scene.post(ALL_GADGETS, gadget("g"), about="a namespaced kind without its namespace")
    await scene.post(f"{WIDGETS}/a", widget("a"), about="POST to a single object")
    await scene.put(WIDGETS, widget("a"), about="PUT to a collection")


async def empty_list(scene: Scene) -> None:
    await scene.get(WIDGETS)
    await scene.get(GADGETS)
    await scene.get("/apis/test.quorate.io/v1/namespaces/nowhere/gadgets")


async def label_selectors(scene: Scene) -> None:
    for name, labels in {
        "a": {"tier": "gold", "zone": "1"},
        "b": {"tier": "gold"},
        "c": {"tier": "silver", "zone": "22"},
        "d": {},
    }.items():
        await scene.post(WIDGETS, widget(name, {"labels": labels}))
    for selector in (
        "tier=gold",
        "tier==gold",
        "tier!=gold",
        "tier in (gold,silver)",
        "tier notin (gold)",
        "tier",
        "!tier",
        "tier=gold,zone",
        "tier=gold,!zone",
        "zone>5",
        "zone<5",
        "zone>x",
        "tier=",
        "tier!=",
        "tier in ()",
        "a/b/c=d",
        "=x",
        "tier=g old",
        "tier in gold",
        "tier=gold,",
        ",",
        "TIER=gold",
        " tier = gold ",
        "tier in (gold",
        "example.com/x=y",
        "tier=" + "x" * 64,
    ):
        await scene.get(WIDGETS, query={"labelSelector": selector}, about=selector)


async def field_selectors(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a", nodeName="n1"))
    await scene.post(WIDGETS, widget("b", nodeName="n2"))
    await scene.post(WIDGETS, widget("c"))
    await scene.post(GADGETS, gadget("g"))
    for selector in (
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "spec.nodeName=n1",
        "spec.nodeName!=n1",
        "spec.nodeName=",
        "spec.nodeName!=",
        "spec.nodeName=n1,metadata.name=a",
        "spec.nodeName=n1,metadata.name=b",
        "spec.owner=me",
        "status.phase=x",
        "metadata.namespace=default",
        "metadata.labels.x=y",
        "spec.nodeName",
        "spec.nodeName in (n1)",
        "spec.nodeName>1",
    ):
        await scene.get(WIDGETS, query={"fieldSelector": selector}, about=selector)
    await scene.get(ALL_GADGETS, query={"fieldSelector": "metadata.namespace=default"})
    await scene.get(ALL_GADGETS, query={"fieldSelector": "metadata.namespace=other"})
    await scene.get(GADGETS, query={"fieldSelector": "metadata.namespace=other"})
    await scene.get(GADGETS, query={"fieldSelector": "spec.nodeName=n1"}, about="not declared selectable")


async def pages(scene: Scene) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await scene.post(WIDGETS, widget(name, {"labels": {"odd": str(name in "ace").lower()}}))
    first = await scene.get(WIDGETS, query={"limit": "2"})
    await scene.post(WIDGETS, widget("bb"))
    await scene.delete(f"{WIDGETS}/e")
    second = await scene.get(
        WIDGETS, query={"limit": "2", "continue": first["metadata"]["continue"]}, about="as of the first page"
    )
    await scene.get(WIDGETS, query={"limit": "2", "continue": second["metadata"]["continue"]})
    await scene.get(WIDGETS, query={"limit": "100"})
    await scene.get(WIDGETS, query={"limit": "2", "labelSelector": "odd=true"}, about="a page of a selection")
    await scene.get(WIDGETS, query={"limit": "0"})
    await scene.get(WIDGETS, query={"limit": "-1"})
    await scene.get(WIDGETS, query={"limit": "x"})
    await scene.get(WIDGETS, query={"limit": "2", "continue": "nonsense"})
    await scene.get(
        WIDGETS,
        query={"limit": "2", "continue": first["metadata"]["continue"], "resourceVersion": "5"},
        about="a version beside a continue token",
    )


async def list_versions(scene: Scene) -> None:
    made = await scene.post(WIDGETS, widget("a"))
    version = made["metadata"]["resourceVersion"]
    for query in (
        {"resourceVersion": "0"},
        {"resourceVersion": version},
        {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": version, "resourceVersionMatch": "Exact"},
        {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersion": version, "resourceVersionMatch": "Perhaps"},
        {"resourceVersion": "nonsense"},
        {"resourceVersion": "-1"},
    ):
        await scene.get(WIDGETS, query=query, about=" ".join(key for key in query))
