"""The end of it: a drive is out and another one is in its place. And a word to whoever pulls the wrong one."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import MOST_REPLACED, OperationalStatus, Presence
from quorate.drives.view import DriveView, NodeView
from quorate.engine import Delete, Write


def successor(each: DriveView, view: NodeView) -> Drive | None:
    """The drive that has come in the place of one that was removed and is out; None: it is not over yet."""
    found = _followers(each, view)
    return None if _rivals(each, view) else next(iter(found), None)


def replaced(each: DriveView, view: NodeView) -> tuple[str, ...]:
    """The serial numbers of the drives that were in this one's place, the last one first, with what is seen now."""
    gone = [other.drive for other in view.drives if _is_same(successor(other, view), each.drive)]
    known = (serial for drive in gone for serial in (drive.spec.serial_number, *drive.status.replaces))
    return tuple(dict.fromkeys((*known, *each.drive.status.replaces)))[:MOST_REPLACED]


def is_noted(gone: Drive, successor: Drive) -> bool:
    """Whether the successor says whose place it has: only then may the object of the one that is out go."""
    return gone.spec.serial_number in successor.status.replaces


def _is_same(one: Drive | None, other: Drive) -> bool:
    return one is not None and one.name == other.name


def doubt(each: DriveView, view: NodeView) -> str:
    """What to say where slots are not known, and a new drive may be in the place of more than one."""
    rivals = _rivals(each, view)
    if not rivals:
        return ""
    named = ", ".join(sorted(drive.spec.serial_number for drive in rivals))
    return f"A new drive may be in its place or in that of {named}: delete the Drive object of the one it replaces."


def requests_given_back(view: NodeView) -> Iterator[Write]:
    """What was asked for a drive that is not there any more.

    After its object: of a drive that is known and out, the broker keeps the lock until it is back.
    """
    return (Delete(request) for request in view.lost_requests if not request.deleting)


def hint(each: DriveView, view: NodeView) -> str:
    """What to say of a device that goes while another one of the node waits to be pulled."""
    meant = [
        other.drive
        for other in view.drives
        if other.phase is OperationalStatus.REMOVED and other.drive.status.presence is Presence.ONLINE
    ]
    if not meant or each.phase is OperationalStatus.REMOVED:
        return ""
    named = ", ".join(f"{drive.spec.serial_number} in slot {drive.spec.slot or 'unknown'}" for drive in meant)
    return f" To be pulled is {named}: if it was taken for that one, put it back."


def _followers(each: DriveView, view: NodeView) -> list[Drive]:
    if each.phase is not OperationalStatus.REMOVED or each.drive.status.presence is not Presence.OFFLINE:
        return []
    return [other.drive for other in view.drives if _replaces(other.drive, each.drive)]


def _rivals(each: DriveView, view: NodeView) -> list[Drive]:
    """Others that are out without a known slot, and that the same new drive may have replaced."""
    found = {drive.name for drive in _followers(each, view)}
    if each.drive.spec.slot:
        return []
    others = [other for other in view.drives if other.drive.name != each.drive.name and not other.drive.spec.slot]
    return [other.drive for other in others if found & {drive.name for drive in _followers(other, view)}]


def _replaces(other: Drive, gone: Drive) -> bool:
    here = other.status.presence is Presence.ONLINE and other.spec.serial_number != gone.spec.serial_number
    if not here:
        return False
    if gone.spec.slot:
        return other.spec.slot == gone.spec.slot and other.spec.enclosure == gone.spec.enclosure
    came, went = other.metadata.creation_timestamp, gone.status.missing_since
    return came is not None and went is not None and came >= went
