"""Wall-E: a robot that names its tasks itself, asks for whole hosts without end, and says when a task is over.

The task is written together with the request or the permissions that it became, so neither is ever without the other.
A task that is created again as it is gets the answer of a check: its first answer may have been lost on the way.
"""

from __future__ import annotations

from typing import Final

from quorate.api.maintenance.action import MAX_ACTIONS, ActionType, StatusCode
from quorate.maintenance.broker.answers import OK, tried
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.callers import require_admin
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import wrong
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.permissions import end_all
from quorate.maintenance.broker.renewal import WALLE
from quorate.maintenance.broker.requests import Requests, new_entry, weighed
from quorate.maintenance.broker.tasks import alive
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.broker.validation import MOST_DEVICES, check_actions
from quorate.maintenance.entries import TaskEntry
from quorate.maintenance.messages import (
    Action,
    Caller,
    CheckRequest,
    PermissionRequest,
    PermissionResponse,
    Status,
    WalleCheckTask,
    WalleCreateTask,
    WalleListTasks,
    WalleRemoveTask,
    WalleTask,
    WalleTaskAnswer,
    WalleTasksResponse,
)
from quorate.maintenance.moments import FOREVER
from quorate.maintenance.nouns import DriveId, VDiskId, parse_device

CHANGE_DISK: Final = "change-disk"
_SHUTDOWNS: Final = frozenset(
    {
        "reboot",
        "power-off",
        "change-memory",
        "profile",
        "redeploy",
        "repair-link",
        "repair-bmc",
        "repair-overheat",
        "repair-capping",
        "temporary-unreachable",
    }
)
#: Answered OK at once where the hosts are known: nothing goes down by them.
_HARMLESS: Final = frozenset({"prepare", "deactivate"})

_LONGEST_ID: Final = 253
_LONGEST_WORD: Final = 64
_LONGEST_ISSUER: Final = 128
_MOST_HOSTS: Final = 1000

#: Answers after which a task is kept.
_KEPT: Final = frozenset({StatusCode.ALLOW, StatusCode.DISALLOW_TEMP})
_GOES_ON: Final = Status(code=StatusCode.ALLOW)


class Tasks:
    """Wall-E's four calls."""

    def __init__(self, core: Core, turns: Turns, requests: Requests) -> None:
        self._core = core
        self._turns = turns
        self._requests = requests

    async def create(self, asked: WalleCreateTask, caller: Caller) -> WalleTaskAnswer:
        """May this task go on?"""
        core, task = self._core, asked.task
        _check_caller(caller)
        _check_task(task)
        if task.action in _HARMLESS:
            core.open()
            self._known_hosts(task)
            return WalleTaskAnswer(status=OK, task=task)
        now = core.weigh()
        if asked.dry_run:
            existing = self._existing(core.book, task)
            if existing is not None:
                return WalleTaskAnswer(status=await self._tried_again(existing), task=task)
            entry = new_entry(core.model, self._asking(task), WALLE, core.book.counters.requests + 1, now)
            tried_now = tried(core.model, await weighed(core, entry, now), now)
            return WalleTaskAnswer(status=_status(tried_now), task=task)
        status = await self._turns.weigh(lambda draft: self._create(draft, task))
        return WalleTaskAnswer(status=status, task=task)

    async def list(self, asked: WalleListTasks, caller: Caller) -> WalleTasksResponse:
        """Which tasks are there?"""
        _check_caller(caller)
        core = self._core
        core.open()
        waiting = Status(code=StatusCode.DISALLOW_TEMP)
        tasks = tuple(
            WalleTaskAnswer(status=waiting if task.request_id in core.book.requests else _GOES_ON, task=_message(task))
            for task in core.book.tasks.values()
            if alive(core.book, task)
        )
        return WalleTasksResponse(status=OK, tasks=tasks)

    async def check(self, asked: WalleCheckTask, caller: Caller) -> WalleTaskAnswer:
        """May it go on now?"""
        _check_caller(caller)
        core = self._core
        core.open()
        task = _known(core.book, asked.task_id)
        if task.request_id not in core.book.requests:
            return WalleTaskAnswer(status=_GOES_ON, task=_message(task))
        core.weigh()
        status = await self._turns.weigh(lambda draft: self._check(draft, asked.task_id))
        return WalleTaskAnswer(status=status, task=_message(task))

    async def remove(self, asked: WalleRemoveTask, caller: Caller) -> WalleTaskAnswer:
        """It is over."""
        _check_caller(caller)
        self._core.open()
        task = _known(self._core.book, asked.task_id)
        await self._turns.take(lambda draft: _remove(draft, asked.task_id), weighs=False)
        return WalleTaskAnswer(status=OK, task=_message(task))

    async def _create(self, draft: Draft, task: WalleTask) -> Status:
        if self._existing(draft.book, task) is not None:
            return await self._check(draft, task.id)
        answer = await self._requests.decide(draft, self._asking(task), WALLE, limited=False)
        if answer.status.code in _KEPT:
            draft.put_task(_entry(task, answer))
        return _status(answer)

    async def _check(self, draft: Draft, task_id: str) -> Status:
        task = _known(draft.book, task_id)
        entry = draft.book.requests.get(task.request_id)
        if entry is None:
            return _GOES_ON
        return _status(await self._requests.decide_again(draft, entry))

    async def _tried_again(self, task: TaskEntry) -> Status:
        if task.request_id not in self._core.book.requests:
            return _GOES_ON
        again = CheckRequest(user=WALLE, request_id=task.request_id, dry_run=True)
        return _status(await self._requests.check(again, Caller(name=WALLE)))

    def _existing(self, book: Book, task: WalleTask) -> TaskEntry | None:
        """The task of that id, if it is this one. Declined: it is another."""
        known = book.tasks.get(task.id)
        if known is None or not alive(book, known):
            return None
        if _message(known) != task:
            raise wrong(f"there is a task {task.id!r} already, and it is another one: remove it first")
        return known

    def _asking(self, task: WalleTask) -> PermissionRequest:
        actions = self._actions(task)
        check_actions(actions, longest=FOREVER)
        return PermissionRequest(
            user=WALLE,
            actions=actions,
            schedule=True,
            reason=f"Wall-E task {task.id}: {task.action}",
        )

    def _actions(self, task: WalleTask) -> tuple[Action, ...]:
        hosts = self._known_hosts(task)
        if task.action in _SHUTDOWNS:
            return tuple(Action(type=ActionType.SHUTDOWN_HOST, host=host, duration=FOREVER) for host in hosts)
        if task.devices:
            if len(hosts) != 1:
                raise wrong(f"devices are given for {len(hosts)} hosts: allowed is one host")
            self._check_devices(hosts[0], task.devices)
            return _replacements(hosts[0], task.devices)
        return tuple(action for host in hosts for action in _replacements(host, self._drives(host)))

    def _known_hosts(self, task: WalleTask) -> tuple[str, ...]:
        """Each once. Declined at the first that the cluster does not have: Wall-E then has another cluster's host."""
        hosts = tuple(dict.fromkeys(task.hosts))
        for host in hosts:
            if not self._core.model.nodes_of(host):
                raise wrong(f"hosts: there is no host {host!r} in this cluster")
        return hosts

    def _check_devices(self, host: str, devices: tuple[str, ...]) -> None:
        """Declined if one is another host's: the wrong disk would be pulled. One that is nowhere is for the rules."""
        model = self._core.model
        own = {node.id for node in model.nodes_of(host)}
        for name in devices:
            match parse_device(name):
                case DriveId() as drive if model.drive(drive) is not None:
                    node = drive.node
                case VDiskId() as vdisk if (found := model.vdisk(vdisk)) is not None:
                    node = found.node
                case _:
                    continue
            if node not in own:
                info = model.node(node)
                where = info.host if info is not None else f"node {node}"
                raise wrong(f"devices: {name} is on {where}, not on {host}: name that host, or devices of this one")

    def _drives(self, host: str) -> tuple[str, ...]:
        model = self._core.model
        drives = tuple(str(drive.id) for node in model.nodes_of(host) for drive in model.drives_of(node.id))
        if not drives:
            raise wrong(f"host {host!r} has no drives that could be changed")
        return drives


def _replacements(host: str, devices: tuple[str, ...]) -> tuple[Action, ...]:
    """In as many actions as it takes: one has room for some devices only. All are granted, or none."""
    return tuple(
        Action(
            type=ActionType.REPLACE_DEVICES,
            host=host,
            devices=devices[first : first + MOST_DEVICES],
            duration=FOREVER,
        )
        for first in range(0, len(devices), MOST_DEVICES)
    )


def _remove(draft: Draft, task_id: str) -> None:
    task = _known(draft.book, task_id)
    draft.drop_task(task)
    entry = draft.book.requests.get(task.request_id)
    if entry is not None:
        draft.drop(entry)
    held = (draft.book.permissions.get(one) for one in task.permission_ids)
    end_all(draft, [permission for permission in held if permission is not None], "DONE")


def _known(book: Book, task_id: str) -> TaskEntry:
    task = book.tasks.get(task_id)
    if task is None or not alive(book, task):
        raise wrong(f"there is no task {task_id!r}")
    return task


def _check_caller(caller: Caller) -> None:
    if caller.name != WALLE:
        require_admin(caller, "Wall-E's interface")


def _check_task(task: WalleTask) -> None:
    if not 0 < len(task.id) <= _LONGEST_ID:
        raise wrong(f"id has {len(task.id)} characters: allowed are 1 to {_LONGEST_ID}")
    if len(task.type) > _LONGEST_WORD or len(task.issuer) > _LONGEST_ISSUER:
        raise wrong(f"type or issuer is too long: allowed are {_LONGEST_WORD} and {_LONGEST_ISSUER} characters")
    if task.action not in {CHANGE_DISK, *_SHUTDOWNS, *_HARMLESS}:
        allowed = ", ".join(sorted({CHANGE_DISK, *_SHUTDOWNS, *_HARMLESS}))
        raise wrong(f"action is {task.action[:_LONGEST_WORD]!r}: allowed are {allowed}")
    if not 0 < len(task.hosts) <= min(_MOST_HOSTS, MAX_ACTIONS):
        raise wrong(f"hosts has {len(task.hosts)} names: allowed are 1 to {_MOST_HOSTS}")
    if task.devices and task.action in _SHUTDOWNS:
        raise wrong(f"devices are given for {task.action}: only {CHANGE_DISK} takes some")
    if len(task.devices) > MOST_DEVICES:
        raise wrong(f"devices has {len(task.devices)} names: at most {MOST_DEVICES} are allowed")


def _entry(task: WalleTask, answer: PermissionResponse) -> TaskEntry:
    return TaskEntry(
        id=task.id,
        type=task.type,
        issuer=task.issuer,
        action=task.action,
        hosts=task.hosts,
        devices=task.devices,
        request_id=answer.request_id,
        permission_ids=tuple(permission.id for permission in answer.permissions),
    )


def _message(task: TaskEntry) -> WalleTask:
    return WalleTask(
        id=task.id,
        action=task.action,
        type=task.type,
        issuer=task.issuer,
        hosts=task.hosts,
        devices=task.devices,
    )


def _status(answer: PermissionResponse) -> Status:
    """A host or a device that is not there makes the task itself wrong: Wall-E knows no other word for it."""
    if answer.status.code in _NOT_THERE:
        return Status(code=StatusCode.WRONG_REQUEST, reason=answer.status.reason)
    return answer.status


_NOT_THERE: Final = frozenset({StatusCode.NO_SUCH_HOST, StatusCode.NO_SUCH_DEVICE, StatusCode.NO_SUCH_SERVICE})
