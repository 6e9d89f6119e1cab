"""Who says how a drive is: every source, alone and against those after it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from quorate.api import annotation_keys, core
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveHealth, DriveSpec, DriveStatus, Presence, SmartReport
from quorate.api.maintenance.action import Marker
from quorate.api.meta import NodeName, ObjectMeta
from quorate.drives import asked
from quorate.drives.health import Surroundings, judge, missing_in

GOOD, SUSPECT, BAD, UNKNOWN = DriveHealth
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
GRACE = 300.0
BARE, OURS = annotation_keys.DRIVE_HEALTH[1], annotation_keys.DRIVE_HEALTH[0]


def drive(smart: DriveHealth | None = GOOD, *, away: float | None = None, **annotations: str) -> Drive:
    keys = {"marker": annotation_keys.MARKER, "monitor": annotation_keys.MONITOR, "bare": BARE, "ours": OURS}
    return Drive(
        metadata=ObjectMeta(name="d", annotations={keys[key]: value for key, value in annotations.items()}),
        spec=DriveSpec(uuid="d", serial_number="S1", node_id=NodeName("n")),
        status=DriveStatus(
            presence=Presence.ONLINE if away is None else Presence.OFFLINE,
            missing_since=None if away is None else NOW - timedelta(seconds=away),
            smart=None if smart is None else SmartReport(health=smart, message="It says so."),
        ),
    )


def around(node_marker: str = "", *, up: bool = True) -> Surroundings:
    annotations = {annotation_keys.MARKER: node_marker} if node_marker else {}
    return Surroundings(core.Node(metadata=ObjectMeta(name="n", annotations=annotations)), up, GRACE)


BROKEN, FAULTY, ACTIVE, INACTIVE = (str(each) for each in Marker)


@pytest.mark.parametrize(
    ("one", "node_marker", "health", "reason"),
    [
        # What the drive says, alone.
        (drive(GOOD), "", GOOD, "Good"),
        (drive(SUSPECT), "", SUSPECT, "SmartWarning"),
        (drive(BAD), "", BAD, "SmartFailed"),
        (drive(UNKNOWN), "", UNKNOWN, "NotReported"),
        (drive(None), "", UNKNOWN, "NotReported"),
        # The worse of that and the monitor's.
        (drive(GOOD, monitor=BROKEN), "", BAD, "MonitorBroken"),
        (drive(GOOD, monitor=FAULTY), "", SUSPECT, "MonitorFaulty"),
        (drive(BAD, monitor=FAULTY), "", BAD, "SmartFailed"),
        (drive(SUSPECT, monitor=BROKEN), "", BAD, "MonitorBroken"),
        (drive(SUSPECT, monitor=ACTIVE), "", SUSPECT, "SmartWarning"),
        (drive(UNKNOWN, monitor=ACTIVE), "", GOOD, "Good"),
        (drive(GOOD, monitor=INACTIVE), "", GOOD, "Good"),
        (drive(UNKNOWN, monitor=FAULTY), "", SUSPECT, "MonitorFaulty"),
        # A device that is gone for longer than its grace.
        (drive(GOOD, away=GRACE), "", BAD, "Missing"),
        (drive(GOOD, away=GRACE - 1), "", GOOD, "Good"),
        (drive(UNKNOWN, away=GRACE - 1), "", UNKNOWN, "NotReported"),
        # A person's word, in either spelling and case, above all of that.
        (drive(GOOD, bare="BAD"), "", BAD, "Overridden"),
        (drive(GOOD, ours="suspect"), "", SUSPECT, "Overridden"),
        (drive(BAD, bare="good"), "", GOOD, "OverriddenGood"),
        (drive(BAD, away=GRACE, ours="GOOD"), "", GOOD, "OverriddenGood"),
        (drive(BAD, ours="UNKNOWN"), "", UNKNOWN, "NotReported"),
        (drive(GOOD, ours="BAD", bare="GOOD"), "", BAD, "Overridden"),
        (drive(SUSPECT, bare="fine"), "", SUSPECT, "SmartWarning"),
        # The marker, above a person's word; the drive's own before its node's.
        (drive(GOOD, marker=BROKEN), "", BAD, "MarkedBroken"),
        (drive(GOOD, marker=FAULTY), "", SUSPECT, "MarkedFaulty"),
        (drive(BAD, marker=ACTIVE, ours="BAD"), "", GOOD, "MarkedActive"),
        (drive(GOOD, marker=INACTIVE), "", GOOD, "Good"),
        (drive(BAD, marker=INACTIVE), "", BAD, "SmartFailed"),
        (drive(GOOD), BROKEN, BAD, "MarkedBroken"),
        (drive(GOOD, marker=ACTIVE), BROKEN, GOOD, "MarkedActive"),
        (drive(GOOD, marker=INACTIVE), FAULTY, SUSPECT, "MarkedFaulty"),
        (drive(GOOD), INACTIVE, GOOD, "Good"),
        (drive(SUSPECT, marker="MARKER_ODD"), "", SUSPECT, "SmartWarning"),
    ],
)
def test_who_speaks_first_wins(one: Drive, node_marker: str, health: DriveHealth, reason: str) -> None:
    opinion = judge(one, around(node_marker), NOW)
    assert (opinion.health, opinion.verdict.reason) == (health, reason)


def test_a_device_is_not_missing_while_its_node_is_down() -> None:
    assert judge(drive(GOOD, away=10 * GRACE), around(up=False), NOW).health is GOOD


def test_what_an_agent_saw_before_its_node_was_down_counts_only_when_it_has_had_time_to_look_again() -> None:
    long_gone = drive(GOOD, away=10 * GRACE)
    back = dataclasses.replace(around(), since=NOW - timedelta(seconds=1))
    assert judge(long_gone, back, NOW).health is GOOD
    assert missing_in(long_gone, back, NOW) == pytest.approx(GRACE - 1)
    assert judge(long_gone, dataclasses.replace(around(), since=NOW - timedelta(seconds=GRACE)), NOW).health is BAD
    assert missing_in(drive(away=5), dataclasses.replace(around(), since=NOW - timedelta(days=9)), NOW) == GRACE - 5


def test_when_it_will_count_as_missing_is_known_before() -> None:
    assert missing_in(drive(away=GRACE - 7), around(), NOW) == pytest.approx(7)
    assert missing_in(drive(away=GRACE), around(), NOW) is None
    assert missing_in(drive(), around(), NOW) is None
    assert missing_in(drive(away=1), around(up=False), NOW) is None


def test_words_that_mean_nothing_are_told_of() -> None:
    wrong = Drive(
        metadata=ObjectMeta(name="d", annotations={"health": "fine", "replacement": "now"}),
        spec=DriveSpec(uuid="d", serial_number="S1", node_id=NodeName("n")),
    )
    assert "'fine'" in asked.misunderstood(wrong)
    assert "'now'" in asked.misunderstood(wrong)
    assert asked.misunderstood(drive(ours="Good")) == ""
