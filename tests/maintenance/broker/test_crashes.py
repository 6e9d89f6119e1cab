"""A process that ends at any write, just before or just after it: nothing is lost, nothing is doubled.

The client is one that has read the seed: it asks for all hosts, restarts those it gets, says done, asks again. When the
broker dies under a question it asks the next process what it has, and goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import pytest

from quorate.api.maintenance.action import StatusCode
from quorate.engine.store import Store
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import (
    NotificationRequest,
    PermissionCommand,
    RequestCommand,
    WalleCheckTask,
    WalleCreateTask,
    WalleRemoveTask,
    WalleTask,
    WalleTaskAnswer,
)
from quorate.maintenance.moments import SECOND
from tests.maintenance.broker.desk import ANYONE, BEGIN, Desk, StillClock, memory_store, new_model, shutdown
from tests.maintenance.broker.faults import Ended, FaultyStore

T = TypeVar("T")

HOSTS = ("h1", "h2", "h3", "h4")
#: More than any of the stories needs.
WRITES = 16


class Killed(Exception):
    """No answer will come."""


class Line:
    """A client's connection to whichever process lives."""

    def __init__(self, store: Store, clock: StillClock) -> None:
        self._store = store
        self._clock = clock
        self.deaths = 0
        #: Every id that was ever seen, and those that were said to be done.
        self.seen: set[str] = set()
        self.done: set[str] = set()
        self.desk: Desk
        self._faulty: FaultyStore

    async def connect(self, *script: str) -> None:
        """A new process."""
        while True:
            self._faulty = FaultyStore(self._store, script)
            self.desk = Desk(self._faulty, self._clock, new_model(len(HOSTS)), holder=f"process-{self.deaths}")
            try:
                await self.desk.broker.start()
            except Ended:
                self.deaths += 1
                script = ()
                continue
            return

    async def call(self, question: Awaitable[T]) -> T:
        """The answer, or Killed; then another process is there."""
        asking = asyncio.ensure_future(question)
        for _ in range(100):
            await asyncio.sleep(0)
            if asking.done():
                self.check()
                return asking.result()
        self.deaths += 1
        for task in (asking, *self.desk.broker._running):
            task.cancel()
        await asyncio.gather(asking, *self.desk.broker._running, return_exceptions=True)
        await self.connect()
        self.check()
        raise Killed

    def check(self) -> None:
        """What must be so at any time."""
        ledger = self.desk.broker.ledger
        held = [entry.id for entry in ledger.permissions]
        assert len(held) == len(set(held)) <= 1, "one of the group at a time"
        assert not self.done.intersection(held), "what is done comes back"
        self.seen.update(held)
        assert len({entry.rpartition("-")[2] for entry in self.seen}) == len(self.seen), "a number was given twice"


async def restart_all(line: Line) -> list[str]:
    """The rolling restart of the seed; the hosts in the order they were restarted."""
    restarted: list[str] = []
    asked = False
    while True:
        desk = line.desk
        try:
            held = (await line.call(desk.manage(PermissionCommand.LIST))).permissions
            for permission in held:
                if not restarted or restarted[-1] != permission.action.host:
                    assert permission.action.host not in restarted, "a host is restarted twice"
                    restarted.append(permission.action.host)
                assert (
                    await line.call(desk.manage(PermissionCommand.DONE, permission.id))
                ).status.code is StatusCode.OK
                line.done.add(permission.id)
            waiting = (await line.call(desk.requests(RequestCommand.LIST))).requests
            assert len(waiting) <= 1, "a request is stored twice"
            if waiting:
                asked = True
                answer = await line.call(desk.check(waiting[0].request_id))
                assert answer.status.code in (StatusCode.ALLOW, StatusCode.ALLOW_PARTIAL)
            elif held:
                continue
            elif asked or restarted:
                return restarted
            else:
                await line.call(desk.ask(*HOSTS, partial_permission_allowed=True, schedule=True))
        except Killed:
            continue


@pytest.mark.parametrize("fate", ["stop", "ended"])
@pytest.mark.parametrize("at", range(WRITES))
async def test_a_rolling_restart_restarts_every_host_once_wherever_the_broker_dies(at: int, fate: str) -> None:
    clock = StillClock()
    line = Line(await memory_store(clock), clock)
    await line.connect(*["done"] * at, fate)
    assert sorted(await restart_all(line)) == sorted(HOSTS)
    assert line.deaths == (1 if at < 10 else 0)
    ledger = line.desk.broker.ledger
    assert (ledger.permissions, ledger.requests, len(line.seen)) == ((), (), len(HOSTS))


@pytest.mark.parametrize("fate", ["stop", "ended"])
@pytest.mark.parametrize("at", range(8))
async def test_a_task_of_walle_and_its_request_are_never_one_without_the_other(at: int, fate: str) -> None:
    clock = StillClock()
    line = Line(await memory_store(clock), clock)
    await line.connect(*["done"] * at, fate)
    task = WalleTask(id="t", action="reboot", hosts=("h1",))

    async def insist(ask: Callable[[Broker], Awaitable[WalleTaskAnswer]]) -> StatusCode:
        while True:
            try:
                return (await line.call(ask(line.desk.broker))).status.code
            except Killed:
                continue
            finally:
                _whole(line)

    with suppress(Killed):
        await line.call(line.desk.ask("h2"))
    await insist(lambda broker: broker.walle_create(WalleCreateTask(task=task), ANYONE))
    for permission in (await line.call(line.desk.manage(PermissionCommand.LIST))).permissions:
        try:
            await line.call(line.desk.manage(PermissionCommand.DONE, permission.id))
        except Killed:
            await line.call(line.desk.manage(PermissionCommand.DONE, permission.id))
    assert await insist(lambda broker: broker.walle_check(WalleCheckTask(task_id="t"), ANYONE)) is StatusCode.ALLOW
    removed = await insist(lambda broker: broker.walle_remove(WalleRemoveTask(task_id="t"), ANYONE))
    assert removed in (StatusCode.OK, StatusCode.WRONG_REQUEST)
    ledger = line.desk.broker.ledger
    assert (ledger.permissions, ledger.requests, ledger.tasks) == ((), (), ())


def _whole(line: Line) -> None:
    ledger = line.desk.broker.ledger
    of_task = {name for task in ledger.tasks for name in (*task.permission_ids, task.request_id) if name}
    held = {entry.id for entry in ledger.permissions if entry.owner == "Wall-E"}
    waiting = {entry.id for entry in ledger.requests if entry.owner == "Wall-E"}
    assert of_task == held | waiting


@pytest.mark.parametrize("fate", ["stop", "ended"])
@pytest.mark.parametrize("at", range(4))
async def test_a_notification_is_there_or_not_and_its_number_is_not_used_again(at: int, fate: str) -> None:
    clock = StillClock()
    line = Line(await memory_store(clock), clock)
    await line.connect(*["done"] * at, fate)
    message = NotificationRequest(user="alice", actions=(shutdown("h1"),), time=BEGIN + 10 * SECOND)
    answered = []
    for _ in range(4):
        try:
            answered.append((await line.call(line.desk.broker.notification(message, ANYONE))).notification_id)
        except Killed:
            continue
    kept = [entry.id for entry in line.desk.broker.ledger.notifications]
    assert set(answered) <= set(kept)
    assert len(kept) == len(set(kept)) == line.desk.broker.ledger.counters.notifications
