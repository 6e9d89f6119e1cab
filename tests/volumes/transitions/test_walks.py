"""Which steps each change of members goes through, and what may stand in its way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quorate.api.meta import NodeName
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import StepStatus, TransitionGroup
from quorate.api.struct import replace
from quorate.volumes.transitions import advance, synchronizing_member, unconfirmed_vote_step, walking
from quorate.volumes.waits import Wait

from .proof import Has, Mix, applied_cut_cut, quorate_sides
from .story import TB, A, D, Story
from .tales import TALES, begin

AVAILABILITY, BOTH = Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY
CONSISTENCY = Replication.CONSISTENCY

ADD = "Join Connect Show"
ADD_BESIDE_TIE_BREAKER = "Join Connect HideTieBreaker Show"
REMOVE = "Hide TakeDown Forget Settle"

WALKS = {
    "1D moves": (f"Promote {ADD} Demote {REMOVE}", "D1"),
    "2D moves": (f"Promote {ADD} {REMOVE}", "D0 D2"),
    "3D moves": (f"Promote {ADD} {REMOVE}", "D0 D2 D3"),
    "2D+1TB moves": (f"Promote {ADD_BESIDE_TIE_BREAKER} Hide TakeDown Forget ShowTieBreaker", "D0 TB2 D3"),
    "2D+1TB loses a copy": (f"Promote {ADD_BESIDE_TIE_BREAKER} Hide TakeDown Forget ShowTieBreaker", "D0 TB2 D3"),
    "3D loses a copy": (f"Promote {ADD} {REMOVE}", "D0 D2 D3"),
    "a tie-breaker moves": ("Promote Join Connect Hide TakeDown Forget ShowTieBreaker", "D0 D1 TB3"),
    "a tie-breaker is lost": ("Promote Join Connect Hide TakeDown Forget ShowTieBreaker", "D0 D1 TB3"),
    "3D and a node goes": (f"Promote Hide Forget Settle {ADD}", "D0 D2 D3"),
    "2D+1TB and a node goes": (
        "Promote HideTieBreaker Hide Forget ShowTieBreaker Join Connect Show ShowTieBreaker",
        "D0 TB2 D3",
    ),
    "2D+1TB and the tie-breaker's node goes": (
        "Promote Hide Forget ShowTieBreaker Join Connect ShowTieBreaker",
        "D0 D1 TB3",
    ),
    "3D and a copy is cut off": (f"Promote {ADD} {REMOVE}", "D0 D2 D3"),
    "3D and a copy becomes access": (f"Promote {ADD} {REMOVE} Join Connect", "D0 (A1) D2 D3"),
    "2D and access becomes a copy": ("Promote Join Connect TakeDown Forget Settle Join Connect Show", "D0 D1 D2"),
    "3D and a node returns": (f"Promote {ADD} readmission {REMOVE}", "D0 D2 D3"),
}


@pytest.mark.parametrize("title", WALKS)
def test_a_change_of_members_goes_through_its_steps(title: str) -> None:
    """Synchronize is a step without a revision: nothing is told to anybody."""
    steps, shape = WALKS[title]
    story = TALES[title](0)
    assert " ".join(written.step.rpartition("/")[2] for written in story.written) == steps
    assert story.shape() == shape
    assert story.rv.status.datamesh.forget == ()
    assert story.machines.status(story.members[0].node_id) is not None


def until(story: Story, step: str) -> None:
    """Go on until a step is under way, and nobody has applied it."""
    for _ in range(40):
        if story.controller() and story.written and story.written[-1].step.endswith(step):
            return
        story.agents()
    raise AssertionError(f"{step} never began: {story.waits()}")


def test_a_step_is_over_when_the_last_member_has_confirmed_it() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Show")
    story.agents(only={0, 1, 3})
    assert not story.controller()
    assert story.waits() == "WaitingForConfirmation: revision 5: not confirmed by v-2 on n2"
    assert story.rv.status.datamesh_transitions[0].message == "revision 5: not confirmed by v-2 on n2"
    story.agents(only={2})
    story.controller()
    assert story.rv.status.datamesh_transitions == ()


def test_a_copy_gets_no_vote_before_it_is_up_to_date_and_the_broker_is_told_meanwhile() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Connect")
    story.agents(only={0, 1, 2})
    story.controller()
    assert story.member(3).hidden
    story.agents()
    behind = story.replicas[story.member(3).name].status.drbd
    assert behind.status is not None
    device = replace(behind.status.devices[0], disk_state="Inconsistent")
    _show(story, 3, devices=(device,))
    waiting = _advanced(story)
    assert synchronizing_member(waiting) == "v-3"
    assert unconfirmed_vote_step(waiting) is None
    assert [step.name for step in waiting.status.datamesh_transitions[0].steps if step.status is StepStatus.ACTIVE] == [
        "Synchronize"
    ]


def test_only_a_step_that_changes_votes_is_shown_to_the_broker() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    seen = []
    for _ in range(12):
        story.controller()
        found = unconfirmed_vote_step(story.rv)
        seen += [found[1].name] if found is not None else []
        story.agents()
    assert set(seen) == {"Show"}


def test_a_member_whose_node_is_locked_keeps_votes_as_they_are() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    locked = Wait("Locked", "n2 may be restarted: permission p-7")
    story.locks = lambda member: locked if member.node_name == "n2" else None
    for _ in range(8):
        story.controller()
        story.agents()
    assert story.shape() == "D0 D1 D2 (D3)"
    assert story.waits() == "Locked: n2 may be restarted: permission p-7"
    story.not_ready.add(2)
    lost = advance(story.view(), story.now + timedelta(hours=1), story.locks)
    assert lost is not None
    assert lost.status is not None, "a replacement may join while the lock is that of a lost node"


def test_votes_change_in_one_transition_at_a_time_and_others_wait_for_it() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.add(4, D)
    for _ in range(40):
        story.controller()
        voting = [
            each
            for each in story.rv.status.datamesh_transitions
            if any(step.name == "Show" and step.status is StepStatus.ACTIVE for step in each.steps)
        ]
        assert len(voting) <= 1
        story.agents()
    assert story.shape() == "D0 D1 D2 D3 D4"


def test_an_access_replica_joins_while_a_copy_waits_for_its_vote() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.locks = lambda member: Wait("Locked", "n2 may be restarted") if member.node_id == 2 else None
    story.add(3, D)
    for _ in range(6):
        story.controller()
        story.agents()
    story.add(4, A)
    story.controller()
    groups = [each.group for each in story.rv.status.datamesh_transitions]
    assert groups == [TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.NON_VOTING_MEMBERSHIP]
    story.agents()
    story.controller()
    story.agents()
    story.controller()
    assert story.shape() == "D0 D1 D2 (D3) (A4)"


def test_a_copy_is_not_given_up_before_the_promised_ones_are_up_to_date_without_it() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.delete(1)
    story.controller()
    assert (
        story.waits() == "CopiesMissing: 2 of 3 promised copies are up to date without v-1 on n1: v-0 on n0, v-2 on n2"
    )
    assert story.shape() == "D0 D1 D2"


def cut_off_beside_a_tie_breaker() -> Story:
    story = begin(AVAILABILITY, [D, D, TB], 0)
    story.machines.cut([{1}, {0, 2, 3, 4}])
    story.add(3, D)
    for _ in range(8):
        story.controller()
        story.agents()
    return story


def test_no_vote_changes_while_quorum_is_held_by_tie_break_against_a_member_that_is_up() -> None:
    """Decision 0004. It would join hands with the new copy before the one that serves has heard of it."""
    story = cut_off_beside_a_tie_breaker()
    assert story.shape() == "D0 D1 TB2 (D3)"
    told = "Divided: quorum is with v-0 on n0 by tie-break only, while v-1 on n1 is up without it"
    ways = "mend the link, or give up a side by naming the one to keep (quorate volume keep v n0)"
    assert story.waits() == f"{told}: {ways}"
    story.machines.world.set_cut([])
    story.machines.wait(30)
    story.agents()
    story.settle()
    assert story.shape() == "D0 D1 (TB2) D3"


def test_a_vote_that_changes_while_the_voters_are_divided_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the guard is for: without it the kernel's model finds two sides that are quorate."""
    monkeypatch.setattr(walking, "divided", lambda view: None)
    story = cut_off_beside_a_tie_breaker()
    show = next(written for written in story.written if written.step == "AddReplica/Show")
    told = Mix({0: Has.NOTHING, 1: Has.ALL, 2: Has.NOTHING, 3: Has.ALL})
    first, second = (frozenset({1, 3}), frozenset({0, 2})), (frozenset({1, 2, 3}), frozenset({0}))
    assert len(quorate_sides(applied_cut_cut(show, told, first, second))) == 2


def test_one_that_falls_silent_after_it_went_down_is_forgotten_all_the_same() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.delete(1)
    until(story, "TakeDown")
    story.agents()
    story.lose(1)
    story.settle()
    assert story.shape() == "D0 D2 D3"


def test_a_member_that_is_in_use_is_not_removed() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.delete(0)
    story.controller()
    assert story.waits() == "Attached: in use: v-0 on n0 (by publishOn)"


def test_a_tie_breaker_that_is_needed_goes_only_when_another_is_ready() -> None:
    story = begin(AVAILABILITY, [D, D, TB], 0)
    story.delete(2)
    story.controller()
    assert story.waits() == "TieBreakerNeeded: nobody is ready to take the place of v-2 on n2"


def test_two_members_on_one_node_are_refused() -> None:
    story = begin(CONSISTENCY, [D, D], 0)
    story.add(2, D)
    found = story.replicas[name := next(reversed(story.replicas))]
    story.replicas[name] = replace(found, spec=replace(found.spec, node_name=NodeName("n1")))
    story.controller()
    assert story.waits() == "NodeTaken: there is v-1 on n1 already"


def _show(story: Story, number: int, **changes: object) -> None:
    name = next(name for name in story.replicas if name.endswith(f"-{number}"))
    found = story.replicas[name]
    assert found.status.drbd.status is not None
    drbd = replace(found.status.drbd, status=replace(found.status.drbd.status, **changes))
    story.replicas[name] = replace(found, status=replace(found.status, drbd=drbd))


def _advanced(story: Story) -> ReplicatedVolume:
    asked = advance(story.view(), story.now)
    assert asked is not None
    return replace(story.rv, status=asked.status) if asked.status is not None else story.rv
