"""What a person is shown of a replacement."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quorate.api import conditions
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Detachment, DetachmentPhase, DriveHealth, DriveSpec, DriveStatus
from quorate.api.baremetal.drive import OperationalStatus as Phase
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Healthy, Released, Removed
from quorate.api.meta import NodeName, ObjectMeta
from quorate.drives.steps import State, find, is_over, steps_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def drive(phase: Phase | None, *verdicts: Verdict, name: str = "d", slot: str = "3") -> Drive:
    found = conditions.merge((), verdicts, now=NOW)
    return Drive(
        metadata=ObjectMeta(name=name),
        spec=DriveSpec(uuid=name, serial_number=f"S-{name}", node_id=NodeName("n"), path="/dev/sdc", slot=slot),
        status=DriveStatus(
            health=DriveHealth.BAD,
            operational_status=phase,
            conditions=found,
            detachment=Detachment(phase=DetachmentPhase.DONE, light=True),
        ),
    )


DONE, ON_IT, FAILED, LATER = State.DONE, State.NOW, State.FAILED, State.TO_COME


@pytest.mark.parametrize(
    ("one", "states", "message"),
    [
        (drive(None), [ON_IT, LATER, LATER, LATER, LATER], ""),
        (
            drive(Phase.RELEASING, Released.LAST_COPY("v has no other copy")),
            [DONE, ON_IT, LATER, LATER, LATER],
            "v has no other copy",
        ),
        (drive(Phase.RELEASED, Released.RELEASED()), [DONE, DONE, ON_IT, LATER, LATER], "quorate drive ready"),
        (
            drive(Phase.REMOVING, Released.RELEASED(), Removed.WAITING_FOR_PERMISSION("alice restarts n")),
            [DONE, DONE, DONE, ON_IT, LATER],
            "alice restarts n",
        ),
        (drive(Phase.REMOVED, Released.RELEASED(), Removed.REMOVED()), [DONE, DONE, DONE, DONE, ON_IT], "slot 3 of n"),
        (drive(Phase.FAILED, Released.FAILED("v: no copy")), [DONE, FAILED, LATER, LATER, LATER], "v: no copy"),
        (
            drive(Phase.FAILED, Released.RELEASED(), Removed.STEP_FAILED("vgremove: busy")),
            [DONE, DONE, DONE, FAILED, LATER],
            "vgremove: busy",
        ),
    ],
)
def test_the_steps_say_where_it_stands_and_what_it_waits_for(one: Drive, states: list[State], message: str) -> None:
    steps = steps_of(one)
    assert [step.state for step in steps] == states
    assert any(message in step.message for step in steps if step.state in (ON_IT, FAILED))


def test_health_is_said_with_who_says_it() -> None:
    first = steps_of(drive(Phase.RELEASING, Healthy.SMART_FAILED("7 pending sectors")))[0]
    assert first.message == "BAD: 7 pending sectors"


@pytest.mark.parametrize(
    ("phase", "goal", "over"),
    [
        (Phase.OPERATIVE, Phase.RELEASED, False),
        (Phase.RELEASING, Phase.RELEASED, False),
        (Phase.RELEASED, Phase.RELEASED, True),
        (Phase.REMOVED, Phase.RELEASED, True),
        (Phase.RELEASED, Phase.REMOVED, False),
        (Phase.FAILED, Phase.REMOVED, True),
        (Phase.RELEASED, Phase.OPERATIVE, False),
        (Phase.OPERATIVE, Phase.OPERATIVE, True),
    ],
)
def test_when_there_is_nothing_more_to_follow(phase: Phase, goal: Phase, over: bool) -> None:
    assert is_over(drive(phase), goal) is over


def test_a_drive_is_found_by_what_people_know_of_it() -> None:
    one, other = drive(None, name="x", slot="1"), drive(None, name="y", slot="2")
    for named in ("x", "S-x", "n/1"):
        assert find([one, other], named) == (one,)
    assert find([one, other], "n/sdc") == (one, other)
    assert find([one, other], "m/1") == ()
