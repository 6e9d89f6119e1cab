"""One that is to leave while it is used leaves as soon as nobody uses it; one that is back is not forced out."""

from __future__ import annotations

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.drbd import ReplicaType
from tests.volumes.transitions.story import Story

D, TB = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER


def test_a_removal_waits_for_its_user_to_let_go_without_having_begun() -> None:
    story = Story(Replication.AVAILABILITY, [D, D, TB])
    story.attach(0)
    story.add(3, D)
    story.settle()
    story.delete(0)
    for _ in range(6):
        story.controller()
        story.agents()
    assert story.rv.status.datamesh_transitions == ()
    assert story.waits().startswith("Attached:")
    story.attach(0, attached=False)
    assert story.shape() == "D1 TB2 D3"


def test_one_that_comes_back_while_it_is_forced_out_is_asked_to_go_instead() -> None:
    story = Story(Replication.AVAILABILITY, [D, D, TB])
    story.add(3, D)
    story.settle()
    story.lose(1)
    story.delete(1)
    story.annotate(force_remove="v-1", accept_data_loss="true")
    for _ in range(9):
        story.controller()
        if story.member(1).hidden:
            break
    [forced] = story.rv.status.datamesh_transitions
    assert forced.type is TransitionType.FORCE_REMOVE_REPLICA
    assert story.shape() == "D0 (D1) (TB2) D3"
    story.machines.hosts[1].power_on()
    story.silent.discard(1)
    story.agents()
    story.settle()
    assert story.shape() == "D0 TB2 D3"
