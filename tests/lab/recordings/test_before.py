"""What the replay takes from a recording about the time before it, and about chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.lab.recordings import before, clock, timing
from quorate.lab.recordings.recording import Events, load
from quorate.lab.recordings.report import verdict

DATA = Path(__file__).parent / "data"


def made(tmp_path: Path, *steps: dict[str, Any]) -> Path:
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"scenario": "made", "steps": list(steps)}))
    return path


def command(line: str, output: str = "", exit_code: int = 0) -> dict[str, Any]:
    return {"kind": "command", "node": "n1", "command": line, "exit": exit_code, "output": output}


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("single", {"n1"}),  # lvcreate wipes a signature
        ("formation_force_resync", {"n1", "n2", "n3"}),  # dump-md finds metadata that nobody created
        ("formation_clear_bitmap", set()),  # dump-md finds none
        ("resize_assume_clean", {"n1", "n2"}),  # only two of the three wipe one
        ("assume_clean_verify", set()),
    ],
)
def test_a_previous_tenant_is_where_the_recording_shows_one(name: str, nodes: set[str]) -> None:
    assert before.tenants(load(DATA / f"{name}.json")).keys() == nodes


def test_a_group_has_as_much_space_as_lvm_was_recorded_to_say(tmp_path: Path) -> None:
    complaint = '  Volume group "vg0" has insufficient free space (3 extents): 8 required.'
    path = made(
        tmp_path,
        command("lvcreate -y -n a -L 8M vg0", '  Logical volume "a" created.'),
        command("lvcreate -y -n b -L 32M vg0", complaint, 5),
        command("lvcreate -y -n b -L 12M vg0", '  Logical volume "b" created.'),
    )
    assert verdict(path).misses == ()


def test_steps_without_times_are_spaced_and_the_first_look_waits() -> None:
    recording = load(DATA / "graceful_disconnect.json")
    slots = clock.slots(recording)
    ends = [slot.end for slot in slots]
    assert ends == sorted(ends)
    assert ends[-1] > 60


def test_a_command_that_sleeps_begins_that_much_earlier() -> None:
    recording = load(DATA / "loss_3d.json")
    for step, slot in zip(recording.steps, clock.slots(recording), strict=True):
        sleeps = "sleep 4" in getattr(step, "command", "")
        assert slot.end - slot.start == pytest.approx(4.0 if sleeps else 0.0, abs=0.02)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def test_the_clocks_of_connected_nodes_are_set_to_each_other_within_a_tenth_of_a_second(path: Path) -> None:
    """Two nodes see their connections at the same instant: after setting their clocks, at the same time."""
    recording = load(path)
    streams = {step.node: step.text for step in recording.steps if isinstance(step, Events)}
    starts = timing.clocks(recording, clock.slots(recording), streams)
    for one in starts:
        for other in starts:
            here, there = timing.meetings(streams[one], other), timing.meetings(streams[other], one)
            if one < other and len(here) == len(there):
                apart = [abs((a - starts[one]) - (b - starts[other])) for a, b in zip(here, there, strict=True)]
                assert all(seconds < 0.1 for seconds in apart)
