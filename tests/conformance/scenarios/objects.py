"""What the scenarios write, and where."""

from __future__ import annotations

from typing import Any

WIDGETS = "/apis/test.quorate.io/v1/widgets"
#: Namespaced: one namespace, and all of them.
GADGETS = "/apis/test.quorate.io/v1/namespaces/default/gadgets"
ALL_GADGETS = "/apis/test.quorate.io/v1/gadgets"

Json = dict[str, Any]


def widget(name: str, metadata: Json | None = None, **spec: Any) -> Json:
    return _object("Widget", {"name": name, **(metadata or {})}, spec)


def gadget(name: str, metadata: Json | None = None, **spec: Any) -> Json:
    return _object("Gadget", {"name": name, **(metadata or {})}, spec)


def _object(kind: str, metadata: Json, spec: Json) -> Json:
    return {"apiVersion": "test.quorate.io/v1", "kind": kind, "metadata": metadata, "spec": {"owner": "me", **spec}}
