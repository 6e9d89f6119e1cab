"""LVM of a simulated node: volume groups on drives, thick volumes, thin pools, and extents that keep what was on them.

``groups`` holds the nouns and gives out extents; ``volume`` is the device that a logical volume is: a view of the
extents it has now. Nothing is cleared when a volume is removed: the next one on the same extents finds the old bytes,
old DRBD metadata included. All of it lives on the drives, so it outlives a power loss.
"""

from quorate.lab.lvm.groups import (
    LogicalVolume,
    NotThere,
    OutOfSpace,
    PhysicalVolume,
    ThinPool,
    ThinVolume,
    VolumeGroup,
    VolumeManager,
)

__all__ = [
    "LogicalVolume",
    "NotThere",
    "OutOfSpace",
    "PhysicalVolume",
    "ThinPool",
    "ThinVolume",
    "VolumeGroup",
    "VolumeManager",
]
