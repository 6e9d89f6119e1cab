"""What is not worth a write yet.

A logical volume is made within a second: that it is being made is told if it takes longer. How much of a group is free
changes with every volume, and nobody acts on it, since space is granted by ledgers: it is told every so often. At once
when it is crossed where a disk counts as full, and along with anything else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from quorate.agent.lvm.piece import Piece
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.storage.lvg import LVMVolumeGroupStatus
from quorate.api.struct import replace

#: Seconds for which a new volume may be on its way untold.
MAKING: Final = 3.0
#: Seconds for which free bytes may be other than told.
COUNTING: Final = 20.0


def making(piece: Piece, after: LVMLogicalVolumeStatus, now: datetime) -> float | None:
    """Seconds for which it goes without saying that a volume is being made; None: it is to be told what there is."""
    created = piece.llv.metadata.creation_timestamp
    on_its_way = after.phase is LogicalVolumePhase.PENDING and not after.reason
    if created is None or piece.status.phase is not None or not on_its_way:
        return None
    return _left(MAKING, created, now)


def counting(
    before: LVMVolumeGroupStatus, after: LVMVolumeGroupStatus, since: datetime | None, low_water: int, now: datetime
) -> float | None:
    """Seconds for which a group's report can wait; None: there is nothing new, or it is worth a write.

    ``since``: when it was first seen to differ. ``low_water``: percent of the group's own space.
    """
    if before == after or _without_bytes(before) != _without_bytes(after):
        return None
    if _is_low(before, low_water) != _is_low(after, low_water):
        return None
    return COUNTING if since is None else _left(COUNTING, since, now)


def _left(patience: float, since: datetime, now: datetime) -> float | None:
    left = patience - (now - since) / timedelta(seconds=1)
    return min(left, patience) if left > 0 else None


def _without_bytes(status: LVMVolumeGroupStatus) -> LVMVolumeGroupStatus:
    return replace(status, vg_free=None, allocated_size=None)


def _is_low(status: LVMVolumeGroupStatus, low_water: int) -> bool:
    """As the inventory judges it: by what is not in thin pools."""
    pooled = sum(int(pool.actual_size) for pool in status.thin_pools if pool.actual_size is not None)
    own = max(0, int(status.vg_size or 0) - pooled)
    return int(status.vg_free or 0) < own * low_water // 100
