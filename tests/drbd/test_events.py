"""The event stream: every recorded line, and lines that nobody ever printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.drbd.events import VERBS, Event, parse_event
from tests.drbd import recordings

LINES = [
    line
    for _, step in recordings.of_kind("events2")
    for line in step["text"].splitlines()
    # Where the node lost its power, the recording says so in the stream's place.
    if not line.startswith("cat:")
]


def test_every_recorded_line_is_an_event_and_names_its_resource() -> None:
    assert len(LINES) > 3000
    for line in LINES:
        event = parse_event(line)
        assert event is not None, line
        assert event.verb in VERBS
        assert event.ends_dump or event.resource in ("pvc-1", "r0"), line


def test_each_stream_ends_its_dump_once() -> None:
    for _, step in recordings.of_kind("events2"):
        events = [parse_event(line) for line in step["text"].splitlines()]
        assert sum(event is not None and event.ends_dump for event in events) == ("exists -" in step["text"])


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("exists -", Event("exists", "-", "", {})),
        ("2026-11-15T23:10:02.002172+00:00 exists -", Event("exists", "-", "", {})),
        (
            "2026-11-15T23:10:02+00:00 change path name:r peer:ipv4:10.0.0.2:7000 established:yes",
            Event("change", "path", "r", {"name": "r", "peer": "ipv4:10.0.0.2:7000", "established": "yes"}),
        ),
        ("destroy resource name:r", Event("destroy", "resource", "r", {"name": "r"})),
        ("", None),
        ("2026-11-15T23:10:02+00:00", None),
        ("change", None),
        ("drbdsetup: out of memory", None),
    ],
)
def test_a_line_is(line: str, event: Event | None) -> None:
    assert parse_event(line) == event


@given(st.text(max_size=100))
def test_garbage_is_no_event_or_a_harmless_one(line: str) -> None:
    event = parse_event(line)
    assert event is None or event.verb in VERBS
