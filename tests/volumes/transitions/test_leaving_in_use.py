"""A member that is to leave while it is used leaves as soon as nobody uses it, however far its removal has come."""

from __future__ import annotations

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.drbd import ReplicaType
from tests.volumes.transitions.story import Story

D, TB = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER


def test_letting_go_begins_beside_a_removal_that_waits_for_it() -> None:
    story = Story(Replication.AVAILABILITY, [D, D, TB])
    story.attach(0)
    story.add(3, D)
    story.settle()
    story.delete(0)
    for _ in range(6):
        story.controller()
        story.agents()
    [waiting] = story.rv.status.datamesh_transitions
    assert (waiting.type, waiting.reason) == (TransitionType.REMOVE_REPLICA, "Attached")
    story.attach(0, attached=False)
    assert story.shape() == "D1 TB2 D3"
