"""A person's word beside whatever waits for the same member: it takes over, or the volume says why not yet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.volumes.attach.turns import using

from .story import MINOR, A, D, Story
from .tales import begin
from .test_walks import until

BOTH = Replication.CONSISTENCY_AND_AVAILABILITY

#: Makes something wait for a member, which is in reach of the API or not; returns that member.
Waiting = Callable[[Story, bool], int]


def passes(story: Story, number: int = 12) -> Story:
    for _ in range(number):
        story.controller()
        story.agents()
    return story


def part(story: Story, number: int, heard: bool) -> int:
    """A member is cut off from the others; its agent is heard, or the node is off."""
    if heard:
        story.machines.cut([{number}, set(range(len(story.machines.hosts))) - {number}])
        story.agents()
    else:
        story.lose(number)
    passes(story, 4)
    return number


def hold_open(story: Story, number: int) -> None:
    assert story.machines.hosts[number].kernel.open(MINOR, "qemu", 4711)


def role(story: Story, number: int) -> str:
    shown = story.machines.status(number)
    return shown.role if shown is not None else ""


def nothing(story: Story, heard: bool) -> int:
    hold_open(story, 0)
    return part(story, 0, heard)


def detaching(story: Story, heard: bool) -> int:
    """F4: the attachment is deleted, and a process on the cut-off node waits for a write."""
    hold_open(story, 0)
    part(story, 0, heard)
    story.unask(0)
    passes(story, 4)
    return 0


def attaching(story: Story, heard: bool) -> int:
    story.attach(0, attached=False)
    story.ask(1)
    until(story, "Promote")
    return part(story, 1, heard)


def removing(story: Story, heard: bool) -> int:
    story.add(3, D)
    story.settle()
    story.delete(1)
    until(story, "Hide")
    story.lose(2)
    return part(story, 1, heard)


def adding(story: Story, heard: bool) -> int:
    story.add(3, D)
    until(story, "Connect")
    story.agents()
    return part(story, 3, heard)


def retyping(story: Story, heard: bool) -> int:
    story.add(3, D)
    story.settle()
    story.change(1, A)
    until(story, "Hide")
    story.lose(2)
    return part(story, 1, heard)


def growing(story: Story, heard: bool) -> int:
    hold_open(story, 0)
    story.ask_to_grow()
    until(story, "Resize")
    return part(story, 0, heard)


WAITS: dict[str, Waiting] = {
    each.__name__: each for each in (nothing, detaching, attaching, removing, adding, retyping, growing)
}


#: What comes of it, of a member that is heard and of one that is out of reach: it is done, or why it is not yet.
DONE = ""
EXPECTED: dict[tuple[str, str], tuple[str, str]] = {
    ("nothing", "detach"): (DONE, DONE),
    ("detaching", "detach"): (DONE, DONE),
    ("attaching", "detach"): (DONE, DONE),
    ("removing", "detach"): (DONE, DONE),
    ("adding", "detach"): (DONE, DONE),
    ("retyping", "detach"): (DONE, DONE),
    ("growing", "detach"): (DONE, DONE),
    ("nothing", "remove"): ("Attached: in use: v-0 on n0", DONE),
    ("detaching", "remove"): ("ForceWaits: nothing comes of storage.deckhouse.io/force-remove=v-0 yet: Detach", DONE),
    ("attaching", "remove"): ("ForceWaits: nothing comes of storage.deckhouse.io/force-remove=v-1 yet: Attach", DONE),
    ("removing", "remove"): ("ForceWaits: nothing comes of storage.deckhouse.io/force-remove=v-1 yet: Add", DONE),
    ("adding", "remove"): (DONE, DONE),
    ("retyping", "remove"): ("ForceWaits: nothing comes of storage.deckhouse.io/force-remove=v-1 yet: Add", DONE),
    ("growing", "remove"): ("Attached: in use: v-0 on n0", DONE),
}


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "out of reach"])
@pytest.mark.parametrize(("waits", "force"), EXPECTED)
def test_force_takes_over_whatever_waits_or_the_volume_says_why_not(waits: str, force: str, heard: bool) -> None:
    story = begin(BOTH, [D, D, D], 0)
    number = WAITS[waits](story, heard)
    if force == "detach":
        story.annotate(force_detach=f"n{number}", accept_data_loss="true")
    else:
        story.annotate(force_remove=f"v-{number}", accept_data_loss="true")
        story.delete(number)
    passes(story, 60)
    expected = EXPECTED[waits, force][not heard]
    if expected:
        assert expected in story.waits()
        assert len(story.rv.metadata.annotations) == 2
        return
    assert story.rv.metadata.annotations == {}
    if force == "remove":
        assert f"v-{number}" not in [member.name for member in story.members]
    elif number in [member.node_id for member in story.members]:
        assert not story.member(number).attached or number in asked_again(story)
        assert role(story, number) != "Primary"


def asked_again(story: Story) -> list[int]:
    return [int(each.node_name[1:]) for each in story.rv.status.attach_requests]


def forced(story: Story) -> int:
    return sum(written.step.startswith(TransitionType.FORCE_DETACH.value) for written in story.written)


def test_who_is_demoted_by_force_uses_the_volume_until_it_says_that_it_does_not() -> None:
    """F4, to its end: the volume is used elsewhere as soon as the cut-off user is Secondary, and not before."""
    story = begin(BOTH, [D, D, D], 0)
    detaching(story, True)
    story.ask(1)
    story.annotate(force_detach="n0", accept_data_loss="true")
    for _ in range(6):
        story.controller()
        story.agents(only={1, 2})
    assert role(story, 0) == "Primary"
    assert [member.name for member in using(story.view())] == ["v-0"]
    assert not story.member(1).attached
    assert "Detaching: v-0 on n0 is still Primary, and is demoted by force" in story.waits()
    passes(story)
    shown = story.machines.status(0)
    assert shown is not None
    assert (shown.role, shown.force_io_failures) == ("Secondary", True)
    assert role(story, 1) == "Primary"
    assert story.rv.metadata.annotations == {}
    assert not story.member(0).force_secondary
    assert forced(story) == 1


def test_one_that_was_out_of_reach_is_demoted_by_force_when_it_is_back() -> None:
    story = begin(BOTH, [D, D, D], 0)
    hold_open(story, 0)
    story.lose(0, alive=True)
    story.annotate(force_detach="n0", accept_data_loss="true")
    story.unask(0)
    passes(story)
    assert story.rv.metadata.annotations == {}
    assert story.member(0).force_secondary
    assert role(story, 0) == "Primary"
    story.silent.clear()
    story.agents()
    assert role(story, 0) == "Secondary"
    story.machines.world.set_cut([])
    story.machines.wait(20)
    passes(story)
    assert not story.member(0).force_secondary
    assert story.shape() == "D0 D1 D2"


@pytest.mark.parametrize("asked", [True, False], ids=["asked for again", "not asked for"])
def test_who_is_spared_when_the_word_is_taken_back_is_asked_to_let_go(asked: bool) -> None:
    story = begin(BOTH, [D, D, D], 0)
    detaching(story, True)
    story.annotate(force_detach="n0", accept_data_loss="true")
    for _ in range(4):
        story.controller()
        story.agents(only={1, 2})
    assert story.member(0).force_secondary
    story.annotate()
    if asked:
        story.ask(0)
    passes(story)
    assert not story.member(0).force_secondary
    assert role(story, 0) == "Primary"
    story.machines.hosts[0].kernel.close(MINOR, 4711)
    story.machines.world.set_cut([])
    story.machines.wait(20)
    passes(story)
    assert role(story, 0) == ("Primary" if asked else "Secondary")
    assert story.rv.status.datamesh_transitions == ()


def test_a_node_that_is_still_asked_for_is_forced_once_and_promoted_again_when_its_device_is_closed() -> None:
    story = begin(BOTH, [D, D, D], 0)
    hold_open(story, 0)
    story.annotate(force_detach="n0", accept_data_loss="true")
    passes(story)
    assert forced(story) == 1
    assert story.rv.metadata.annotations == {}
    assert role(story, 0) == "Secondary"
    story.machines.hosts[0].kernel.close(MINOR, 4711)
    passes(story)
    assert role(story, 0) == "Primary"


@pytest.mark.parametrize("number", [0, 1], ids=["older", "younger"])
def test_one_of_two_primaries_is_forced_and_the_other_goes_on(number: int) -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.attach(1)
    hold_open(story, number)
    story.unask(number)
    passes(story, 4)
    assert role(story, number) == "Primary"
    story.annotate(force_detach=f"n{number}", accept_data_loss="true")
    story.settle()
    assert [role(story, each) for each in (number, 1 - number)] == ["Secondary", "Primary"]
    assert story.rv.metadata.annotations == {}


def test_a_user_without_a_disk_is_forced() -> None:
    story = begin(Replication.CONSISTENCY, [D, D, A], 2)
    hold_open(story, 2)
    story.unask(2)
    part(story, 2, heard=True)
    story.ask(0)
    story.annotate(force_detach="n2", accept_data_loss="true")
    passes(story)
    assert role(story, 2) == "Secondary"
    assert role(story, 0) == "Primary"


def test_a_word_for_a_node_that_does_not_use_the_volume_does_not_stay() -> None:
    story = begin(BOTH, [D, D, D], 0)
    story.annotate(force_detach="n1", accept_data_loss="true")
    passes(story, 2)
    assert story.rv.metadata.annotations == {}
    assert story.member(0).attached
    assert forced(story) == 0
