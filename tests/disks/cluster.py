"""A small cluster for whole-life tests: volume groups with their agents, managers, and an eye on every version.

Works on any store: in simulation on the embedded engine, and in real time on either engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, suppress
from typing import Any, cast

from quorate.api import core, finalizers, labels, names
from quorate.api.conditions import is_true
from quorate.api.conditions.disks import OverCommitted
from quorate.api.longhorn import DiskSchedule
from quorate.api.longhorn.disk_schedule import EntryState
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec
from quorate.disks.entries import Entry, all_answers, all_requests, answered
from quorate.engine.clock import Clock
from quorate.engine.store import EventType, Store
from quorate.errors import ApiError, NotFound

RENEWAL = 10.0


class Agents:
    """What the nodes' agents do, as far as disks see it: Leases, volume groups, logical volumes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        #: Nodes whose agent says nothing.
        self.silent: set[str] = set()
        self._beats = 0

    async def install(self, node: str, group: str, size: int) -> None:
        """A machine with one volume group and a living agent."""
        with suppress(ApiError):
            await self._store.create(core.Node(metadata=ObjectMeta(name=node)))
            lease = names.agent_lease(NodeName(node))
            await self._store.create(core.Lease(metadata=ObjectMeta(name=lease, namespace=names.NAMESPACE)))
        spec = LVMVolumeGroupSpec(actual_vg_name_on_the_node=group, local=LocalGroup(node_name=NodeName(node)))
        await self._store.create(LVMVolumeGroup(metadata=ObjectMeta(name=group), spec=spec))
        await self.report(group, size)

    async def report(self, group: str, size: int, **more: Any) -> None:
        """What a group has now."""
        amount = str(Quantity.of_bytes(size))
        status = {"phase": "Ready", "vgUUID": uuid_of(group), "vgSize": amount, "vgFree": amount, "extentSize": "1"}
        await self._store.patch_status(LVMVolumeGroup, group, patch=status | more)

    async def run(self) -> None:
        """Renew, and make and remove logical volumes, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            tasks.create_task(self._work())

    async def _renew(self) -> None:
        while True:
            self._beats += 1
            for node in (await self._store.list(core.Node)).items:
                if node.name not in self.silent:
                    lease = names.agent_lease(NodeName(node.name))
                    patch = {"spec": {"renewTime": f"2030-01-01T00:00:00.{self._beats:06}Z"}}
                    with suppress(NotFound):  # Of a machine without an agent.
                        await self._store.patch(core.Lease, lease, names.NAMESPACE, patch=patch)
            await self._clock.sleep(RENEWAL)

    async def _work(self) -> None:
        listing = await self._store.list(LVMLogicalVolume)
        for volume in listing.items:
            await self._look(volume)
        events = self._store.watch(LVMLogicalVolume, resource_version=listing.resource_version)
        async with aclosing(cast("Any", events)):
            async for event in events:
                if event.object is not None and event.type is not EventType.DELETED:
                    await self._look(event.object)

    async def _look(self, volume: LVMLogicalVolume) -> None:
        if volume.deleting:
            if volume.metadata.finalizers == (finalizers.AGENT,):
                await self._patched(volume, {"metadata": {"finalizers": None}})
        elif volume.status.phase is None and volume.metadata.labels[labels.NODE] not in self.silent:
            created = {"phase": "Created", "actualSize": str(volume.spec.size)}
            with suppress(NotFound):
                await self._store.patch_status(LVMLogicalVolume, volume.name, patch=created)

    async def _patched(self, volume: LVMLogicalVolume, patch: dict[str, Any]) -> None:
        with suppress(NotFound):
            await self._store.patch(LVMLogicalVolume, volume.name, patch=patch)


def uuid_of(group: str) -> str:
    """Like LVM's, in capitals."""
    return f"UUID-{group.upper()}"


def ledger_of(group: str) -> str:
    return names.disk_schedule(uuid_of(group))


class EveryVersion:
    """Looks at every version of every ledger that was ever written, and at every step from one to the next."""

    def __init__(self, store: Store, *, one_key_at_a_time: bool = True) -> None:
        """Unless told otherwise, requests come from owners who write a key of their own each."""
        self._store = store
        self._one_key_at_a_time = one_key_at_a_time
        self._last: dict[str, DiskSchedule] = {}
        self.versions = 0
        self.decisions = 0
        self.granted = 0
        self.rejected = 0
        #: What must never happen and did.
        self.violations: list[str] = []
        self._seen = asyncio.Event()
        self._version = 0

    async def run(self) -> None:
        """Follow the store's own watch: it shows each version, in order."""
        listing = await self._store.list(DiskSchedule)
        self._last = {found.name: found for found in listing.items}
        self._version = int(listing.resource_version)
        events = self._store.watch(DiskSchedule, resource_version=listing.resource_version)
        async with aclosing(cast("Any", events)):
            async for event in events:
                self._version = int(event.resource_version)
                if event.object is not None:
                    self._look(event.object, gone=event.type is EventType.DELETED)
                self._seen.set()

    async def caught_up(self) -> None:
        """Wait until everything written so far has been looked at."""
        found = (await self._store.list(DiskSchedule)).items
        last = max((int(each.metadata.resource_version) for each in found), default=0)
        while self._version < last:
            self._seen.clear()
            await self._seen.wait()
        assert not self.violations, "\n".join(self.violations[:10])

    def _look(self, now: DiskSchedule, *, gone: bool) -> None:
        before = self._last.pop(now.name, None)
        if gone:
            return
        self._last[now.name] = now
        self.versions += 1
        problems = list(_problems(now))
        if before is not None:
            problems += _problems_of_step(before, now)
            if self._one_key_at_a_time:
                problems += _problems_of_asking(before, now)
        self.violations += [f"{now.name} at {now.metadata.resource_version}: {problem}" for problem in problems]
        if before is None or before.status != now.status:
            self.decisions += 1
            for entry, answer in all_answers(now):
                if before is None or answered(before, entry) != answer:
                    self.granted += answer.state is EntryState.SCHEDULED
                    self.rejected += answer.state is EntryState.REJECTED


def _problems(now: DiskSchedule) -> Iterator[str]:
    status = now.status
    total = sum(answer.scheduled_size for _, answer in all_answers(now))
    if total != status.storage_scheduled:
        yield f"the sum is {total}, storageScheduled says {status.storage_scheduled}"
    if is_true(status.conditions, OverCommitted) != (total > status.storage_available):
        yield f"OverCommitted does not say that {total} of {status.storage_available} is granted"
    for entry, answer in all_answers(now):
        if answer.state is EntryState.REJECTED and not (answer.reason and answer.message):
            yield f"{entry.name} is rejected without a reason"
        if answer.state is EntryState.SCHEDULED and answer.scheduled_size < answer.requested_size:
            yield f"{entry.name} is granted less than it asked for"


def _problems_of_step(before: DiskSchedule, now: DiskSchedule) -> Iterator[str]:
    if before.status == now.status:
        return
    if before.spec != now.spec:
        yield "spec and status changed in one write"
    total, available = now.status.storage_scheduled, now.status.storage_available
    grown = [entry for entry, answer in all_answers(now) if answer.scheduled_size > _held(before, entry)]
    if total > available and grown:
        yield f"{total} of {available} is granted and {', '.join(entry.name for entry in grown)} grew"
    if total != before.status.storage_scheduled and now.status.observed_generation != now.metadata.generation:
        yield "it was decided upon another spec than the one that it was written beside"
    for entry, size in all_requests(now):
        yield from _problems_of_entry(before, now, entry, size)


def _problems_of_asking(before: DiskSchedule, now: DiskSchedule) -> Iterator[str]:
    """Everybody writes a key of their own; only the sweep takes away several, and only marked ones."""
    old, new = dict(all_requests(before)), dict(all_requests(now))
    changed = [entry for entry in {**old, **new} if old.get(entry) != new.get(entry)]
    if len(changed) > 1:
        for entry in changed:
            answer = answered(before, entry)
            if entry in new or answer is None or answer.orphaned_since is None:
                yield f"{entry.name} was changed along with {len(changed) - 1} others"


def _problems_of_entry(before: DiskSchedule, now: DiskSchedule, entry: Entry, size: int) -> Iterator[str]:
    old, new = answered(before, entry), answered(now, entry)
    if new is None:
        if now.status.observed_generation == now.metadata.generation:
            yield f"{entry.name} is left without an answer"
        return
    if old is not None and old.state is EntryState.REJECTED and old.requested_size == size:
        if new.state is not EntryState.REJECTED and size > old.scheduled_size:
            yield f"the rejection of {entry.name} did not stand"
    elif new != old and new.reason == "NoSpace":
        more = size - new.scheduled_size
        if now.status.storage_scheduled + more <= now.status.storage_available:
            yield f"{entry.name} would have fitted: {more} more to {now.status.storage_scheduled}"


def _held(found: DiskSchedule, entry: Entry) -> int:
    answer = answered(found, entry)
    return 0 if answer is None else answer.scheduled_size
