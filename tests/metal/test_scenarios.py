"""Every scenario of `make metal` that the lab can play, played there: this is what is predicted."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from metal.run import predict
from metal.scenarios import SCENARIOS, chosen
from metal.stage import Scenario, differences
from quorate.lab.recordings.recording import load
from quorate.lab.recordings.replay import Replay

#: Of a kind's stories: what only changes its layout or its moment is played when everything is asked for.
_VARIANTS = ("level", "layout", "order", "after", "thin")


def _kind(scenario: Scenario) -> str:
    """The story that it is, and in which of its ways."""
    play = scenario.play
    if not isinstance(play, partial):
        return getattr(play, "__name__", scenario.name)
    ways = {key: value for key, value in play.keywords.items() if key not in _VARIANTS}
    return f"{play.func.__name__} {sorted(ways.items())}"


def _played() -> list[Scenario]:
    """Each kind once; with QUORATE_METAL_ALL every one."""
    predicted = [each for each in SCENARIOS if each.predicted]
    if os.environ.get("QUORATE_METAL_ALL"):
        return predicted
    return list({_kind(each): each for each in reversed(predicted)}.values())[::-1]


PLAYED = _played()


@pytest.mark.parametrize("scenario", PLAYED, ids=lambda each: each.name)
def test_a_scenario_ends_well_on_the_lab(scenario: Scenario, tmp_path: Path) -> None:
    played = predict(scenario, tmp_path)
    assert not played.failure, f"{played.failure}\n{(tmp_path / 'story.log').read_text()[-4000:]}"
    assert played.checks + len(played.answers) > 0


def test_names_are_unique_and_can_be_chosen_by_pattern() -> None:
    names = [each.name for each in SCENARIOS]
    assert len(set(names)) == len(names)
    assert {each.name for each in chosen("grown-twice* check")} == {"grown-twice", "grown-twice-told", "check"}
    assert chosen("") == SCENARIOS


def test_the_same_seed_gives_the_same_story(tmp_path: Path) -> None:
    scenario = next(each for each in SCENARIOS if each.name == "failover-none")
    one, other = predict(scenario, tmp_path / "1"), predict(scenario, tmp_path / "2")
    assert (one.seen, one.answers) == (other.seen, other.answers)


def test_what_differs_from_the_prediction_is_named_by_its_path() -> None:
    real = {"states": {"n1": "Primary", "n2": "Secondary"}, "size": 4, "later": 1}
    lab = {"states": {"n1": "Primary", "n2": "Unknown"}, "size": 4, "never": 2}
    assert differences(real, lab) == [
        "states, n2: here 'Secondary', the lab says 'Unknown'",
        "later: here 1, the lab says '(not reached)'",
        "never: here '(not reached)', the lab says 2",
    ]


@pytest.mark.parametrize("name", ["isolated-2d-none-idle", "grown-written", "grown-twice", "life-3d", "life-2d-1tb"])
def test_what_a_scenario_records_can_be_replayed(name: str, tmp_path: Path) -> None:
    scenario = next(each for each in SCENARIOS if each.name == name)
    path = predict(scenario, tmp_path).recording
    assert path is not None
    recording = load(path)
    kinds = {type(step).__name__ for step in recording.steps}
    assert {"Command", "File", "Status", "Events"} <= kinds
    outcomes = Replay(recording).run()
    missed = [(each.step, each.differences) for each in outcomes if not each.matched]
    assert not missed, missed[:5]
