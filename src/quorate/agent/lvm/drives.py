"""Which Drive is behind a device, and which Drives a group may be made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, Presence
from quorate.api.storage.llv import UsedDevice
from quorate.api.storage.lvg import DeviceSelector, GroupDevice
from quorate.api.struct import replace

_Device = TypeVar("_Device", bound=UsedDevice | GroupDevice)

#: ``/dev/sdb1`` is a part of ``/dev/sdb``; where the disk's name ends in a digit a ``p`` comes first.
_PARTITION: Final = re.compile(r"(?P<disk>.*[0-9])p[0-9]+\Z|(?P<letters>.*[^0-9])[0-9]+\Z")


def drive_behind(path: str, drives: Iterable[Drive]) -> str:
    """The UUID of the Drive that a device is, or is a partition of; "" when it is neither."""
    match = _PARTITION.match(path)
    whole = (match["disk"] or match["letters"]) if match is not None else ""
    for candidate in (path, whole):
        for drive in drives:
            if candidate and drive.spec.path == candidate and drive.status.presence is Presence.ONLINE:
                return drive.spec.uuid
    return ""


def remembered(found: tuple[_Device, ...], known: Iterable[_Device], drives: Iterable[Drive]) -> tuple[_Device, ...]:
    """What was found; a device without a drive keeps the one that it had while that one is away.

    A drive may be known to be gone before LVM is looked at again. What lay on it would then lie on nothing.
    """
    away = {drive.name for drive in drives if drive.status.presence is Presence.OFFLINE}
    before = {device.path: device.drive_uuid for device in known if device.drive_uuid in away}
    return tuple(
        replace(device, drive_uuid=before[device.path]) if not device.drive_uuid and device.path in before else device
        for device in found
    )


def as_seen(drives: Iterable[Drive], there: Mapping[str, DriveSpec]) -> tuple[Drive, ...]:
    """The drives' objects as the drives were last seen (``there``): objects follow a little later."""
    return tuple(
        replace(
            drive,
            spec=there.get(drive.name, drive.spec),
            status=replace(drive.status, presence=Presence.ONLINE if drive.name in there else Presence.OFFLINE),
        )
        for drive in drives
    )


def selected(
    selector: DeviceSelector,
    drives: Iterable[Drive],
    *,
    replacements_join: bool = False,
    others: Iterable[DeviceSelector] = (),
) -> tuple[Drive, ...]:
    """The drives that a selector names and that are there, by path. An empty selector names none, not all.

    ``replacements_join``: a serial number stands for the drive that has taken its place, too. Such a drive is left to
    whoever names it more closely of the node's ``others``: itself, or one that was in that place after the one meant.
    """
    others = tuple(others) if replacements_join else ()

    def is_meant(drive: Drive) -> bool:
        away = _distance(selector, drive, replacements_join=replacements_join)
        if drive.status.presence is not Presence.ONLINE or away is None:
            return False
        nearer = (_distance(other, drive, replacements_join=True) for other in others)
        return all(other is None or other >= away for other in nearer)

    return tuple(sorted(filter(is_meant, drives), key=lambda drive: drive.spec.path))


def _distance(selector: DeviceSelector, drive: Drive, *, replacements_join: bool) -> int | None:
    """How many drives ago in its place the one was that a selector names; 0: this one; None: none of them."""
    if not (selector.slots or selector.paths or selector.serial_numbers):
        return None
    if selector.slots and drive.spec.slot not in selector.slots:
        return None
    if selector.paths and drive.spec.path not in selector.paths:
        return None
    if not selector.serial_numbers:
        return 0
    serials = (drive.spec.serial_number, *(drive.status.replaces if replacements_join else ()))
    return next((ago for ago, serial in enumerate(serials) if serial in selector.serial_numbers), None)


def words_for(selector: DeviceSelector) -> str:
    """What a selector asks for, as a person would say it."""
    asked = (("slot", selector.slots), ("path", selector.paths), ("serial number", selector.serial_numbers))
    return "; ".join(f"{what} {' or '.join(values)}" for what, values in asked if values) or "nothing is named"


def still_listed(found: tuple[_Device, ...], known: Iterable[_Device]) -> tuple[_Device, ...]:
    """What was found, and what was known before and is found no more, by path."""
    there = {device.path for device in found} | {device.drive_uuid for device in found if device.drive_uuid}
    kept = [device for device in known if device.path not in there and device.drive_uuid not in there]
    return tuple(sorted((*found, *kept), key=lambda device: device.path))
