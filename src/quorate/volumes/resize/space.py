"""Room for a larger volume, on all of its disks or on none (M13)."""

from __future__ import annotations

from typing import Final

from quorate.disks import entries
from quorate.disks.entries import requested
from quorate.disks.expansion import Expansion, Growth, expand, roll_back
from quorate.disks.requests import State
from quorate.volumes.replica.disk import ledger_of
from quorate.volumes.sizes import backing_size, in_blocks
from quorate.volumes.view import VolumeView

NOTHING: Final = Expansion(State.NOT_ASKED)


def asked_size(view: VolumeView) -> int | None:
    """The larger usable size that is asked for; None: the volume is as large as it should be, or cannot grow now."""
    rv = view.rv
    if rv is None or rv.deleting or view.forming or view.datamesh.size is None:
        return None
    # What has begun comes to its end first.
    asked = int(rv.status.growing_to) if rv.status.growing_to is not None else in_blocks(int(rv.spec.size))
    return asked if asked > int(view.datamesh.size) else None


def reserve(view: VolumeView) -> Expansion:
    """The next step toward room everywhere, and what the disks say. What nobody wants any more is given back."""
    asked = asked_size(view)
    if asked is None:
        spare = [part for part in parts(view, 0) if (requested(part.schedule, part.entry) or 0) > part.size]
        return Expansion(State.NOT_ASKED, roll_back(spare)) if spare else NOTHING
    return expand(parts(view, asked)) if _has_disks(view) else NOTHING


def parts(view: VolumeView, usable: int) -> tuple[Growth, ...]:
    """Every disk's part of a growth: of members, and of those that are to become one."""
    found = []
    for replica in view.replicas:
        ledger = ledger_of(replica)
        if not replica.diskful or replica.replica.deleting or ledger is None:
            continue
        entry = entries.replica(replica.name)
        volume = replica.logical_volume
        now = int(volume.spec.size) if volume is not None else requested(ledger, entry)
        if now is not None:
            found.append(Growth(ledger, entry, now, max(now, backing_size(view, replica, usable) if usable else now)))
    return tuple(found)


def _has_disks(view: VolumeView) -> bool:
    """Whether every member with a copy has a ledger that knows it: all, or nothing is asked."""
    return bool(view.diskful_members) and all(
        (replica := view.replica(member.name)) is not None and ledger_of(replica) is not None
        for member in view.diskful_members
    )
