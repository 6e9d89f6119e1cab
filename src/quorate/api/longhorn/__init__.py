"""``longhorn.io``: what disks a node has, and who may use how much of them.

Node is the inventory, derived from the volume groups that agents report; DiskSchedule is the ledger of one disk, the
only way to get bytes on it; a BackingImage keeps copies on disks through the same ledger.
"""

from __future__ import annotations

from quorate.api.longhorn.backing_image import BackingImage
from quorate.api.longhorn.disk_schedule import DiskSchedule
from quorate.api.longhorn.node import Node

__all__ = ["BackingImage", "DiskSchedule", "Node"]
