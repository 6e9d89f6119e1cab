"""A drive is made ready to be pulled: out of its volume group, without a signature, its light on. Pure.

| seen                                          | done                                                               |
|-----------------------------------------------|--------------------------------------------------------------------|
| it was made ready before                      | nothing: what is on it now came there since                        |
| the device is not there                       | nothing: there is nothing to be done to it                         |
| nobody has asked it lately who it is; before  | ``lsblk``: names change with a boot, and a wipe cannot be undone   |
| a wipe: just now                              |                                                                    |
| another drive answers under its name          | nothing, and that is said                                          |
| LVM did not tell everything                   | nothing: what is not seen may be on it                             |
| thin pools of ours in its group               | ``lvremove``                                                       |
| anything else in its group                    | nothing, and that is said: it is not ours to remove                |
| in a group, alone; with others                | ``vgremove``; ``vgreduce``                                         |
| in no group, but LVM's                        | ``pvremove``                                                       |
| in no group, but something else is on it      | nothing, and that is said: it is not ours to wipe                  |
| not wiped yet                                 | ``wipefs``                                                         |
| dark                                          | ``ledctl``; that there is no light is noted, and is no failure     |

What fails is tried again, ever more rarely, for as long as it is asked for; after a few times it is called failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from datetime import datetime, timedelta
from typing import Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.inventory.discovery import LVM_MEMBER, is_same
from quorate.agent.inventory.lsblk import BlockDevice, UnreadableListing, read_block_devices
from quorate.agent.lvm import commands
from quorate.agent.lvm.drives import drive_behind
from quorate.agent.lvm.failures import shortened, words_of
from quorate.agent.lvm.seen import NEW, SeenDevice, SeenGroups, SeenVolumes
from quorate.agent.memory import Outcome
from quorate.agent.steps import Run
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Detachment, DetachmentPhase, Presence
from quorate.api.storage import LVMVolumeGroup

#: So many failures of a step in a row are a failure of the whole.
TRIES: Final = 3
#: For so long it counts who a device said it is.
_KNOWN_FOR: Final = timedelta(seconds=30)
#: And for so long before a wipe.
_JUST_NOW: Final = timedelta(seconds=5)

_STEPS: Final = {
    commands.IDENTIFY: "ask the device who it is",
    commands.POOL: "remove the thin pools",
    commands.GROUP: "take the device out of its volume group",
    commands.SIGNATURES: "wipe signatures",
    commands.LIGHT: "switch on the locate light",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One drive that is to be pulled, and what matters for it."""

    drive: Drive
    drives: tuple[Drive, ...]
    lvgs: tuple[LVMVolumeGroup, ...]
    volumes: SeenVolumes
    groups: SeenGroups
    #: What became of the last commands, by purpose.
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DetachDecision:
    """What is to be reported, and done."""

    detachment: Detachment | None
    steps: tuple[Run, ...] = ()
    retry_after: float | None = None


def detached(case: Case, now: datetime) -> DetachDecision:
    """The next step for a drive that is to be pulled."""
    drive, path = case.drive, case.drive.spec.path
    if drive.status.detachment is not None and drive.status.detachment.phase is DetachmentPhase.DONE:
        return DetachDecision(drive.status.detachment)
    if drive.status.presence is not Presence.ONLINE:
        return _done("The device is gone: there was nothing left to wipe, and no light to switch on.", light=False)
    if unseen := case.volumes.incomplete or case.groups.incomplete:
        message = f"LVM could not be looked at: {unseen}"
        return DetachDecision(_working(commands.GROUP, message), retry_after=_KNOWN_FOR.total_seconds())
    device = next((each for each in case.groups.devices if drive_behind(each.path, case.drives) == drive.name), None)
    wiped = _succeeded(case, commands.SIGNATURES, path)
    if device is not None or not wiped:
        doubt = _doubt(case, now)
        if doubt is not None:
            return doubt
    if device is not None:
        return _out_of_group(case, device, now)
    return _lit(case, now) if wiped else _wiped(case, now)


def returned(case: Case, now: datetime) -> DetachDecision:
    """It stays after all: its light goes out, and nothing is left to say."""
    said, path = case.drive.status.detachment, case.drive.spec.path
    lit = said is not None and said.light and case.drive.status.presence is Presence.ONLINE
    step = commands.locate(path, on=False)
    last = case.outcomes.get(step.purpose)
    if not lit or (last is not None and last.about == step.about):
        return DetachDecision(None)
    return DetachDecision(said, (step,))


def _doubt(case: Case, now: datetime, age: timedelta = _KNOWN_FOR) -> DetachDecision | None:
    """Whether it is not certain that the path is this drive's: it was asked longer ago than that, or says otherwise."""
    spec, path = case.drive.spec, case.drive.spec.path
    last = case.outcomes.get(commands.IDENTIFY)
    fresh = last is not None and last.about == path and abs(now - last.at) <= age
    if last is None or not fresh or not last.succeeded:
        return _still_failed(case, _tried(case, commands.identify(path), now))
    if any(is_same(spec, device) for device in _listed(last)):
        return None
    message = f"{path} is another drive now, not {spec.serial_number}."
    return DetachDecision(_working(commands.IDENTIFY, message), retry_after=_stale_in(last, now))


def _wiped(case: Case, now: datetime) -> DetachDecision:
    """Take the signatures off, unless there is one that is not ours."""
    path, last = case.drive.spec.path, case.outcomes[commands.IDENTIFY]
    strange = _not_ours(case, _listed(last))
    if strange:
        message = f"{path} holds {', '.join(strange)}, which is not ours to wipe."
        return DetachDecision(_failed(commands.SIGNATURES, message), retry_after=_stale_in(last, now))
    return _doubt(case, now, _JUST_NOW) or _tried(case, commands.wipe_signatures(path), now)


def _not_ours(case: Case, listed: tuple[BlockDevice, ...]) -> list[str]:
    """What is on a drive beside what LVM has left of our group: signatures, and parts that were not in the group."""
    former = {device.path for lvg in case.lvgs for device in lvg.status.devices if device.drive_uuid == case.drive.name}
    found = []
    for device in (part for drive in listed for part in drive.tree()):
        if device.signature and (device.signature != LVM_MEMBER or device.path not in former):
            found.append(f"{device.signature} on {device.path}")
        elif device.path not in {case.drive.spec.path, *former}:
            found.append(device.path)
    return found


def _out_of_group(case: Case, device: SeenDevice, now: datetime) -> DetachDecision:
    if not device.group:
        return _tried(case, commands.remove_label(device.path), now)
    ours = {
        pool.name
        for lvg in case.lvgs
        if lvg.spec.actual_vg_name_on_the_node == device.group
        for pool in lvg.spec.thin_pools
    }
    inside = [volume for volume in case.volumes.volumes if volume.group == device.group and not volume.is_part]
    strange = [volume.name for volume in inside if volume.name not in ours and NEW not in volume.tags]
    if strange:
        message = f"Volume group {device.group} holds {', '.join(strange)}, which is not ours to remove."
        return DetachDecision(_failed(commands.GROUP, message))
    if inside:
        return _tried(case, commands.remove_pool(device.group, inside[0].name), now)
    alone = sum(each.group == device.group for each in case.groups.devices) == 1
    step = commands.remove_group(device.group) if alone else commands.reduce_group(device.group, device.path)
    return _tried(case, step, now)


def _lit(case: Case, now: datetime) -> DetachDecision:
    step = commands.locate(case.drive.spec.path, on=True)
    last = case.outcomes.get(step.purpose)
    if last is None or last.about != step.about:
        return DetachDecision(_working(commands.LIGHT, ""), (step,))
    where = f"slot {case.drive.spec.slot}" if case.drive.spec.slot else case.drive.spec.path
    if last.succeeded:
        return _done(f"It is out of its group and wiped; the light at {where} is on.", light=True)
    return _done(f"It is out of its group and wiped; its light is not available. Find it at {where}.", light=False)


def _tried(case: Case, step: Run, now: datetime) -> DetachDecision:
    """Do it, unless it failed lately."""
    last = case.outcomes.get(step.purpose)
    pause = wait_before_retry(last, now, step.about)
    wrong = last if last is not None and not last.succeeded and last.about == step.about else None
    if wrong is not None and (wrong.failures >= TRIES or wrong.hung):
        said = _failed(step.purpose, words_of(wrong))
    else:
        said = _working(step.purpose, "" if wrong is None else words_of(wrong))
    return DetachDecision(said, retry_after=pause) if pause > 0 else DetachDecision(said, (step,))


def _succeeded(case: Case, purpose: str, about: str) -> bool:
    last = case.outcomes.get(purpose)
    return last is not None and last.about == about and last.succeeded


def _listed(last: Outcome) -> tuple[BlockDevice, ...]:
    try:
        return read_block_devices(last.output)
    except UnreadableListing:
        return ()


def _stale_in(last: Outcome, now: datetime) -> float:
    return max(0.1, (_KNOWN_FOR - (now - last.at)).total_seconds() + 0.1)


def _still_failed(case: Case, found: DetachDecision) -> DetachDecision:
    """That it is looked at again is no news: what failed has failed until it is seen not to."""
    said = case.drive.status.detachment
    return replaced(found, detachment=said) if said is not None and said.phase is DetachmentPhase.FAILED else found


def _done(message: str, *, light: bool) -> DetachDecision:
    return DetachDecision(Detachment(phase=DetachmentPhase.DONE, light=light, message=message))


def _working(purpose: str, message: str) -> Detachment:
    return Detachment(phase=DetachmentPhase.WORKING, step=_STEPS[purpose], message=shortened(message))


def _failed(purpose: str, message: str) -> Detachment:
    return Detachment(phase=DetachmentPhase.FAILED, step=_STEPS[purpose], message=shortened(message))
