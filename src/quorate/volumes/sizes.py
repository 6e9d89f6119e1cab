"""Sizes of a volume: what people ask for, what DRBD can show, and what that takes on a disk."""

from __future__ import annotations

from typing import Final

from quorate.api.meta import Bytes
from quorate.api.names import replica_id
from quorate.disks import requests
from quorate.drbd.metadata import lower_size
from quorate.volumes.view import ReplicaView, VolumeView

#: What DRBD counts in: a usable size is a whole number of these.
BLOCK: Final = 4096


def in_blocks(size: int) -> Bytes:
    """The smallest usable size that is not below this."""
    return Bytes(-(-size // BLOCK) * BLOCK)


def usable_size(view: VolumeView) -> int | None:
    """The usable size that disks are to have room for: the datamesh's, or the larger one that they are growing to."""
    if view.rv is None:
        return None
    known, growing_to = view.datamesh.size, view.rv.status.growing_to
    return max(int(known), int(growing_to or 0)) if known is not None else in_blocks(int(view.rv.spec.size))


def is_last(view: VolumeView, replica: ReplicaView) -> bool:
    """Whether its disk grows last: that of the counted copy with the lowest id, whose agent tells DRBD to grow.

    When all disks have grown, DRBD grows by itself as soon as any link comes back, and copies the new space meanwhile.
    So the last one grows only when the members have been told of the new size and all are connected; its own agent
    tells DRBD at once. A copy that is alone has no links.
    """
    counted = [replica_id(member.name) for member in view.diskful_members if not member.hidden]
    return len(counted) > 1 and replica.id == min(counted)


def size_needed(view: VolumeView, replica: ReplicaView) -> Bytes | None:
    """What a replica's logical volume must have now; None: the volume's size is not known."""
    usable = usable_size(view)
    if usable is not None and view.datamesh.size is not None and is_last(view, replica):
        usable = int(view.datamesh.size)
    return backing_size(view, replica, usable) if usable is not None else None


def backing_size(view: VolumeView, replica: ReplicaView, usable: int) -> Bytes:
    """What a replica's logical volume must have for so much usable space: DRBD's metadata too, in whole extents."""
    lower = lower_size(Bytes(usable), view.config.drbd.max_peers)
    extent = replica.group.status.extent_size if replica.group is not None else None
    return requests.rounded_up(lower, int(extent) if extent is not None else 0)
