"""A broker at hand: a small cluster, a clock that stands still until told, a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import Any

from quorate.api.duration import Duration
from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, StatusCode
from quorate.api.maintenance.broker_config import BrokerConfig, BrokerConfigSpec, Limits
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.store import Store
from quorate.maintenance.broker import Broker, MemoryLog
from quorate.maintenance.messages import (
    Action,
    Caller,
    CheckRequest,
    ManagePermission,
    ManagePermissionResponse,
    ManageRequest,
    ManageRequestResponse,
    PermissionCommand,
    PermissionRequest,
    PermissionResponse,
    RequestCommand,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, to_datetime
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Species, VDiskId, VDiskInfo

ANYONE = Caller(anyone=True)
#: When every story begins.
BEGIN = 1_800_000_000 * SECOND
MINUTE = 60 * SECOND

KINDS = (BrokerLedger.KIND, BrokerConfig.KIND)

NO_LIMITS = Limits(disabled_nodes_limit=0, disabled_nodes_ratio_limit=0)
SETTINGS = BrokerConfigSpec(
    default_retry_time=Duration("300s"),
    default_permission_duration=Duration("300s"),
    tenant_limits=NO_LIMITS,
    cluster_limits=NO_LIMITS,
)


class StillClock:
    """Implements :class:`quorate.engine.clock.Clock`; wall and monotonic time move together unless told otherwise."""

    def __init__(self) -> None:
        self.wall = BEGIN
        self.elapsed = 0
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        moment = to_datetime(self.wall)
        assert moment is not None
        return moment

    def monotonic(self) -> float:
        return self.elapsed / SECOND

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.elapsed + int(seconds * SECOND), future))
        await future

    def advance(self, seconds: float) -> None:
        """Time goes by."""
        self.wall += int(seconds * SECOND)
        self.elapsed += int(seconds * SECOND)
        for at, future in self._sleepers:
            if at <= self.elapsed and not future.done():
                future.set_result(None)
        self._sleepers = [(at, future) for at, future in self._sleepers if not future.done()]

    def jump(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.wall += int(seconds * SECOND)


def fill(model: ClusterModel, nodes: int = 8, species: Species = Species.BLOCK_4_2, *, tenant: str = "") -> None:
    """Nodes h1, h2, …, each with a drive and one part of group 0."""
    for number in range(1, nodes + 1):
        model.put_node(NodeInfo(id=number, host=f"h{number}", tenant=tenant))
        model.put_drive(DriveInfo(id=DriveId(number, 1), path="/dev/sda"))
    model.put_group(
        GroupInfo(
            id=0,
            species=species,
            vdisks=tuple(
                VDiskInfo(id=VDiskId(0, 1, 0, number - 1, 0), node=number, drives=(DriveId(number, 1),))
                for number in range(1, nodes + 1)
            ),
        )
    )


async def memory_store(clock: StillClock) -> EmbeddedStore:
    """A store that is gone at the end."""
    return await EmbeddedStore.open(None, kinds=KINDS, clock=clock, random=Random(1), inline=True)


class Desk:
    """A broker and the shortest way to ask it."""

    def __init__(
        self, store: Store, clock: StillClock, model: ClusterModel, *, holder: str = "one", **more: Any
    ) -> None:
        self.store = store
        self.clock = clock
        self.model = model
        self.log = MemoryLog()
        self.broker = Broker(store, model, clock, holder=holder, log=self.log, **more)

    @classmethod
    async def open(
        cls, *, nodes: int = 8, species: Species = Species.BLOCK_4_2, store: Store | None = None, **more: Any
    ) -> Desk:
        """A broker over a cluster of that many nodes."""
        clock = StillClock()
        desk = cls(store or await memory_store(clock), clock, new_model(nodes, species), **more)
        await desk.broker.start()
        return desk

    async def again(self, *, holder: str = "one", store: Store | None = None) -> Desk:
        """The next process on the same store, with a model filled as this one's is."""
        desk = Desk(store or self.store, self.clock, copied(self.model), holder=holder)
        await desk.broker.start()
        return desk

    async def ask(
        self,
        *hosts: str | Action,
        user: str = "alice",
        caller: Caller = ANYONE,
        duration: int | None = 60 * SECOND,
        **more: Any,
    ) -> PermissionResponse:
        """May these hosts be shut down?"""
        actions = tuple(shutdown(host, duration) if isinstance(host, str) else host for host in hosts)
        return await self.broker.permission_request(PermissionRequest(user=user, actions=actions, **more), caller)

    async def check(
        self, request_id: str, *, user: str = "alice", mode: AvailabilityMode | None = None, dry_run: bool = False
    ) -> PermissionResponse:
        """May the rest be done now?"""
        message = CheckRequest(user=user, request_id=request_id, availability_mode=mode, dry_run=dry_run)
        return await self.broker.check_request(message, ANYONE)

    async def manage(
        self,
        command: PermissionCommand | None,
        *ids: str,
        user: str = "alice",
        deadline: int | None = None,
        dry_run: bool = False,
    ) -> ManagePermissionResponse:
        """Do something with permissions."""
        message = ManagePermission(command=command, user=user, permissions=ids, deadline=deadline, dry_run=dry_run)
        return await self.broker.manage_permission(message, ANYONE)

    async def requests(
        self, command: RequestCommand | None, request_id: str = "", *, user: str = "alice", dry_run: bool = False
    ) -> ManageRequestResponse:
        """Do something with stored requests."""
        message = ManageRequest(command=command, user=user, request_id=request_id, dry_run=dry_run)
        return await self.broker.manage_request(message, ANYONE)

    async def done(self, *ids: str, user: str = "alice") -> StatusCode:
        """The work is done."""
        return (await self.manage(PermissionCommand.DONE, *ids, user=user)).status.code

    async def held(self, user: str = "alice") -> list[str]:
        """Ids of the user's permissions."""
        return [one.id for one in (await self.manage(PermissionCommand.LIST, user=user)).permissions]

    def put(self, node: int, state: HostState) -> None:
        """A node goes down, or comes up."""
        info = self.model.node(node)
        assert info is not None
        down = state is HostState.DOWN
        self.model.put_node(NodeInfo(id=node, host=info.host, tenant=info.tenant, state=state, surely_down=down))
        self.broker.cluster_changed()

    async def settle(self) -> None:
        """Let what goes on beside the questions come to rest."""
        for _ in range(30):
            await asyncio.sleep(0)


def shutdown(host: str, duration: int | None = 60 * SECOND) -> Action:
    """A host goes down for a while."""
    return Action(type=ActionType.SHUTDOWN_HOST, host=host, duration=duration)


def replacement(*devices: str, duration: int | None = 60 * SECOND) -> Action:
    """Drives are replaced."""
    return Action(type=ActionType.REPLACE_DEVICES, devices=devices, duration=duration)


def new_model(nodes: int = 8, species: Species = Species.BLOCK_4_2) -> ClusterModel:
    """Filled."""
    model = ClusterModel(SETTINGS)
    fill(model, nodes, species)
    return model


def copied(model: ClusterModel) -> ClusterModel:
    """The same cluster, without anybody's locks."""
    copy = ClusterModel(model.settings)
    for node in model.nodes():
        copy.put_node(node)
        for drive in model.drives_of(node.id):
            copy.put_drive(drive)
    for group in model.groups():
        copy.put_group(group)
    copy.set_rings(model.rings)
    return copy


def ids(answer: PermissionResponse) -> list[str]:
    """Of the permissions given."""
    return [permission.id for permission in answer.permissions]


def hosts(actions: Iterable[Action]) -> list[str]:
    """Where they are."""
    return [action.host for action in actions]
