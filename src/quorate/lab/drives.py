"""Drives of a simulated node: what they are, how they say they are, and what can happen to them.

A drive keeps its contents wherever it goes: pulled and put back, or into another node, it has what it had. A failing
drive answers every read and write with an error; what it says of itself (SMART) is a matter of its own.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from quorate.lab.kernel import BlockDevice


class Medium(enum.Enum):
    """What a drive is made of."""

    HDD = "HDD"
    SSD = "SSD"
    NVME = "NVME"


@dataclass
class Smart:
    """What a drive says of itself."""

    passed: bool = True
    temperature: int = 34
    #: Percent of the rated writes that are used up; above 100 is possible. Not said by a rotating disk.
    endurance_used: int = 1
    power_on_hours: int = 1200
    reallocated_sectors: int = 0
    pending_sectors: int = 0
    media_errors: int = 0


@dataclass(eq=False)
class Drive:
    """One physical device. ``serial`` is its identity."""

    serial: str
    size: int
    medium: Medium = Medium.SSD
    vendor: str = "QUORATE"
    model: str = "LAB-SSD"
    firmware: str = "1.0"
    wwn: str = ""
    slot: str = ""
    smart: Smart = field(default_factory=Smart)
    locate_light: bool = False
    #: The operating system is on it: it has partitions and mount points, and no free space for us.
    system: bool = False
    #: Somebody else's file system, on the whole of it; and those of the partitions that somebody made on it.
    filesystem: str = ""
    partitions: tuple[str, ...] = ()
    #: Every read and write fails.
    failing: bool = False
    #: What is on it outside of LVM's extents.
    device: BlockDevice = field(init=False)

    def __post_init__(self) -> None:
        self.device = BlockDevice(self.size)
        self.wwn = self.wwn or f"0x5000{hash_of(self.serial):012x}"


def hash_of(text: str) -> int:
    """A number from a text that is the same in every run."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFF
    return value


class Bays:
    """The slots of a node. Names such as ``sdb`` are given in the order in which drives appear, and kept."""

    def __init__(self) -> None:
        self._names: dict[str, Drive] = {}
        #: The same the other way round: LVM asks all the time.
        self._name_of: dict[Drive, str] = {}

    def insert(self, drive: Drive) -> str:
        """Put a drive in; returns the name that the kernel gives it."""
        if drive in self._name_of:
            raise ValueError(f"drive {drive.serial} is in this node already")
        name = next(name for name in _names(drive.medium) if name not in self._names)
        drive.slot = drive.slot or str(len(self._names))
        self._names[name], self._name_of[drive] = drive, name
        return name

    def pull(self, serial: str) -> Drive:
        """Take a drive out while everything runs: whatever uses it gets errors."""
        drive = self._names.pop(self.name_of(serial))
        del self._name_of[drive]
        return drive

    def swap(self, serial: str, replacement: Drive) -> str:
        """A technician's work: one drive out, another one into its slot."""
        replacement.slot = self.pull(serial).slot
        return self.insert(replacement)

    def by_serial(self, serial: str) -> Drive:
        return self._names[self.name_of(serial)]

    def name(self, drive: Drive) -> str | None:
        """What the kernel calls a drive; None: it is not in this node."""
        return self._name_of.get(drive)

    def by_name(self, name: str) -> Drive | None:
        return self._names.get(name)

    def name_of(self, serial: str) -> str:
        for name, drive in self._names.items():
            if drive.serial == serial:
                return name
        raise KeyError(f"no drive with serial number {serial} is in this node; there are: {self._serials()}")

    def items(self) -> Iterator[tuple[str, Drive]]:
        return iter(sorted(self._names.items()))

    def reboot(self) -> None:
        """Name the drives anew, in slot order, as a starting kernel does."""
        drives = sorted(self._names.values(), key=lambda drive: (len(drive.slot), drive.slot, drive.serial))
        self._names, self._name_of = {}, {}
        for drive in drives:
            self.insert(drive)

    def _serials(self) -> str:
        return ", ".join(sorted(drive.serial for drive in self._names.values())) or "none"


def _names(medium: Medium) -> Iterator[str]:
    if medium is Medium.NVME:
        return (f"nvme{number}n1" for number in range(1000))
    letters = "abcdefghijklmnopqrstuvwxyz"
    return (f"sd{first}{second}" for first in ("", *letters) for second in letters)
