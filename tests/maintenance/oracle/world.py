"""The cluster and everything that was decided, as plain lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from quorate.api.maintenance.action import ActionType, HostState, IssueType, StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.moments import SECOND, later
from quorate.maintenance.nouns import (
    DYNAMIC,
    STORAGE,
    DriveId,
    DriveInfo,
    GroupInfo,
    NodeInfo,
    Rings,
    VDiskId,
    VDiskInfo,
    parse_device,
)

#: A node by its number, a drive, or a replica.
Item = int | DriveId | VDiskId

DAY = 86_400 * SECOND


class No(Exception):
    """Refused, and by which rule."""

    def __init__(self, code: StatusCode, issue: IssueType = IssueType.GENERIC, why: str = "") -> None:
        super().__init__(why)
        self.code = code
        self.issue = issue
        #: Asks the rule that refused once more, as if nothing else were asked for.
        self.ask_alone: Callable[[], None] | None = None


@dataclass(repr=False)
class World:
    """All there is to know."""

    nodes: dict[int, NodeInfo] = field(default_factory=dict)
    drives: dict[DriveId, DriveInfo] = field(default_factory=dict)
    groups: dict[int, GroupInfo] = field(default_factory=dict)
    rings: Rings | None = None
    settings: BrokerConfigSpec = field(default_factory=BrokerConfigSpec)
    permissions: list[PermissionEntry] = field(default_factory=list)
    requests: list[RequestEntry] = field(default_factory=list)
    notifications: list[NotificationEntry] = field(default_factory=list)

    def __repr__(self) -> str:
        """All that a failing history needs to be understood by."""
        lines = [
            f"{one.id}={one.host} {one.tenant} {one.state.value} {','.join(one.services)} since {one.start_time}"
            for one in self.nodes.values()
        ]
        lines += [f"{one.id} {one.path} {one.state.value}" for one in self.drives.values()]
        for group in self.groups.values():
            parts = [f"{one.id} on {one.node} {[*map(str, one.drives)]} {one.state.value}" for one in group.vdisks]
            lines.append(f"{group.species or group.volume}: {'; '.join(parts)}")
        settings = self.settings
        lines += [str(self.rings), f"cluster {settings.cluster_limits}, tenants {settings.tenant_limits}"]
        lines.append(f"retry {settings.default_retry_time}, permissions {settings.default_permission_duration}")
        return "World:\n  " + "\n  ".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Hypothesis would print every field of every part."""
        printer.text(repr(self))

    @property
    def retry(self) -> int:
        """How long to wait where nothing better is known."""
        return self.settings.default_retry_time.microseconds

    def vdisks(self) -> Iterator[VDiskInfo]:
        """All replicas."""
        for group in self.groups.values():
            yield from group.vdisks

    def vdisk(self, name: VDiskId) -> VDiskInfo | None:
        """One replica."""
        return next((vdisk for vdisk in self.vdisks() if vdisk.id == name), None)

    def set_vdisk(self, name: VDiskId, state: HostState) -> None:
        """Change a replica's state."""
        group = self.groups[name.group]
        vdisks = tuple(replace(vdisk, state=state) if vdisk.id == name else vdisk for vdisk in group.vdisks)
        self.groups[name.group] = replace(group, vdisks=vdisks)

    def state(self, item: Item) -> HostState:
        """Of a node, a drive or a replica; what nobody knows is down."""
        if isinstance(item, int):
            return self.nodes[item].state if item in self.nodes else HostState.DOWN
        if isinstance(item, DriveId):
            return self.drives[item].state if item in self.drives else HostState.DOWN
        vdisk = self.vdisk(item)
        return vdisk.state if vdisk is not None else HostState.DOWN

    def nodes_of(self, host: str) -> list[int]:
        """The nodes of a host, which is a name or a node's number."""
        named = sorted(node.id for node in self.nodes.values() if node.host == host)
        if named:
            return named
        return [int(host)] if host.isdecimal() and int(host) in self.nodes and str(int(host)) == host else []

    def items(self, action: Action) -> list[Item]:
        """What an action takes away, in the order in which it is checked; raises No."""
        if action.type is None:
            raise No(StatusCode.WRONG_REQUEST, why="unknown type")
        if action.type is ActionType.REPLACE_DEVICES:
            return self._devices(action)
        if action.type not in (ActionType.SHUTDOWN_HOST, ActionType.RESTART_SERVICES):
            raise No(StatusCode.ERROR, why="not supported")
        nodes: list[Item] = list(self.nodes_of(action.host))
        if not nodes:
            raise No(StatusCode.NO_SUCH_HOST)
        if action.type is ActionType.SHUTDOWN_HOST:
            return nodes
        if not action.services or any(service not in (STORAGE, DYNAMIC) for service in action.services):
            raise No(StatusCode.WRONG_REQUEST, why="unknown service")
        nodes = [node for node in nodes if set(self.nodes[int(str(node))].services) & set(action.services)]
        if not nodes:
            raise No(StatusCode.NO_SUCH_SERVICE)
        return nodes

    def _devices(self, action: Action) -> list[Item]:
        if not action.devices:
            raise No(StatusCode.WRONG_REQUEST, why="no devices")
        found: list[Item] = []
        for name in action.devices:
            device = parse_device(name) or self._by_path(action.host, name)
            known = device in self.drives if isinstance(device, DriveId) else device and self.vdisk(device)
            if device is None or not known:
                raise No(StatusCode.NO_SUCH_DEVICE)
            found.append(device)
        return found

    def _by_path(self, host: str, path: str) -> DriveId | None:
        nodes = self.nodes_of(host)
        drives = [drive.id for drive in self.drives.values() if drive.id.node in nodes and drive.path == path]
        return min(drives, default=None)

    def items_if_known(self, action: Action) -> list[Item]:
        """The same for what was decided earlier: of what is gone by now, nothing is held."""
        try:
            return self.items(action)
        except No:
            return []

    # -- what a decision still means

    def holds(self, permission: PermissionEntry, item: Item, now: int) -> bool:
        """Whether a permission locks this item of its: until its deadline, and for as long as the item is down.

        One that let go once never takes hold again.
        """
        return not permission.lapsed and (now < permission.deadline or self.state(item) is not HostState.UP)

    def permission_lapses(self, permission: PermissionEntry, now: int) -> bool:
        """Whether a permission has let go: its deadline has passed, and nothing of it is down."""
        items = self.items_if_known(permission.action)
        return permission.deadline <= now and all(self.state(item) is HostState.UP for item in items)

    def permission_over(self, permission: PermissionEntry, now: int) -> bool:
        """Whether a permission is forgotten: it has let go, and its outage would be over twice."""
        return permission.lapsed and later(permission.deadline, 2 * (permission.action.duration or 0)) <= now

    def blocks_until(self, request: RequestEntry) -> int:
        """From when on a stored request that nobody asks about stands in nobody's way."""
        return later(max(request.renewed_at, request.last_deadline), 3 * self.retry)
