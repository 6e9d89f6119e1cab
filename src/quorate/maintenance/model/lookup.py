"""What an action is about: which nodes, drives and replicas it would lock.

Node actions lock nodes only: their drives and replicas see the lock through the node.

What an action names is looked up before anything of it is weighed. So one unknown device among several is
NO_SUCH_DEVICE at once, wherever in the list it stands and whatever may be said of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.api.maintenance.action import ActionType, StatusCode
from quorate.maintenance.messages import Action
from quorate.maintenance.model.items import DriveItem, Item, NodeItem, VDiskItem
from quorate.maintenance.nouns import DYNAMIC, STORAGE, DriveId, VDiskId, parse_device

if TYPE_CHECKING:
    from quorate.maintenance.model.cluster import ClusterModel

SUPPORTED: Final = frozenset({ActionType.RESTART_SERVICES, ActionType.SHUTDOWN_HOST, ActionType.REPLACE_DEVICES})
SERVICES: Final = (STORAGE, DYNAMIC)


@dataclass(frozen=True, slots=True)
class Items:
    """What an action would lock, in the order in which it is checked."""

    nodes: tuple[int, ...] = ()
    #: Drives and replicas, as they were named.
    devices: tuple[DriveId | VDiskId, ...] = ()

    @property
    def drives(self) -> tuple[DriveId, ...]:
        """The drives among the devices."""
        return tuple(device for device in self.devices if isinstance(device, DriveId))

    @property
    def vdisks(self) -> tuple[VDiskId, ...]:
        """The replicas among the devices."""
        return tuple(device for device in self.devices if isinstance(device, VDiskId))


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An action that names something that is not there, or makes no sense."""

    code: StatusCode
    message: str


def find(model: ClusterModel, action: Action) -> tuple[Item, ...] | Unresolved:
    """The items of an action; all of them, or what is wrong with it."""
    if action.type is None:
        return Unresolved(StatusCode.WRONG_REQUEST, "the action has no type, or one that is not known")
    if action.type not in SUPPORTED:
        return Unresolved(
            StatusCode.ERROR, f"{action.type} is not supported; supported are {', '.join(sorted(SUPPORTED))}"
        )
    if action.type is ActionType.REPLACE_DEVICES:
        return _devices(model, action)
    nodes = hosts_nodes(model, action)
    if isinstance(nodes, Unresolved) or action.type is ActionType.SHUTDOWN_HOST:
        return nodes
    wrong = [service for service in action.services if service not in SERVICES]
    if wrong or not action.services:
        given = f"service {wrong[0]!r} is not known" if wrong else "no services are named"
        return Unresolved(StatusCode.WRONG_REQUEST, f"{given}; allowed are {', '.join(SERVICES)}")
    having = tuple(node for node in nodes if node.info is not None and {*node.info.services} & {*action.services})
    if not having:
        asked = " or ".join(action.services)
        return Unresolved(StatusCode.NO_SUCH_SERVICE, f"no node of host {_host(action)} has the service {asked}")
    return having


def claimed(model: ClusterModel, action: Action) -> tuple[Item, ...]:
    """What an action locks that was accepted once: whatever of it is still there."""
    if action.type is ActionType.REPLACE_DEVICES:
        found = (device(model, action, name) for name in action.devices)
        return tuple(item for item in found if item is not None)
    items = find(model, action)
    return () if isinstance(items, Unresolved) else items


def hosts_nodes(model: ClusterModel, action: Action) -> tuple[NodeItem, ...] | Unresolved:
    """The nodes of an action's host, or of all its tenant's hosts."""
    if action.tenant and not action.host:
        hosts = model.hosts_of_tenant(action.tenant)
        if not hosts:
            return Unresolved(StatusCode.NO_SUCH_HOST, f"no node is of tenant {action.tenant!r}")
        return tuple(node for host in hosts for node in model.node_items(host))
    nodes = model.node_items(action.host)
    if not nodes:
        named = f"there is no host {action.host!r}" if action.host else "no host is named"
        return Unresolved(StatusCode.NO_SUCH_HOST, f"{named}: a host name or a node id is expected")
    return nodes


def device(model: ClusterModel, action: Action, name: str) -> DriveItem | VDiskItem | None:
    """A device by its name, or by its path on the action's host."""
    identity = parse_device(name)
    if isinstance(identity, DriveId):
        return model.drive_item(identity)
    if identity is not None:
        return model.vdisk_item(identity)
    nodes = model.node_items(action.host) if action.host else ()
    drives = (drive for node in nodes for drive in node.drives.values())
    return next((drive for drive in drives if drive.info is not None and name and drive.info.path == name), None)


def device_label(model: ClusterModel, name: str, host: str = "") -> str:
    """What people call a device; one that is not there is called as it was named."""
    found = device(model, Action(host=host), name)
    return name if found is None else found.label


def _devices(model: ClusterModel, action: Action) -> tuple[Item, ...] | Unresolved:
    if action.host and not model.node_items(action.host):
        return Unresolved(
            StatusCode.NO_SUCH_HOST, f"there is no host {action.host!r}: a host name or a node id is expected"
        )
    if not action.devices:
        return Unresolved(StatusCode.WRONG_REQUEST, "no devices are named")
    found = []
    for name in action.devices:
        if (item := device(model, action, name)) is None:
            where = f" on host {action.host}" if action.host and parse_device(name) is None else ""
            return Unresolved(
                StatusCode.NO_SUCH_DEVICE,
                f"there is no device {name!r}{where}: a name such as pdisk-1-2 or vdisk-0-1-0-0-0, or a path on the "
                "action's host is expected",
            )
        found.append(item)
    return tuple(found)


def _host(action: Action) -> str:
    return action.host or f"of tenant {action.tenant}"
