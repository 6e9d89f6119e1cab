"""Which block devices are drives, who they are, and what may be said of them from the outside.

Identity is serial number, vendor and product. The name of the object follows from that and from the node: a drive that
is moved to another node becomes another object there, because an object's node never changes.

lsblk has most of that from udev, and until udev has seen a drive, or while its database is made anew, less of it. Such
an incomplete identity says nothing against a drive that is known already (``doubtful``).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quorate.agent.inventory.lsblk import BlockDevice
from quorate.api.baremetal.drive import DriveSpec, DriveType
from quorate.api.meta import Bytes, NodeName

#: A namespace of our own for names that derive from what they name.
_NAMESPACE: Final = uuid.UUID("5d1b9d2e-6f0c-5c55-9a3e-0d6c1f4f7a10")

#: Block devices of type ``disk`` that are no drives: made by the kernel, or remote, or parts of another.
_NO_DRIVE: Final = re.compile(
    r"(loop|ram|zram|dm-|md|drbd|nbd|rbd|zd|sr|fd|mtdblock|pmem)[0-9]|mmcblk[0-9]+(boot|rpmb)"
)

#: What a node cannot lose: it runs from there.
_SYSTEM_MOUNTS: Final = frozenset({"/", "/boot", "/boot/efi", "/efi", "/usr", "/var", "[SWAP]"})

_LABEL_LENGTH: Final = 128

#: The signature of a device that LVM has.
LVM_MEMBER: Final = "LVM2_member"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a drive sits, as far as the machine knows."""

    enclosure: str = ""
    slot: str = ""
    #: The locate light; None: there is none.
    light: bool | None = None


@dataclass(frozen=True, slots=True)
class Discovered:
    """A drive as it was seen."""

    spec: DriveSpec
    place: Place = Place()
    wwn: str = ""
    #: What is on it outside of LVM, in words.
    foreign: tuple[str, ...] = ()
    #: It has said its serial number and its product.
    complete: bool = True

    @property
    def name(self) -> str:
        """The name of its object."""
        return self.spec.uuid


def is_drive(device: BlockDevice) -> bool:
    """Whether a block device is a drive of this machine."""
    return device.type == "disk" and device.size > 0 and _NO_DRIVE.match(device.name) is None


def serial_number(device: BlockDevice) -> str:
    """What tells a drive from others of its make: its serial number, or the world-wide name that stands for one."""
    return (device.serial or device.wwn)[:_LABEL_LENGTH]


def drive_uuid(node: NodeName, device: BlockDevice) -> str:
    """The name of a drive's object: the same whenever this drive is seen on this node."""
    identity = "\0".join((node, device.vendor, device.model, serial_number(device)))
    return str(uuid.uuid5(_NAMESPACE, identity))


def discover(node: NodeName, device: BlockDevice, place: Place) -> Discovered:
    """A drive with a serial number, described."""
    return Discovered(
        DriveSpec(
            uuid=drive_uuid(node, device),
            serial_number=serial_number(device),
            vid=device.vendor[:_LABEL_LENGTH],
            pid=device.model[:_LABEL_LENGTH],
            node_id=node,
            path=device.path,
            size=Bytes(device.size),
            type=drive_type(device),
            enclosure=place.enclosure[:_LABEL_LENGTH],
            slot=place.slot[:_LABEL_LENGTH],
            firmware=device.revision[:_LABEL_LENGTH],
            is_system=is_system(device),
            is_clean=is_clean(device),
        ),
        place,
        wwn=device.wwn,
        foreign=() if is_system(device) else tuple(outside_lvm(device)),
        complete=bool(device.serial and device.model),
    )


def is_same(spec: DriveSpec, device: BlockDevice) -> bool:
    """Whether a device has the identity of a known drive: serial number, or what stood for one, vendor and product."""
    serials = (device.serial[:_LABEL_LENGTH], device.wwn[:_LABEL_LENGTH])
    made = (device.vendor[:_LABEL_LENGTH], device.model[:_LABEL_LENGTH])
    return spec.serial_number in serials and made == (spec.vid, spec.pid)


def drive_type(device: BlockDevice) -> DriveType:
    """What it is made of."""
    if device.transport == "nvme" or device.name.startswith("nvme"):
        return DriveType.NVME
    return DriveType.HDD if device.rotational else DriveType.SSD


def is_system(device: BlockDevice) -> bool:
    """Whether the node runs from it, or from anything made of it."""
    return any(point in _SYSTEM_MOUNTS for part in device.tree() for point in part.mount_points)


def is_clean(device: BlockDevice) -> bool:
    """Whether nothing at all is on it."""
    return not (device.children or device.signature or device.partition_table or device.mount_points)


def outside_lvm(drive: BlockDevice) -> Iterator[str]:
    """Signatures on a drive, and parts of it without one, but for LVM's and what is in that."""
    waiting = [drive]
    while waiting:
        device = waiting.pop(0)
        if device.signature == LVM_MEMBER:
            continue
        if device.signature:
            yield f"{device.signature} on {device.path}"
        elif device.mount_points or (device is not drive and not device.children):
            yield device.path
        waiting = [*device.children, *waiting]


def doubtful(found: Iterable[Discovered], known: Iterable[DriveSpec], names: Mapping[str, str]) -> dict[str, str]:
    """By the name that an incomplete identity gives: the name of the known drive that it is, or may well be.

    Known by its world-wide name, or by its path. ``names`` are those of drives by world-wide name, as they were seen
    before.
    """
    found = tuple(found)
    there = {drive.name for drive in found}
    missing = {spec.uuid: spec for spec in known if spec.uuid not in there}
    by_path = {spec.path: name for name, spec in missing.items()}
    doubts = {}
    for drive in found:
        if not drive.complete:
            name = names.get(drive.wwn, "") if drive.wwn else ""
            name = name if name in missing else by_path.get(drive.spec.path, "")
            if name:
                doubts[drive.name] = name
    return doubts


def unique(found: Iterable[Discovered]) -> tuple[tuple[Discovered, ...], tuple[str, ...]]:
    """Drives by name, and the paths of those left out: two paths to one drive are one drive, the first in order."""
    kept: dict[str, Discovered] = {}
    in_order = sorted(found, key=lambda drive: drive.spec.path)
    left_out = [drive.spec.path for drive in in_order if kept.setdefault(drive.name, drive) is not drive]
    return tuple(kept[name] for name in sorted(kept)), tuple(left_out)
