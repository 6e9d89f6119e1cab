"""Every scenario, as it was recorded from the real server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conformance.scenarios import SCENARIOS
from tests.conformance.targets import Target
from tests.conformance.transcript import Scene, comparable

RECORDED = Path(__file__).parent / "recorded"
RECORDING = "QUORATE_RECORD" in os.environ


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_answers_are_those_of_the_real_server(wired: Target, name: str) -> None:
    assert wired.wire is not None
    scene = Scene(wired.wire)
    await SCENARIOS[name](scene)
    file = RECORDED / f"{name}.json"
    if RECORDING and wired.name == "apiserver":
        lines = [json.dumps(entry, ensure_ascii=False) for entry in scene.entries]
        file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    recorded = json.loads(file.read_text())
    if wired.name == "apiserver":
        assert scene.entries == recorded
    else:
        assert [comparable(entry) for entry in scene.entries] == [comparable(entry) for entry in recorded]


def test_every_recording_belongs_to_a_scenario() -> None:
    assert {file.stem for file in RECORDED.glob("*.json")} == set(SCENARIOS)
