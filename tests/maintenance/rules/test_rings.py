"""The rings of the state storage."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import IssueType, StatusCode
from quorate.maintenance.moments import SECOND
from quorate.maintenance.nouns import Ring, Rings
from tests.maintenance.rules.making import DOWN, FORCE, KEEP, MAX, MINUTE, NOW, Scene, granted

ALLOW, DISALLOW, TEMP = StatusCode.ALLOW, StatusCode.DISALLOW, StatusCode.DISALLOW_TEMP


def scene_with(*rings: Ring, to_select: int = 5, nodes: int = 8) -> Scene:
    scene = Scene(nodes)
    scene.model.set_rings(Rings(to_select, rings))
    return scene


def five(**kwargs: int) -> Scene:
    return scene_with(*(Ring((number,)) for number in range(1, 6)), **kwargs)


@pytest.mark.parametrize(("mode", "allowed"), [(MAX, 1), (KEEP, 2), (FORCE, 5)])
def test_so_many_rings_of_five_may_be_away(mode: str, allowed: int) -> None:
    scene = five()
    for number in range(1, 6):
        assert scene.ask(f"h{number}", mode=mode).code is (ALLOW if number <= allowed else TEMP)
        scene.hold(f"h{number}")


@pytest.mark.parametrize(("to_select", "allowed"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)])
def test_keep_available_leaves_more_than_half_of_those_to_select(to_select: int, allowed: int) -> None:
    scene = five(to_select=to_select)
    for number in range(1, allowed + 1):
        assert scene.ask(f"h{number}", mode=KEEP).code is ALLOW
        scene.hold(f"h{number}")
    assert scene.ask("h5", mode=KEEP).code is TEMP


def test_a_refusal_says_that_it_is_the_rings() -> None:
    scene = five()
    scene.hold("h2")
    refusal = scene.ask("h1").refusals[0]
    assert refusal.issue.type is IssueType.TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS
    assert refusal.issue.blockers[0].object == "h2"


def test_a_node_without_a_ring_is_not_asked() -> None:
    scene = five()
    scene.hold("h1")
    assert scene.ask("h6").code is ALLOW


def test_nodes_of_one_ring_may_go_together() -> None:
    scene = scene_with(Ring((1, 2, 3)), Ring((4, 5, 6)))
    assert scene.ask("h1", "h2", "h3").code is ALLOW
    assert granted(scene.ask("h1", "h4", "h2", partial=True)) == ["h1", "h2"]
    assert scene.ask("h1", "h4").code is DISALLOW


def test_a_ring_is_away_when_one_of_its_nodes_is_down_or_not_known() -> None:
    down, gone = (scene_with(Ring((1,)), Ring((2, 3))) for _ in range(2))
    down.node(3, state=DOWN)
    gone.model.remove_node(3)
    assert down.ask("h1").code is TEMP
    assert gone.ask("h1").code is TEMP


def test_a_ring_cools_down_for_two_minutes_after_a_start() -> None:
    scene = five()
    scene.node(2, start_time=NOW - 120 * SECOND)
    answer = scene.ask("h1")
    assert (answer.code, answer.deadline) == (TEMP, NOW + 1)
    assert scene.ask("h1", now=NOW + 1).code is ALLOW
    assert scene.ask("h1", mode=KEEP).code is ALLOW


def test_a_ring_that_cools_down_may_itself_be_restarted_again() -> None:
    scene = five()
    scene.node(1, start_time=NOW)
    assert scene.ask("h1").code is ALLOW


def test_a_disabled_ring_is_missing_only_where_a_majority_is_counted() -> None:
    rings = [Ring((number,), disabled=number > 3) for number in range(1, 6)]
    scene = scene_with(*rings)
    assert scene.ask("h1").code is ALLOW
    assert scene.ask("h1", mode=KEEP).code is TEMP
    assert scene.ask("h4", mode=KEEP).code is ALLOW


def test_a_disabled_ring_may_always_be_worked_on() -> None:
    scene = scene_with(Ring((1,), disabled=True), Ring((2,)))
    scene.hold("h2")
    assert scene.ask("h1").code is ALLOW


def test_the_deadline_is_when_the_last_node_of_enough_rings_is_free() -> None:
    scene = scene_with(Ring((1,)), Ring((2, 3)))
    scene.hold("h2", lasts=2 * MINUTE)
    scene.hold("h3", lasts=MINUTE)
    assert scene.ask("h1").deadline == NOW + 2 * MINUTE


def test_rings_can_be_moved_and_taken_away() -> None:
    scene = scene_with(Ring((1,)), Ring((2,)))
    scene.hold("h2")
    assert scene.ask("h1").code is TEMP
    scene.model.set_rings(Rings(1, (Ring((1,)), Ring((3,)))))
    assert scene.ask("h1").code is ALLOW
    scene.hold("h3")
    assert scene.ask("h1").code is TEMP
    scene.model.set_rings(None)
    assert scene.ask("h1").code is ALLOW
