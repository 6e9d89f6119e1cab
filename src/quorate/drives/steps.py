"""A drive's replacement as a person follows it: the steps, how far each is, and what it waits for. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from quorate.api import annotation_keys, conditions, labels
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus, Presence
from quorate.api.baremetal.volume import VolumeUsage
from quorate.api.conditions.drive import Healthy, Released, Removed
from quorate.api.struct import Struct
from quorate.drives.health import Opinion


class State(StrEnum):
    """How far a step is."""

    DONE = "done"
    NOW = "now"
    FAILED = "failed"
    TO_COME = "to come"


class Step(Struct):
    """One step."""

    name: str
    state: State
    #: What it waits for, or what came of it.
    message: str = ""


class Wish(StrEnum):
    """What a person may ask of a drive."""

    #: To be emptied.
    REPLACE = "replace"
    #: To be emptied, and removed.
    REPLACE_READY = "replace --ready"
    READY = "ready"
    RESTART = "restart"


class Moving(Struct):
    """Something that must leave the drive."""

    name: str
    state: str
    percent: int
    message: str = ""


_ORDER: Final = (
    OperationalStatus.OPERATIVE,
    OperationalStatus.RELEASING,
    OperationalStatus.RELEASED,
    OperationalStatus.REMOVING,
    OperationalStatus.REMOVED,
)
_NAMES: Final = ("Move data away", "Wait for the new drive", "Prepare the removal", "Pull it, put the new one in")


def steps_of(drive: Drive) -> tuple[Step, ...]:
    """Health, and the four steps from there to another drive in the slot."""
    status = drive.status
    phase = drive.phase
    healthy = _message(drive, Healthy)
    trusted = status.health not in (DriveHealth.SUSPECT, DriveHealth.BAD)
    state = State.NOW if phase is OperationalStatus.OPERATIVE else State.DONE
    first = Step(name="Health", state=state, message=_health(drive, healthy))
    if phase is OperationalStatus.OPERATIVE:
        words = {_NAMES[0]: "" if trusted else status.message}
        return (first, *(Step(name=name, state=State.TO_COME, message=words.get(name, "")) for name in _NAMES))
    at = _at(drive, phase)
    told = (
        _message(drive, Released),
        "say: quorate drive ready" if phase is OperationalStatus.RELEASED else "",
        _message(drive, Removed) if phase in (OperationalStatus.REMOVING, OperationalStatus.FAILED) else "",
        _where(drive) if phase is OperationalStatus.REMOVED else "",
    )
    failed = phase is OperationalStatus.FAILED
    found = []
    for number, (name, message) in enumerate(zip(_NAMES, told, strict=True)):
        state = State.DONE if number < at else State.NOW if number == at else State.TO_COME
        state = State.FAILED if failed and number == at else state
        shown = message if state in (State.NOW, State.FAILED) else ""
        found.append(Step(name=name, state=state, message=shown))
    return (first, *found)


def refusal(drive: Drive, wish: Wish, opinion: Opinion, name: str) -> str:
    """Why what a person wishes would never come about, and what to do; empty: it may be asked for.

    ``opinion``: how the drive will be, once it is asked for. ``name``: by which the person knows the drive.
    """
    phase, serial = drive.phase, drive.spec.serial_number
    if wish is Wish.RESTART:
        return _not_restarted(drive, opinion, name)
    if phase is OperationalStatus.OPERATIVE and drive.spec.is_system:
        node = drive.spec.node_id
        return (
            f"node {node} runs from drive {serial}, so it is never emptied by itself. Move away what is on the node"
            f" (kubectl annotate node {node} {annotation_keys.EVACUATE}=true), then shut it down"
        )
    if phase is OperationalStatus.OPERATIVE and opinion.trusted:
        if wish is Wish.READY:
            how = f"To have it replaced: quorate drive replace {name} --ready"
            return f"drive {serial} is in service and {opinion.health}: nothing is to be removed. {how}"
        return f"drive {serial} would still be {opinion.health}: {opinion.verdict.message} Reset the marker first"
    failed = phase is OperationalStatus.FAILED and conditions.is_true(drive.status.conditions, Released)
    if wish is Wish.REPLACE and (phase is OperationalStatus.REMOVING or failed):
        return (
            f"the removal of drive {serial} is under way already ({drive.status.message}). To go on with it: quorate"
            f" drive ready {name}. To take the drive into service again: quorate drive restart {name} --good"
        )
    return ""


def _not_restarted(drive: Drive, opinion: Opinion, name: str) -> str:
    serial = drive.spec.serial_number
    if drive.phase is OperationalStatus.REMOVED:
        return (
            f"drive {serial} is out of its group and wiped: it is not restarted. To take it into service as a new one,"
            f" delete its object: kubectl delete drive {drive.name}"
        )
    if drive.phase is OperationalStatus.OPERATIVE or opinion.health is DriveHealth.GOOD:
        return ""
    marked = opinion.verdict.reason in (Healthy.MARKED_BROKEN.code, Healthy.MARKED_FAULTY.code)
    how = "reset the broker's marker first" if marked else f"quorate drive restart {name} --good"
    return (
        f"drive {serial} would be {opinion.health}, and only a GOOD one is restarted: {opinion.verdict.message}"
        f" If it is good all the same: {how}"
    )


def moving(drive: Drive, volumes: Iterable[Volume], groups: Iterable[str]) -> tuple[Moving, ...]:
    """What must leave the drive, by name. ``groups``: the volume groups on it."""
    here = set(groups)
    return tuple(
        Moving(
            name=volume.metadata.labels.get(labels.REPLICATED_VOLUME) or volume.name,
            state=str(volume.status.usage or VolumeUsage.IN_USE),
            percent=percent(volume),
            message=volume.status.message,
        )
        for volume in sorted(volumes, key=lambda each: each.name)
        if volume.spec.location in here
    )


def percent(volume: Volume) -> int:
    """How far the release of one thing is, by the word of whoever moves it; all only when it is released."""
    if volume.status.usage is VolumeUsage.RELEASED:
        return 100
    said = volume.metadata.annotations.get(annotation_keys.RELEASE_RECOVERY, "")
    return min(int(said), 99) if said.isascii() and said.isdigit() and len(said) <= 3 else 0


def is_over(drive: Drive, goal: OperationalStatus) -> bool:
    """Whether there is nothing more to follow: it is where it should be, or cannot get there by itself."""
    phase = drive.status.operational_status
    if phase in (goal, OperationalStatus.FAILED):
        return True
    reached = phase is not None and _ORDER.index(phase) > _ORDER.index(goal)
    return reached and goal is not OperationalStatus.OPERATIVE


def find(drives: Iterable[Drive], named: str) -> tuple[Drive, ...]:
    """Drives by name, serial number, ``node/slot`` or ``node/device``."""
    return tuple(
        drive
        for drive in drives
        if named
        in (
            drive.name,
            drive.spec.serial_number,
            f"{drive.spec.node_id}/{drive.spec.slot}",
            f"{drive.spec.node_id}/{drive.spec.path.removeprefix('/dev/')}",
        )
    )


def _at(drive: Drive, phase: OperationalStatus) -> int:
    """Which of the four steps it is at."""
    match phase:
        case OperationalStatus.RELEASING:
            return 0
        case OperationalStatus.RELEASED:
            return 1
        case OperationalStatus.REMOVING:
            return 2
        case OperationalStatus.REMOVED:
            return 3
    released = conditions.is_true(drive.status.conditions, Released)
    return 2 if released else 0


def _health(drive: Drive, said: str) -> str:
    return f"{drive.status.health or DriveHealth.UNKNOWN}: {said}" if said else str(drive.status.health or "")


def _where(drive: Drive) -> str:
    if drive.status.presence is Presence.OFFLINE:
        return "it is out; waiting for another drive"
    place = f"slot {drive.spec.slot}" if drive.spec.slot else drive.spec.path
    light = ", its light is on" if drive.status.detachment is not None and drive.status.detachment.light else ""
    return f"serial {drive.spec.serial_number}, {place} of {drive.spec.node_id}{light}"


def _message(drive: Drive, wanted: type[conditions.ConditionType]) -> str:
    found = conditions.find(drive.status.conditions, wanted)
    return found.message if found is not None else ""
