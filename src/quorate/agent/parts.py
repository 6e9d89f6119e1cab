"""Everything that an agent does, part by part. The order does not matter."""

from __future__ import annotations

from quorate.agent import address, inventory, kernel_stuck, lvm, operations, orphans, replica
from quorate.agent.process import Part

PARTS: tuple[Part, ...] = (address, inventory, kernel_stuck, lvm, operations, orphans, replica)
