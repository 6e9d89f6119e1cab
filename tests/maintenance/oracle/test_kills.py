"""A rolling restart whose broker dies at every point: before each write of the ledger, and after it but before the
answer leaves. Nothing is lost, nothing doubled."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from quorate.api import all_kinds
from quorate.api.maintenance.action import StatusCode
from quorate.engine.embedded import EmbeddedStore
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import (
    Action,
    CheckRequest,
    ManagePermission,
    ManageRequest,
    Permission,
    PermissionCommand,
    PermissionRequest,
    RequestCommand,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import Species
from tests.maintenance.oracle.clusters import BEGIN
from tests.maintenance.oracle.product import ANYONE, SteppedClock, fill
from tests.maintenance.oracle.test_examples import cluster, shutdown
from tests.maintenance.oracle.world import World

T = TypeVar("T")
USER = "restarter"
NODES = 6


class Killed(Exception):
    """The broker's process is gone, and with it the answer."""


class MortalStore:
    """A store whose process dies at its n-th write, before or after the write reaches the disk."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self.writes = 0
        self.dies_at: int | None = None
        self.written_first = False
        self.died = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def patch_status(self, *args: Any, **kwargs: Any) -> Any:
        self.writes += 1
        if self.writes != self.dies_at:
            return await self._store.patch_status(*args, **kwargs)
        if self.written_first:
            await self._store.patch_status(*args, **kwargs)
        self.died.set()
        return await asyncio.get_running_loop().create_future()


class Cluster:
    """A cluster whose broker comes back after each death, with nothing but the ledger."""

    def __init__(self, world: World, store: MortalStore) -> None:
        self.world = world
        self.store = store
        self.clock = SteppedClock(BEGIN)
        self.deaths = 0
        #: Every permission ever seen, by its id.
        self.seen: dict[str, Action] = {}
        self.restarted: list[str] = []

    async def start(self) -> None:
        model = ClusterModel(self.world.settings)
        fill(model, self.world)
        self.broker = Broker(self.store, model, self.clock, holder=f"process-{self.deaths}")
        await self.living(self.broker.start())

    async def living(self, call: Awaitable[T]) -> T:
        """What a call answers, unless the process dies first."""
        answer = asyncio.ensure_future(call)
        death = asyncio.ensure_future(self.store.died.wait())
        await asyncio.wait({answer, death}, return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if self.store.died.is_set():
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            raise Killed
        return await answer

    def keep_in_mind(self, permissions: tuple[Permission, ...]) -> None:
        """An id means one permission for ever."""
        for permission in permissions:
            assert self.seen.setdefault(permission.id, permission.action) == permission.action

    async def manage(self, command: PermissionCommand, *names: str) -> tuple[Permission, ...]:
        message = ManagePermission(command=command, user=USER, permissions=names)
        answer = await self.living(self.broker.manage_permission(message, ANYONE))
        assert answer.status.code is StatusCode.OK
        self.keep_in_mind(answer.permissions)
        return answer.permissions

    async def use(self, permissions: tuple[Permission, ...]) -> None:
        """Restart what is permitted, once each, and say so."""
        self.keep_in_mind(permissions)
        for permission in permissions:
            if permission.action.host not in self.restarted:
                self.restarted.append(permission.action.host)
            await self.manage(PermissionCommand.DONE, permission.id)

    async def roll(self, hosts: list[str]) -> None:
        """The seed's scenario, begun anew as often as it takes: what is granted and what is stored can be asked for."""
        await self.use(await self.manage(PermissionCommand.LIST))
        listed = await self.living(
            self.broker.manage_request(ManageRequest(command=RequestCommand.LIST, user=USER), ANYONE)
        )
        assert len(listed.requests) <= 1
        if not listed.requests:
            rest = [host for host in hosts if host not in self.restarted]
            if not rest:
                return
            message = PermissionRequest(
                user=USER, actions=tuple(map(shutdown, rest)), partial_permission_allowed=True, schedule=True
            )
            answer = await self.living(self.broker.permission_request(message, ANYONE))
        else:
            message_again = CheckRequest(user=USER, request_id=listed.requests[0].request_id)
            answer = await self.living(self.broker.check_request(message_again, ANYONE))
        while True:
            assert answer.status.code in (StatusCode.ALLOW, StatusCode.ALLOW_PARTIAL)
            await self.use(answer.permissions)
            if not answer.request_id:
                return
            message_again = CheckRequest(user=USER, request_id=answer.request_id)
            answer = await self.living(self.broker.check_request(message_again, ANYONE))

    def nothing_is_lost_or_doubled(self, hosts: list[str]) -> None:
        """By the ledger: each host is restarted, permitted, waited for, or was never asked for; never two of these."""
        ledger = self.broker.ledger
        permitted = [entry.action.host for entry in ledger.permissions]
        waited_for = [action.host for entry in ledger.requests for action in entry.actions]
        assert len(set(permitted + waited_for)) == len(permitted + waited_for)
        assert set(waited_for).isdisjoint(self.restarted)
        if ledger.requests:
            assert set(permitted + waited_for + self.restarted) == set(hosts)


async def restart_everything(dies_at: int | None, written_first: bool) -> Cluster:
    world = cluster(NODES, Species.BLOCK_4_2)
    clock = SteppedClock(BEGIN)
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random.Random(1), inline=True)
    mortal = MortalStore(store)
    mortal.dies_at, mortal.written_first = dies_at, written_first
    rolled = Cluster(world, mortal)
    hosts = [f"h{number}" for number in range(1, NODES + 1)]
    while True:
        try:
            await rolled.start()
            rolled.nothing_is_lost_or_doubled(hosts)
            await rolled.roll(hosts)
        except Killed:
            rolled.deaths += 1
            mortal.died.clear()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        else:
            break
    assert sorted(rolled.restarted) == sorted(hosts)
    assert not rolled.broker.ledger.permissions
    assert not rolled.broker.ledger.requests
    await rolled.broker.close()
    await store.close()
    return rolled


async def test_a_rolling_restart_survives_the_death_of_its_broker_at_every_write() -> None:
    undisturbed = await restart_everything(None, written_first=False)
    writes = undisturbed.store.writes
    assert writes > 2 * NODES
    for dies_at in range(1, writes + 1):
        for written_first in (False, True):
            rolled = await restart_everything(dies_at, written_first)
            assert rolled.deaths == 1, f"it was to die at write {dies_at}"


@pytest.mark.parametrize("seed", range(5))
async def test_a_rolling_restart_survives_many_deaths(seed: int) -> None:
    luck = random.Random(seed)
    world = cluster(NODES, Species.BLOCK_4_2)
    store = await EmbeddedStore.open(
        None, kinds=all_kinds(), clock=SteppedClock(BEGIN), random=random.Random(1), inline=True
    )
    mortal = MortalStore(store)
    rolled = Cluster(world, mortal)
    hosts = [f"h{number}" for number in range(1, NODES + 1)]
    while True:
        mortal.dies_at = mortal.writes + luck.randint(1, 6) if rolled.deaths < 30 else None
        mortal.written_first = luck.random() < 0.5
        try:
            await rolled.start()
            rolled.nothing_is_lost_or_doubled(hosts)
            await rolled.roll(hosts)
        except Killed:
            rolled.deaths += 1
            mortal.died.clear()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        else:
            break
    assert rolled.deaths
    assert sorted(rolled.restarted) == sorted(hosts)
    await rolled.broker.close()
    await store.close()
