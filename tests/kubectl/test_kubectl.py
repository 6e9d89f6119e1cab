"""An unmodified kubectl works against the facade, and prints what it prints against a real API server."""

from __future__ import annotations

import pytest

from tests.kubectl.run import Kubectl
from tests.kubectl.script import SCENES
from tests.kubectl.step import Scene, Step, contains, matches

BY_NAME = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)


@pytest.mark.kubectl
@BY_NAME
async def test_kubectl_against_the_facade(facade: Kubectl, scene: Scene) -> None:
    await facade.play(scene)


@pytest.mark.kubectl
@pytest.mark.apiserver
@BY_NAME
async def test_kubectl_against_a_real_server(real: Kubectl, scene: Scene) -> None:
    await real.play(scene)


def test_the_script_is_long_enough_to_mean_something() -> None:
    commands = {step.command for scene in SCENES for step in scene.steps}
    assert len(commands) >= 100


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ("a  b", "a b\n", True),
        ("a * c", "a anything at all c", True),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
        ("", "", True),
        ("", "a", False),
        ("a.c", "abc", False),
    ],
)
def test_expected_lines_are_compared_word_by_word(expected: str, found: str, same: bool) -> None:
    assert matches(expected, found) is same


def test_lines_among_others_must_come_in_order() -> None:
    assert contains("a\nc", "a\nb\nc")
    assert not contains("c\na", "a\nb\nc")
    assert not contains("a\na", "a\nb")


def test_a_step_has_one_kind_of_expectation() -> None:
    steps: list[Step] = [step for scene in SCENES for step in scene.steps]
    assert not [step.command for step in steps if step.prints and step.among]
