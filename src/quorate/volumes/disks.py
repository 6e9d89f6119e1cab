"""The disks of a pool, as placement looks at them: their ledgers, and the room that each has.

A pool may have ten thousand disks, and while volumes are being made every pass looks at all of them, though only a few
have changed since the last. What was made of a ledger is therefore kept with the very object it was made of: objects
are frozen, so the same object means the same answer (250 ms a pass without this, 10 to 20 with it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.api import names
from quorate.api.conditions.disks import Rejection
from quorate.api.longhorn import DiskSchedule
from quorate.api.storage import LVMVolumeGroup, ReplicatedStoragePool
from quorate.disks import requests
from quorate.disks.entries import replica as entry_of
from quorate.engine import Reader
from quorate.placement.request import Room

LEDGER_OF_DISK: Final = "ledger of a disk"
#: Refusals that say no more than that there is no room.
_FOR_SPACE: Final = (Rejection.NO_SPACE.code, Rejection.LOW_SPACE.code)


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of the pool, by its ledger."""

    ledger: DiskSchedule
    #: Sizes are rounded up to this; 0: not known.
    extent: int
    #: What placement is told of it.
    room: Room = field(init=False)

    def __post_init__(self) -> None:
        refused = requests.refusal(self.ledger, entry_of(""), 1)
        # A disk that is merely full takes whatever there is room for: that there is none is said as such.
        full = self.ledger.status.storage_scheduled == self.ledger.status.storage_available
        for_space = refused is not None and refused.reason in _FOR_SPACE
        closed = requests.describe(self.ledger, refused) if refused is not None and not (full and for_space) else ""
        room = Room(requests.room(self.ledger), self.extent, closed, requests.unanswered(self.ledger))
        object.__setattr__(self, "room", room)


class _Looked(NamedTuple):
    """What was seen of a pool, and of which objects."""

    pool: ReplicatedStoragePool
    ledgers: tuple[DiskSchedule, ...]
    disks: Mapping[str, Disk]


_made: Final[dict[str, Disk]] = {}
_looked: Final[dict[str, _Looked]] = {}


def disks_of(reader: Reader, pool: ReplicatedStoragePool) -> Mapping[str, Disk]:
    """By the names of ``names.disk``: those of the pool's nodes that have a ledger there."""
    ledgers, known = reader.list(DiskSchedule), _looked.get(pool.name)
    if known is not None and known.pool is pool and known.ledgers is ledgers:
        return known.disks
    found: dict[str, Disk] = {}
    for node in pool.status.eligible_nodes:
        for group in node.lvm_volume_groups:
            name = group.name if group.thin_pool_name is None else names.disk(group.name, group.thin_pool_name)
            here = reader.find(DiskSchedule, LEDGER_OF_DISK, name)
            # One that was carried to another node is not this node's.
            if here and here[0].spec.node_id == node.node_name:
                found[name] = _disk(here[0], reader.get(LVMVolumeGroup, group.name))
    _looked[pool.name] = _Looked(pool, ledgers, found)
    return found


def _disk(ledger: DiskSchedule, group: LVMVolumeGroup | None) -> Disk:
    size = group.status.extent_size if group is not None else None
    extent, known = 0 if size is None else int(size), _made.get(ledger.name)
    if known is not None and known.ledger is ledger and known.extent == extent:
        return known
    made = _made[ledger.name] = Disk(ledger, extent)
    return made
