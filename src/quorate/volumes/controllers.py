"""All controllers of volumes, with the signal that joins them."""

from __future__ import annotations

from typing import Any

from quorate.engine import Controller, Signal
from quorate.volumes import attachment, replica, volume
from quorate.volumes.watches import fan_out


def controllers() -> tuple[Controller[Any], ...]:
    """A set of its own for each manager: the signal between them is not for another's queues."""
    signal = Signal()
    return (
        fan_out(signal),
        *volume.controllers(signal),
        *replica.controllers(signal),
        *attachment.controllers(signal),
    )
