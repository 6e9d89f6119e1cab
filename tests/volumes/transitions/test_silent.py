"""One agent is silent while its kernel runs on: the volume is used and let go of meanwhile (M23, decision 0005)."""

from __future__ import annotations

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType

from .story import TB, D, Story
from .tales import begin
from .test_walks import until

AVAILABILITY, BOTH = Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY
LAYOUTS = [pytest.param(AVAILABILITY, [D, D, TB], id="2D+1TB"), pytest.param(BOTH, [D, D, D], id="3D")]


def primaries(story: Story) -> list[int]:
    return [number for number, status in story.machines.statuses().items() if status.role == "Primary"]


@pytest.mark.parametrize("silent", [1, 2])
@pytest.mark.parametrize(("level", "kinds"), LAYOUTS)
def test_a_node_gets_the_volume_and_lets_go_of_it_while_anothers_agent_is_silent(
    level: Replication, kinds: list[ReplicaType], silent: int
) -> None:
    story = begin(level, kinds, None)
    story.silent.add(silent)
    story.attach(0)
    assert primaries(story) == [0]
    story.attach(0, attached=False)
    assert primaries(story) == []
    assert not any(member.excused for member in story.members), "it is in touch with everybody"


@pytest.mark.parametrize(("level", "kinds"), LAYOUTS)
def test_a_copy_takes_over_from_a_lost_user_while_the_third_members_agent_is_silent(
    level: Replication, kinds: list[ReplicaType]
) -> None:
    story = begin(level, kinds, 0)
    story.silent.add(2)
    story.lose(0)
    story.attach(0, attached=False)
    story.attach(1)
    assert primaries(story) == [1]


@pytest.mark.parametrize(("level", "kinds"), LAYOUTS)
def test_a_user_that_is_lost_while_it_lets_go_is_waited_for_no_longer(
    level: Replication, kinds: list[ReplicaType]
) -> None:
    story = begin(level, kinds, 0)
    story.silent.add(2)
    story.unask(0)
    until(story, "Demote")
    story.lose(0)
    story.settle()
    story.attach(1)
    assert primaries(story) == [1]


@pytest.mark.parametrize("consent", [False, True], ids=["of itself", "by a person's word"])
@pytest.mark.parametrize(("level", "kinds"), LAYOUTS)
def test_nobody_takes_over_while_a_silent_member_may_still_be_in_touch_with_the_user(
    level: Replication, kinds: list[ReplicaType], consent: bool
) -> None:
    """Only the link between the two is cut: the copy that lost the user is Outdated, and the kernel refuses it too."""
    story = begin(level, kinds, 0)
    story.silent |= {0, 2}
    story.machines.world.set_cut([("n0", "n1")])
    story.machines.wait(20)
    story.agents()
    if consent:
        story.annotate(force_detach="n0", accept_data_loss="true")
    story.unask(0)
    story.ask(1)
    for _ in range(6):
        story.controller()
        story.agents()
    assert story.member(0).attached is not consent
    assert primaries(story) == [0]
    if not consent:
        assert story.waits().startswith(("CopiesMissing:", "NoQuorum:"))


def test_a_user_whose_agent_is_silent_keeps_the_volume_while_it_is_connected() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.silent.add(0)
    story.attach(0, attached=False)
    story.ask(1)
    story.controller()
    assert "StillConnected: v-0 on n0 is silent, yet connected with v-1 on n1, v-2 on n2" in story.waits()
    assert primaries(story) == [0]


def test_a_lost_user_keeps_the_volume_where_the_rest_of_it_has_no_quorum() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.lose(2)
    story.lose(0)
    story.attach(0, attached=False)
    assert story.member(0).attached
    assert story.waits().startswith("NoQuorum:")
