"""Broker: one method per question. What each answers is in the module of its noun."""

from __future__ import annotations

from collections.abc import AsyncIterator

from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.engine.clock import Clock
from quorate.engine.store import Store
from quorate.maintenance.broker.memory_log import MemoryLog
from quorate.maintenance.broker.ports import Identities, Locks, Log, Metrics, Settings
from quorate.maintenance.entries import Ledger
from quorate.maintenance.messages import (
    Caller,
    Change,
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
    PermissionRequest,
    PermissionResponse,
    SetConfig,
    SetMarker,
    Status,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleRemoveTask,
    WalleTaskAnswer,
    WalleTasksResponse,
)
from quorate.maintenance.model import ClusterModel


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
        self._log = log if log is not None else MemoryLog()

    # Life

    async def start(self, epoch: int | None = None, *, serve: bool = True) -> None:
        """Take the ledger over (writing our epoch into it first), read it, and put its locks into the model.

        ``epoch`` is the term's, None where nobody is elected: then it is one above the ledger's. With ``serve`` False
        every question is answered ERROR_TEMP until :meth:`serve`, because the model is not filled yet.
        """
        raise NotImplementedError

    def serve(self) -> None:
        """The model is filled: answer."""
        raise NotImplementedError

    def step_down(self, why: str) -> None:
        """Answer ERROR_TEMP from now on, until :meth:`start`. What is being written may still be written."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let what is being written finish, and stop."""
        raise NotImplementedError

    @property
    def leading(self) -> bool:
        """Whether questions are answered."""
        raise NotImplementedError

    @property
    def ledger(self) -> Ledger:
        """Everything that is decided and written. Read only."""
        raise NotImplementedError

    def now(self) -> int:
        """Broker time."""
        raise NotImplementedError

    def cluster_changed(self) -> None:
        """The model has changed: watchers of stored requests learn soon whether asking would now do."""
        raise NotImplementedError

    def configure(self, config: BrokerConfigSpec) -> None:
        """The stored configuration has changed, by another's hand: use it."""
        raise NotImplementedError

    def changes(self, *, user: str = "", request_id: str = "") -> AsyncIterator[Change]:
        """What changes from now on; of one user's or of one request, if given: these count as asked for meanwhile."""
        raise NotImplementedError

    async def accept_time(self, caller: Caller) -> Status:
        """The wall clock jumped and is right now: go on by it. What was promised keeps its length. For admins."""
        raise NotImplementedError

    # Requests and permissions

    async def permission_request(self, asked: PermissionRequest, caller: Caller) -> PermissionResponse:
        """May these be done?"""
        raise NotImplementedError

    async def check_request(self, asked: CheckRequest, caller: Caller) -> PermissionResponse:
        """May the rest of a stored request be done now?"""
        raise NotImplementedError

    async def manage_request(self, asked: ManageRequest, caller: Caller) -> ManageRequestResponse:
        """List, get or withdraw stored requests."""
        raise NotImplementedError

    async def manage_permission(self, asked: ManagePermission, caller: Caller) -> ManagePermissionResponse:
        """List, get, end, extend or give back permissions."""
        raise NotImplementedError

    # Kubernetes objects

    async def submit(self, asked: PermissionRequest, caller: Caller, *, object_uid: str) -> PermissionResponse:
        """Ask for a PermissionRequest object, for the first time or again: the same object never asks twice.

        The answer lists every permission in force that the object got, also those of earlier passes.
        """
        raise NotImplementedError

    async def withdraw(self, object_uid: str) -> Status:
        """The object is being deleted: its stored request goes, its permissions are given back. OK if it had none."""
        raise NotImplementedError

    # Notifications, markers, state

    async def notification(
        self, asked: NotificationRequest, caller: Caller, *, object_uid: str = ""
    ) -> NotificationResponse:
        """This will happen. The same object tells once."""
        raise NotImplementedError

    async def manage_notification(self, asked: ManageNotification, caller: Caller) -> ManageNotificationResponse:
        """List, get or withdraw notifications."""
        raise NotImplementedError

    async def set_marker(self, asked: SetMarker, caller: Caller) -> MarkerResponse:
        """Mark or unmark nodes, drives, replicas."""
        raise NotImplementedError

    async def cluster_state(self, asked: ClusterStateRequest, caller: Caller) -> ClusterStateResponse:
        """How is the cluster?"""
        raise NotImplementedError

    # Wall-E

    async def walle_create(self, asked: WalleCreateTask, caller: Caller) -> WalleTaskAnswer:
        """May this task go on?"""
        raise NotImplementedError

    async def walle_list(self, asked: WalleListTasks, caller: Caller) -> WalleTasksResponse:
        """Which tasks are there?"""
        raise NotImplementedError

    async def walle_check(self, asked: WalleCheckTask, caller: Caller) -> WalleTaskAnswer:
        """May it go on now?"""
        raise NotImplementedError

    async def walle_remove(self, asked: WalleRemoveTask, caller: Caller) -> WalleTaskAnswer:
        """It is over."""
        raise NotImplementedError

    # The broker itself

    async def get_config(self, asked: GetConfig, caller: Caller) -> ConfigResponse:
        """Which settings are in force?"""
        raise NotImplementedError

    async def set_config(self, asked: SetConfig, caller: Caller) -> ConfigResponse:
        """Use these instead. Where callers are known, for admins."""
        raise NotImplementedError

    async def get_log_tail(self, asked: LogTailRequest, caller: Caller) -> LogTailResponse:
        """The newest records of the log."""
        raise NotImplementedError
