"""The event stream, decoded; objects that a newer version wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.engine.kubernetes.watching import typed_event
from quorate.engine.store import EventType, WatchEvent
from quorate.errors import Expired, Forbidden, InternalError, UndecodableObject
from tests.support.kinds import Widget

GOOD = {"metadata": {"name": "w", "resourceVersion": "7"}, "spec": {"owner": "me"}}
NEWER = {"metadata": {"name": "new", "namespace": "", "resourceVersion": "8"}, "spec": {"owner": ["me", "you"]}}


def event(kind: str, body: Any) -> tuple[WatchEvent[Widget], list[UndecodableObject]]:
    skipped: list[UndecodableObject] = []
    return typed_event(Widget, json.dumps({"type": kind, "object": body}).encode(), skipped.append), skipped


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_carries_its_object(kind: str) -> None:
    found, skipped = event(kind, GOOD)
    assert (found.type, found.resource_version) == (EventType(kind), "7")
    assert found.object is not None
    assert found.object.spec.owner == "me"
    assert skipped == []


def test_a_bookmark_has_only_a_version() -> None:
    found, _ = event("BOOKMARK", {"kind": "Widget", "metadata": {"resourceVersion": "9", "creationTimestamp": None}})
    assert found == WatchEvent(EventType.BOOKMARK, "9", None)


@pytest.mark.parametrize(("code", "error"), [(410, Expired), (403, Forbidden), (500, InternalError)])
def test_an_error_is_raised_as_what_it_says(code: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="too old"):
        event("ERROR", {"kind": "Status", "code": code, "message": "too old"})


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_an_object_of_a_newer_version_is_reported_and_counts_as_seen(kind: str) -> None:
    found, skipped = event(kind, NEWER)
    assert found == WatchEvent(EventType.BOOKMARK, "8", None, undecodable=("", "new"))
    assert [(each.kind, each.namespace, each.name) for each in skipped] == [("Widget", "", "new")]
    assert "$.spec.owner" in skipped[0].problem


def test_its_deletion_asks_for_a_new_list_because_no_event_can_say_it() -> None:
    with pytest.raises(Expired, match="new"):
        event("DELETED", NEWER)


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"{}",
        b'{"type": "ADDED"}',
        b"[]",
        b'{"type": "RENAMED", "object": {}}',
        b'{"type": "ADDED", "object": 3}',
        b'{"type": "BOOKMARK", "object": []}',
    ],
)
def test_what_is_no_event_is_an_error_of_the_server(line: bytes) -> None:
    with pytest.raises(InternalError, match="no event"):
        typed_event(Widget, line, lambda _: None)
