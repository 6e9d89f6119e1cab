"""What the monitor remembers of an item, also across a restart."""

from __future__ import annotations

from quorate.maintenance.monitor.absences import Absences, History
from quorate.maintenance.monitor.spans import Span

GAP = 10


def see(absences: Absences, away: bool, now: int) -> bool:
    return absences.see("pdisk-1-1", away=away, reason="down", now=now, gap=GAP)


def test_an_absence_is_remembered_from_its_first_moment_to_its_last() -> None:
    absences = Absences()
    assert not see(absences, False, 0)
    assert see(absences, True, 100)
    assert absences.of("pdisk-1-1").spans(130) == (Span(100, 130, "down"),)
    assert see(absences, False, 150)
    assert absences.of("pdisk-1-1") == History((Span(100, 150, "down"),))


def test_an_absence_that_goes_on_changes_nothing() -> None:
    absences = Absences()
    see(absences, True, 100)
    assert not any(see(absences, True, now) for now in range(101, 200))


def test_a_flap_is_one_absence() -> None:
    absences = Absences()
    for away, now in ((True, 100), (False, 150), (True, 155), (False, 170)):
        see(absences, away, now)
    assert absences.of("pdisk-1-1") == History((Span(100, 170, "down"),))


def test_the_past_is_forgotten_when_nothing_can_join_it() -> None:
    absences = Absences()
    see(absences, True, 100)
    see(absences, False, 150)
    assert see(absences, False, 161)
    assert not absences.items()


def test_after_a_restart_an_absence_that_goes_on_began_when_it_began() -> None:
    absences = Absences({"pdisk-1-1": History((), 100, "down")}, last_lived=120)
    assert not see(absences, True, 500)
    assert absences.of("pdisk-1-1").spans(500) == (Span(100, 500, "down"),)
    see(absences, False, 600)
    assert absences.of("pdisk-1-1") == History((Span(100, 600, "down"),))


def test_an_absence_whose_end_nobody_saw_ended_when_the_broker_last_lived() -> None:
    absences = Absences({"pdisk-1-1": History((), 100, "down")}, last_lived=495)
    see(absences, False, 500)
    assert absences.of("pdisk-1-1") == History((Span(100, 495, "down"),))


def test_what_left_the_cluster_has_no_history() -> None:
    absences = Absences({"pdisk-1-1": History((), 100, "down")})
    assert absences.forget("pdisk-1-1")
    assert not absences.forget("pdisk-1-1")
    assert absences.of("pdisk-1-1") == History()
