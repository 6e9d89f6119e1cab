"""A simulated cluster with the controllers of drives, people, a stand-in for the broker, and eyes that never close.

What the eyes hold to (``05-lab.md``): (1) what was acknowledged is there; (4) no ledger ever grants more than there is;
(5) no logical volume of a living volume goes while no other up-to-date copy is there; (7) what is permitted may go at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from quorate import drives
from quorate.api import annotation_keys, labels, names
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.core import Event
from quorate.api.longhorn import DiskSchedule
from quorate.api.maintenance import PermissionRequest
from quorate.api.meta import ObjectMeta
from quorate.api.storage import (
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
)
from quorate.api.storage.configuration import Replication
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import PoolType, PoolVolumeGroup, ReplicatedStoragePoolSpec
from quorate.drives.view import USER
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation
from quorate.engine.store import EventType
from quorate.errors import NotFound
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import VolumeLab, volume_lab

READY = annotation_keys.DRIVE_REPLACEMENT[0]
HEALTH = annotation_keys.DRIVE_HEALTH[0]
#: Until agents have reported their disks and the pool lists its nodes.
SETTLED = 30.0


@dataclass
class DriveLab:
    """Nodes, controllers, and what people do with drives."""

    lab: VolumeLab
    #: What the broker answers: "" is yes, anything else why not.
    refusal: str = ""
    #: The serial numbers of drives with a permission, in the order given.
    permitted: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    #: Every phase that every drive was ever in, by serial number.
    history: dict[str, list[str]] = field(default_factory=dict)
    #: Called with the node and the drive at the moment of a permission.
    on_permission: Callable[[PermissionRequest], None] | None = None

    @property
    def store(self) -> EmbeddedStore:
        return self.lab.store

    async def sleep(self, seconds: float) -> None:
        await self.lab.sleep(seconds)

    # People.

    async def provide(self, replication: Replication, slots: Iterable[int] = (1,)) -> str:
        """A pool of these slots of every node, and a class; returns the class's name."""
        groups = sorted((await self.store.list(LVMVolumeGroup)).items, key=lambda group: group.name)
        chosen = [group for group in groups if int(group.name.rpartition("-")[2]) in tuple(slots)]
        members = tuple(PoolVolumeGroup(name=group.name) for group in chosen)
        spec = ReplicatedStoragePoolSpec(type=PoolType.LVM, lvm_volume_groups=members)
        await self.store.create(ReplicatedStoragePool(metadata=ObjectMeta(name="pool"), spec=spec))
        name = replication.value.lower()
        made = ReplicatedStorageClassSpec(storage_pool="pool", replication=replication)
        await self.store.create(ReplicatedStorageClass(metadata=ObjectMeta(name=name), spec=made))
        return name

    async def volumes(
        self, count: int, replication: Replication, slots: Iterable[int] = (1,), size: str = "64Mi"
    ) -> None:
        """So many volumes ``v``, ``v1``, ``v2`` …, formed."""
        name = await self.provide(replication, slots)
        await self.sleep(SETTLED)
        for number in range(count):
            await self.lab.create("v" if not number else f"v{number}", name, size)
        for number in range(count):
            await self.lab.until_ready("v" if not number else f"v{number}")

    async def drive(self, node: str, slot: int = 1) -> Drive:
        """The drive in a slot, whether it is there or not; the newest one."""
        found = [
            each
            for each in (await self.store.list(Drive)).items
            if each.spec.node_id == node and each.spec.slot == str(slot)
        ]
        return max(found, key=lambda each: (each.metadata.creation_timestamp, each.name))

    async def again(self, drive: Drive) -> Drive:
        """The same drive as it is now."""
        return await self.store.get(Drive, drive.name)

    async def annotate(self, drive: Drive, **said: str | None) -> None:
        """``kubectl annotate``, with the seed's keys."""
        keys = {"health": HEALTH, "replacement": READY, "marker": annotation_keys.MARKER}
        words = {keys.get(key, key): None if value is None else str(value) for key, value in said.items()}
        await self.store.patch(Drive, drive.name, patch={"metadata": {"annotations": words}})

    async def node_of(self, replica: str) -> str:
        found = next(each for each in await self.lab.replicas() if each.name == replica)
        assert found.spec.node_name is not None
        return str(found.spec.node_name)

    async def until_phase(self, drive: Drive, *phases: OperationalStatus, patience: float = 300.0) -> Drive:
        async def check() -> bool:
            return (await self.again(drive)).status.operational_status in phases

        await self.until(f"{drive.name} is {phases}", check, patience)
        return await self.again(drive)

    async def until_closed(self, drive: Drive, patience: float = 300.0) -> None:
        async def check() -> bool:
            try:
                await self.again(drive)
            except NotFound:
                return True
            return False

        await self.until(f"{drive.name} is closed", check, patience)

    async def until(self, what: str, check: Callable[[], object], patience: float = 300.0) -> None:
        end = self.lab.sim.clock.monotonic() + patience
        while not await check():  # type: ignore[misc]
            if self.lab.sim.clock.monotonic() > end:
                raise AssertionError(f"{what}: not within {patience:.0f} s\n{await self.described()}")
            await self.sleep(0.5)

    async def until_copies(self, name: str = "v", count: int = 3, patience: float = 600.0) -> None:
        """Until a volume has so many up-to-date voters, nothing is under way, and nobody else is a member."""

        async def check() -> bool:
            status = (await self.lab.volume(name)).status
            diskful = [each for each in status.datamesh.members if each.type == "Diskful"]
            hidden = any(each.hidden for each in diskful)
            good = status.effective_layout.up_to_date_voters
            return len(diskful) == good == count and not hidden and not status.datamesh_transitions

        await self.until(f"{count} copies of {name}", check, patience)
        await self.lab.until_ready(name)

    async def replace(self, drive: Drive, slot: int = 1, patience: float = 600.0) -> Drive:
        """From RELEASED to a new drive in service; returns that one."""
        await self.until_phase(drive, OperationalStatus.RELEASED, patience=patience)
        await self.annotate(drive, replacement="ready")
        await self.until_phase(drive, OperationalStatus.REMOVED, patience=patience)
        node = drive.spec.node_id
        serials = [each.serial for _, each in self.lab.cluster.node(node).host.bays.items()]
        if drive.spec.serial_number in serials:
            self.lab.cluster.inject(faults.DriveSwap(node=node, drive=str(slot)))
        else:
            self.lab.cluster.inject(faults.DriveInsert(node=node))
            self.lab.cluster.inject(faults.DriveSwap(node=node, drive=str(slot)))
        await self.until_closed(drive, patience)
        return await self.drive(node, slot)

    # Looking.

    async def described(self) -> str:
        lines = []
        for drive in (await self.store.list(Drive)).items:
            status = drive.status
            lines.append(
                f"{drive.spec.node_id}/{drive.spec.slot} {status.presence} {status.health} {status.operational_status}"
                f" {status.message!r} {status.detach} {status.detachment}"
            )
        for volume in (await self.store.list(Volume)).items:
            said = {key.partition("/")[2]: value for key, value in volume.metadata.annotations.items()}
            lines.append(f"{volume.name} deleting={volume.deleting} {volume.status.usage} {said}")
        for rv in (await self.store.list(ReplicatedVolume)).items:
            members = [f"{each.name}{'(hidden)' if each.hidden else ''}" for each in rv.status.datamesh.members]
            lines.append(f"{rv.name} {members} {rv.status.message!r} {rv.status.effective_layout}")
            lines += [f"  {each.type} {each.replica_name} {each.message}" for each in rv.status.datamesh_transitions]
        for replica in await self.lab.replicas():
            disk = replica.status.drbd.status.devices[:1] if replica.status.drbd.status is not None else ()
            shown = disk[0].disk_state if disk else ""
            lines.append(f"{replica.name} {replica.spec.node_name} {shown} {replica.status.message!r}")
        lines += [f"{each.name} {each.status.code}" for each in (await self.store.list(PermissionRequest)).items]
        return "\n".join(lines)

    async def events(self, drive: Drive) -> list[str]:
        """Reasons, in the order in which they were first told."""
        found = [
            each
            for each in (await self.store.list(Event)).items
            if each.involved_object.kind == "Drive" and each.involved_object.name == drive.name
        ]
        return [each.reason for each in sorted(found, key=lambda each: (each.first_timestamp, each.name))]

    async def said(self, volume: str) -> dict[str, str]:
        """What stands on the csi-baremetal Volume of a replicated volume, by the last part of the key."""
        for each in (await self.store.list(Volume)).items:
            if each.metadata.labels.get(labels.REPLICATED_VOLUME) == volume:
                return {key.partition("/")[2]: value for key, value in each.metadata.annotations.items()}
        return {}

    def up_to_date(self, volume: str) -> list[str]:
        """Nodes with a good copy, by their kernels."""
        self.lab.cluster.driver.catch_up()
        return [
            name
            for name, node in self.lab.cluster.nodes.items()
            if node.host.powered
            for resource in node.host.kernel.status(volume)
            for device in resource["devices"]
            if device["disk-state"] == "UpToDate"
        ]

    # The stand-in for the broker, and the eyes.

    async def broker(self) -> None:
        number = 0
        while True:
            for request in (await self.store.list(PermissionRequest)).items:
                if request.spec.user != USER or request.deleting:
                    continue
                if self.refusal and request.status.permissions == ():
                    refused = [{"action": {"type": "REPLACE_DEVICES"}, "issue": {"message": self.refusal}}]
                    no = {"code": "DISALLOW_TEMP", "refused": refused}
                    await self.store.patch_status(PermissionRequest, request.name, patch=no)
                elif not request.status.permissions:
                    number += 1
                    answer: dict[str, object] = {
                        "code": "ALLOW",
                        "permissions": [f"{USER}-p-{number}"],
                        "refused": None,
                    }
                    if self.on_permission is not None:
                        self.on_permission(request)
                    await self.store.patch_status(PermissionRequest, request.name, patch=answer)
                    self.permitted.append(request.name)
            await self.sleep(1)

    async def watch_ledgers(self) -> None:
        async with aclosing(await self._changes(DiskSchedule)) as events:
            async for event in events:
                ledger = event.object
                if ledger is None:
                    continue
                status = ledger.status
                answers = (*status.replicas.values(), *status.backing_images.values())
                granted = sum(each.scheduled_size for each in answers)
                if granted != status.storage_scheduled or granted > status.storage_available:
                    self.violations.append(f"ledger {ledger.name}: {granted} of {status.storage_available}")

    async def watch_copies(self) -> None:
        async with aclosing(await self._changes(LVMLogicalVolume)) as events:
            async for event in events:
                if event.type is not EventType.DELETED or event.object is None:
                    continue
                volume = event.object.metadata.labels.get(labels.REPLICATED_VOLUME)
                try:
                    rv = await self.store.get(ReplicatedVolume, volume or "none")
                except NotFound:
                    continue
                forming = any(each.formation is not None for each in rv.status.datamesh_transitions)
                born = rv.status.datamesh_revision and not forming
                if not rv.deleting and born and not self.up_to_date(rv.name):
                    self.violations.append(f"{event.object.name} went, and no copy of {rv.name} was left")

    async def _changes(self, cls: type[Any]) -> Any:
        listing = await self.store.list(cls)
        return self.store.watch(cls, resource_version=listing.resource_version)

    async def watch_phases(self) -> None:
        async with aclosing(await self._changes(Drive)) as events:
            async for event in events:
                if event.object is None or event.object.status.operational_status is None:
                    continue
                known = self.history.setdefault(event.object.spec.serial_number, [])
                phase = str(event.object.status.operational_status)
                if not known or known[-1] != phase:
                    known.append(phase)


@asynccontextmanager
async def drive_lab(sim: Simulation, layout: Layout) -> AsyncIterator[DriveLab]:
    """Everything running; the block plays the people."""
    async with volume_lab(sim, layout, drives.CONTROLLERS) as lab:
        found = DriveLab(lab)
        eyes = [
            asyncio.create_task(work)
            for work in (found.broker(), found.watch_ledgers(), found.watch_copies(), found.watch_phases())
        ]
        try:
            yield found
            for eye in eyes:
                assert not eye.done(), eye.exception()
        finally:
            for eye in eyes:
                eye.cancel()
            await asyncio.gather(*eyes, return_exceptions=True)
        assert not found.violations, "\n".join(found.violations)


async def in_use(lab: DriveLab, node: str) -> Story:
    """The volume ``v``, in use on a node."""
    story = Story(lab.lab)
    await story.attach(node)
    await story.until_primary(node)
    return story


__all__ = ["HEALTH", "READY", "DriveLab", "drive_lab", "in_use", "names"]
