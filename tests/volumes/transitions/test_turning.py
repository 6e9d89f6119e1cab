"""Transitions that are turned back, and force."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import StepStatus, TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.api.struct import replace
from quorate.volumes.transitions.guards import may_give_way
from quorate.volumes.transitions.making import make
from quorate.volumes.transitions.proposals import proposals
from quorate.volumes.transitions.turning import turned
from quorate.volumes.waits import Wait

from .proof import quorate_sides
from .story import TB, D, Story
from .tales import begin, side_kept
from .test_walks import until

CONSISTENCY = Replication.CONSISTENCY
AVAILABILITY, BOTH = Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY


@pytest.mark.parametrize("step", ["Join", "Connect", "HideTieBreaker"])
def test_one_that_is_deleted_while_it_joins_leaves_and_the_tie_breaker_is_shown(step: str) -> None:
    story = begin(AVAILABILITY, [D, D, TB], 0)
    story.add(3, D)
    until(story, step)
    story.delete(3)
    story.agents()
    story.settle()
    assert story.shape() == "D0 D1 TB2"
    assert story.rv.status.datamesh.forget == ()


def test_one_that_has_its_vote_is_not_turned_back_but_removed_afterwards() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Show")
    story.delete(3)
    story.agents()
    story.settle()
    steps = [written.step for written in story.written]
    assert steps.index("AddReplica/Show") < steps.index("RemoveReplica/Hide")
    assert story.shape() == "D0 D1 D2"


def test_the_tie_breaker_is_shown_again_when_the_new_copy_goes_away_before_it_has_a_vote() -> None:
    story = begin(AVAILABILITY, [D, D, TB], 0)
    story.add(3, D)
    until(story, "HideTieBreaker")
    story.agents()
    story.lose(3)
    for _ in range(12):
        story.controller()
        story.agents()
    assert story.shape() == "D0 D1 TB2"


def test_one_that_was_to_go_comes_back_when_another_copy_is_lost_meanwhile() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.delete(1)
    until(story, "TakeDown")
    story.agents()
    story.lose(2)
    for _ in range(20):
        story.controller()
        story.agents()
    assert story.shape() == "D0 D1 D2 D3"
    assert "D1" in story.shape()
    assert story.machines.status(1) is not None
    assert quorate_sides(story.machines) == [{0, 1, 3}]


def test_one_that_is_to_go_does_not_come_back_because_another_cannot_be_excused() -> None:
    """It would be turned back again at once, and so on for ever: the same reason, but not the subject's copies."""
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.delete(1)
    until(story, "TakeDown")
    story.agents()
    view = story.view()
    (under_way,) = view.volume.status.datamesh_transitions
    done = {"Hide", "TakeDown"}
    steps = tuple(
        replace(step, status=StepStatus.COMPLETED if step.name in done else StepStatus.PENDING)
        for step in under_way.steps
    )
    waiting = replace(under_way, steps=steps)
    assert turned(view, waiting, Wait("CopiesMissing", "1 of 2 promised copies are here"), story.now) is None


# Force.


def test_force_is_automatic_where_a_node_is_gone_and_the_rest_is_a_volume_by_itself() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.lose(1)
    story.gone.add(1)
    story.delete(1)
    story.settle()
    assert story.shape() == "D0 D2"
    assert {written.step.partition("/")[0] for written in story.written[1:]} == {"ForceRemoveReplica"}


def test_force_without_consent_waits_where_the_rest_has_no_quorum() -> None:
    story = begin(CONSISTENCY, [D, D], 0)
    story.lose(1)
    story.gone.add(1)
    story.delete(1)
    story.controller()
    assert story.waits().startswith("NoQuorum:")
    assert story.shape() == "D0 D1"


def consenting(replica: str) -> Story:
    story = begin(CONSISTENCY, [D, D], 0, obedient=True)
    story.lose(1)
    story.annotate(force_remove=replica, accept_data_loss="true")
    return story


def test_a_person_who_accepts_data_loss_gets_a_lost_copy_removed_and_the_annotations_go() -> None:
    story = consenting("v-1")
    for _ in range(16):
        story.controller()
        story.agents()
    assert story.shape() == "D0"
    assert story.rv.metadata.annotations == {}
    assert story.rv.status.drbd.config.quorum_minimum_redundancy == 1
    assert [each for each, found in story.replicas.items() if found.deleting] == ["v-1"]


def test_redundancy_is_raised_again_when_the_copies_are_up_to_date() -> None:
    story = consenting("v-1")
    for _ in range(16):
        story.controller()
        story.agents()
    story.add(2, D)
    story.settle()
    assert story.shape() == "D0 D2"
    assert story.rv.status.drbd.config.quorum_minimum_redundancy == 2
    raised = [written.step for written in story.written]
    assert raised.index("ChangeQuorum/SetRedundancy") > raised.index("AddReplica/Show")


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"force_remove": "v-1"}, "ConsentMissing: nothing comes of storage.deckhouse.io/force-remove=v-1: annotate"),
        ({"force_remove": "v-1", "accept_data_loss": "yes"}, "ConsentMissing: nothing comes of "),
        ({"force_detach": "n1"}, "ConsentMissing: nothing comes of storage.deckhouse.io/force-detach=n1: annotate"),
        ({"compare_with": "v-1"}, "ConsentMissing: nothing comes of storage.deckhouse.io/compare-with=v-1: annotate"),
        ({"accept_data_loss": "true"}, ""),
    ],
)
def test_half_a_consent_is_none_and_it_is_said_what_is_missing(annotations: dict[str, str], said: str) -> None:
    story = begin(CONSISTENCY, [D, D], 0, obedient=True)
    story.lose(1)
    story.annotate(**annotations)
    for _ in range(4):
        story.controller()
        story.agents()
    assert story.shape() == "D0 D1"
    assert story.rv.metadata.annotations
    assert story.waits().startswith(said)


def test_a_member_that_is_here_is_not_removed_by_force_but_like_any_other() -> None:
    story = begin(BOTH, [D, D, D], 0, obedient=True)
    story.annotate(force_remove="v-1", accept_data_loss="true")
    for _ in range(4):
        story.controller()
        story.agents()
    assert story.shape() == "D0 D1 D2"
    assert story.waits().startswith("CopiesMissing: 2 of 3 promised copies are up to date without v-1 on n1")
    story.add(3, D)
    story.settle()
    assert story.shape() == "D0 D2 D3"
    assert story.rv.metadata.annotations == {}
    assert not any(written.step.startswith("ForceRemove") for written in story.written)


def test_the_last_copy_is_removed_by_nobody() -> None:
    story = begin(Replication.NONE, [D], 0, obedient=True)
    story.lose(0)
    story.annotate(force_remove="v-0", accept_data_loss="true")
    for _ in range(4):
        story.controller()
    assert story.waits() == "LastCopy: v-0 on n0 is the last copy that has a vote"
    assert story.shape() == "D0"


def successor_ready() -> Story:
    """1D: another copy is good, and has no vote yet."""
    story = begin(Replication.NONE, [D], None)
    story.add(1, D)
    for _ in range(2):
        story.controller()
        story.agents()
    assert story.shape() == "D0 (D1)"
    return story


@pytest.mark.parametrize("is_here", [True, False], ids=["its disk is lost", "its node is off"])
def test_the_last_vote_is_handed_over_by_a_persons_word_and_not_before(is_here: bool) -> None:
    """The data are on the other copy. It is said that this is the way, and what it takes."""
    story = successor_ready()
    if is_here:
        story.machines.lose_disk(0)
        story.agents()
    else:
        story.lose(0)
    for _ in range(4):
        story.controller()
        story.agents()
    assert story.shape() == "D0 (D1)"
    assert "given up by a person's word (force-remove" in story.waits()
    if is_here:
        assert "v-1 on n1 is up to date, and gets a vote when v-0 on n0 is back" in story.waits()
    story.annotate(force_remove="v-0", accept_data_loss="true")
    story.delete(0)
    story.settle()
    assert story.shape() == "D1"
    # One that stands still counts anew when its agent has it do so, and there is none here (``test_handed_over``).
    assert story.machines.statuses()[1].devices[0].quorum or not is_here
    taken_down = [written.step for written in story.written if written.step == "ForceRemoveReplica/GiveWay"]
    assert len(taken_down) == is_here


def test_one_that_is_given_up_while_nobody_asks_for_it_any_more_is_let_go_of_first() -> None:
    """The person's word came before the detachment began: it waits for the user, and must not be in its way."""
    story = successor_ready()
    story.machines.lose_disk(0)
    story.agents()
    story.report()
    members = story.rv.status.datamesh.members
    used = tuple(replace(each, attached=each.name == "v-0") for each in members)
    status = replace(story.rv.status, datamesh=replace(story.rv.status.datamesh, members=used))
    story.rv = replace(story.rv, status=status)
    story.delete(0)
    story.annotate(force_remove="v-0", accept_data_loss="true")
    proposed = {each.type for each in proposals(story.view(), story.now) if each.replica_name == "v-0"}
    assert proposed >= {TransitionType.FORCE_REMOVE_REPLICA, TransitionType.DETACH}


def test_a_last_copy_that_serves_again_is_not_given_up() -> None:
    story = successor_ready()
    story.annotate(force_remove="v-0", accept_data_loss="true")
    story.delete(0)
    story.settle()
    assert not any("ForceRemove" in written.step for written in story.written)
    assert story.shape() == "D1"


def test_a_lost_user_is_detached_by_force_when_nobody_asks_for_it_and_the_rest_serves() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.lose(0)
    story.controller()
    assert story.member(0).attached, "its node is in the queue still"
    story.attach(0, attached=False)
    assert not story.member(0).attached
    assert story.member(0).excused
    forced = [written for written in story.written if written.step.startswith(TransitionType.FORCE_DETACH.value)]
    assert len(forced) == 1


def test_a_lost_user_stays_attached_where_the_rest_does_not_serve_until_a_person_says_so() -> None:
    story = begin(CONSISTENCY, [D, D], 0)
    story.lose(0)
    story.attach(0, attached=False)
    assert story.member(0).attached
    story.annotate(force_detach="n0", accept_data_loss="true")
    for _ in range(4):
        story.controller()
        story.agents()
    assert not story.member(0).attached
    assert story.rv.metadata.annotations == {}


# Force beside what waits for the same member already.


def passes(story: Story, number: int = 8) -> Story:
    for _ in range(number):
        story.controller()
        story.agents()
    return story


def detaching(story: Story) -> Story:
    """Nobody asks for the user's node any more, and it goes dark before it has heard of that."""
    story.unask(0)
    until(story, "Demote")
    story.lose(0)
    return passes(story)


def attaching(story: Story) -> Story:
    """The volume is to be used on another node, which goes dark before it is Primary."""
    story.attach(0, attached=False)
    story.ask(1)
    until(story, "Promote")
    story.lose(1)
    return passes(story)


@pytest.mark.parametrize(
    ("waiting", "under_way", "number"),
    [(detaching, TransitionType.DETACH, 0), (attaching, TransitionType.ATTACH, 1)],
)
def test_force_takes_over_what_waits_for_the_same_member(
    waiting: Callable[[Story], Story], under_way: TransitionType, number: int
) -> None:
    story = waiting(begin(CONSISTENCY, [D, D], 0))
    assert [each.type for each in story.rv.status.datamesh_transitions] == [under_way]
    story.annotate(force_detach=f"n{number}", accept_data_loss="true")
    passes(story)
    assert story.rv.status.datamesh_transitions == ()
    assert not story.member(number).attached
    assert story.rv.metadata.annotations == {}


@pytest.mark.parametrize("step", ["Hide", "Forget"])
@pytest.mark.parametrize("given_up", [(1, 2, 3), (2, 3)])
def test_what_is_under_way_when_most_are_lost_does_not_keep_them_from_being_given_up(
    step: str, given_up: tuple[int, ...]
) -> None:
    """A copy leaves, and all but one are lost in the middle of it. What is under way waits for them for ever."""
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.delete(1)
    until(story, step)
    for number in (1, 2, 3):
        story.lose(number)
    assert "NoQuorum" in passes(story).waits()
    for number in given_up:
        if number != 1:
            story.delete(number)
        story.annotate(force_remove=f"v-{number}", accept_data_loss="true")
        passes(story, 12)
        if step == "Hide" and number == 2 and len(given_up) == 2:
            # Half done, it goes on only if the one that leaves is given up as well; that is said.
            assert "it is given up first (storage.deckhouse.io/force-remove=v-1)" in story.waits()
            return
    assert [member.name for member in story.members] == ["v-0"]
    assert story.rv.status.datamesh_transitions == ()
    assert story.rv.status.drbd.config.quorum == 1


def test_whoever_is_up_is_not_passed_over_by_the_word_about_another() -> None:
    """One is given up, and another has an agent that is silent beside a kernel in touch: nothing is excused."""
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.delete(1)
    until(story, "Hide")
    story.silent.add(3)
    story.lose(1)
    story.lose(2)
    passes(story)
    story.delete(2)
    story.annotate(force_remove="v-2", accept_data_loss="true")
    passes(story, 12)
    assert not any(member.excused for member in story.members)
    assert "v-3 on n3 is silent, yet connected with v-0 on n0" in story.waits()


def test_force_that_nothing_came_of_is_forgotten_when_the_node_and_its_agent_are_back() -> None:
    """Its kernel ran on, in touch with the others. Nothing is listed that no guard has agreed to."""
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    story.settle()
    story.silent.add(1)
    story.gone.add(1)
    story.delete(1)
    story.controller()
    assert story.waits().startswith("StillConnected:")
    assert story.rv.status.datamesh_transitions == ()
    story.silent.clear()
    story.gone.clear()
    story.settle()
    assert story.shape() == "D0 D2 D3"
    assert not any("ForceRemoveReplica" in written.step for written in story.written)


def test_one_that_was_to_be_forced_out_while_it_joined_and_is_back_joins_on() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.add(3, D)
    until(story, "Connect")
    story.agents()
    story.lose(3, alive=True)
    story.controller()
    assert [each.type for each in story.rv.status.datamesh_transitions] == [TransitionType.FORCE_REMOVE_REPLICA]
    story.machines.world.set_cut([])
    story.silent.clear()
    story.agents()
    story.settle()
    assert story.shape() == "D0 D1 D2 D3"


@pytest.mark.parametrize(("given_up", "left"), [(1, "D0 TB2 D3"), (0, "D1 TB2 D3")], ids=["the cut-off", "the quorate"])
def test_a_side_of_a_divided_volume_is_given_up_by_a_persons_word(given_up: int, left: str) -> None:
    """It goes down first, by its own word; only then votes change."""
    story = side_kept(given_up)(None)
    assert story.shape() == left
    steps = [written.step for written in story.written if "ForceRemove" in written.step]
    assert steps[0] == "ForceRemoveReplica/GiveWay"
    assert "ForceRemoveReplica/Hide" in steps
    quorate = {number for number, seen in story.machines.statuses().items() if seen.devices[0].quorum}
    assert quorate == {1 - given_up, 2, 3}


def test_a_side_that_is_in_use_is_not_taken_down() -> None:
    story = begin(Replication.AVAILABILITY, [D, D, TB], 0)
    story.machines.cut([{1}, {0, 2, 3, 4}])
    story.agents()
    story.annotate(force_remove="v-0", accept_data_loss="true")
    story.delete(0)
    for _ in range(4):
        story.controller()
        story.agents()
    assert "Attached: in use: v-0 on n0" in story.waits()
    assert not story.member(0).down


@pytest.mark.parametrize("kinds", [[D, D], [D, D, TB]])
def test_a_side_does_not_give_way_without_a_persons_word_and_is_not_called_the_last_copy(
    kinds: list[ReplicaType],
) -> None:
    story = begin(AVAILABILITY if TB in kinds else CONSISTENCY, kinds, None)
    story.machines.cut([{1}, {0, 2, 3}])
    story.agents()
    view = story.view()
    forced = make(view, TransitionType.FORCE_REMOVE_REPLICA, story.now, ReplicaName("v-1"), before=D)
    wait = may_give_way(view, forced)
    assert wait is not None
    assert wait.reason == "ConsentMissing"
    assert wait.message.startswith("v-1 on n1 stands in the way of v-0 on n0: a person's word is missing")


@pytest.mark.parametrize("hidden", [False, True], ids=["with its vote", "hidden already"])
def test_a_copy_that_gave_way_comes_back_when_the_word_is_taken_back(hidden: bool) -> None:
    """The one that it gave way for is gone: what is left is a voter again, or can be made one by another word."""
    story = begin(AVAILABILITY, [D, D, TB], None)
    story.machines.cut([{1}, {0, 2, 3, 4}])
    story.agents()
    story.annotate(force_remove="v-1", accept_data_loss="true")
    story.delete(1)
    until(story, "Hide" if hidden else "GiveWay")
    if hidden:
        story.agents()
    story.lose(0)
    for _ in range(12):
        story.controller()
        story.agents()
    assert story.member(1).down
    assert story.member(1).hidden is hidden
    assert "NotUpToDate: v-1 on n1 has given way for v-0 on n0" in story.waits()
    story.annotate()
    for _ in range(12):
        story.controller()
        story.agents()
    assert not story.member(1).down
    assert story.machines.status(1) is not None
    assert quorate_sides(story.machines) == []
    story.machines.world.set_cut([])
    story.machines.wait(20)
    story.agents()
    story.annotate(force_remove="v-0", accept_data_loss="true")
    story.delete(0)
    for _ in range(30):
        story.controller()
        story.agents()
    assert [each.node_id for each in story.members if each.type is D and not each.hidden] == [1]
