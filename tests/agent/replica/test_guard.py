"""The younger of two primaries cuts itself off when any of its links goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quorate.agent.memory import Outcome
from quorate.agent.replica.guard import Guarded, guard
from quorate.agent.steps import Look
from quorate.api.storage.drbd import Connection, DrbdStatus
from tests.agent.replica.builders import FILE, NOW, commands, config, decided, kernel, link, outcome, replica, view

LOST = link(2, "Connecting", flow="Off", disk="DUnknown")
CUT = ["drbdadm disconnect --force pvc-1"]
YIELDING = config(primary=True, yields=True, allow_two_primaries=True)


def guarded(
    status: DrbdStatus | None, *, yields: bool = True, current: bool = True, cut: Outcome | None = None
) -> Guarded:
    given = YIELDING if yields else config(primary=True)
    return Guarded("pvc-1", FILE, given, current, status, cut=cut)


@pytest.mark.parametrize(
    ("role", "links", "expected"),
    [
        ("Primary", (link(1, role="Primary"), link(2)), []),
        ("Primary", (link(1), LOST), CUT),
        ("Primary", (link(1, "NetworkFailure"), link(2)), CUT),
        ("Primary", (link(1, "StandAlone"), link(2)), CUT),
        ("Primary", (link(1),), CUT),
        ("Primary", (link(1, "StandAlone"), link(2, "StandAlone")), []),
        ("Secondary", (link(1), LOST), []),
    ],
)
def test_a_yielding_primary_that_loses_a_link_cuts_the_others(
    role: str, links: tuple[Connection, ...], expected: list[str]
) -> None:
    assert commands(guard(guarded(kernel(role=role, links=links)), NOW).steps) == expected


def test_no_other_primary_is_cut_off() -> None:
    assert guard(guarded(kernel(role="Primary", links=(link(1), LOST)), yields=False), NOW).steps == ()


def test_the_guard_looks_for_itself() -> None:
    assert guard(guarded(None, current=False), NOW).steps == (Look("kernel", "pvc-1"),)


def test_a_cut_that_fails_is_repeated_soon() -> None:
    lost = kernel(role="Primary", links=(link(1), LOST))
    failed = outcome("cut", times=10)
    waiting = guard(guarded(lost, cut=failed), NOW)
    assert waiting.steps == ()
    assert waiting.again == 5.0
    assert commands(guard(guarded(lost, cut=failed), NOW + timedelta(seconds=5)).steps) == CUT


def test_it_stays_cut_off_while_it_yields() -> None:
    alone = kernel(role="Primary", links=(link(1, "StandAlone"), link(2, "StandAlone")), quorum=False)
    held = view(replica(config=YIELDING), alone, unadjusted=True)
    assert decided(held).steps == ()


def test_it_is_connected_again_and_then_demoted_once_it_no_longer_yields() -> None:
    alone = kernel(role="Primary", links=(link(1, "StandAlone"), link(2, "StandAlone")), quorum=False)
    released = view(replica(config=config()), alone)
    assert commands(decided(released)) == ["drbdadm adjust pvc-1"]
    assert commands(decided(view(replica(config=config()), kernel(role="Primary")))) == ["drbdadm secondary pvc-1"]
