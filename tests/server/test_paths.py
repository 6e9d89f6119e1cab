"""URLs point at what Kubernetes says they do."""

from __future__ import annotations

import pytest

from quorate.api.core import Event, Namespace
from quorate.server.kubernetes.paths import Kinds, Target
from tests.support.kinds import GROUP, Gadget, Widget

WIDGET, GADGET, NAMESPACE, EVENT = Widget.KIND, Gadget.KIND, Namespace.KIND, Event.KIND
KINDS = Kinds((WIDGET, GADGET, NAMESPACE, EVENT))


@pytest.mark.parametrize(
    ("group", "rest", "target"),
    [
        (GROUP, "widgets", Target(WIDGET)),
        (GROUP, "widgets/", Target(WIDGET)),
        (GROUP, "widgets/a", Target(WIDGET, name="a")),
        (GROUP, "widgets/a/status", Target(WIDGET, name="a", subresource="status")),
        (GROUP, "widgets/a/scale", Target(WIDGET, name="a", subresource="scale")),
        (GROUP, "widgets/a/status/more", Target(WIDGET, name="a", subresource="status/more")),
        (GROUP, "gadgets", Target(GADGET)),
        (GROUP, "namespaces/x/gadgets", Target(GADGET, "x")),
        (GROUP, "namespaces/x/gadgets/a", Target(GADGET, "x", "a")),
        (GROUP, "namespaces/x/gadgets/a/status", Target(GADGET, "x", "a", "status")),
        ("", "namespaces", Target(NAMESPACE)),
        ("", "namespaces/x", Target(NAMESPACE, name="x")),
        ("", "namespaces/x/status", Target(NAMESPACE, name="x", subresource="status")),
        ("", "namespaces/x/events", Target(EVENT, "x")),
        ("", "namespaces/status/events", Target(EVENT, "status")),
    ],
)
def test_a_path_resolves(group: str, rest: str, target: Target) -> None:
    assert KINDS.resolve(group, "v1", rest) == target


@pytest.mark.parametrize(
    ("group", "version", "rest"),
    [
        (GROUP, "v1", "nothing"),
        (GROUP, "v2", "widgets"),
        ("other.io", "v1", "widgets"),
        (GROUP, "v1", "namespaces/x/widgets"),
        (GROUP, "v1", "gadgets/a"),
        (GROUP, "v1", "widgets//status"),
        (GROUP, "v1", "namespaces"),
        (GROUP, "v1", ""),
    ],
)
def test_nothing_is_served_elsewhere(group: str, version: str, rest: str) -> None:
    assert KINDS.resolve(group, version, rest) is None
