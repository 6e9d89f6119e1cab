"""Devices that outlived their volume group: of a drive that was pulled, device mapper keeps what was active on it.

LVM sees the group no more, and lists nothing of it; but ``/dev/<group>`` is there as long as one of them is, and
``vgcreate`` refuses the name for the new drive (facts/drbd9-agent, F6). To remove such a device destroys nothing: it is
what deactivating a volume does, and device mapper refuses it while anybody has the device open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quorate.agent.lvm.seen import SeenGroups

#: ``LVM-``, the group's UUID and the volume's, of 32 characters each; then what part of it the device is, if it is one.
_LVM: Final = "LVM-"
_UUID_LENGTH: Final = 32


@dataclass(frozen=True, slots=True)
class MappedDevice:
    """A device of device mapper."""

    name: str
    uuid: str
    #: How many have it open.
    opens: int


def device_name(group: str, volume: str) -> str:
    """What device mapper calls a logical volume."""
    return f"{_escaped(group)}-{_escaped(volume)}"


def left_over(told: str, group: str, seen: SeenGroups) -> tuple[MappedDevice, ...]:
    """The devices of groups of that name of which LVM knows nothing. ``told``: by ``commands.list_mapped``."""
    if seen.incomplete:
        return ()
    known = {each.uuid.replace("-", "") for each in seen.groups}
    beginning = f"{_escaped(group)}-"
    return tuple(
        device
        for device in _read(told)
        # Of a longer name the next would be the second half of an escaped hyphen.
        if device.name.startswith(beginning)
        and not device.name.startswith(f"{beginning}-")
        and device.uuid.startswith(_LVM)
        and len(device.uuid) >= len(_LVM) + 2 * _UUID_LENGTH
        and device.uuid[len(_LVM) : len(_LVM) + _UUID_LENGTH] not in known
    )


def _read(told: str) -> Iterator[MappedDevice]:
    """A line for each; another where there is none."""
    for line in told.splitlines():
        name, *more = line.strip().split("/")
        if len(more) == 2 and more[1].isdecimal():
            yield MappedDevice(name, more[0], int(more[1]))


def _escaped(name: str) -> str:
    return name.replace("-", "--")
