"""Volume groups, and who has which extents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from quorate.errors import QuorateError
from quorate.lab.drives import Drive, hash_of
from quorate.lab.kernel import BlockDevice
from quorate.lab.lvm.volume import EXTENT, Ground, Run, leave, take

_LABEL_AREA = 1 << 20
_POOL_METADATA_EXTENTS = 1

_Volume = TypeVar("_Volume", bound="LogicalVolume")
CHUNK = 64 << 10


class OutOfSpace(QuorateError):
    """A volume group has fewer free extents than were asked for."""

    def __init__(self, group: str, free: int, needed: int) -> None:
        super().__init__(f'Volume group "{group}" has insufficient free space ({free} extents): {needed} required.')


class NotThere(QuorateError):
    """The extents that were named are not free, or too few."""

    def __init__(self, volume: str, lacking: int) -> None:
        super().__init__(
            f"Insufficient suitable allocatable extents for logical volume {volume}: {lacking} more required"
        )


def uuid_of(text: str) -> str:
    """An LVM UUID: the same for the same text, in every run."""
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    digits, value = [], hash_of(text)
    for index in range(32):
        value = hash_of(f"{value}/{index}")
        digits.append(alphabet[value % len(alphabet)])
    letters = "".join(digits)
    return "-".join((letters[:6], *(letters[at : at + 4] for at in range(6, 26, 4)), letters[26:]))


@dataclass(eq=False)
class PhysicalVolume:
    """A drive that LVM has labelled."""

    drive: Drive
    uuid: str
    ground: Ground = field(default_factory=Ground)

    @property
    def extents(self) -> int:
        return max(0, self.drive.size - _LABEL_AREA) // EXTENT


@dataclass(eq=False)
class LogicalVolume:
    """A volume with extents of its own."""

    name: str
    uuid: str
    runs: tuple[Run, ...]
    device: BlockDevice
    tags: set[str] = field(default_factory=set)

    @property
    def extents(self) -> int:
        return sum(run.count for run in self.runs)

    @property
    def size(self) -> int:
        return self.device.size


@dataclass(eq=False)
class ThinPool(LogicalVolume):
    """Space that thin volumes take as they are written. It has a device only for the space it keeps."""


@dataclass(eq=False)
class ThinVolume(LogicalVolume):
    """A volume that takes space from a pool when it is written. What was never written reads as zeroes."""

    pool: ThinPool | None = None

    def allocated(self) -> int:
        blocks = sum(
            end - start for start, end, tag in self.device.contents.runs(0, self.size // 4096) if tag is not None
        )
        return min(self.size, -(-blocks * 4096 // CHUNK) * CHUNK)


class VolumeGroup:
    """Extents of several drives as one pool, and the volumes made of them."""

    def __init__(self, name: str, uuid: str) -> None:
        self.name = name
        self.uuid = uuid
        self.members: list[PhysicalVolume] = []
        self.volumes: dict[str, LogicalVolume] = {}
        self.tags: set[str] = set()
        #: How many volumes were ever made here: no two have the same UUID, whatever their names.
        self.made = 0

    # --- space ---

    @property
    def extents(self) -> int:
        return sum(member.extents for member in self.members)

    @property
    def free_extents(self) -> int:
        return sum(self.free_on(member) for member in self.members)

    def free_on(self, member: PhysicalVolume) -> int:
        return member.extents - sum(run.count for run in self._runs() if run.ground is member.ground)

    def pool_allocated(self, pool: ThinPool) -> int:
        return sum(volume.allocated() for volume in self.thin_volumes(pool))

    def thin_volumes(self, pool: ThinPool) -> list[ThinVolume]:
        return [volume for volume in self.volumes.values() if isinstance(volume, ThinVolume) and volume.pool is pool]

    def _runs(self) -> Iterator[Run]:
        return (run for volume in self.volumes.values() for run in volume.runs)

    def _allocate(self, count: int) -> tuple[Run, ...]:
        """Free extents, lowest first. Raises OutOfSpace."""
        if count > self.free_extents:
            raise OutOfSpace(self.name, self.free_extents, count)
        found: list[Run] = []
        for member in self.members:
            for first, length in self._gaps(member):
                if count:
                    found.append(Run(member.ground, first, min(length, count)))
                    count -= found[-1].count
        return tuple(found)

    def _allocate_within(self, volume: LogicalVolume, count: int, ranges: Sequence[Run]) -> tuple[Run, ...]:
        """Free extents of those named, in their order. Raises NotThere."""
        found: list[Run] = []
        for named in ranges:
            for member in self.members:
                for first, length in self._gaps(member) if member.ground is named.ground else ():
                    start, end = max(first, named.first), min(first + length, named.first + named.count)
                    if start < end and count:
                        found.append(Run(member.ground, start, min(end - start, count)))
                        count -= found[-1].count
        if count:
            raise NotThere(volume.name, count)
        return tuple(found)

    def _gaps(self, member: PhysicalVolume) -> Iterator[tuple[int, int]]:
        at = 0
        for run in sorted((run for run in self._runs() if run.ground is member.ground), key=lambda run: run.first):
            if run.first > at:
                yield at, run.first - at
            at = run.first + run.count
        if at < member.extents:
            yield at, member.extents - at

    # --- volumes ---

    def create(self, name: str, extents: int) -> LogicalVolume:
        runs = self._allocate(extents)
        volume = LogicalVolume(name, self._uuid(name), runs, BlockDevice(extents * EXTENT))
        take(volume.device, runs, skip=0)
        return self._add(volume)

    def create_pool(self, name: str, extents: int) -> ThinPool:
        runs = self._allocate(extents + 2 * _POOL_METADATA_EXTENTS)  # data, its map, and room to repair the map
        return self._add(ThinPool(name, self._uuid(name), runs, BlockDevice(extents * EXTENT)))

    def create_thin(self, name: str, pool: ThinPool, extents: int) -> ThinVolume:
        return self._add(ThinVolume(name, self._uuid(name), (), BlockDevice(extents * EXTENT), pool=pool))

    def resize(self, volume: LogicalVolume, extents: int, within: Sequence[Run] = ()) -> None:
        """Grow or shrink; grow ``within`` the extents that are named, if any are. Raises OutOfSpace or NotThere."""
        if isinstance(volume, ThinVolume):
            volume.device.resize(extents * EXTENT)
            return
        present = volume.device.size // EXTENT
        if extents > present:
            lacking = extents - present
            added = self._allocate_within(volume, lacking, within) if within else self._allocate(lacking)
            volume.runs += added
            volume.device.resize(extents * EXTENT)
            if not isinstance(volume, ThinPool):
                take(volume.device, volume.runs, skip=present)
        elif not isinstance(volume, ThinPool):
            leave(volume.device, volume.runs, keep=extents)
            volume.runs = _first(volume.runs, extents)
            volume.device.resize(extents * EXTENT)

    def remove(self, volume: LogicalVolume) -> None:
        if not isinstance(volume, ThinPool | ThinVolume):
            leave(volume.device, volume.runs, keep=0)
        del self.volumes[volume.name]

    def _add(self, volume: _Volume) -> _Volume:
        self.volumes[volume.name] = volume
        return volume

    def _uuid(self, name: str) -> str:
        self.made += 1
        return uuid_of(f"{self.uuid}/{name}/{self.made}")


def _first(runs: tuple[Run, ...], extents: int) -> tuple[Run, ...]:
    kept: list[Run] = []
    for run in runs:
        count = min(run.count, extents)
        if count:
            kept.append(Run(run.ground, run.first, count))
        extents -= count
    return tuple(kept)


class VolumeManager:
    """LVM on one node: it knows the groups whose drives are there."""

    def __init__(self, node: str, names: Callable[[Drive], str | None]) -> None:
        self.node = node
        #: All that there ever were, by name; one whose drives are out may have to leave its name to another.
        self.groups: dict[str, VolumeGroup] = {}
        self.labelled: list[PhysicalVolume] = []
        self._name_of = names

    def visible(self) -> dict[str, VolumeGroup]:
        """Groups of which LVM can read anything: what it knows of a group is on the group's drives."""
        return {
            group.name: group
            for group in self.groups.values()
            if any(self.path(member) is not None for member in group.members)
        }

    def dissolve(self, group: VolumeGroup) -> None:
        self.groups = {key: each for key, each in self.groups.items() if each is not group}

    def path(self, member: PhysicalVolume) -> str | None:
        """Where the physical volume is now; None while its drive is not in the node."""
        name = self._name_of(member.drive)
        return f"/dev/{name}" if name else None

    def label(self, drive: Drive) -> PhysicalVolume:
        member = PhysicalVolume(drive, uuid_of(f"pv/{drive.serial}"))
        self.labelled.append(member)
        return member

    def member(self, drive: Drive) -> PhysicalVolume | None:
        return next((member for member in self.labelled if member.drive is drive), None)

    def group_of(self, member: PhysicalVolume) -> VolumeGroup | None:
        return next((group for group in self.groups.values() if member in group.members), None)

    def create_group(self, name: str, members: list[PhysicalVolume]) -> VolumeGroup:
        away = self.groups.pop(name, None)
        if away is not None:
            self.groups[f"{name} {away.uuid}"] = away
        another = f"/{members[0].drive.serial}" if away is not None and members else ""
        group = VolumeGroup(name, uuid_of(f"vg/{self.node}/{name}{another}"))
        group.members += members
        self.groups[name] = group
        return group

    def find(self, text: str) -> tuple[VolumeGroup, LogicalVolume] | None:
        """A logical volume by ``vg/lv``, ``/dev/vg/lv`` or ``/dev/mapper/vg-lv``."""
        if text.startswith("/dev/mapper/"):
            for group in self.groups.values():
                for volume in group.volumes.values():
                    if text == mapper_path(group, volume):
                        return group, volume
            return None
        group_name, _, name = text.removeprefix("/dev/").partition("/")
        found = self.visible().get(group_name) or self.groups.get(group_name)
        volume_found = found.volumes.get(name) if found else None
        return (found, volume_found) if found and volume_found else None

    def failed(self, volume: LogicalVolume) -> bool:
        """Whether a drive under the volume fails or is gone."""
        runs = volume.pool.runs if isinstance(volume, ThinVolume) and volume.pool else volume.runs
        grounds = {id(run.ground) for run in runs}
        return any(
            id(member.ground) in grounds and (member.drive.failing or self._name_of(member.drive) is None)
            for member in self.labelled
        )


def mapper_path(group: VolumeGroup, volume: LogicalVolume) -> str:
    """The device mapper's name for a volume."""
    return f"/dev/mapper/{group.name.replace('-', '--')}-{volume.name.replace('-', '--')}"
