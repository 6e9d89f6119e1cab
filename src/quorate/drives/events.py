"""What people are told of a drive, once for each change. Names are csi-baremetal's where it has one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.api import conditions
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveHealth, DriveStatus, OperationalStatus, Presence
from quorate.api.conditions.drive import Clean, Healthy, Present
from quorate.drives import asked
from quorate.drives.health import NOT_TRUSTED, Opinion
from quorate.engine import PlanEvent

_OF_HEALTH: Final = {
    DriveHealth.GOOD: "DriveHealthGood",
    DriveHealth.SUSPECT: "DriveHealthSuspect",
    DriveHealth.BAD: "DriveHealthFailure",
    DriveHealth.UNKNOWN: "DriveHealthUnknown",
}
_OF_PHASE: Final = {
    OperationalStatus.RELEASING: ("DriveReleasing", "Data is being moved away from it."),
    OperationalStatus.RELEASED: ("DriveReadyForRemoval", "Nothing on it is needed any more."),
    OperationalStatus.FAILED: ("DriveRemovalFailed", "It cannot be removed."),
    OperationalStatus.REMOVING: ("DriveRemoving", "It is being made ready to be pulled."),
    OperationalStatus.REMOVED: ("DriveReadyForPhysicalRemoval", "It can be pulled."),
}
_QUIET: Final = (OperationalStatus.REMOVING,)
_ENDS: Final = (OperationalStatus.RELEASED, OperationalStatus.FAILED)


def of_change(drive: Drive, after: DriveStatus, opinion: Opinion, hint: str = "") -> Iterator[PlanEvent]:
    """Everything that has changed since it was last told. ``hint``: what to say of a device that goes."""
    before = drive.status
    if before.operational_status is None:
        where = f"in slot {drive.spec.slot}" if drive.spec.slot else f"at {drive.spec.path}"
        yield PlanEvent(drive, "DriveDiscovered", f"Drive {drive.spec.serial_number} {where} of {drive.spec.node_id}.")
    unclear = asked.misunderstood(drive)
    if unclear and unclear not in before.message:
        yield PlanEvent(drive, "DriveAnnotationMisunderstood", unclear, warning=True)
    yield from _health(drive, before, opinion)
    yield from _presence(drive, after, hint)
    yield from _data(drive, after)
    yield from _phase(drive, before.operational_status, after, opinion)


def closed(drive: Drive, successor: Drive) -> PlanEvent:
    """Another drive is in its place."""
    message = f"Drive {drive.spec.serial_number} is out, and {successor.spec.serial_number} is in its place."
    return PlanEvent(drive, "DriveSuccessfullyRemoved", message)


def _health(drive: Drive, before: DriveStatus, opinion: Opinion) -> Iterator[PlanEvent]:
    recovered = before.health in NOT_TRUSTED
    known = conditions.find(before.conditions, Healthy)
    if opinion.overridden and (known is None or known.reason != opinion.verdict.reason):
        # Also where it changes nothing: who speaks now is a person.
        yield PlanEvent(drive, "DriveHealthOverridden", opinion.verdict.message, warning=True)
    if before.health is opinion.health or (opinion.trusted and not recovered):
        return
    warning = opinion.health is not DriveHealth.GOOD
    message = f"Its health is {opinion.health}: {opinion.verdict.message}"
    yield PlanEvent(drive, _OF_HEALTH[opinion.health], message, warning=warning)


def _presence(drive: Drive, after: DriveStatus, hint: str) -> Iterator[PlanEvent]:
    before, now = (conditions.find(status.conditions, Present) for status in (drive.status, after))
    if now is None or before is None or before.reason == now.reason:
        return
    if now.reason == Present.OFFLINE.code:
        expected = drive.status.operational_status is OperationalStatus.REMOVED
        yield PlanEvent(drive, "DriveStatusOffline", f"The device is gone.{hint}", warning=not expected)
    elif before.reason == Present.OFFLINE.code:
        yield PlanEvent(drive, "DriveStatusOnline", f"The device is back.{_put_back(drive)}")


def _data(drive: Drive, after: DriveStatus) -> Iterator[PlanEvent]:
    before, now = (conditions.find(status.conditions, Clean) for status in (drive.status, after))
    known = before.reason if before is not None else Clean.CLEAN.code
    if now is None or now.reason == known:
        return
    if now.reason == Clean.HAS_DATA.code:
        yield PlanEvent(drive, "DriveHasData", now.message)
    elif known == Clean.HAS_DATA.code:
        yield PlanEvent(drive, "DriveClean", now.message)


def _put_back(drive: Drive) -> str:
    if drive.status.operational_status is not OperationalStatus.REMOVED:
        return ""
    return " It is the one that was removed: to take it into service again, delete this Drive object."


def _phase(drive: Drive, before: OperationalStatus | None, after: DriveStatus, opinion: Opinion) -> Iterator[PlanEvent]:
    phase = after.operational_status
    if phase is before or phase is None or (before is None and phase is OperationalStatus.OPERATIVE):
        return
    if phase is OperationalStatus.OPERATIVE:
        if before in _ENDS:
            yield PlanEvent(drive, "DriveRestarted", "A person takes it into service again.")
        else:
            yield PlanEvent(drive, "DriveReleaseCancelled", f"It stays: {opinion.verdict.message}")
        return
    if phase is OperationalStatus.RELEASING and after.presence is Presence.OFFLINE:
        # By itself after its grace, or because somebody says that it is bad.
        yield PlanEvent(drive, "MissingDriveReplacementInitiated", opinion.verdict.message)
    said = after.detachment
    if phase is OperationalStatus.REMOVED and said is not None and not said.light:
        yield PlanEvent(drive, "DriveLocateLEDFailed", said.message, warning=True)
    reason, words = _OF_PHASE[phase]
    yield PlanEvent(drive, reason, after.message or words, warning=phase not in _QUIET)
