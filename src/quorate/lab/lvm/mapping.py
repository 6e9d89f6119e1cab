"""Device mapper: what ``dmsetup`` makes of a device's beginning, read only, and the devices that LVM's volumes are.

An active logical volume is a device of its own, beside its volume group: it outlives the drive that it lies on, and
with it the group, until somebody removes it or the node boots (facts/drbd9-agent, F6).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from quorate.lab.kernel import BlockDevice
from quorate.lab.lvm.groups import LogicalVolume, ThinPool, VolumeGroup, VolumeManager, mapper_path, uuid_of

#: Who holds a device that is mapped: nobody else can have it for itself meanwhile.
HOLDER = "device-mapper"


class Mapping:
    """The first bytes of a device, while it is there."""

    def __init__(self, under: BlockDevice, size: int) -> None:
        self.device = BlockDevice(size)
        self.device.contents, self.device.metadata = under.contents, under.metadata
        self.device.failed = under.failed
        self._under = under
        under.holder = HOLDER

    def end(self) -> None:
        """Let go of what is under it."""
        self._under.holder = None


@dataclass(frozen=True, slots=True)
class VolumeDevice:
    """What device mapper has of a logical volume, or of a part of a thin pool."""

    name: str
    uuid: str
    group: VolumeGroup
    #: How many have it open: DRBD, a mapping, or devices of device mapper above it.
    opens: int


def volume_devices(manager: VolumeManager, inactive: Collection[str]) -> Iterator[VolumeDevice]:
    """All that are there: not those whose UUIDs are given. Volumes of groups that LVM sees no more are among them."""
    for group in manager.groups.values():
        for volume in group.volumes.values():
            for device in _devices_of(group, volume, inactive):
                if device.uuid not in inactive:
                    yield device


def volume_uuid(group: VolumeGroup, volume: LogicalVolume) -> str:
    """As LVM tells its devices from others."""
    return f"LVM-{group.uuid.replace('-', '')}{volume.uuid.replace('-', '')}"


def _devices_of(group: VolumeGroup, volume: LogicalVolume, inactive: Collection[str]) -> Iterator[VolumeDevice]:
    name, uuid = mapper_path(group, volume).removeprefix("/dev/mapper/"), volume_uuid(group, volume)
    yield VolumeDevice(name, uuid, group, int(volume.device.holder is not None))
    if not isinstance(volume, ThinPool):
        return
    above = [uuid, *(volume_uuid(group, thin) for thin in group.thin_volumes(volume))]
    yield VolumeDevice(f"{name}-tpool", f"{uuid}-tpool", group, sum(each not in inactive for each in above))
    for part in ("tdata", "tmeta"):
        own = uuid_of(f"{volume.uuid}/{part}").replace("-", "")
        of_part = f"LVM-{group.uuid.replace('-', '')}{own}-{part}"
        yield VolumeDevice(f"{name}_{part}", of_part, group, int(f"{uuid}-tpool" not in inactive))
