"""Whom a step does not wait for: the rule of 02, and decision 0004 for a tie-breaker that is away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.volumes.transitions import advance
from quorate.volumes.transitions.rules import SLOWNESS

from .story import START, TB, D, Story
from .tales import begin
from .test_walks import until

NONE, CONSISTENCY = Replication.NONE, Replication.CONSISTENCY
AVAILABILITY, BOTH = Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY

#: Layout, who is lost, and the reason for which a step waits; "": it goes on without them.
RULE: dict[str, tuple[Replication, list[ReplicaType], tuple[int, ...], str]] = {
    "3D, a copy": (BOTH, [D, D, D], (2,), ""),
    "3D, two copies": (BOTH, [D, D, D], (1, 2), "NoQuorum"),
    "2D, a copy": (CONSISTENCY, [D, D], (1,), "NoQuorum"),
    "2D+1TB, a copy": (AVAILABILITY, [D, D, TB], (1,), ""),
    "2D+1TB, the tie-breaker": (AVAILABILITY, [D, D, TB], (2,), ""),
    "2D+1TB, a copy, then the tie-breaker": (AVAILABILITY, [D, D, TB], (1, 2), "TieBreakerAway"),
    "2D+1TB, the tie-breaker, then a copy": (AVAILABILITY, [D, D, TB], (2, 1), "NoQuorum"),
}


@pytest.mark.parametrize("case", RULE)
@pytest.mark.parametrize("alive", [False, True], ids=["without power", "out of reach"])
def test_who_is_away_is_excused_only_while_the_rest_is_a_volume_by_itself(case: str, alive: bool) -> None:
    level, kinds, lost, reason = RULE[case]
    story = begin(level, kinds, 0)
    _lose(story, lost, alive=alive)
    story.add(len(kinds), D)
    story.controller()
    excused = {each.node_id for each in story.members if each.excused}
    if reason:
        assert story.waits().startswith(f"{reason}:")
        assert not excused
        assert story.rv.status.datamesh_transitions == ()
    else:
        assert excused == set(lost)
        assert [each.type.value for each in story.rv.status.datamesh_transitions] == ["AddReplica"]


def test_a_silent_member_that_is_still_connected_is_not_excused() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.silent.add(2)
    story.add(3, D)
    story.controller()
    silent = "v-2 on n2 is silent, yet connected with v-0 on n0, v-1 on n1"
    assert story.waits() == f"StillConnected: {silent}: its agent is brought back, or n2 switched off"


def test_where_the_rest_is_no_volume_it_is_said_that_a_person_can_give_the_member_up() -> None:
    story = begin(CONSISTENCY, [D, D], 0)
    story.lose(1)
    story.add(2, D)
    story.controller()
    assert story.waits().startswith("NoQuorum: the members that are here have no quorum without v-1 on n1; ")
    assert "given up by a person's word (force-remove, force-detach)" in story.waits()


def test_one_that_falls_silent_in_the_middle_of_a_step_is_excused_in_one_more_revision() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Show")
    revision = story.rv.status.datamesh_revision
    story.lose(2)
    story.agents()
    assert story.controller()
    assert story.rv.status.datamesh_revision == revision + 1
    assert story.member(2).excused
    assert story.rv.status.datamesh_transitions[0].steps[-1].datamesh_revision == revision + 1
    story.settle()
    assert story.shape() == "D0 D1 D2 D3"


def test_the_others_have_no_link_to_an_excused_member_until_it_has_reported_the_current_revision() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.lose(2, alive=True)
    story.add(3, D)
    story.settle()
    assert not _links(story, 0) & {2}
    story.machines.world.set_cut([])
    story.machines.wait(20)
    story.silent.clear()
    story.report()
    assert not story.controller(), "it is back, and still has its old file"
    assert not _links(story, 0) & {2}
    story.agents()
    assert story.controller()
    assert not story.member(2).excused
    story.agents()
    assert _links(story, 0) == {1, 2, 3}
    assert _links(story, 2) == {0, 1, 3}


def test_whoever_was_asleep_forgets_before_it_is_taken_back() -> None:
    """A removal that one member slept through is not over for it: the id is not free before."""
    story = begin(BOTH, [D, D, D], 0)
    for number in (3, 4):
        story.add(number, D)
    story.settle()
    story.lose(2, alive=True)
    story.delete(1)
    story.settle()
    assert story.shape() == "D0 D2 D3 D4"
    assert list(story.rv.status.datamesh.forget) == [1]
    story.machines.world.set_cut([])
    story.silent.clear()
    story.agents()
    assert story.replicas[story.member(2).name].status.drbd.config.forget == (1,)
    story.settle()
    assert not story.rv.status.datamesh.forget
    assert not story.member(2).excused


def test_one_that_falls_silent_while_it_joins_is_forgotten_and_joins_again() -> None:
    """Taken out of their files only, it would count: a link is what hides it."""
    story = begin(AVAILABILITY, [D, D, TB], 0)
    story.add(3, D)
    until(story, "Connect")
    story.agents()
    story.lose(3)
    story.add(4, TB)
    story.settle()
    assert story.shape() == "D0 D1 TB2 (TB4)"
    assert not any(each.excused for each in story.members)
    story.silent.clear()
    story.machines.hosts[3].power_on()
    story.machines.wipe(3)
    story.agents()
    story.settle()
    assert "D3" in story.shape()


def test_one_that_is_not_up_is_waited_for_as_long_as_coming_up_takes_and_looked_for_then() -> None:
    """Nothing else may happen by then: the pass says itself when the next one is due."""
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Show")
    started = story.now
    story.machines.run(2, "drbdsetup", "down", "v")
    story.agents(only=(0, 1, 3))
    assert not story.controller()
    asked = advance(story.view(), story.now)
    assert asked is not None
    assert asked.again is not None
    assert asked.again == pytest.approx(SLOWNESS - (story.now - started).total_seconds())
    story.machines.wait(asked.again)
    assert story.controller()
    assert story.member(2).excused


def test_a_replica_that_is_still_to_join_is_looked_at_when_the_grace_of_its_node_ends() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.silent.add(3)
    story.not_ready.add(3)
    now = START - timedelta(hours=1) + timedelta(seconds=1)
    asked = advance(story.view(), now)
    assert asked is not None
    assert asked.again is not None


@pytest.mark.parametrize(("level", "kinds"), [(BOTH, [D, D, D]), (AVAILABILITY, [D, D, TB])])
def test_a_copy_that_is_up_alone_and_can_do_nothing_is_excused_and_replaced(
    level: Replication, kinds: list[ReplicaType]
) -> None:
    """Also where quorum is held by tie-break: once it is in nobody's file, nobody can be with it."""
    story = begin(level, kinds, 0)
    story.stick(1)
    story.add(3, D)
    story.settle()
    assert story.member(1).excused
    story.delete(1)
    story.settle()
    assert story.shape() == ("D0 D2 D3" if level is BOTH else "D0 TB2 D3")


def test_one_that_is_slow_and_complains_of_nothing_is_given_time() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Show")
    story.machines.cut([{2}, {0, 1, 3, 4}])
    story.agents(only=(0, 1, 3))
    assert not story.controller()
    story.machines.wait(SLOWNESS)
    assert story.controller()
    assert story.member(2).excused


def test_a_persons_word_about_one_copy_excuses_no_other_that_is_up() -> None:
    """2D: the survivor has no quorum and no link either, and must be told."""
    story = begin(CONSISTENCY, [D, D], 0)
    story.lose(1)
    story.stuck.add(0)
    story.annotate(force_remove="v-1", accept_data_loss="true")
    story.delete(1)
    for _ in range(5):
        story.controller()
        story.agents()
    assert not story.member(0).excused
    story.stuck.clear()
    story.agents()
    story.settle()
    assert story.shape() == "D0"


def test_a_word_about_a_replica_that_there_is_not_does_not_stay() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.annotate(force_remove="v-9", accept_data_loss="true")
    story.controller()
    assert story.rv.metadata.annotations == {}


def _lose(story: Story, numbers: tuple[int, ...], *, alive: bool) -> None:
    if not alive:
        for number in numbers:
            story.lose(number)
        return
    everybody = set(range(len(story.machines.hosts)))
    for number in numbers:
        story.silent.add(number)
        story.machines.cut([*({each} for each in story.silent), everybody - story.silent])
        story.machines.wait(8)
    story.agents()


def _links(story: Story, number: int) -> set[int]:
    status = story.machines.status(number)
    assert status is not None
    return {link.peer_node_id for link in status.connections if link.connection_state == "Connected"}
