"""Wall-E's tasks: each is one request, all or nothing, without an end."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.api.maintenance.action import ActionType, StatusCode
from quorate.maintenance.entries import PermissionEntry
from quorate.maintenance.messages import Action, CheckRequest, PermissionRequest, WalleTask
from quorate.maintenance.moments import FOREVER
from tests.maintenance.oracle.life import WALLE, Life
from tests.maintenance.oracle.world import No

SHUTDOWNS = (
    "reboot",
    "power-off",
    "change-memory",
    "profile",
    "redeploy",
    "repair-link",
    "repair-bmc",
    "repair-overheat",
    "repair-capping",
)
#: Fine at once, and nothing to remember.
HARMLESS = ("prepare", "deactivate")


@dataclass
class Known:
    """A task and what it became."""

    task: WalleTask
    request_id: str
    permission_ids: list[str]


@dataclass
class Desk:
    """Where Wall-E asks."""

    life: Life
    tasks: dict[str, Known] = field(default_factory=dict)

    def create(self, task: WalleTask, *, dry_run: bool) -> StatusCode:
        """May it go on?"""
        try:
            if task.action in HARMLESS:
                self.hosts(task)
                return StatusCode.OK
            actions = self.actions(task)
        except No as no:
            return no.code
        message = PermissionRequest(user=WALLE, actions=actions, schedule=True, dry_run=dry_run, duration=FOREVER)
        said = self.life.permission_request(message)
        if not dry_run and said.code in (StatusCode.ALLOW, StatusCode.DISALLOW_TEMP):
            self.tasks[task.id] = Known(task, said.id, [permission.id for permission in said.permissions])
        return said.code

    def hosts(self, task: WalleTask) -> None:
        """Where it is, if it says where."""
        if not task.hosts or any(not self.life.world.nodes_of(host) for host in task.hosts):
            raise No(StatusCode.WRONG_REQUEST, why="no host, or an unknown one")

    def actions(self, task: WalleTask) -> tuple[Action, ...]:
        """What a task means."""
        world = self.life.world
        self.hosts(task)
        if task.action in SHUTDOWNS:
            shutdown = ActionType.SHUTDOWN_HOST
            return tuple(Action(type=shutdown, host=host, duration=FOREVER) for host in task.hosts)
        if task.action != "change-disk":
            raise No(StatusCode.WRONG_REQUEST, why="unknown action")
        if task.devices and len(task.hosts) != 1:
            raise No(StatusCode.WRONG_REQUEST, why="devices of which host?")
        found = []
        for host in task.hosts:
            nodes = world.nodes_of(host)
            devices = task.devices or tuple(str(drive) for drive in sorted(world.drives) if drive.node in nodes)
            found.append(Action(type=ActionType.REPLACE_DEVICES, host=host, devices=devices, duration=FOREVER))
        return tuple(found)

    def held(self, known: Known) -> list[PermissionEntry]:
        """The permissions that a task has."""
        return [
            one
            for one in self.life.world.permissions
            if one.id in known.permission_ids or (known.request_id and one.request_id == known.request_id)
        ]

    def tidy(self) -> None:
        """A task that has neither a request nor a permission is over."""
        for name, known in list(self.tasks.items()):
            if self.life.stored(known.request_id, WALLE) is None and not self.held(known):
                del self.tasks[name]

    def check(self, task_id: str) -> StatusCode:
        """May it go on now?"""
        self.tidy()
        if task_id not in self.tasks:
            return StatusCode.WRONG_REQUEST
        known = self.tasks[task_id]
        if self.life.stored(known.request_id, WALLE) is None:
            return StatusCode.ALLOW
        return self.life.check_request(CheckRequest(user=WALLE, request_id=known.request_id)).code

    def remove(self, task_id: str) -> StatusCode:
        """It is over."""
        self.tidy()
        known = self.tasks.pop(task_id, None)
        if known is None:
            return StatusCode.WRONG_REQUEST
        world, held = self.life.world, self.held(known)
        world.requests = [one for one in world.requests if one.id != known.request_id]
        world.permissions = [one for one in world.permissions if one not in held]
        return StatusCode.OK

    def listed(self) -> dict[str, StatusCode]:
        """All of them, and where each stands."""
        self.tidy()
        return {
            name: StatusCode.DISALLOW_TEMP if self.life.stored(known.request_id, WALLE) else StatusCode.ALLOW
            for name, known in self.tasks.items()
        }
