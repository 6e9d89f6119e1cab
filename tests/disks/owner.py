"""Owners as volume controllers are: each of a volume whose replicas ask disks for space, grow, and give it back.

What is asked and read goes through ``quorate.disks.requests`` and ``expansion``, and nothing is remembered between two
looks at the store: an owner that is killed and begun again goes on where it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

from quorate.api import finalizers, labels, names
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumeType, LVMLogicalVolumeSpec
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.disks import requests
from quorate.disks.entries import replica
from quorate.disks.expansion import Expansion, Growth, expand
from quorate.disks.requests import State
from quorate.engine import Patch
from quorate.engine.clock import Clock
from quorate.engine.store import Store
from quorate.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    OutcomeUnknown,
    ServerTimeout,
    StoreUnreachable,
    TooManyRequests,
)

T = TypeVar("T")

#: How space is given back.
RIGHT, WRONG, KEPT = "right", "wrong", "kept"

_AGAIN = (Conflict, OutcomeUnknown, ServerTimeout, StoreUnreachable, TooManyRequests)


class Owner:
    """One volume and its replicas, one per disk."""

    def __init__(self, store: Store, clock: Clock, random: Random, volume: str, *, pause: float = 0.3) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self.volume = VolumeName(volume)
        self._pause = pause

    def name(self, number: int) -> ReplicaName:
        return names.replica(self.volume, number)

    async def acquire(self, number: int, size: int, ledgers: Sequence[str]) -> str | None:
        """Ask one disk after the other, until one grants; returns its ledger, or None if all said no."""
        await self._make(number)
        entry = replica(self.name(number))
        for ledger in ledgers:
            while True:
                schedule = await self._schedule(ledger)
                match requests.read(schedule, entry, size).state:
                    case State.GRANTED:
                        return ledger
                    case State.REJECTED:
                        await self._until(ledger, lambda found: requests.withdraw(found, entry))
                        break
                    case State.NOT_ASKED:
                        await self._write(requests.ask(schedule, entry, size))
                await self._wait()
        return None

    async def use(self, number: int, ledger: str, size: int) -> None:
        """Make the logical volume, or find that it is made."""
        group, node = (await self._schedule(ledger)).spec.name, (await self._schedule(ledger)).spec.node_id
        metadata = ObjectMeta(
            name=names.logical_volume(self.name(number), group),
            labels={labels.NODE: node},
            finalizers=(finalizers.CONTROLLER,),
        )
        spec = LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=self.name(number),
            type=LogicalVolumeType.THICK,
            size=Quantity.of_bytes(size),
            lvm_volume_group_name=group,
        )
        await self._created(LVMLogicalVolume(metadata=metadata, spec=spec))

    async def grow(self, ledgers: Sequence[str], size: int, larger: int) -> State:
        """Reserve more on all disks, or on none."""
        while True:
            parts = [
                Growth(await self._schedule(ledger), replica(self.name(number)), size, larger)
                for number, ledger in enumerate(ledgers)
            ]
            found: Expansion = expand(parts)
            writes = [write for write in found.writes if write.patch]
            for write in writes:
                await self._write(write)
            if found.state is State.GRANTED or (found.state is State.REJECTED and not writes):
                return found.state
            await self._wait()

    async def release(self, number: int, ledger: str, how: str = RIGHT) -> None:
        """Remove the logical volume, then withdraw.

        Or in the wrong order, which the ledger must survive (M31); or without withdrawing, which the sweep must.
        """
        entry = replica(self.name(number))
        schedule = await self._schedule(ledger)
        if how == WRONG:
            await self._until(ledger, lambda found: requests.withdraw(found, entry))
        await self._remove(LVMLogicalVolume, names.logical_volume(entry.name, schedule.spec.name))
        if how == RIGHT:
            await self._until(ledger, lambda found: requests.withdraw(found, entry))

    async def forget(self, number: int) -> None:
        """The replica's object goes."""
        await self._remove(ReplicatedVolumeReplica, self.name(number))

    async def _make(self, number: int) -> None:
        spec = ReplicatedVolumeReplicaSpec(
            replicated_volume_name=self.volume, type=ReplicaType.DISKFUL, node_name=NodeName("n1")
        )
        await self._created(ReplicatedVolumeReplica(metadata=ObjectMeta(name=self.name(number)), spec=spec))

    async def _created(self, obj: Any) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._insist(lambda: self._store.create(obj))

    async def _remove(self, cls: type[Any], name: str) -> None:
        try:
            await self._insist(lambda: self._store.patch(cls, name, patch={"metadata": {"finalizers": None}}))
            await self._insist(lambda: self._store.delete(cls, name))
        except NotFound:
            pass

    async def _until(self, ledger: str, write: Callable[[DiskSchedule], Patch]) -> None:
        """Write until there is nothing to write."""
        while True:
            patch = write(await self._schedule(ledger))
            if not patch.patch:
                return
            await self._write(patch)

    async def _schedule(self, ledger: str) -> DiskSchedule:
        return await self._insist(lambda: self._store.get(DiskSchedule, ledger, names.NAMESPACE))

    async def _write(self, write: Patch) -> None:
        """Once: what came of it is seen at the next look."""
        observed = write.observed
        try:
            await self._store.patch(
                DiskSchedule,
                observed.name,
                observed.namespace,
                patch=write.patch,
                resource_version=observed.metadata.resource_version if write.if_unchanged else None,
            )
        except _AGAIN:
            await self._wait()

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except _AGAIN:
                await self._wait()

    async def _wait(self) -> None:
        await self._clock.sleep(self._random.uniform(0.0, 2 * self._pause))
