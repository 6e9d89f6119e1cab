"""Thin pools of a group: how each is, and which must be made."""

from __future__ import annotations

from quorate.agent.lvm import commands
from quorate.agent.lvm.seen import SeenGroup, SeenVolumes
from quorate.agent.steps import Run
from quorate.api.quantity import Quantity
from quorate.api.reserved import why_no_logical_volume
from quorate.api.storage.lvg import ThinPool, ThinPoolStatus


def report(pool: ThinPool, group: SeenGroup, volumes: SeenVolumes) -> ThinPoolStatus:
    """A pool of the spec as it is on the node."""
    seen = volumes.get(f"{group.name}/{pool.name}")
    if seen is None and (why := why_no_logical_volume(pool.name, group.name)):
        return ThinPoolStatus(name=pool.name, message=f"{why}.")
    if seen is None:
        return ThinPoolStatus(name=pool.name, message=f"Volume group {group.name} has no thin pool {pool.name}.")
    if not seen.is_pool:
        return ThinPoolStatus(name=pool.name, message=f"{group.name}/{pool.name} is there, but is no thin pool.")
    allocated = sum(volume.size for volume in volumes.in_pool(group.name, pool.name))
    limit = seen.size * int(pool.allocation_limit.removesuffix("%")) // 100
    return ThinPoolStatus(
        name=pool.name,
        uuid=seen.uuid,
        ready=seen.active and not seen.trouble,
        message=_message(seen.active, seen.trouble),
        actual_size=Quantity.of_bytes(seen.size),
        # In whole percent: what is written changes all the time, and every step is a write to the store.
        used_size=None if seen.used_percent is None else Quantity.of_bytes(seen.size * seen.used_percent // 100),
        allocated_size=Quantity.of_bytes(allocated),
        available_space=Quantity.of_bytes(max(0, limit - allocated)),
        zeroing=seen.zeroing,
    )


def missing(pool: ThinPool, group: SeenGroup, volumes: SeenVolumes) -> Run | None:
    """The command that makes a pool which is not there."""
    is_there = volumes.get(f"{group.name}/{pool.name}") is not None
    if is_there or volumes.incomplete or why_no_logical_volume(pool.name, group.name):
        return None
    size = pool.size if pool.size.endswith("%") else str(int(Quantity(pool.size)))
    return commands.create_pool(group.name, pool.name, size)


def _message(active: bool, trouble: str) -> str:
    if trouble:
        return f"Of the thin pool: {trouble}."
    return "" if active else "The thin pool is not active."
