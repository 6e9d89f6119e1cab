"""A volume whose status was restored from a backup: what its members said of a later one confirms nothing."""

from __future__ import annotations

from quorate.api.storage.configuration import Replication
from quorate.api.struct import replace
from quorate.volumes.transitions import advance

from .story import D
from .tales import begin


def test_no_step_is_taken_before_the_members_show_the_restored_revision() -> None:
    story = begin(Replication.CONSISTENCY_AND_AVAILABILITY, [D, D, D], 0)
    backup = story.rv.status
    story.add(3, D)
    story.settle()
    story.delete(3)
    story.settle()
    lost = story.rv.status.datamesh_revision - backup.datamesh_revision
    assert lost > 2
    story.rv = replace(story.rv, status=backup)
    story.add(4, D)
    for _ in range(3):
        assert not story.controller()
    asked = advance(story.view(), story.now)
    assert asked is not None
    assert [wait.reason for wait in asked.waits] == ["LaterRevisionShown"]
    story.agents()
    story.settle()
    assert story.shape() == "D0 D1 D2 D4"
