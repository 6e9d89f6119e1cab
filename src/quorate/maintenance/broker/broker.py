"""Broker: one method per question, and its life. What each question is answered is in the module of its noun."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.log_record import RecordType
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.errors import Invalid, QuorateError
from quorate.maintenance.broker import state
from quorate.maintenance.broker.answers import OK
from quorate.maintenance.broker.callers import require_admin
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.log_tail import log_tail
from quorate.maintenance.broker.markers import Markers
from quorate.maintenance.broker.memory_log import MemoryLog
from quorate.maintenance.broker.missing import missing_records
from quorate.maintenance.broker.notifications import Notifications
from quorate.maintenance.broker.objects import Objects
from quorate.maintenance.broker.permissions import Permissions
from quorate.maintenance.broker.planning import Planning
from quorate.maintenance.broker.ports import Identities, Locks, Log, Metrics, Settings
from quorate.maintenance.broker.push import Push
from quorate.maintenance.broker.quiet import NoIdentities, NoLocks, NoMetrics
from quorate.maintenance.broker.requests import Requests
from quorate.maintenance.broker.settings import StoredSettings
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.broker.walle import Tasks
from quorate.maintenance.broker.watchers import Watcher
from quorate.maintenance.entries import Ledger
from quorate.maintenance.messages import (
    Caller,
    CheckRequest,
    ClusterStateRequest,
    ClusterStateResponse,
    ConfigResponse,
    GetConfig,
    LogTailRequest,
    LogTailResponse,
    ManageNotification,
    ManageNotificationResponse,
    ManagePermission,
    ManagePermissionResponse,
    ManageRequest,
    ManageRequestResponse,
    MarkerResponse,
    NotificationRequest,
    NotificationResponse,
    OkToStopResponse,
    PermissionRequest,
    PermissionResponse,
    PlanRequest,
    PlanResponse,
    SetConfig,
    SetMarker,
    Status,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleRemoveTask,
    WalleTask,
    WalleTaskAnswer,
    WalleTasksResponse,
)
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND

T = TypeVar("T")

log = get_logger(__name__)

#: How often, in seconds, time is looked at although nobody asks.
TICK: Final = 5.0


class _Answer(Protocol):
    @property
    def status(self) -> Status: ...


A = TypeVar("A", bound=_Answer)


class Broker:
    """The service layer over a model of the cluster and a ledger in a store."""

    def __init__(
        self,
        store: Store,
        model: ClusterModel,
        clock: Clock,
        *,
        holder: str,
        log: Log | None = None,
        metrics: Metrics | None = None,
        settings: Settings | None = None,
        identities: Identities | None = None,
        locks: Locks | None = None,
    ) -> None:
        """Set up; nothing is read or answered before :meth:`start`.

        ``settings`` is where the configuration lives; the BrokerConfig object in the store unless given.
        """
        self._settings = settings if settings is not None else StoredSettings(store)
        self._core = Core(
            store,
            model,
            clock,
            holder=holder,
            log=log if log is not None else MemoryLog(),
            metrics=metrics if metrics is not None else NoMetrics(),
            identities=identities if identities is not None else NoIdentities(),
            locks=locks if locks is not None else NoLocks(),
            config=model.settings,
        )
        self._turns = Turns(self._core, lost=self.step_down)
        self._requests = Requests(self._core, self._turns)
        self._permissions = Permissions(self._core, self._turns)
        self._objects = Objects(self._core, self._turns, self._requests)
        self._notifications = Notifications(self._core, self._turns)
        self._markers = Markers(self._core, self._turns)
        self._tasks = Tasks(self._core, self._turns, self._requests)
        self._planning = Planning(self._core)
        self._push = Push(self._core)
        self._core.on_change = self._push.wake
        self._running: list[asyncio.Task[None]] = []

    # Life

    async def start(self, epoch: int | None = None, *, serve: bool = True) -> None:
        """Take the ledger over (writing our epoch into it first), read it, and put its locks into the model.

        ``epoch`` is the term's, None where nobody is elected: then it is one above the ledger's. With ``serve`` False
        every question is answered ERROR_TEMP until :meth:`serve`, because the model is not filled yet.
        """
        await self.close()
        core = self._core
        ledger = await core.keeper.take_over(epoch)
        core.time.begin(ledger.time_high_water)
        config = await self._settings.load()
        if config is not None:
            self.configure(config)
        core.load(ledger)
        core.lost = ""
        core.closed = "" if serve else "the broker is learning what the cluster looks like"
        for record in missing_records(ledger, core.log.newest()):
            core.log.record(*record)
        core.log.record(
            core.time.now(),
            RecordType.CMS_LOADED,
            f"{ledger.holder} has the ledger, epoch {ledger.epoch}",
            {"holder": ledger.holder, "epoch": ledger.epoch, "revision": ledger.revision},
        )
        self._turns.open()
        self._running = [
            asyncio.create_task(self._turns.run(), name="broker: turns"),
            asyncio.create_task(self._push.run(), name="broker: push"),
            asyncio.create_task(self._tick(), name="broker: time"),
        ]
        for task in self._running:
            task.add_done_callback(_noticed)

    def serve(self) -> None:
        """The model is filled: answer."""
        self._core.closed = ""
        self._push.wake()

    def step_down(self, why: str) -> None:
        """Answer ERROR_TEMP from now on, until :meth:`start`. What is being written may still be written."""
        log.warning("the broker steps down", why=why)
        self._core.lost = why
        self._core.watchers.end()

    async def close(self) -> None:
        """Let what is being written finish, and stop. Idempotent."""
        self._turns.close()
        for task in self._running[1:]:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running = []
        self._core.lost = self._core.lost or "the broker is stopped"
        self._core.watchers.end()

    @property
    def leading(self) -> bool:
        """Whether questions are answered."""
        return not (self._core.lost or self._core.closed)

    @property
    def ledger(self) -> Ledger:
        """Everything that is decided and written. Read only."""
        return self._core.ledger

    @property
    def held_down(self) -> frozenset[str]:
        """Ids of permissions that are past their time and stay because something of theirs is down."""
        return self._core.lapses.held_down

    def now(self) -> int:
        """Broker time."""
        return self._core.time.now()

    def cluster_changed(self) -> None:
        """The model has changed: what waited for that ends, and watchers learn whether asking would now do."""
        if not self._core.lost:
            self._core.now()
            if self._core.stale:
                self._turns.wake()
        self._push.wake()

    def configure(self, config: BrokerConfigSpec) -> None:
        """The stored configuration has changed, by another's hand: use it."""
        self._core.config = config
        self._core.model.configure(config)
        self._push.wake()

    def changes(self, *, user: str = "", request_id: str = "", reasons: bool = False) -> Watcher:
        """What changes from now on; of one user's or of one request, if given: these count as asked for meanwhile.

        ``reasons``: also when a request would still be refused, but for another reason.
        """
        watcher = self._core.watchers.add(user=user, request_id=request_id, reasons=reasons)
        if self._core.lost:
            watcher.end()
        self._push.greet(watcher)
        return watcher

    async def accept_time(self, caller: Caller) -> Status:
        """The wall clock jumped and is right now: go on by it. What was promised keeps its length. For admins."""
        core = self._core

        def decide(draft: Draft) -> None:
            if core.time.doubt:
                draft.shift(core.time.behind(), core.time.accept)

        try:
            require_admin(caller, "accepting the time")
            core.open()
            await self._turns.take(decide, weighs=True)
        except Declined as declined:
            return declined.status
        return OK

    async def take_numbers(self, *, nodes: int = 0, drives: int = 0, groups: int = 0) -> tuple[range, range, range]:
        """Numbers for new nodes, drives and groups, written before they are given: none is ever given twice.

        Declined while the ledger is not ours.
        """

        def decide(draft: Draft) -> tuple[range, range, range]:
            last = draft.book.counters
            draft.take_numbers(nodes=nodes, drives=drives, groups=groups)
            return (
                range(last.nodes + 1, last.nodes + nodes + 1),
                range(last.drives + 1, last.drives + drives + 1),
                range(last.groups + 1, last.groups + groups + 1),
            )

        return await self._turns.take(decide, weighs=False)

    # Requests and permissions

    async def permission_request(self, asked: PermissionRequest, caller: Caller) -> PermissionResponse:
        """May these be done?"""
        return await self._answer("permission_request", self._requests.ask(asked, caller), _no_permission)

    async def check_request(self, asked: CheckRequest, caller: Caller) -> PermissionResponse:
        """May the rest of a stored request be done now?"""
        return await self._answer("check_request", self._requests.check(asked, caller), _no_permission)

    async def manage_request(self, asked: ManageRequest, caller: Caller) -> ManageRequestResponse:
        """List, get or withdraw stored requests."""
        return await self._answer(
            "manage_request",
            self._requests.manage(asked, caller),
            lambda declined: ManageRequestResponse(status=declined.status),
        )

    async def manage_permission(self, asked: ManagePermission, caller: Caller) -> ManagePermissionResponse:
        """List, get, end, extend or give back permissions."""
        return await self._answer(
            "manage_permission",
            self._permissions.manage(asked, caller),
            lambda declined: ManagePermissionResponse(status=declined.status),
        )

    # Kubernetes objects

    async def submit(self, asked: PermissionRequest, caller: Caller, *, object_uid: str) -> PermissionResponse:
        """Ask for a PermissionRequest object, for the first time or again: the same object never gets twice.

        The answer lists every permission in force that the object got, also those of earlier passes. Once nothing of
        it waits any more that answer is for good, until :meth:`withdraw`.
        """
        return await self._answer("submit", self._objects.submit(asked, caller, object_uid), _no_permission)

    async def withdraw(self, object_uid: str) -> Status:
        """The object is being deleted: what it stored or announced goes, its permissions are given back. OK if none."""
        try:
            return await self._objects.withdraw(object_uid)
        except Declined as declined:
            return declined.status

    # Notifications, markers, state

    async def notification(
        self, asked: NotificationRequest, caller: Caller, *, object_uid: str = ""
    ) -> NotificationResponse:
        """This will happen. The same object tells once."""
        return await self._answer(
            "notification",
            self._notifications.tell(asked, caller, object_uid=object_uid),
            lambda declined: NotificationResponse(status=declined.status),
        )

    async def manage_notification(self, asked: ManageNotification, caller: Caller) -> ManageNotificationResponse:
        """List, get or withdraw notifications."""
        return await self._answer(
            "manage_notification",
            self._notifications.manage(asked, caller),
            lambda declined: ManageNotificationResponse(status=declined.status),
        )

    async def set_marker(self, asked: SetMarker, caller: Caller) -> MarkerResponse:
        """Mark or unmark nodes, drives, replicas."""
        return await self._answer(
            "set_marker", self._markers.set(asked, caller), lambda declined: MarkerResponse(status=declined.status)
        )

    async def cluster_state(self, asked: ClusterStateRequest, caller: Caller) -> ClusterStateResponse:
        """How is the cluster? Anybody who may ask at all may know."""
        try:
            return state.cluster_state(self._core, asked)
        except Declined as declined:
            return ClusterStateResponse(status=declined.status)

    # Plans

    async def plan(self, asked: PlanRequest, caller: Caller) -> PlanResponse:
        """In how many rounds can these be served? Reserves nothing."""
        return await self._answer(
            "plan", self._planning.plan(asked, caller), lambda declined: PlanResponse(status=declined.status)
        )

    async def ok_to_stop(self, asked: PlanRequest, caller: Caller) -> OkToStopResponse:
        """Which of these may all stop now? Reserves nothing."""
        return await self._answer(
            "ok_to_stop",
            self._planning.ok_to_stop(asked, caller),
            lambda declined: OkToStopResponse(status=declined.status),
        )

    # Wall-E

    async def walle_create(self, asked: WalleCreateTask, caller: Caller) -> WalleTaskAnswer:
        """May this task go on?"""
        return await self._answer(
            "walle_create",
            self._tasks.create(asked, caller),
            lambda declined: WalleTaskAnswer(status=declined.status, task=asked.task),
        )

    async def walle_list(self, asked: WalleListTasks, caller: Caller) -> WalleTasksResponse:
        """Which tasks are there?"""
        return await self._answer(
            "walle_list", self._tasks.list(asked, caller), lambda declined: WalleTasksResponse(status=declined.status)
        )

    async def walle_check(self, asked: WalleCheckTask, caller: Caller) -> WalleTaskAnswer:
        """May it go on now?"""
        return await self._answer("walle_check", self._tasks.check(asked, caller), _no_task(asked.task_id))

    async def walle_remove(self, asked: WalleRemoveTask, caller: Caller) -> WalleTaskAnswer:
        """It is over."""
        return await self._answer("walle_remove", self._tasks.remove(asked, caller), _no_task(asked.task_id))

    # The broker itself

    async def get_config(self, asked: GetConfig, caller: Caller) -> ConfigResponse:
        """Which settings are in force?"""
        return ConfigResponse(status=OK, config=self._core.config)

    async def set_config(self, asked: SetConfig, caller: Caller) -> ConfigResponse:
        """Use these instead. Where callers are known, for admins."""
        return await self._answer(
            "set_config", self._set_config(asked, caller), lambda declined: ConfigResponse(status=declined.status)
        )

    async def get_log_tail(self, asked: LogTailRequest, caller: Caller) -> LogTailResponse:
        """The newest records of the log."""
        return LogTailResponse(status=OK, records=await log_tail(self._core.log, asked))

    async def _set_config(self, asked: SetConfig, caller: Caller) -> ConfigResponse:
        require_admin(caller, "the configuration")
        self._core.open()
        try:
            await self._settings.save(asked.config)
        except Invalid as error:
            raise wrong(str(error)) from error
        except QuorateError as error:
            raise self._core.busy(f"the configuration is not stored: {error}") from error
        self.configure(asked.config)
        return ConfigResponse(status=OK, config=asked.config)

    async def _answer(self, question: str, asking: Awaitable[A], declined: Callable[[Declined], A]) -> A:
        """The answer, also when it is no."""
        try:
            answer = await asking
        except Declined as no:
            answer = declined(no)
        self._core.metrics.answered(question, answer.status.code)
        return answer

    async def _tick(self) -> None:
        """What time does, although nobody asks."""
        core = self._core
        while True:
            now = core.now()
            core.metrics.clock_jumped(bool(core.time.doubt))
            if core.stale:
                self._turns.wake()
            for entry in tuple(core.book.requests.values()):
                if now - entry.renewed_at > core.retry and core.watchers.waiting_for(entry):
                    self._requests.renew(entry, now)
            self._push.wake()
            coming = core.lapses.next - now
            await core.clock.sleep(coming / SECOND if 0 < coming < TICK * SECOND else TICK)


def _noticed(task: asyncio.Task[None]) -> None:
    """What goes on beside the questions should never fail; if it does, somebody must learn of it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a part of the broker failed", part=task.get_name(), error=repr(error))


def _no_permission(declined: Declined) -> PermissionResponse:
    return PermissionResponse(status=declined.status, deadline=declined.deadline)


def _no_task(task_id: str) -> Callable[[Declined], WalleTaskAnswer]:
    return lambda declined: WalleTaskAnswer(status=declined.status, task=WalleTask(id=task_id))
