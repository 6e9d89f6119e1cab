"""What is held is not claimed, and what is claimed not held, whoever comes first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quorate.api.meta import VolumeName
from quorate.errors import Conflict
from quorate.locks import Change, Hold, LockTable, Sort, Thing

UNTIL = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
N1, N2, N3 = (Thing(Sort.NODE, name) for name in ("n1", "n2", "n3"))
DRIVE = Thing(Sort.DRIVE, "d1")
RESTART = Hold("alice-p-7", "alice", UNTIL)
HIDE = Change(VolumeName("pvc-1"), "Hide of pvc-1-2")


@pytest.fixture
def table() -> LockTable:
    return LockTable()


def test_a_step_that_is_being_written_keeps_a_permission_away(table: LockTable) -> None:
    give_back = table.claim(HIDE, {N1, N2})
    with pytest.raises(Conflict, match="node n2 cannot go down: Hide of pvc-1-2 of volume pvc-1 is just beginning"):
        table.hold(RESTART, {N2})
    assert table.holds_on({N2}) == ()
    give_back()
    table.hold(RESTART, {N2})
    assert table.holds_on({N1, N2}) == ((N2, RESTART),)


def test_a_permission_keeps_a_step_away_until_it_is_over(table: LockTable) -> None:
    table.hold(RESTART, {N2, DRIVE})
    with pytest.raises(Conflict, match="node n2 is held by permission alice-p-7 of alice, until 2026-11-16 12:00:00"):
        table.claim(HIDE, {N1, N2})
    assert table.change_of(HIDE.volume) is None
    table.let_go(RESTART.permission_id)
    table.claim(HIDE, {N1, N2})
    assert table.change_of(HIDE.volume) == HIDE


def test_a_step_that_knows_of_a_permission_may_go_ahead_beside_it_but_not_beside_another(table: LockTable) -> None:
    table.hold(RESTART, {N2})
    table.claim(HIDE, {N1, N2}, known={"alice-p-7"})
    table.let_go("alice-p-7")
    table.set_holds({"bob-p-8": (Hold("bob-p-8", "bob", None), frozenset({N1}))})
    with pytest.raises(Conflict, match="permission bob-p-8 of bob, for good"):
        table.claim(HIDE, {N1, N2}, known={"alice-p-7"})


def test_a_failed_attempt_leaves_nothing_behind(table: LockTable) -> None:
    table.claim(HIDE, {N1})
    with pytest.raises(Conflict):
        table.hold(RESTART, {N3, N1})
    assert table.holds_on({N1, N3}) == ()
    other = Change(VolumeName("pvc-2"), "Show of pvc-2-0")
    table.hold(RESTART, {N3})
    with pytest.raises(Conflict):
        table.claim(other, {N2, N3})
    table.hold(Hold("bob-p-8", "bob", UNTIL), {N2})
    assert table.change_of(other.volume) is None


def test_a_later_claim_of_a_volume_takes_the_place_of_the_earlier_and_is_not_ended_by_it(table: LockTable) -> None:
    first_back = table.claim(HIDE, {N1})
    forget = Change(HIDE.volume, "Forget of pvc-1-2")
    table.claim(forget, {N2})
    first_back()
    assert table.change_of(HIDE.volume) == forget
    table.hold(RESTART, {N1})
    with pytest.raises(Conflict):
        table.hold(Hold("bob-p-8", "bob", UNTIL), {N2})


def test_the_ledger_has_the_last_word_on_what_is_held(table: LockTable) -> None:
    table.hold(RESTART, {N1})
    table.hold(Hold("bob-p-8", "bob", UNTIL), {N2})
    longer = Hold("alice-p-7", "alice", None)
    table.set_holds({"alice-p-7": (longer, frozenset({N1, N3}))})
    assert table.holds_on((N1, N2, N3)) == ((N1, longer), (N3, longer))


def test_a_permission_of_the_ledger_is_held_even_where_a_step_has_claimed(table: LockTable) -> None:
    table.claim(HIDE, {N1})
    table.set_holds({"alice-p-7": (RESTART, frozenset({N1}))})
    assert table.holds_on({N1}) == ((N1, RESTART),)


def test_two_permissions_on_one_thing_are_both_seen_and_end_one_by_one(table: LockTable) -> None:
    bob = Hold("bob-p-8", "bob", UNTIL)
    table.hold(RESTART, {N1})
    table.hold(bob, {N1})
    assert table.holds_on({N1}) == ((N1, RESTART), (N1, bob))
    table.let_go("alice-p-7")
    assert table.holds_on({N1}) == ((N1, bob),)


def test_listeners_hear_of_what_changes_and_of_nothing_else(table: LockTable) -> None:
    things: list[Thing] = []
    volumes: list[VolumeName] = []
    table.on_hold(things.append)
    table.on_claim(volumes.append)
    table.hold(RESTART, {N1, DRIVE})
    table.set_holds({"alice-p-7": (RESTART, frozenset({N1, DRIVE}))})
    assert things == [DRIVE, N1]
    table.set_holds({})
    assert things == [DRIVE, N1] * 2
    table.let_go("alice-p-7")
    give_back = table.claim(HIDE, {N1})
    give_back()
    give_back()
    table.claim(HIDE, {N1})
    table.forget_claims()
    assert things == [DRIVE, N1] * 2
    assert volumes == [HIDE.volume] * 4
