"""Names, labels, annotations, finalizers and owners: what is allowed."""

from __future__ import annotations

from typing import Any

from tests.conformance.scenarios.objects import GADGETS, WIDGETS, gadget, widget
from tests.conformance.transcript import Scene
from tests.conformance.wire import MERGE

DRY = {"dryRun": "All"}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


async def names(scene: Scene) -> None:
    for name in (
        "a",
        "a-b",
        "a.b",
        "9",
        "a" * 253,
        "a" * 254,
        "A",
        "a_b",
        "a b",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "ä",
        "",
        ".",
        "..",
        "a/b",
        "a%b",
    ):
        await scene.post(WIDGETS, widget(name), query=DRY, about=name if len(name) < 200 else f"{len(name)} letters")
    nameless: Any = {**widget("x"), "metadata": {}}
    await scene.post(WIDGETS, nameless, query=DRY, about="no name at all")
    await scene.post(WIDGETS, widget(5), query=DRY, about="a number")  # type: ignore[arg-type]


async def generated_names(scene: Scene) -> None:
    for prefix in ("ok-", "Bad-", "a_", "x" * 300):
        made = await scene.post(WIDGETS, widget("", {"generateName": prefix}), query=DRY, about=prefix[:10])
        assert isinstance(made, dict)
    await scene.post(WIDGETS, widget("own", {"generateName": "ignored-"}), query=DRY, about="both")


async def label_rules(scene: Scene) -> None:
    for key, value in (
        ("a", "b"),
        ("a", ""),
        ("example.com/a", "b"),
        ("a" * 63, "b"),
        ("a" * 64, "b"),
        ("x" * 253 + "/a", "b"),
        ("x" * 254 + "/a", "b"),
        ("a", "b" * 63),
        ("a", "b" * 64),
        ("a", "b c"),
        ("a", "-b"),
        ("a b", "c"),
        ("", "c"),
        ("/a", "c"),
        ("a/", "c"),
        ("a/b/c", "c"),
        ("Example.com/a", "c"),
        ("A_b.c-D", "E_f.g-H"),
        ("a", 5),
        ("a", None),
        ("a", True),
    ):
        about = f"{str(key)[:30]}={str(value)[:30]}"
        await scene.post(WIDGETS, widget("w", {"labels": {key: value}}), query=DRY, about=about)
    await scene.post(WIDGETS, widget("w", {"labels": ["a"]}), query=DRY, about="a list")
    await scene.post(WIDGETS, widget("w", {"labels": {"a b": "c d", "e": "f g"}}), query=DRY, about="several faults")


async def annotation_rules(scene: Scene) -> None:
    for key, value in (
        ("a", "anything, even\nthis"),
        ("Example.com/A", "b"),
        ("a b", "c"),
        ("", "c"),
        ("a/b/c", "d"),
        ("a", 5),
    ):
        await scene.post(WIDGETS, widget("w", {"annotations": {key: value}}), query=DRY, about=f"{key}={value}")
    large = widget("w", {"annotations": {"a": "x" * (256 * 1024)}})
    refused = await scene.post(WIDGETS, large, query=DRY, about="too large")
    assert refused["code"] == 422


async def finalizer_rules(scene: Scene) -> None:
    for given in (
        ["example.com/a"],
        ["a"],
        ["example.com/a b"],
        [""],
        ["a/b/c"],
        ["foregroundDeletion"],
        ["orphan"],
        ["kubernetes"],
        ["foregroundDeletion", "orphan"],
        "text",
        [5],
    ):
        await scene.post(WIDGETS, widget("w", {"finalizers": given}), query=DRY, about=str(given))


async def owner_rules(scene: Scene) -> None:
    for about, references in (
        ("complete", [OWNER]),
        ("a controller", [{**OWNER, "controller": True}]),
        ("two controllers", [{**OWNER, "controller": True}, {**OWNER, "uid": "v", "controller": True}]),
        ("no uid", [{**OWNER, "uid": ""}]),
        ("no name", [{**OWNER, "name": ""}]),
        ("no kind", [{**OWNER, "kind": ""}]),
        ("no version", [{**OWNER, "apiVersion": ""}]),
        ("an event", [{**OWNER, "kind": "Event"}]),
        ("an unparsable version", [{**OWNER, "apiVersion": "a/b/c"}]),
        ("the same twice", [OWNER, OWNER]),
        ("no list", OWNER),
    ):
        body = widget("w", {"ownerReferences": references})
        await scene.post(WIDGETS, body, query=DRY, about=about)


async def changes(scene: Scene) -> None:
    path = f"{WIDGETS}/w"
    await scene.post(WIDGETS, widget("w"))
    for about, metadata in (
        ("a bad label", {"labels": {"a b": "c"}}),
        ("a bad annotation", {"annotations": {"a b": "c"}}),
        ("a bad finalizer", {"finalizers": ["a b"]}),
        ("a bad owner", {"ownerReferences": [{**OWNER, "uid": ""}]}),
        ("labels of another type", {"labels": "text"}),
        ("creation time", {"creationTimestamp": "2020-01-01T00:00:00Z"}),
        ("deletion time", {"deletionTimestamp": "2020-01-01T00:00:00Z"}),
        ("grace period", {"deletionGracePeriodSeconds": 5}),
        ("generateName", {"generateName": "x-"}),
        ("selfLink", {"selfLink": "/x"}),
    ):
        await scene.patch(path, {"metadata": metadata}, MERGE, about=about)
    await scene.get(path)
    await scene.post(GADGETS, gadget("g"))
    await scene.patch(f"{GADGETS}/g", {"metadata": {"namespace": "kube-system"}}, MERGE, about="another namespace")
    await scene.patch(f"{GADGETS}/g", {"metadata": {"namespace": None}}, MERGE, about="no namespace")
