"""A drive is made ready to be pulled: what is done next, as a table; and what is never done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from quorate.agent.lvm import commands
from quorate.agent.lvm.detaching import TRIES, Case, DetachDecision, detached, returned
from quorate.agent.lvm.seen import SeenDevice, SeenGroup, SeenGroups, SeenVolume, SeenVolumes
from quorate.agent.memory import Outcome
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Detachment, DetachmentPhase, DriveSpec, DriveStatus, Presence
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec, ThinPool

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
PATH = "/dev/sdb"


def drive(path: str = PATH, serial: str = "S1", *, there: bool = True, said: Detachment | None = None) -> Drive:
    return Drive(
        metadata=ObjectMeta(name=serial),
        spec=DriveSpec(uuid=serial, serial_number=serial, node_id=NodeName("n"), path=path, slot="4"),
        status=DriveStatus(presence=Presence.ONLINE if there else Presence.OFFLINE, detach=True, detachment=said),
    )


def group(*pools: str) -> LVMVolumeGroup:
    thin = tuple(ThinPool(name=pool, size="50%") for pool in pools)
    spec = LVMVolumeGroupSpec(
        actual_vg_name_on_the_node="vg", local=LocalGroup(node_name=NodeName("n")), thin_pools=thin
    )
    return LVMVolumeGroup(metadata=ObjectMeta(name="g"), spec=spec)


def outcome(purpose: str, about: str = PATH, *, failures: int = 0, output: str = "", age: float = 1.0) -> Outcome:
    at = NOW - timedelta(seconds=age)
    code = 5 if failures else 0
    return Outcome(purpose, about, f"{purpose} {about}", at, exit_code=code, output=output, failures=failures)


def said_who(serial: str = "S1", age: float = 1.0) -> Outcome:
    return outcome(
        commands.IDENTIFY, output=f'{{"blockdevices": [{{"path": "{PATH}", "serial": "{serial}"}}]}}', age=age
    )


def case(
    *past: Outcome, inside: str = "vg", volumes: tuple[SeenVolume, ...] = (), others: int = 0, **of: object
) -> Case:
    devices: tuple[SeenDevice, ...] = (SeenDevice(PATH, inside),) if inside != "none" else ()
    devices += tuple(SeenDevice(f"/dev/sdx{number}", inside) for number in range(others))
    one = of.get("drive", drive())
    assert isinstance(one, Drive)
    lvg = of.get("lvg", group("thin"))
    assert isinstance(lvg, LVMVolumeGroup)
    return Case(
        one,
        (one,),
        (lvg,),
        SeenVolumes(volumes),
        SeenGroups((SeenGroup("vg"),), devices),
        {each.purpose: each for each in past},
    )


def done(found: DetachDecision) -> list[str]:
    """The commands, without what goes with every command of LVM."""
    return [
        " ".join(word for word in step.argv if "filter=" not in word and word != "--config") for step in found.steps
    ]


IDENTIFY = f"lsblk --json --nodeps --output PATH,SERIAL,WWN {PATH}"
THIN = (SeenVolume("vg", "thin", attributes="twi-aotz--"), SeenVolume("vg", "thin_tdata", attributes="Twi-ao----"))
THEIRS = (SeenVolume("vg", "theirs"),)
KNOWN = said_who()
WIPED = outcome(commands.SIGNATURES)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        # Who it is, is asked before anything is done to it, and again after a while.
        (case(), [IDENTIFY]),
        (case(said_who(age=31)), [IDENTIFY]),
        (case(outcome(commands.IDENTIFY, "/dev/sdc", output=said_who().output)), [IDENTIFY]),
        (case(said_who("another")), []),
        (case(outcome(commands.IDENTIFY, output="nonsense")), []),
        # Out of its group.
        (case(KNOWN, volumes=THIN), ["lvremove --yes vg/thin"]),
        (case(KNOWN, volumes=THEIRS), []),
        (case(KNOWN, volumes=(*THIN, *THEIRS)), []),
        (case(KNOWN, volumes=THIN, lvg=group()), []),
        (case(KNOWN), ["vgremove vg"]),
        (case(KNOWN, others=1), [f"vgreduce vg {PATH}"]),
        (case(KNOWN, inside=""), [f"pvremove {PATH}"]),
        # Wiped, and lit.
        (case(KNOWN, inside="none"), [f"wipefs --all {PATH}"]),
        (case(inside="none"), [IDENTIFY]),
        (case(KNOWN, WIPED, inside="none"), [f"ledctl locate={PATH}"]),
        (case(KNOWN, WIPED, outcome(commands.LIGHT, f"{PATH} True"), inside="none"), []),
        # One that is not there needs nothing.
        (case(drive=drive(there=False)), []),
    ],
)
def test_what_is_done_next(one: Case, expected: list[str]) -> None:
    assert done(detached(one, NOW)) == expected


def phase(found: DetachDecision) -> DetachmentPhase | None:
    return found.detachment.phase if found.detachment is not None else None


@pytest.mark.parametrize(
    ("one", "expected", "light"),
    [
        (case(KNOWN, WIPED, outcome(commands.LIGHT, f"{PATH} True"), inside="none"), DetachmentPhase.DONE, True),
        (
            case(KNOWN, WIPED, outcome(commands.LIGHT, f"{PATH} True", failures=1), inside="none"),
            DetachmentPhase.DONE,
            False,
        ),
        (case(drive=drive(there=False)), DetachmentPhase.DONE, False),
        (case(KNOWN, volumes=THEIRS), DetachmentPhase.FAILED, None),
        (case(KNOWN, outcome(commands.GROUP, "vg", failures=1)), DetachmentPhase.WORKING, None),
        (case(KNOWN, outcome(commands.GROUP, "vg", failures=TRIES)), DetachmentPhase.FAILED, None),
        (case(KNOWN, outcome(commands.SIGNATURES, failures=TRIES), inside="none"), DetachmentPhase.FAILED, None),
    ],
)
def test_what_is_reported(one: Case, expected: DetachmentPhase, light: bool | None) -> None:
    found = detached(one, NOW)
    assert phase(found) is expected
    assert found.detachment is not None
    assert found.detachment.light is light


def test_a_failure_says_which_step_and_is_tried_again() -> None:
    busy = outcome(commands.GROUP, "vg", failures=TRIES, output="Logical volume vg/x in use.")
    found = detached(case(KNOWN, busy), NOW)
    assert found.detachment is not None
    assert found.detachment.step == "take the device out of its volume group"
    assert "in use" in found.detachment.message
    assert found.retry_after is not None
    later = NOW + timedelta(hours=1)
    fresh = said_who(age=-3599)
    assert done(detached(case(fresh, busy), later)) == ["vgremove vg"]


def test_a_drive_that_stays_has_its_light_switched_off_once() -> None:
    lit = Detachment(phase=DetachmentPhase.DONE, light=True)
    first = returned(case(drive=drive(said=lit), inside="none"), NOW)
    assert done(first) == [f"ledctl locate_off={PATH}"]
    after = returned(case(outcome(commands.LIGHT, f"{PATH} False"), drive=drive(said=lit), inside="none"), NOW)
    assert after.detachment is None
    assert after.steps == ()
    dark = Detachment(phase=DetachmentPhase.FAILED, light=None)
    assert returned(case(drive=drive(said=dark)), NOW).steps == ()
