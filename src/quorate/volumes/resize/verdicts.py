"""What is said of a growth that the disks have no room for."""

from __future__ import annotations

from quorate.api.conditions import Verdict
from quorate.api.conditions.rv import DiskAllocation
from quorate.api.quantity import Quantity
from quorate.disks.requests import State
from quorate.volumes.resize.space import asked_size, reserve
from quorate.volumes.view import VolumeView


def not_granted(view: VolumeView) -> Verdict | None:
    """DiskAllocation, while a growth is not granted; None: others say it."""
    asked = asked_size(view)
    if asked is None:
        return None
    room, size = reserve(view), Quantity.of_bytes(asked)
    if room.state is State.REJECTED:
        return DiskAllocation.REJECTED(f"no room to grow to {size}: {room.message}")
    if room.state is State.PENDING:
        return DiskAllocation.PENDING(f"room to grow to {size} is asked for")
    return None
