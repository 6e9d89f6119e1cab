"""Patience ends, whatever clock wrote down when it began."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.storage.configuration import Replication
from quorate.volumes.patience import left_of
from quorate.volumes.settling import SETTLING, young
from quorate.volumes.transitions import advance

from .transitions.story import START, D
from .transitions.tales import begin
from .transitions.test_walks import until


@pytest.mark.parametrize(
    ("passed", "left"), [(0.0, 60.0), (59.0, 1.0), (60.0, 0.0), (3600.0, 0.0), (-2.0, 60.0), (-3600.0, 0.0)]
)
def test_what_is_left_of_a_patience_is_never_more_than_all_of_it(passed: float, left: float) -> None:
    assert left_of(60.0, START, START + timedelta(seconds=passed)) == left


@given(ahead=st.floats(-1e6, 1e6), patience=st.floats(1.0, 600.0))
def test_a_patience_is_over_after_twice_its_length_whatever_the_clock_was(ahead: float, patience: float) -> None:
    since = START + timedelta(seconds=ahead)
    assert any(left_of(patience, since, START + timedelta(seconds=after)) == 0.0 for after in (0.0, 2 * patience + 1))


def test_a_phase_that_began_in_an_hour_is_described_at_once() -> None:
    assert young(START + timedelta(hours=1), START) is None
    assert young(START + timedelta(seconds=1), START) == SETTLING


def test_a_member_that_does_not_come_up_is_excused_though_the_last_leaders_clock_was_an_hour_ahead() -> None:
    story = begin(Replication.CONSISTENCY_AND_AVAILABILITY, [D, D, D], 0)
    story.add(3, D)
    until(story, "Show")
    story.machines.run(2, "drbdsetup", "down", "v")
    story.agents(only=(0, 1, 3))
    asked = advance(story.view(), story.now - timedelta(hours=1))
    assert asked is not None
    assert asked.status is not None
    assert [each.node_id for each in asked.status.datamesh.members if each.excused] == [2]
