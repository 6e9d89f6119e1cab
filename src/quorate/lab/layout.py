"""What a simulated cluster consists of. Everything follows from the names: the same layout is the same hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.errors import ConfigError
from quorate.lab.drives import Drive, Medium, hash_of

GIB = 1 << 30

#: What the drives of a node are, in turn: a kind, a vendor, a product and a size.
_MODELS = (
    (Medium.NVME, "QUORATE", "LAB-NVME", 960 * GIB),
    (Medium.SSD, "QUORATE", "LAB-SSD", 1920 * GIB),
    (Medium.HDD, "QUORATE", "LAB-HDD", 8000 * GIB),
)
_MOST_NODES = 5000
_MOST_DRIVES = 64
_MOST_ZONES = 26


@dataclass(frozen=True, slots=True)
class Layout:
    """How many of what."""

    nodes: int = 3
    zones: int = 3
    #: On each node.
    drives: int = 2
    #: How the names of nodes begin.
    prefix: str = "node"

    def __post_init__(self) -> None:
        for what, count, least, most in (
            ("nodes", self.nodes, 0, _MOST_NODES),
            ("zones", self.zones, 1, _MOST_ZONES),
            ("drives", self.drives, 0, _MOST_DRIVES),
        ):
            if not least <= count <= most:
                raise ConfigError(f"{count} {what} cannot be simulated: allowed are {least} to {most}")

    def plans(self) -> Iterator[NodePlan]:
        """Every node."""
        for number in range(1, self.nodes + 1):
            zone = f"zone-{chr(ord('a') + (number - 1) % self.zones)}"
            yield NodePlan(f"{self.prefix}-{number}", zone, f"10.77.{number // 250}.{number % 250 + 1}", self.drives)


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node: what it is called, where it stands, how it is reached, and how many drives it has."""

    name: str
    zone: str
    address: str
    drives: int

    def new_drives(self) -> Iterator[Drive]:
        """The drives it is delivered with."""
        for slot in range(1, self.drives + 1):
            yield new_drive(self.name, str(slot))


def new_drive(node: str, slot: str, generation: int = 0) -> Drive:
    """The drive for a slot; its replacements are of the same model, with serial numbers of their own."""
    medium, vendor, model, size = _MODELS[(int(slot) - 1) % len(_MODELS)]
    serial = f"QL{hash_of(f'{node}/{slot}/{generation}'):012X}"
    return Drive(serial, size, medium, vendor=vendor, model=model, slot=slot)


def volume_group(slot: str) -> str:
    """The volume group on the drive of a slot."""
    return f"quorate-{slot}"


def object_name(node: str, slot: str) -> str:
    """The LVMVolumeGroup that stands for it."""
    return f"{node}-disk-{slot}"
