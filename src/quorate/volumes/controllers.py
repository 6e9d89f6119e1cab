"""All controllers of volumes, with the signal that joins them."""

from __future__ import annotations

from typing import Any

from quorate.engine import Controller, Key, Signal
from quorate.locks import LockTable, Thing
from quorate.volumes import attachment
from quorate.volumes.fanning import TOPICS, fan_out
from quorate.volumes.joint import reconciler
from quorate.volumes.volume.minors import MINORS
from quorate.volumes.volume.shared_secrets import shared_secrets


def controllers(table: LockTable | None = None) -> tuple[Controller[Any], ...]:
    """A set of its own for each manager: the signal between them is not for another's queues.

    ``table``: shared with the broker of this process; without one there is none, and nobody holds a permission.
    """
    signal, held, table = Signal(), Signal(), table or LockTable()

    def wake(thing: Thing) -> None:
        held.wake(Key(TOPICS[thing.sort], thing.name))

    table.on_hold(wake)
    return (
        fan_out(signal, held),
        MINORS,
        shared_secrets(),
        reconciler(signal, table),
        *attachment.controllers(signal, table),
    )
