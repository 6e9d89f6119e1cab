"""Which disks a volume group makes, and how much each may give: one for the group's own space, one per thin pool.

What is granted on a disk may add up to (capacity - reserved) x over-provisioning (M12). A group's thin pools are
reserved on it, also those that are yet to be made; a pool's over-provisioning is its ``allocationLimit``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quorate.api import names
from quorate.api.longhorn.node import DiskSpec, DiskStatus
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage.lvg import LVMVolumeGroup, ThinPoolStatus
from quorate.api.struct import replace

#: Thick space is given once.
ALL_OF_IT: Final = 100


@dataclass(frozen=True, slots=True)
class Space:
    """One disk, as its agent reported it."""

    name: str
    uuid: str
    group: LVMVolumeGroup
    #: None: the group's own space.
    pool: ThinPoolStatus | None
    capacity: int
    #: What the group's thin pools take of it.
    pooled: int
    free: int
    #: Percent of it that may be granted.
    allocation_limit: int

    @property
    def own(self) -> int:
        """The capacity without what other disks have of it."""
        return max(0, self.capacity - self.pooled)


def disks_of(group: LVMVolumeGroup) -> Iterator[Space]:
    """The disks of a group. One of which no agent has reported UUID and size is none yet."""
    status = group.status
    if status.vg_uuid and status.vg_size is not None:
        yield Space(
            name=names.disk(group.name),
            uuid=status.vg_uuid,
            group=group,
            pool=None,
            capacity=int(status.vg_size),
            pooled=_pooled(group),
            free=_bytes(status.vg_free),
            allocation_limit=ALL_OF_IT,
        )
    limits = {pool.name: _percent(pool.allocation_limit) for pool in group.spec.thin_pools}
    for pool in status.thin_pools:
        if pool.uuid and pool.actual_size is not None:
            capacity = int(pool.actual_size)
            # How much is written is not known: then nothing counts as free.
            used = capacity if pool.used_size is None else int(pool.used_size)
            yield Space(
                name=names.disk(group.name, pool.name),
                uuid=pool.uuid,
                group=group,
                pool=pool,
                capacity=capacity,
                pooled=0,
                free=max(0, capacity - used),
                allocation_limit=limits.get(pool.name, ALL_OF_IT),
            )


def measured(known: DiskStatus, space: Space, said: DiskSpec | None) -> DiskStatus:
    """The numbers of a disk, beside what is known of it otherwise."""
    reserved = space.pooled + (said.storage_reserved if said is not None else 0)
    drives = dict.fromkeys(device.drive_uuid for device in space.group.status.devices if device.drive_uuid)
    return replace(
        known,
        disk_uuid=space.uuid,
        lvm_volume_group_name=space.group.name,
        lvm_volume_group_thin_pool_name="" if space.pool is None else space.pool.name,
        storage_maximum=Bytes(space.capacity),
        storage_available=Bytes(max(0, space.capacity - reserved) * space.allocation_limit // 100),
        storage_reserved=Bytes(reserved),
        storage_free=coarse(space.free, space.capacity),
        extent_size=Bytes(_bytes(space.group.status.extent_size)),
        drives=tuple(sorted(drives)),
    )


def coarse(free: int, capacity: int) -> Bytes:
    """Free bytes in whole hundredths of the capacity: not every write to a disk is to be one to its inventory."""
    step = max(1, capacity // 100)
    return Bytes(free // step * step)


def _pooled(group: LVMVolumeGroup) -> int:
    made = {pool.name: int(pool.actual_size) for pool in group.status.thin_pools if pool.actual_size is not None}
    planned = {pool.name: _planned(pool.size, _bytes(group.status.vg_size)) for pool in group.spec.thin_pools}
    return sum({**planned, **made}.values())


def _planned(size: str, capacity: int) -> int:
    """The size of a pool that is yet to be made: an amount, or a share of the group."""
    return capacity * _percent(size) // 100 if size.endswith("%") else int(Quantity(size))


def _percent(text: str) -> int:
    return int(text.removesuffix("%"))


def _bytes(quantity: Quantity | None) -> int:
    return 0 if quantity is None else int(quantity)
