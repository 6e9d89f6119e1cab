"""Every scenario, as it was recorded from the real server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.differences import DIFFERENCES
from tests.conformance.scenarios import SCENARIOS
from tests.conformance.targets import Target
from tests.conformance.transcript import Scene, comparable, contained

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
    assert [entry["request"] for entry in scene.entries] == [entry["request"] for entry in recorded]
    wrong = []
    for got, want in zip(scene.entries, recorded, strict=True):
        agreed = got == want if wired.name == "apiserver" else _agree(name, got, want)
        different = wired.name != "apiserver" and (name, want.get("about", "")) in DIFFERENCES
        if agreed is different:
            wrong.append(
                f"{want['request']} ({want.get('about', '')})\n recorded: {_shown(want)}\n answered: {_shown(got)}"
            )
    assert not wrong, "\n".join(["", *wrong])


def _agree(name: str, got: dict[str, Any], want: dict[str, Any]) -> bool:
    got, want = comparable(got), comparable(want)
    if not name.startswith("core."):
        return got == want
    # Of Kubernetes' own kinds we keep what we read; the real server fills in the rest. And it leaves out what the
    # items of a list are, which is known from the list.
    for item in got["answer"].get("items", ()):
        del item["apiVersion"], item["kind"]
    return contained(got, want)


def _shown(entry: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in entry.items() if key not in ("request", "about")})


def test_every_recording_belongs_to_a_scenario() -> None:
    assert {file.stem for file in RECORDED.glob("*.json")} == set(SCENARIOS)
