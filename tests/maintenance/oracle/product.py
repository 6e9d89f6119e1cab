"""The real broker over the same cluster, asked the same questions; its answers are brought to the oracle's form."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from quorate.api.kind import all_kinds
from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.broker_config import BrokerConfig, BrokerConfigSpec
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.engine.embedded import EmbeddedStore
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import (
    Action,
    Caller,
    CheckRequest,
    ManageNotification,
    ManagePermission,
    ManageRequest,
    NotificationRequest,
    Permission,
    PermissionCommand,
    PermissionRequest,
    PermissionResponse,
    RequestCommand,
    ScheduledRequest,
    SetConfig,
    Status,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleRemoveTask,
    WalleTask,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, to_datetime
from tests.maintenance.oracle.life import Life, Said, Shown, Told, bare
from tests.maintenance.oracle.world import World

T = TypeVar("T")
#: What the broker writes; making the others' rules takes longer than a history.
KINDS = tuple(kind for kind in all_kinds() if kind.type in (BrokerLedger, BrokerConfig))
#: Whoever the message names is believed.
ANYONE = Caller(anyone=True)


class SteppedClock:
    """Stands still until told. Implements :class:`quorate.engine.clock.Clock`."""

    def __init__(self, microseconds: int) -> None:
        self.microseconds = microseconds
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        moment = to_datetime(self.microseconds)
        assert moment is not None
        return moment

    def monotonic(self) -> float:
        return self.microseconds / SECOND

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.microseconds + int(seconds * SECOND), future))
        await future

    def advance(self, to: int) -> None:
        """Let it be that late, and wake those who waited for it."""
        self.microseconds = to
        for at, future in self._sleepers:
            if at <= to and not future.done():
                future.set_result(None)
        self._sleepers = [(at, future) for at, future in self._sleepers if not future.done()]


class Product:
    """A broker in a loop of its own."""

    def __init__(self, world: World, now: int) -> None:
        self.world = world
        self.clock = SteppedClock(now)
        self.runner = asyncio.Runner()
        self.store = self.run(
            EmbeddedStore.open(None, kinds=KINDS, clock=self.clock, random=random.Random(1), inline=True)
        )
        self.starts = 0
        self.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Let a call come to its end, and everything that it set off: that waits for nothing but the clock."""

        async def whole() -> T:
            result = await coroutine
            await rest()
            return result

        return self.runner.run(whole())

    def start(self) -> None:
        """A new process: a model filled from the cluster as it is, and a broker that has only the ledger to go by."""
        self.starts += 1
        self.model = ClusterModel(self.world.settings)
        fill(self.model, self.world)
        self.broker = Broker(self.store, self.model, self.clock, holder=f"process-{self.starts}")
        self.run(self.broker.start())
        self.broker.configure(self.world.settings)

    def close(self) -> None:
        """End."""
        self.run(self.broker.close())
        self.run(self.store.close())
        self.runner.close()

    def restart(self) -> None:
        """Go away and come back."""
        self.run(self.broker.close())
        self.start()

    # -- questions

    def permission_request(self, message: PermissionRequest) -> Said:
        return said(self.run(self.broker.permission_request(message, ANYONE)))

    def check_request(self, message: CheckRequest) -> Said:
        return said(self.run(self.broker.check_request(message, ANYONE)))

    def manage_request(self, message: ManageRequest) -> Said:
        answer = self.run(self.broker.manage_request(message, ANYONE))
        return Said(answer.status.code, requests=tuple(map(shown, answer.requests)))

    def manage_permission(self, message: ManagePermission) -> Said:
        answer = self.run(self.broker.manage_permission(message, ANYONE))
        return Said(answer.status.code, permissions=tuple(map(told, answer.permissions)))

    def notification(self, message: NotificationRequest) -> Said:
        answer = self.run(self.broker.notification(message, ANYONE))
        return Said(answer.status.code, answer.notification_id)

    def manage_notification(self, message: ManageNotification) -> Said:
        answer = self.run(self.broker.manage_notification(message, ANYONE))
        return Said(answer.status.code, notifications=tuple(one.notification_id for one in answer.notifications))

    def set_config(self, config: BrokerConfigSpec) -> Said:
        return Said(self.run(self.broker.set_config(SetConfig(config=config), ANYONE)).status.code)

    def at_once(self, messages: Sequence[PermissionRequest | CheckRequest | ManagePermission]) -> list[Said]:
        """Questions that arrive side by side: they are decided in the order in which they came, and share writes."""

        async def one(message: PermissionRequest | CheckRequest | ManagePermission) -> Said:
            if isinstance(message, ManagePermission):
                answer = await self.broker.manage_permission(message, ANYONE)
                return Said(answer.status.code, permissions=tuple(map(told, answer.permissions)))
            if isinstance(message, CheckRequest):
                return said(await self.broker.check_request(message, ANYONE))
            return said(await self.broker.permission_request(message, ANYONE))

        async def all_of_them() -> list[Said]:
            return await asyncio.gather(*map(one, messages))

        return self.run(all_of_them())

    # -- Wall-E's

    def walle_create(self, task: WalleTask, *, dry_run: bool) -> StatusCode:
        answer = self.run(self.broker.walle_create(WalleCreateTask(task=task, dry_run=dry_run), ANYONE))
        return walle_code(answer.status)

    def walle_check(self, task_id: str) -> StatusCode:
        return walle_code(self.run(self.broker.walle_check(WalleCheckTask(task_id=task_id), ANYONE)).status)

    def walle_remove(self, task_id: str) -> StatusCode:
        return walle_code(self.run(self.broker.walle_remove(WalleRemoveTask(task_id=task_id), ANYONE)).status)

    def walle_list(self) -> dict[str, StatusCode]:
        answer = self.run(self.broker.walle_list(WalleListTasks(), ANYONE))
        return {task.task.id: task.status.code for task in answer.tasks}

    # -- what happens

    def advance(self, to: int) -> None:
        """Time goes by."""
        self.clock.advance(to)
        self.runner.run(rest())

    def changed(self) -> None:
        """Something in the cluster did."""
        self.broker.cluster_changed()
        self.runner.run(rest())

    def kept(self, users: Iterable[str]) -> list[Said]:
        """Everything that these users have."""

        async def listed() -> list[Said]:
            found = []
            for user in users:
                permissions = ManagePermission(command=PermissionCommand.LIST, user=user)
                held = await self.broker.manage_permission(permissions, ANYONE)
                requests = ManageRequest(command=RequestCommand.LIST, user=user)
                stored = await self.broker.manage_request(requests, ANYONE)
                found.append(Said(held.status.code, permissions=tuple(map(told, held.permissions))))
                found.append(Said(stored.status.code, requests=tuple(map(shown, stored.requests))))
            return found

        return self.runner.run(listed())


def weigh_both(
    life: Life, product: Product, question: str, message: PermissionRequest | CheckRequest
) -> tuple[Said, Said]:
    """What the oracle says, and what the broker says. The oracle is told when the broker tells to come back."""
    got: Said = getattr(product, question)(message)
    expected: Said = getattr(life, question)(message, got.deadline)
    return expected, got


def walle_code(status: Status) -> StatusCode:
    """Wall-E hears only that its request is wrong, not what in it does not exist."""
    return StatusCode.WRONG_REQUEST if status.code.startswith("NO_SUCH") else status.code


async def rest() -> None:
    """Long enough for whatever is under way."""
    for _ in range(20):
        await asyncio.sleep(0)


def fill(model: ClusterModel, world: World) -> None:
    """Tell a model all there is."""
    for node in world.nodes.values():
        model.put_node(node)
    for drive in world.drives.values():
        model.put_drive(drive)
    for group in world.groups.values():
        model.put_group(group)
    model.set_rings(world.rings)


def said(answer: PermissionResponse) -> Said:
    refused = tuple((bare(action), issue(action)) for action in answer.refused)
    permissions = tuple(map(told, answer.permissions))
    return Said(answer.status.code, answer.request_id, permissions, answer.deadline, refused)


def told(permission: Permission) -> Told:
    return Told(permission.id, bare(permission.action), permission.deadline)


def shown(request: ScheduledRequest) -> Shown:
    return Shown(
        request.request_id,
        tuple(map(bare, request.actions)),
        tuple(action.issue.type if action.issue is not None else None for action in request.actions),
        request.availability_mode,
        request.priority,
        request.position,
    )


def issue(action: Action) -> Any:
    assert action.issue is not None, f"{action} is refused without a word why"
    return action.issue.type
