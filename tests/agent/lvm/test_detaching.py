"""A drive is made ready to be pulled: what is done next, as a table; and what is never done."""

from __future__ import annotations

import json
from dataclasses import replace as but
from datetime import UTC, datetime, timedelta

import pytest

from quorate.agent.lvm import commands
from quorate.agent.lvm.detaching import TRIES, Case, DetachDecision, detached, returned
from quorate.agent.lvm.seen import SeenDevice, SeenGroup, SeenGroups, SeenVolume, SeenVolumes
from quorate.agent.memory import Outcome
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Detachment, DetachmentPhase, DriveSpec, DriveStatus, Presence
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import GroupDevice, LocalGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus, ThinPool
from quorate.api.struct import replace

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
PATH = "/dev/sdb"


def drive(path: str = PATH, serial: str = "S1", *, there: bool = True, said: Detachment | None = None) -> Drive:
    return Drive(
        metadata=ObjectMeta(name=serial),
        spec=DriveSpec(
            uuid=serial, serial_number=serial, vid="ACME", pid="X1", node_id=NodeName("n"), path=path, slot="4"
        ),
        status=DriveStatus(presence=Presence.ONLINE if there else Presence.OFFLINE, detach=True, detachment=said),
    )


def group(*pools: str) -> LVMVolumeGroup:
    thin = tuple(ThinPool(name=pool, size="50%") for pool in pools)
    spec = LVMVolumeGroupSpec(
        actual_vg_name_on_the_node="vg", local=LocalGroup(node_name=NodeName("n")), thin_pools=thin
    )
    return LVMVolumeGroup(metadata=ObjectMeta(name="g"), spec=spec)


def on(number: int | str) -> LVMVolumeGroup:
    """A group that was on a partition of the drive, or on the whole of it."""
    devices = (GroupDevice(path=f"{PATH}{number}", drive_uuid="S1", size=Quantity("1Gi")),)
    return replace(group(), status=LVMVolumeGroupStatus(devices=devices))


def outcome(purpose: str, about: str = PATH, *, failures: int = 0, output: str = "", age: float = 1.0) -> Outcome:
    at = NOW - timedelta(seconds=age)
    code = 5 if failures else 0
    return Outcome(purpose, about, f"{purpose} {about}", at, exit_code=code, output=output, failures=failures)


def said_who(serial: str = "S1", age: float = 1.0, **more: object) -> Outcome:
    row = {"path": PATH, "type": "disk", "serial": serial, "vendor": "ACME    ", "model": "X1", **more}
    return outcome(commands.IDENTIFY, output=json.dumps({"blockdevices": [row]}), age=age)


def part(number: int, signature: str | None = None) -> dict[str, object]:
    return {"path": f"{PATH}{number}", "type": "part", "fstype": signature}


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


IDENTIFY = f"lsblk --json --output NAME,PATH,TYPE,VENDOR,MODEL,SERIAL,WWN,FSTYPE {PATH}"
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
        (case(said_who(vendor="Other")), []),
        (case(said_who(model="X10")), []),
        (case(said_who(model=None)), []),
        # Before a wipe it is asked at once.
        (case(said_who(age=6)), ["vgremove vg"]),
        (case(said_who(age=6), inside="none"), [IDENTIFY]),
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
        (case(said_who(fstype="LVM2_member"), inside="none", lvg=on("")), [f"wipefs --all {PATH}"]),
        (case(KNOWN, WIPED, inside="none"), [f"ledctl locate={PATH}"]),
        (case(KNOWN, WIPED, outcome(commands.LIGHT, f"{PATH} True"), inside="none"), []),
        # What is not ours is not wiped.
        (case(said_who(fstype="ext4"), inside="none"), []),
        (case(said_who(fstype="LVM2_member"), inside="none"), []),
        (case(said_who(children=[part(1, "xfs")]), inside="none"), []),
        (case(said_who(children=[part(1)]), inside="none"), []),
        (case(said_who(children=[part(1)]), inside="none", lvg=on(1)), [f"wipefs --all {PATH}"]),
        (case(said_who(children=[part(1), part(2)]), inside="none", lvg=on(1)), []),
        (case(said_who(children=[part(1, "ext4")]), inside="none", lvg=on(1)), []),
        # One that is not there needs nothing.
        (case(drive=drive(there=False)), []),
    ],
)
def test_what_is_done_next(one: Case, expected: list[str]) -> None:
    assert done(detached(one, NOW)) == expected


def test_nothing_is_done_while_lvm_does_not_tell_everything() -> None:
    for inside in ("vg", "none"):
        one = case(KNOWN, inside=inside, volumes=THIN if inside == "vg" else ())
        for unsure in (
            but(one, groups=but(one.groups, incomplete="pvs ended with 5")),
            but(one, volumes=SeenVolumes(one.volumes.volumes, "lvs ended with 5")),
        ):
            found = detached(unsure, NOW)
            assert (done(found), phase(found)) == ([], DetachmentPhase.WORKING)
            assert found.retry_after is not None


@pytest.mark.parametrize("light", [True, False])
def test_what_was_made_ready_is_left_alone_by_an_agent_that_remembers_nothing(light: bool) -> None:
    said = Detachment(phase=DetachmentPhase.DONE, light=light, message="so it was")
    for one in (case(drive=drive(said=said), inside="none"), case(KNOWN, drive=drive(said=said))):
        assert detached(one, NOW) == DetachDecision(said)


def test_what_is_not_ours_is_named_and_looked_at_again_without_taking_that_back() -> None:
    found = detached(case(said_who(children=[part(2, "ext4")]), inside="none"), NOW)
    assert found.detachment is not None
    assert found.detachment.phase is DetachmentPhase.FAILED
    assert found.detachment.message == "/dev/sdb holds ext4 on /dev/sdb2, which is not ours to wipe."
    assert found.retry_after is not None
    again = detached(case(said_who(age=40), drive=drive(said=found.detachment), inside="none"), NOW)
    assert done(again) == [IDENTIFY]
    assert again.detachment == found.detachment
    cleared = detached(case(KNOWN, drive=drive(said=found.detachment), inside="none"), NOW)
    assert done(cleared) == [f"wipefs --all {PATH}"]


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
