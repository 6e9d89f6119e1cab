"""A volume made by hand: this plays the volume controllers, step by step, over any store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.api import finalizers, labels, names
from quorate.api.codec import to_builtins
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage import DRBDResourceOperation, LVMLogicalVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import DrbdConfig, Peer, ReplicaType, SharedSecretAlgorithm
from quorate.api.storage.drbdrop import (
    CreateNewUUID,
    DRBDResourceOperationSpec,
    OperationPhase,
    OperationType,
)
from quorate.api.storage.llv import LogicalVolumePhase, LogicalVolumeType, LVMLogicalVolumeSpec
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.engine.clock import Clock
from quorate.engine.store import Store
from quorate.errors import NotFound
from quorate.lab.layout import object_name, volume_group

_POLL = 0.25
D, TB = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER

Replica = ReplicatedVolumeReplica


class NeverHappened(AssertionError):
    """Something that was waited for did not come about."""


@dataclass
class HandMadeVolume:
    """Members on nodes, in the order of their ids."""

    store: Store
    clock: Clock
    name: VolumeName
    members: Sequence[tuple[str, ReplicaType]]
    minor: int = 1000
    size: str = "128Mi"
    redundancy: int = 1
    slot: str = "1"
    revision: int = 0
    #: Seconds within which everything that is waited for has come about.
    patience: float = 120.0

    # Names.

    def replica_name(self, number: int) -> ReplicaName:
        return names.replica(self.name, number)

    def logical_volume_name(self, number: int) -> str:
        node, _ = self.members[number]
        return names.logical_volume(self.replica_name(number), object_name(node, self.slot))

    @property
    def diskful(self) -> list[int]:
        return [number for number, (_, type_) in enumerate(self.members) if type_ is D]

    # Formation.

    async def form(self, *, force_resync: bool = False) -> None:
        """From nothing to UpToDate everywhere."""
        for number in range(len(self.members)):
            await self.create_replica(number)
        for number in self.diskful:
            await self.until(f"LLV {number} is Created", self._logical_volume_created, number)
        await self.until(
            "every replica has an address", self._all, lambda one: one.status.drbd.config.address is not None
        )
        await self.configure()
        await self.until_configured()
        await self.until("all are connected", self._all, _connected)
        await self.bootstrap(force_resync=force_resync)
        await self.until_healthy()

    async def create_replica(self, number: int) -> None:
        node, type_ = self.members[number]
        label = {labels.NODE: node, labels.REPLICATED_VOLUME: self.name}
        group = object_name(node, self.slot) if type_ is D else None
        if group is not None:
            name = self.logical_volume_name(number)
            await self.store.create(
                LVMLogicalVolume(
                    metadata=ObjectMeta(name=name, labels=label, finalizers=(finalizers.AGENT,)),
                    spec=LVMLogicalVolumeSpec(
                        actual_lv_name_on_the_node=name,
                        type=LogicalVolumeType.THICK,
                        size=Quantity(self.size),
                        lvm_volume_group_name=group,
                    ),
                )
            )
        await self.store.create(
            Replica(
                metadata=ObjectMeta(name=self.replica_name(number), labels=label, finalizers=(finalizers.AGENT,)),
                spec=ReplicatedVolumeReplicaSpec(
                    replicated_volume_name=self.name,
                    type=type_,
                    node_name=NodeName(node),
                    lvm_volume_group_name=group,
                ),
            )
        )

    async def configure(self, **changes: Any) -> None:
        """Render every member's complete config at the next revision."""
        self.revision += 1
        replicas = [await self.replica(number) for number in range(len(self.members))]
        for number, replica in enumerate(replicas):
            await self._write_config(number, self._config(number, replicas), changes)
            assert replica.status.drbd.config.address is not None

    def _config(self, number: int, replicas: list[Replica]) -> DrbdConfig:
        _, type_ = self.members[number]
        peers = tuple(
            Peer(
                name=self.replica_name(other),
                node_name=NodeName(node),
                node_id=other,
                type=their_type,
                address=address,
            )
            for other, (node, their_type) in enumerate(self.members)
            if other != number
            and (address := replicas[other].status.drbd.config.address) is not None
            and D in (type_, their_type)
        )
        disk = f"/dev/{volume_group(self.slot)}/{self.logical_volume_name(number)}" if type_ is D else None
        return DrbdConfig(
            datamesh_revision=self.revision,
            node_id=number,
            type=type_,
            peers=peers,
            peers_initialized=True,
            device_minor=self.minor,
            disk=disk,
            shared_secret=Secret("a secret of this test"),
            shared_secret_alg=SharedSecretAlgorithm.SHA256,
            quorum=len(self.diskful) // 2 + 1,
            quorum_minimum_redundancy=self.redundancy,
        )

    async def _write_config(self, number: int, config: DrbdConfig, changes: dict[str, Any]) -> None:
        patch: dict[str, Any] = {"drbd": {"config": {**to_builtins(config), **changes}}}
        if config.disk is not None:
            patch["lvmLogicalVolumeName"] = self.logical_volume_name(number)
        await self.store.patch_status(Replica, self.replica_name(number), patch=patch)

    async def bootstrap(self, *, force_resync: bool) -> None:
        """The one operation that gives the volume its first data."""
        first = self.diskful[0]
        node, _ = self.members[first]
        name = names.formation_operation(self.name)
        await self.store.create(
            DRBDResourceOperation(
                metadata=ObjectMeta(name=name, labels={labels.NODE: node, labels.REPLICATED_VOLUME: self.name}),
                spec=DRBDResourceOperationSpec(
                    node_name=NodeName(node),
                    drbd_resource_name=self.replica_name(first),
                    type=OperationType.CREATE_NEW_UUID,
                    create_new_uuid=CreateNewUUID(clear_bitmap=not force_resync, force_resync=force_resync),
                ),
            )
        )

        async def succeeded() -> bool:
            operation = await self.store.get(DRBDResourceOperation, name)
            assert operation.status.phase is not OperationPhase.FAILED, operation.status.message
            return operation.status.phase is OperationPhase.SUCCEEDED

        await self.until("the formation operation succeeds", succeeded)
        await self.store.delete(DRBDResourceOperation, name)

    # Life.

    async def promote(self, number: int, *, primary: bool = True) -> None:
        """Attach or detach a member, and wait until its kernel says so."""
        patch = {"drbd": {"config": {"primary": primary}}}
        await self.store.patch_status(Replica, self.replica_name(number), patch=patch)
        await self.until_replica(number, f"role is {'Primary' if primary else 'Secondary'}", _has_role(primary))

    async def delete(self) -> None:
        """Delete every member, then its logical volume; returns when nothing is left."""
        for number in range(len(self.members)):
            await self.store.delete(Replica, self.replica_name(number))
        for number in range(len(self.members)):
            await self.until(f"replica {number} is gone", self._gone, Replica, self.replica_name(number))
        for number in self.diskful:
            await self.store.delete(LVMLogicalVolume, self.logical_volume_name(number))
        for number in self.diskful:
            await self.until(f"LLV {number} is gone", self._gone, LVMLogicalVolume, self.logical_volume_name(number))

    # Waiting.

    async def replica(self, number: int) -> Replica:
        return await self.store.get(Replica, self.replica_name(number))

    async def until_configured(self) -> None:
        """Every member's kernel shows the present revision."""
        await self.until("every replica shows the revision", self._all, self._is_current)

    async def until_healthy(self) -> None:
        """Every member is connected, in sync and quorate."""
        await self.until("all are connected", self._all, _connected)
        await self.until("every disk is UpToDate", self._all, _up_to_date)
        await self.until("every member has quorum", self._all, _quorate)

    async def until_replica(self, number: int, what: str, holds: Callable[[Replica], bool]) -> Replica:
        async def check() -> bool:
            return holds(await self.replica(number))

        await self.until(f"replica {number}: {what}", check)
        return await self.replica(number)

    async def until(self, what: str, check: Callable[..., Any], *arguments: Any) -> None:
        """Wait until something holds; says what does not, and how the replicas are, when it never does."""
        end = self.clock.monotonic() + self.patience
        while not await check(*arguments):
            if self.clock.monotonic() > end:
                raise NeverHappened(f"{what}: not within {self.patience:.0f} s\n{await self.described()}")
            await self.clock.sleep(_POLL)

    async def described(self) -> str:
        """The members as their agents report them."""
        lines = []
        for number in range(len(self.members)):
            try:
                replica = await self.replica(number)
            except NotFound:
                continue
            drbd = replica.status.drbd
            lines.append(f"{replica.name} revision {replica.status.datamesh_revision}: {drbd.status} {drbd.errors}")
        return "\n".join(lines)

    async def _all(self, holds: Callable[[Replica], bool]) -> bool:
        return all([holds(await self.replica(number)) for number in range(len(self.members))])

    async def _logical_volume_created(self, number: int) -> bool:
        found = await self.store.get(LVMLogicalVolume, self.logical_volume_name(number))
        return found.status.phase is LogicalVolumePhase.CREATED

    async def _gone(self, cls: type[Any], name: str) -> bool:
        try:
            await self.store.get(cls, name)
        except NotFound:
            return True
        return False

    def _is_current(self, replica: Replica) -> bool:
        return replica.status.datamesh_revision == self.revision


def _connected(replica: Replica) -> bool:
    status = replica.status.drbd.status
    expected = len(replica.status.drbd.config.peers)
    return (
        status is not None
        and len(status.connections) == expected
        and all(each.connection_state == "Connected" for each in status.connections)
    )


def _up_to_date(replica: Replica) -> bool:
    status = replica.status.drbd.status
    wanted = "UpToDate" if replica.spec.type is D else "Diskless"
    return status is not None and bool(status.devices) and status.devices[0].disk_state == wanted


def _quorate(replica: Replica) -> bool:
    status = replica.status.drbd.status
    return status is not None and bool(status.devices) and bool(status.devices[0].quorum)


def _has_role(primary: bool) -> Callable[[Replica], bool]:
    wanted = "Primary" if primary else "Secondary"
    return lambda replica: replica.status.drbd.status is not None and replica.status.drbd.status.role == wanted
