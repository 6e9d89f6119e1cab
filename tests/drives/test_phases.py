"""The state machine: the table of the design, and that only the full set of what is on a drive decides."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.annotation_keys import Replacement
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
from quorate.drives.phases import Facts, Release, Removal, next_phase

OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus
GOOD, SUSPECT, BAD, UNKNOWN = DriveHealth
WORKING, DONE, BROKEN = Release.WORKING, Release.RELEASED, Release.FAILED
READY, RESTART = Replacement.READY, Replacement.RESTART

#: From, what is so, to: one step.
TABLE = [
    # In service.
    (OPERATIVE, Facts(GOOD), OPERATIVE),
    (OPERATIVE, Facts(UNKNOWN), OPERATIVE),
    (OPERATIVE, Facts(SUSPECT), RELEASING),
    (OPERATIVE, Facts(BAD), RELEASING),
    (OPERATIVE, Facts(BAD, system=True), OPERATIVE),
    (OPERATIVE, Facts(SUSPECT, system=True), OPERATIVE),
    (OPERATIVE, Facts(BAD, leftovers=True), OPERATIVE),
    (OPERATIVE, Facts(GOOD, replacement=READY), OPERATIVE),
    (OPERATIVE, Facts(GOOD, replacement=RESTART), OPERATIVE),
    # On the way out.
    (RELEASING, Facts(BAD), RELEASED),
    (RELEASING, Facts(BAD, contents=(WORKING,)), RELEASING),
    (RELEASING, Facts(BAD, contents=(DONE, WORKING)), RELEASING),
    (RELEASING, Facts(BAD, contents=(DONE, DONE)), RELEASED),
    (RELEASING, Facts(BAD, contents=(BROKEN, WORKING)), RELEASING),
    (RELEASING, Facts(BAD, contents=(BROKEN, DONE)), FAILED),
    (RELEASING, Facts(SUSPECT, contents=(BROKEN,)), FAILED),
    # Well again.
    (RELEASING, Facts(GOOD, contents=(WORKING, WORKING)), OPERATIVE),
    (RELEASING, Facts(GOOD, contents=(WORKING, BROKEN)), OPERATIVE),
    (RELEASING, Facts(GOOD, contents=(DONE, WORKING)), RELEASING),
    (RELEASING, Facts(GOOD, contents=(DONE, DONE)), RELEASED),
    (RELEASING, Facts(UNKNOWN, contents=(WORKING,)), RELEASING),
    # A person says.
    (RELEASED, Facts(BAD), RELEASED),
    (RELEASED, Facts(GOOD), RELEASED),
    (RELEASED, Facts(BAD, replacement=READY), REMOVING),
    (RELEASED, Facts(BAD, contents=(DONE,), replacement=READY), REMOVING),
    (RELEASING, Facts(BAD, contents=(WORKING,), replacement=READY), RELEASING),
    (RELEASING, Facts(BAD, contents=(DONE,), replacement=READY), RELEASED),
    (FAILED, Facts(BAD, contents=(DONE,), replacement=READY), RELEASED),
    (FAILED, Facts(BAD, contents=(BROKEN,), replacement=READY), FAILED),
    (RELEASED, Facts(GOOD, replacement=RESTART), OPERATIVE),
    (RELEASED, Facts(BAD, replacement=RESTART), RELEASED),
    (RELEASED, Facts(UNKNOWN, replacement=RESTART), RELEASED),
    (FAILED, Facts(GOOD, contents=(BROKEN,), replacement=RESTART), OPERATIVE),
    (FAILED, Facts(BAD, contents=(BROKEN,), replacement=RESTART), FAILED),
    (FAILED, Facts(GOOD, contents=(BROKEN,)), FAILED),
    (RELEASING, Facts(BAD, contents=(WORKING,), replacement=RESTART), RELEASING),
    # Whoever failed tries again, or makes it after all.
    (FAILED, Facts(BAD, contents=(WORKING,)), RELEASING),
    (FAILED, Facts(BAD, contents=(DONE,)), RELEASED),
    (RELEASED, Facts(BAD, contents=(DONE, WORKING)), RELEASING),
    # The removal.
    (REMOVING, Facts(BAD, replacement=READY), REMOVING),
    (REMOVING, Facts(BAD, contents=(WORKING,), replacement=READY), REMOVING),
    (REMOVING, Facts(GOOD, replacement=READY, removal=Removal.UNDER_WAY), REMOVING),
    (REMOVING, Facts(BAD, replacement=READY, removal=Removal.FAILED), FAILED),
    (REMOVING, Facts(BAD, replacement=READY, removal=Removal.DONE, permitted=True), REMOVED),
    (REMOVING, Facts(BAD, replacement=READY, removal=Removal.DONE), REMOVING),
    (REMOVING, Facts(BAD, contents=(DONE,)), RELEASED),
    (REMOVING, Facts(BAD, removal=Removal.UNDER_WAY), FAILED),
    (REMOVING, Facts(BAD, removal=Removal.DONE), FAILED),
    (REMOVING, Facts(BAD, removal=Removal.DONE, permitted=True), REMOVED),
    (REMOVING, Facts(GOOD, replacement=RESTART, removal=Removal.UNDER_WAY), FAILED),
    (REMOVING, Facts(GOOD, replacement=RESTART), RELEASED),
    (FAILED, Facts(BAD, replacement=READY, removal=Removal.FAILED), FAILED),
    (FAILED, Facts(BAD, replacement=READY, removal=Removal.UNDER_WAY), REMOVING),
    (FAILED, Facts(GOOD, replacement=RESTART, removal=Removal.FAILED), OPERATIVE),
    # … and ``ready`` taken back in the middle of it: it is not as if nothing had been removed.
    (FAILED, Facts(BAD, contents=(DONE,), removal=Removal.FAILED), FAILED),
    (FAILED, Facts(BAD, removal=Removal.UNDER_WAY), FAILED),
    (FAILED, Facts(BAD, removal=Removal.DONE, permitted=True), FAILED),
    (FAILED, Facts(BAD, replacement=READY, removal=Removal.DONE), REMOVING),
    # Only a person's hand ends it.
    (REMOVED, Facts(GOOD, replacement=RESTART), REMOVED),
    (REMOVED, Facts(BAD, replacement=READY, removal=Removal.FAILED), REMOVED),
]


def settled(phase: OperationalStatus, facts: Facts) -> OperationalStatus:
    """The phase at which it comes to rest while nothing else changes."""
    seen = {phase}
    while (following := next_phase(phase, facts)) not in seen:
        seen.add(following)
        phase = following
    return phase


@pytest.mark.parametrize(("phase", "facts", "following"), TABLE)
def test_each_row_of_the_table(phase: OperationalStatus, facts: Facts, following: OperationalStatus) -> None:
    assert next_phase(phase, facts) is following


def test_every_phase_comes_to_rest_whatever_is_so() -> None:
    for health, system, replacement, removal, leftovers in product(
        DriveHealth, (False, True), (None, READY, RESTART), Removal, (False, True)
    ):
        for contents in product(Release, repeat=2):
            facts = Facts(health, system, contents, replacement, removal, leftovers=leftovers)
            for phase in OperationalStatus:
                rest = settled(phase, facts)
                assert next_phase(rest, facts) is rest


def test_nothing_is_removed_without_the_word_of_a_person() -> None:
    """M15."""
    for health, removal in product(DriveHealth, Removal):
        for contents in product(Release, repeat=2):
            for replacement in (None, RESTART):
                facts = Facts(health, contents=contents, replacement=replacement, removal=removal)
                for phase in (OPERATIVE, RELEASING, RELEASED, FAILED):
                    assert settled(phase, facts) not in (REMOVING, REMOVED)


def test_a_drive_that_the_node_runs_from_never_leaves() -> None:
    for health in DriveHealth:
        assert settled(OPERATIVE, Facts(health, system=True, replacement=READY)) is OPERATIVE


def test_every_order_in_which_volumes_finish_gives_the_same_end() -> None:
    """M15. All orders of four volumes' ends, with a pass after each, after some, or only at the end."""
    for ends in product((DONE, BROKEN), repeat=4):
        expected = FAILED if BROKEN in ends else RELEASED
        for order in permutations(range(4)):
            for seen in product((False, True), repeat=3):
                now = [WORKING] * 4
                phase = RELEASING
                for volume, look in zip(order, (*seen, True), strict=True):
                    now[volume] = ends[volume]
                    if look:
                        phase = settled(phase, Facts(BAD, contents=tuple(now)))
                assert phase is expected, (ends, order, seen)


#: A volume and how it is from now on; or a person who says ``ready``.
Happening = tuple[int, Release] | None


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Happening], list[bool]]:
    """What happens to a BAD drive: volumes fail, try again and finish; a person says ready. And who looks when."""
    lives: list[list[tuple[int, Release]]] = []
    for volume in range(draw(st.integers(1, 4))):
        tries = draw(st.lists(st.sampled_from([WORKING, BROKEN]), max_size=3))
        lives.append([(volume, state) for state in (*tries, draw(st.sampled_from([DONE, BROKEN])))])
    happenings: list[Happening] = []
    while any(lives):
        happenings.append(draw(st.sampled_from([each for each in lives if each])).pop(0))
    happenings.insert(draw(st.integers(0, len(happenings))), None)
    return happenings, draw(st.lists(st.booleans(), min_size=len(happenings), max_size=len(happenings)))


@settings(max_examples=300, deadline=None)
@given(stories())
def test_the_end_does_not_depend_on_who_looked_when(story: tuple[list[Happening], list[bool]]) -> None:
    happenings, looks = story
    contents = {each[0]: WORKING for each in happenings if each is not None}
    phase, facts = RELEASING, Facts(BAD, contents=tuple(contents.values()))
    for happening, look in zip(happenings, looks, strict=True):
        if happening is None:
            facts = replace(facts, replacement=READY)
        else:
            contents[happening[0]] = happening[1]
            facts = replace(facts, contents=tuple(contents.values()))
        if look:
            phase = settled(phase, facts)
    assert settled(phase, facts) is settled(RELEASING, facts)
