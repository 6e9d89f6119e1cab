"""The replay itself: it must notice what is not as recorded, and never break."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.lab.recordings.compare_status import Difference
from quorate.lab.recordings.report import Verdict, replay_all, verdict
from quorate.lab.tools import registry

DATA = Path(__file__).parent / "data"
Recording = dict[str, Any]


@pytest.fixture
def altered(tmp_path: Path) -> Callable[[str, Callable[[Recording], None]], Verdict]:
    """Replay a recording after something in it was changed."""

    def replay(name: str, alter: Callable[[Recording], None]) -> Verdict:
        recording = json.loads((DATA / f"{name}.json").read_text())
        alter(recording)
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(recording))
        return verdict(path)

    return replay


def statuses(recording: Recording) -> list[Recording]:
    return [step for step in recording["steps"] if step["kind"] == "status" and step["status"]]


def commands(recording: Recording, text: str) -> list[Recording]:
    return [step for step in recording["steps"] if step["kind"] == "command" and text in step["command"]]


RESOURCE_LIES: list[tuple[str, Any]] = [
    ("role", "Unknown"),
    ("suspended", "flip"),
    ("suspended-quorum", "flip"),
    ("suspended-no-data", "flip"),
    ("suspended-user", "flip"),
    ("force-io-failures", "flip"),
]
DEVICE_LIES: list[tuple[str, Any]] = [
    ("disk-state", "Attaching"),
    ("client", "flip"),
    ("quorum", "flip"),
    ("size", 4),
    ("minor", 7),
]
CONNECTION_LIES: list[tuple[str, Any]] = [("connection-state", "Timeout"), ("peer-role", "flip"), ("name", "n9")]
PEER_LIES: list[tuple[str, Any]] = [
    ("replication-state", "Ahead"),
    ("peer-disk-state", "Negotiating"),
    ("peer-client", "flip"),
    ("out-of-sync", 12),
]


def lie(part: Recording, field: str, value: object) -> None:
    part[field] = not part[field] if value == "flip" and isinstance(part[field], bool) else value


@pytest.mark.parametrize("position", [0, -1])
@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        *((("status", 0), field, value) for field, value in RESOURCE_LIES),
        *((("status", 0, "devices", 0), field, value) for field, value in DEVICE_LIES),
        *((("status", 0, "connections", 0), field, value) for field, value in CONNECTION_LIES),
        *((("status", 0, "connections", 0, "peer_devices", 0), field, value) for field, value in PEER_LIES),
    ],
)
def test_one_wrong_field_of_one_status_is_one_miss(
    altered: Callable[[str, Callable[[Recording], None]], Verdict],
    path: tuple[str | int, ...],
    field: str,
    value: object,
    position: int,
) -> None:
    def alter(recording: Recording) -> None:
        part: Any = statuses(recording)[position]
        for key in path:
            part = part[key]
        lie(part, field, value)

    found = altered("loss_3d", alter)
    assert len(found.misses) == 1
    assert field in found.misses[0]


def test_a_missing_or_additional_peer_or_resource_is_a_miss(
    altered: Callable[[str, Callable[[Recording], None]], Verdict],
) -> None:
    def without_peer(recording: Recording) -> None:
        statuses(recording)[0]["status"][0]["connections"].pop()

    def with_peer(recording: Recording) -> None:
        connections = statuses(recording)[0]["status"][0]["connections"]
        connections.append({**copy.deepcopy(connections[0]), "peer-node-id": 9})

    def without_resource(recording: Recording) -> None:
        statuses(recording)[0]["status"].clear()

    for alter in (without_peer, with_peer, without_resource):
        assert len(altered("loss_3d", alter).misses) == 1


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("loss_3d", "drbdadm primary", "exit", 17),
        ("loss_3d", "dd if", "output", "write rc=0"),
        ("two_primaries", "drbdadm primary", "output", "pvc-1: State change failed: (-2) Need access to UpToDate data"),
        ("formation_clear_bitmap", "dump-md", "output", "Found meta data is unclean"),
        ("resize_assume_clean", "blockdev", "output", "1"),
        ("single", "lvcreate", "output", "something else"),
        ("grow_power_loss", "check-resize", "output", "found"),
        ("force_resync", "show --json", "output", '[{"resource": "other"}]'),
    ],
)
def test_a_wrong_outcome_of_a_command_is_a_miss(
    altered: Callable[[str, Callable[[Recording], None]], Verdict], name: str, text: str, field: str, value: object
) -> None:
    def alter(recording: Recording) -> None:
        commands(recording, text)[-1][field] = value

    found = altered(name, alter)
    assert len(found.misses) == 1
    assert text in found.misses[0]


def test_a_state_that_was_left_seconds_ago_does_not_match(
    altered: Callable[[str, Callable[[Recording], None]], Verdict],
) -> None:
    """The first status after the second cut is put where the model has long suspended; it shows no suspension."""

    def alter(recording: Recording) -> None:
        late = next(
            step for step in statuses(recording) if step["label"] == "both peers lost" or step["status"][0]["suspended"]
        )
        late["status"][0]["suspended"] = late["status"][0]["suspended-quorum"] = False
        late["status"][0]["devices"][0]["quorum"] = True

    assert len(altered("loss_3d", alter).misses) >= 1


def test_a_cut_that_is_left_out_is_noticed(altered: Callable[[str, Callable[[Recording], None]], Verdict]) -> None:
    def alter(recording: Recording) -> None:
        first = next(step for step in recording["steps"] if step["kind"] == "network")
        first["cut"] = []

    assert len(altered("loss_3d", alter).misses) >= 2


def test_a_power_loss_that_is_left_out_is_noticed(
    altered: Callable[[str, Callable[[Recording], None]], Verdict],
) -> None:
    def alter(recording: Recording) -> None:
        recording["steps"] = [step for step in recording["steps"] if step["kind"] != "power"]

    assert len(altered("grow_power_loss", alter).misses) >= 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"scenario": "x"}',
        '{"scenario": "x", "steps": [{"kind": "teleport"}]}',
        '{"scenario": "x", "steps": [{"kind": "command", "node": "n1"}]}',
        '{"scenario": "x", "steps": [{"kind": "status", "node": "n1", "label": "", "status": [{}]}]}',
        '{"scenario": "x", "steps": [{"kind": "command", "node": "n1", "command": "frob", "exit": 0, "output": ""}]}',
        '{"scenario": "x", "steps": [{"kind": "network", "cut": [["n1", "nowhere"], ["n1"]]}]}',
        '{"scenario": "x", "steps": [{"kind": "power", "node": "n1", "on": "maybe"}]}',
    ],
)
def test_what_is_not_a_recording_or_not_modelled_is_a_miss_and_no_crash(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    found = verdict(path)
    assert not found.complete
    assert found.of >= 1


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_recording_with_steps_left_out_never_breaks_the_replay(data: st.DataObject) -> None:
    recording = json.loads((DATA / "single.json").read_text())
    kept = data.draw(st.lists(st.booleans(), min_size=len(recording["steps"]), max_size=len(recording["steps"])))
    recording["steps"] = [step for step, keep in zip(recording["steps"], kept, strict=True) if keep]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "thinned.json"
        path.write_text(json.dumps(recording))
        found = verdict(path)
    assert not any("the replay broke" in miss for miss in found.misses)
    assert found.of == len(recording["steps"])


def test_the_same_recording_gives_the_same_verdict_every_time() -> None:
    path = DATA / "loss_2d_tb_qmr1.json"
    assert verdict(path) == verdict(path)


def test_the_report_ends_with_how_many_recordings_match(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text((DATA / "single.json").read_text())
    (tmp_path / "b.json").write_text("nonsense")
    said: list[str] = []
    assert replay_all(tmp_path, said.append, verbose=True) is False
    assert said[0] == "a  17/17"
    assert said[1] == "b  0/1"
    assert "not a recording" in said[2]
    assert said[-1] == "1 of 2 recordings match"


ODD_COMMANDS = (
    "exit x",
    "timeout 1m true",
    "timeout -k 1 2 true",
    "echo hi >&9",
    "tail -n x",
    "while true; do :; done",
)


@pytest.mark.parametrize("command", ODD_COMMANDS)
def test_an_odd_command_is_at_most_a_miss_of_its_own_step(
    altered: Callable[[str, Callable[[Recording], None]], Verdict], command: str
) -> None:
    def add(recording: Recording) -> None:
        step = {"kind": "command", "node": "n1", "command": command, "exit": 42, "output": "nobody says this"}
        recording["steps"].insert(0, {"at": 0.0, **step})

    found = altered("single", add)
    assert len(found.misses) == 1
    assert found.of - found.matched == 1


def test_a_hole_in_the_model_is_a_miss_of_the_step_that_fell_into_it(
    altered: Callable[[str, Callable[[Recording], None]], Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_process: object, _argv: list[str]) -> int:
        raise KeyError("a hole")

    monkeypatch.setitem(cast("dict[str, Any]", registry.TOOLS), "hostname", broken)

    def add(recording: Recording) -> None:
        step = {"kind": "command", "node": "n1", "command": "hostname", "exit": 0, "output": "n1\n"}
        recording["steps"].insert(0, {"at": 0.0, **step})

    found = altered("single", add)
    assert len(found.misses) == 1
    assert "a hole" in found.misses[0]


def test_a_status_without_devices_is_a_miss_of_that_step(
    altered: Callable[[str, Callable[[Recording], None]], Verdict],
) -> None:
    found = altered("single", lambda recording: statuses(recording)[0]["status"][0].pop("devices"))
    assert len(found.misses) == 1


def as_command(recording: Recording, lie: Any = None) -> None:
    """Let the last status have been looked at by a command."""
    step = statuses(recording)[-1]
    shown = copy.deepcopy(step["status"])
    shown[0]["devices"][0]["read"] += 4711
    if lie is not None:
        shown[0]["role"] = lie
    command = {"command": "drbdsetup status pvc-1 --json", "exit": 0, "output": json.dumps(shown, indent=2)}
    step |= {"kind": "command", **command}


def test_a_status_that_a_command_showed_is_compared_as_one(
    altered: Callable[[str, Callable[[Recording], None]], Verdict],
) -> None:
    assert altered("loss_3d", as_command).complete
    found = altered("loss_3d", lambda recording: as_command(recording, "Unknown"))
    assert len(found.misses) == 1
    assert "role: expected Unknown" in found.misses[0]


def test_a_miss_spells_colours_out() -> None:
    assert str(Difference("output", "\033[1;32mno\033[0m", "no")) == r"output: expected \033[1;32mno\033[0m, seen no"


def test_steps_of_kinds_that_nobody_compares_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    recording = json.loads((DATA / "single.json").read_bytes())
    recording["steps"][1:1] = [{"kind": "kernel", "node": "n1", "lines": []}, {"kind": "note"}, {"kind": "note"}]
    path.write_text(json.dumps(recording))
    found = verdict(path)
    assert found.complete, "\n".join(found.misses)
    assert found.others == "1 kernel, 2 note"
