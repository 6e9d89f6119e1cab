"""Whether a disk can be used, and whether it takes anything new (M14): the first reason that fits is the one given.

| reason       | when                                                                                                 |
|--------------|------------------------------------------------------------------------------------------------------|
| Deleting     | its LVMVolumeGroup is being deleted, or a drive under it is on its way out                           |
| DiskNotReady | its agent has gone silent, or reports that group or pool cannot be used                              |
| Disabled     | a person switched it off: ``allowScheduling`` of the disk or the node, or the LVG's annotation       |
| Cordoned     | the node is unschedulable, or to be evacuated                                                        |
| KernelStuck  | commands hang in the node's kernel                                                                   |
| Unhealthy    | a drive under it is SUSPECT or BAD                                                                   |
| Inactive     | a drive under it, or the node, is marked INACTIVE                                                    |
| LowSpace     | less than the low-water mark is free                                                                 |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.api import annotation_keys, core
from quorate.api.baremetal.drive import Drive, DriveHealth
from quorate.api.conditions import Verdict
from quorate.api.conditions.disks import LowSpace, Schedulable
from quorate.api.conditions.inventory import Ready
from quorate.api.longhorn.node import DiskSpec, NodeSpec
from quorate.api.maintenance.action import Marker
from quorate.api.meta import ConditionStatus
from quorate.api.storage.lvg import VolumeGroupPhase
from quorate.disks.entries import amount
from quorate.disks.space import Space

_NOT_TRUSTED = (DriveHealth.SUSPECT, DriveHealth.BAD)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What bears on every disk of a node."""

    machine: core.Node | None
    said: NodeSpec
    #: The node's agent has reported lately.
    agent_is_fresh: bool
    low_water_percent: int
    #: What hangs in its kernel, in words; "": nothing.
    stuck: str = ""


def judge(space: Space, drives: tuple[Drive, ...], around: Surroundings) -> tuple[Verdict, Verdict, Verdict]:
    """Ready, Schedulable and LowSpace of one disk."""
    ready = readiness(space, around)
    low = _low_space(space, around)
    said = around.said.disks.get(space.name)
    against = _deleting(space, drives)
    if against is None and ready.status is not ConditionStatus.TRUE:
        against = Schedulable.DISK_NOT_READY(ready.message)
    if against is None:
        against = (
            _disabled(space, said, around)
            or cordoned(around.machine)
            or kernel_stuck(around)
            or _unhealthy(drives)
            or _inactive(drives, around.machine)
        )
    if against is None and low.status is ConditionStatus.TRUE:
        against = Schedulable.LOW_SPACE(low.message)
    return ready, against or Schedulable.SCHEDULABLE(), low


def readiness(space: Space, around: Surroundings) -> Verdict:
    """Whether it can be used."""
    if not around.agent_is_fresh:
        return Ready.AGENT_NOT_READY()
    status = space.group.status
    if status.phase is not VolumeGroupPhase.READY:
        return Ready.VOLUME_GROUP_NOT_READY(f"LVMVolumeGroup {space.group.name}: {status.message or 'not ready'}")
    if space.pool is not None and not space.pool.ready:
        return Ready.VOLUME_GROUP_NOT_READY(f"thin pool {space.name}: {space.pool.message or 'not ready'}")
    return Ready.READY()


def cordoned(machine: core.Node | None) -> Verdict | None:
    """Whether a node takes nothing new."""
    if machine is None:
        return None
    if machine.spec.unschedulable:
        return Schedulable.CORDONED(f"node {machine.name} is unschedulable")
    if machine.metadata.annotations.get(annotation_keys.EVACUATE) == "true":
        return Schedulable.CORDONED(f"node {machine.name} is to be evacuated")
    return None


def kernel_stuck(around: Surroundings) -> Verdict | None:
    """Whether what is asked of the node may never be done."""
    return Schedulable.KERNEL_STUCK(around.stuck) if around.stuck else None


def _deleting(space: Space, drives: tuple[Drive, ...]) -> Verdict | None:
    if space.group.deleting:
        return Schedulable.DELETING(f"LVMVolumeGroup {space.group.name} is being deleted")
    for drive in drives:
        if drive.leaving:
            return Schedulable.DELETING(f"drive {drive.name} is {drive.phase}")
    return None


def _disabled(space: Space, said: DiskSpec | None, around: Surroundings) -> Verdict | None:
    if not around.said.allow_scheduling:
        return Schedulable.DISABLED("allowScheduling of the node is false")
    if said is not None and not said.allow_scheduling:
        return Schedulable.DISABLED(f"allowScheduling of disk {space.name} is false")
    if annotation_keys.UNSCHEDULABLE in space.group.metadata.annotations:
        return Schedulable.DISABLED(f"LVMVolumeGroup {space.group.name} has {annotation_keys.UNSCHEDULABLE}")
    return None


def _unhealthy(drives: tuple[Drive, ...]) -> Verdict | None:
    for drive in drives:
        if drive.status.health in _NOT_TRUSTED:
            return Schedulable.UNHEALTHY(f"drive {drive.name} is {drive.status.health}")
    return None


def _inactive(drives: tuple[Drive, ...], machine: core.Node | None) -> Verdict | None:
    for what, name in _marked(drives, machine):
        return Schedulable.INACTIVE(f"{what} {name} is marked INACTIVE")
    return None


def _marked(drives: tuple[Drive, ...], machine: core.Node | None) -> Iterator[tuple[str, str]]:
    if machine is not None and machine.metadata.annotations.get(annotation_keys.MARKER) == Marker.DISK_INACTIVE:
        yield "node", machine.name
    for drive in drives:
        if drive.metadata.annotations.get(annotation_keys.MARKER) == Marker.DISK_INACTIVE:
            yield "drive", drive.name


def _low_space(space: Space, around: Surroundings) -> Verdict:
    """Judged by a disk's own space: a group that is all thin pools is not short of anything."""
    mark = space.own * around.low_water_percent // 100
    if space.free < mark:
        # Coarse, or the message alone would make every write to the disk one to the inventory.
        return LowSpace.LOW_SPACE(f"less than {around.low_water_percent} % of {amount(space.own)} is free")
    return LowSpace.ENOUGH_SPACE()
