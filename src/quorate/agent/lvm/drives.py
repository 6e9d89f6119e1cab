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
    selector: DeviceSelector, drives: Iterable[Drive], *, replacements_join: bool = False
) -> tuple[Drive, ...]:
    """The drives that a selector names and that are there, by path. An empty selector names none, not all.

    ``replacements_join``: a serial number stands for the drive that has taken its place, too.
    """
    if not (selector.slots or selector.paths or selector.serial_numbers):
        return ()
    return tuple(
        sorted(
            (
                drive
                for drive in drives
                if drive.status.presence is Presence.ONLINE
                and (not selector.slots or drive.spec.slot in selector.slots)
                and (not selector.paths or drive.spec.path in selector.paths)
                and (
                    not selector.serial_numbers
                    or drive.spec.serial_number in selector.serial_numbers
                    or (replacements_join and any(old in selector.serial_numbers for old in drive.status.replaces))
                )
            ),
            key=lambda drive: drive.spec.path,
        )
    )


def words_for(selector: DeviceSelector) -> str:
    """What a selector asks for, as a person would say it."""
    asked = (("slot", selector.slots), ("path", selector.paths), ("serial number", selector.serial_numbers))
    return "; ".join(f"{what} {' or '.join(values)}" for what, values in asked if values) or "nothing is named"


def still_listed(found: tuple[_Device, ...], known: Iterable[_Device]) -> tuple[_Device, ...]:
    """What was found, and what was known before and is found no more, by path."""
    there = {device.path for device in found} | {device.drive_uuid for device in found if device.drive_uuid}
    kept = [device for device in known if device.path not in there and device.drive_uuid not in there]
    return tuple(sorted((*found, *kept), key=lambda device: device.path))
