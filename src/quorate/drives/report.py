"""What is said of a drive: its conditions, its progress, and one sentence for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.api import conditions
from quorate.api.annotation_keys import Replacement
from quorate.api.baremetal.drive import DriveHealth, OperationalStatus, Presence
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Clean, LocateLight, Present, Released, Removed
from quorate.drives import asked, removal
from quorate.drives.health import NOT_TRUSTED, Opinion
from quorate.drives.phases import Release, Removal
from quorate.drives.steps import percent
from quorate.drives.view import DriveView, NodeView, Piece
from quorate.volumes.waits import shortened

#: Of everything that a release waits for, what a person should hear of first.
_URGENT: Final = (
    Released.LAST_COPY,
    Released.UNMANAGED_VOLUMES,
    Released.MISUNDERSTOOD,
    Released.WAITING_FOR_DELETION,
    Released.IN_USE,
    Released.WAITING_FOR_OPERATOR,
    Released.STOPPED,
    Released.PAUSED,
    Released.WAITING_FOR_RESYNC,
    Released.RELEASING,
)
_NAMED: Final = 5
_LENGTH: Final = 1000


def progress(view: DriveView, phase: OperationalStatus) -> int | None:
    """How much of what must leave has left, by bytes; None: nothing has to."""
    if phase is OperationalStatus.OPERATIVE:
        return None
    if view.phase is OperationalStatus.OPERATIVE:
        return 0
    whole = sum(int(piece.llv.spec.size) for piece in view.pieces)
    moved = sum(int(piece.llv.spec.size) * percent(piece.volume) for piece in view.pieces if piece.volume is not None)
    if not whole:
        return 0 if view.unmanaged else 100
    return min(moved // whole, 99) if view.unmanaged else moved // whole


def released(view: DriveView, phase: OperationalStatus) -> Verdict:
    """Whether everything on the drive has left."""
    if phase is OperationalStatus.OPERATIVE:
        return Released.NOT_REQUESTED()
    if view.phase is OperationalStatus.OPERATIVE:
        return Released.RELEASING("What is on it is being listed.")
    waiting = [piece for piece in view.pieces if piece.release is Release.WORKING]
    failed = [piece for piece in view.pieces if piece.release is Release.FAILED]
    strays = removal.unmanaged_words(view)
    if Release.WORKING in view.contents:
        done, every = len(view.pieces) - len(waiting) - len(failed), len(view.contents)
        reasons = [_reason(piece) for piece in waiting]
        if strays:
            reasons.append(Released.UNMANAGED_VOLUMES)
        told = "; ".join(filter(None, (_told((*failed, *waiting)), strays)))
        first = min(reasons, key=_URGENT.index)
        return first(shortened(f"{done} of {every} have left; {told}", _LENGTH))
    if failed or strays:
        return Released.FAILED(shortened("; ".join(filter(None, (_told(failed), strays))), _LENGTH))
    strange = _foreign(view)
    return Released.FOREIGN_DATA(strange) if strange else Released.RELEASED()


def removed(view: DriveView, phase: OperationalStatus, node: NodeView) -> Verdict:
    """Whether the drive can be pulled."""
    match phase:
        case OperationalStatus.OPERATIVE:
            return Removed.NOT_REQUESTED()
        case OperationalStatus.RELEASED:
            strange = _foreign(view)
            return Removed.WAITING_FOR_USER(f"Nothing of ours is on it any more. {strange}" if strange else "")
        case OperationalStatus.REMOVING:
            return removal.verdict(view, node)
        case OperationalStatus.REMOVED:
            said = view.drive.status.detachment
            return Removed.REMOVED(said.message if said is not None else "")
        case OperationalStatus.FAILED if removal.state_of(view) is not Removal.NOT_BEGUN:
            if asked.replacement(view.drive) is not Replacement.READY:
                return removal.withdrawal(view)
            return Removed.STEP_FAILED(shortened(removal.failure(view), _LENGTH))
    return Removed.WAITING_FOR_RELEASE()


def present(view: DriveView) -> Verdict:
    """Whether the device answers."""
    match view.drive.status.presence:
        case Presence.ONLINE:
            return Present.ONLINE()
        case Presence.OFFLINE:
            return Present.OFFLINE()
    return Present.NOT_REPORTED()


def clean(view: DriveView) -> Verdict:
    """Whether nothing of anybody else's is on it; of a device that is away, as it was."""
    status = view.drive.status
    known = conditions.find(status.conditions, Clean)
    if status.presence is Presence.OFFLINE and known is not None:
        return Clean.mirror(known)
    if view.drive.spec.is_system:
        return Clean.SYSTEM()
    found = filter(None, (status.foreign_data, *status.unmanaged_volumes))
    listed = ", ".join(found)
    return Clean.HAS_DATA(shortened(f"On it: {listed}.", _LENGTH)) if listed else Clean.CLEAN()


def light(view: DriveView) -> Verdict:
    """The locate light."""
    seen, said = view.drive.status.led_on, view.drive.status.detachment
    if seen or (said is not None and said.light):
        return LocateLight.ON()
    return LocateLight.NOT_AVAILABLE() if seen is None else LocateLight.OFF()


def message(view: DriveView, phase: OperationalStatus, opinion: Opinion, verdicts: Iterable[Verdict]) -> str:
    """One sentence for people: what it waits for, or what they should know."""
    drive, found = view.drive, {verdict.type: verdict.message for verdict in verdicts}
    said = []
    match phase:
        case OperationalStatus.OPERATIVE:
            if opinion.health in NOT_TRUSTED:
                said.append(opinion.verdict.message)
                if drive.spec.is_system:
                    said.append("The node runs from it: nothing is done by itself.")
            elif drive.status.presence is Presence.OFFLINE:
                said.append("The device is gone.")
        case OperationalStatus.RELEASING:
            said.append(found[Released.__name__])
        case OperationalStatus.FAILED if removal.state_of(view) is Removal.NOT_BEGUN:
            said.append(found[Released.__name__])
        case _:
            said.append(found[Removed.__name__])
    wanted = asked.replacement(drive) is Replacement.RESTART
    restartable = phase in (OperationalStatus.RELEASED, OperationalStatus.FAILED)
    if wanted and restartable and opinion.health is not DriveHealth.GOOD:
        said.append(f"It is not restarted: its health is {opinion.health}, not GOOD.")
    said.append(asked.misunderstood(drive))
    return shortened(" ".join(filter(None, said)), _LENGTH)


def _foreign(view: DriveView) -> str:
    """What to say of data on it that is not ours; "": there is none, or the device is gone, and its data with it."""
    status = view.drive.status
    if not status.foreign_data or status.presence is not Presence.ONLINE:
        return ""
    return f"It also holds {status.foreign_data}: not ours to move, nor to wipe. Save it, then wipe it by hand."


def _reason(piece: Piece) -> conditions.Reason:
    found = conditions.find(piece.volume.status.conditions, Released) if piece.volume is not None else None
    code = found.reason if found is not None else ""
    return next((reason for reason in _URGENT if reason.code == code), Released.RELEASING)


def _told(pieces: Iterable[Piece]) -> str:
    named = list(pieces)
    words = [
        f"{piece.title}: {piece.volume.status.message}"
        if piece.volume is not None and piece.volume.status.message
        else piece.title
        for piece in named[:_NAMED]
    ]
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return "; ".join((*words, *more))
