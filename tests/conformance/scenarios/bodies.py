"""Requests that are not what they should be."""

from __future__ import annotations

import json

from tests.conformance.scenarios.objects import WIDGETS, widget
from tests.conformance.transcript import Scene

DRY = {"dryRun": "All"}


async def what_is_no_object(scene: Scene) -> None:
    for about, body in (
        ("nothing", b""),
        ("no JSON", b"{"),
        ("text", b'"text"'),
        ("a number", b"5"),
        ("null", b"null"),
        ("a list", b"[]"),
        ("an empty object", b"{}"),
        ("two objects", b"{}{}"),
        ("no kind", json.dumps({**widget("a"), "kind": ""}).encode()),
        ("no version", json.dumps({**widget("a"), "apiVersion": ""}).encode()),
        ("another kind", json.dumps({**widget("a"), "kind": "Gadget"}).encode()),
        ("an unknown kind", json.dumps({**widget("a"), "kind": "Gizmo"}).encode()),
        ("another version", json.dumps({**widget("a"), "apiVersion": "test.quorate.io/v2"}).encode()),
        ("another group", json.dumps({**widget("a"), "apiVersion": "apps/v1"}).encode()),
        ("a list of objects", json.dumps({**widget("a"), "kind": "WidgetList", "items": []}).encode()),
        ("metadata of another type", json.dumps({**widget("a"), "metadata": "text"}).encode()),
        ("spec of another type", json.dumps({**widget("a"), "spec": "text"}).encode()),
        ("status of another type", json.dumps({**widget("a"), "status": "text"}).encode()),
        ("no spec", json.dumps({key: value for key, value in widget("a").items() if key != "spec"}).encode()),
        ("invalid UTF-8", b'{"apiVersion":"test.quorate.io/v1","kind":"Widget","metadata":{"name":"\xff"}}'),
    ):
        await scene.post(WIDGETS, body, query=DRY, about=about)


async def content_types(scene: Scene) -> None:
    yaml = b"apiVersion: test.quorate.io/v1\nkind: Widget\nmetadata: {name: a}\nspec: {owner: me}\n"
    await scene.post(WIDGETS, yaml, content_type="application/yaml", query=DRY)
    await scene.post(WIDGETS, yaml, content_type="application/json", query=DRY, about="YAML called JSON")
    await scene.post(WIDGETS, widget("a"), content_type="text/plain", query=DRY)
    await scene.post(WIDGETS, widget("a"), content_type="application/json; charset=utf-8", query=DRY)
    await scene.post(WIDGETS, widget("a"), content_type="nonsense", query=DRY)
