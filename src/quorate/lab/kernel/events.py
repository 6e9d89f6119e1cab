"""``drbdsetup events2``: a line for everything that exists, then one for everything that changes.

Lines are made only while somebody listens. What was last said of each object is remembered, because a change names only
what is different.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from quorate.lab.kernel.resource import Connection, Device, PeerDevice, Resource
from quorate.lab.kernel.sanitize import data_accessible
from quorate.lab.kernel.states import RESYNCING, Disk, Role
from quorate.lab.kernel.status import is_client, percent_in_sync, resync_suspended, write_ordering

if TYPE_CHECKING:
    from quorate.lab.kernel.module import Module

Fields = dict[str, str]
_YES = {True: "yes", False: "no"}


class Event(NamedTuple):
    """What a line tells."""

    verb: str
    #: The kind of object, and which one it is, as the line has it: ``device name:r volume:0 minor:7``.
    key: str
    fields: Fields

    def __str__(self) -> str:
        return " ".join((self.verb, self.key, *(f"{name}:{value}" for name, value in self.fields.items())))


class Feed:
    """The listeners of one node and what they have heard."""

    __slots__ = ("listeners", "said")

    def __init__(self) -> None:
        self.listeners: list[Callable[[Event], None]] = []
        self.said: dict[str, Fields] = {}

    def send(self, verb: str, key: str, fields: Fields) -> None:
        """One event to everybody."""
        event = Event(verb, key, fields)
        for listener in list(self.listeners):
            listener(event)


def _resource_key(resource: Resource) -> str:
    return f"resource name:{resource.name}"


def _device_key(device: Device) -> str:
    return f"device name:{device.resource.name} volume:{device.volume} minor:{device.minor}"


def _connection_key(connection: Connection) -> str:
    name = connection.resource.name
    return f"connection name:{name} peer-node-id:{connection.peer_id} conn-name:{connection.name}"


def _peer_device_key(peer: PeerDevice) -> str:
    connection = peer.connection
    return (
        f"peer-device name:{connection.resource.name} peer-node-id:{connection.peer_id} "
        f"conn-name:{connection.name} volume:{peer.device.volume}"
    )


def _path_key(connection: Connection, path: tuple[str, str]) -> str:
    return (
        f"path name:{connection.resource.name} peer-node-id:{connection.peer_id} conn-name:{connection.name} "
        f"local:{path[0]} peer:{path[1]}"
    )


def promotion_score(resource: Resource) -> int:
    """How good a place this node is to be Primary: own good data, then the number of good copies in sight."""
    scores = []
    for device in resource.devices.values():
        good = sum(peer.now.disk is Disk.UP_TO_DATE for peer in device.peer_devices)
        good += device.now.disk is Disk.UP_TO_DATE
        if not device.now.quorum or not good:
            scores.append(0)
            continue
        own = {Disk.UP_TO_DATE: 10100, Disk.CONSISTENT: 10000, Disk.INCONSISTENT: 10000}.get(device.now.disk, 0)
        scores.append(own + good)
    return min(scores, default=0)


def may_promote(resource: Resource) -> bool:
    """Whether ``primary`` would succeed."""
    if resource.now.role is Role.PRIMARY or resource.now.suspended or not resource.devices:
        return False
    other = any(
        c.now.peer_role is Role.PRIMARY and not c.options.yes("allow-two-primaries")
        for c in resource.connections.values()
    )
    ready = all(data_accessible(device, new=False) and device.now.quorum for device in resource.devices.values())
    return ready and not other


def _suspended(resource: Resource) -> str:
    now = resource.now
    # The kernel reports a missing quorum by the devices, not by the flag: a fresh device without one is not news.
    reasons = [
        word
        for word, holds in (
            ("user", now.suspended_user),
            ("no-data", now.suspended_no_data),
            ("quorum", now.suspended_quorum),
        )
        if holds
    ]
    return ",".join(reasons) or "no"


def _resource_fields(resource: Resource) -> Fields:
    return {
        "role": str(resource.now.role),
        "suspended": _suspended(resource),
        "force-io-failures": _YES[resource.now.fail_io],
        "write-ordering": write_ordering(resource),
        "may_promote": _YES[may_promote(resource)],
        "promotion_score": str(promotion_score(resource)),
    }


def _device_fields(device: Device) -> Fields:
    return {
        "backing_dev": device.backing.path if device.backing else "none",
        "disk": str(device.now.disk),
        "client": _YES[device.intended_diskless],
        "quorum": _YES[device.now.quorum],
        "size": str(device.size // 1024),
        "read": str(device.read // 1024),
        "written": str(device.written // 1024),
        "al-writes": "0",
        "bm-writes": "0",
        "upper-pending": str(len(device.waiting)),
        "lower-pending": "0",
        "al-suspended": "no",
        "blocked": "upper" if device.resource.now.suspended else "no",
    }


def _connection_fields(connection: Connection) -> Fields:
    return {
        "connection": str(connection.now.conn),
        "role": str(connection.now.peer_role),
        "congested": "no",
        "ap-in-flight": "0",
        "rs-in-flight": "0",
    }


def _peer_device_fields(peer: PeerDevice) -> Fields:
    fields = {
        "replication": str(peer.now.repl),
        "peer-disk": str(peer.now.disk),
        "peer-client": _YES[is_client(peer)],
        "resync-suspended": resync_suspended(peer),
    }
    if peer.now.repl in RESYNCING:
        fields["done"] = f"{percent_in_sync(peer):.2f}"
    fields |= {
        "received": str(peer.received // 1024),
        "sent": str(peer.sent // 1024),
        "out-of-sync": str(peer.out_of_sync // 1024),
        "pending": "0",
        "unacked": "0",
    }
    return fields


def _path_fields(connection: Connection) -> Fields:
    return {"established": _YES[connection.established]}


_ALWAYS = {
    "resource": ("may_promote", "promotion_score"),
    "device": (
        "backing_dev", "disk", "client", "quorum", "size", "read", "written", "al-writes", "bm-writes",
        "upper-pending", "lower-pending",
    ),
    "peer-device": ("received", "sent", "out-of-sync", "pending", "unacked"),
}  # fmt: skip
"""What a change line repeats although it did not change."""
_TOGETHER = {"peer-disk": "peer-client"}


def _say(kernel: Module, key: str, fields: Fields) -> None:
    """A change line, if anything about the object is new."""
    said = kernel.feed.said.get(key)
    if said is None or said == fields:
        return
    different = {name for name, value in fields.items() if said.get(name) != value}
    different |= {_TOGETHER[name] for name in different if name in _TOGETHER}
    different.update(_ALWAYS.get(key.partition(" ")[0], ()))
    kernel.feed.said[key] = fields
    kernel.feed.send("change", key, {name: value for name, value in fields.items() if name in different})


def created(kernel: Module, part: Resource | Device | Connection | PeerDevice) -> None:
    """Something was configured."""
    if not kernel.feed.listeners:
        return
    key, fields = _describe(part)
    kernel.feed.said[key] = fields
    kernel.feed.send("create", key, fields)


def destroyed(kernel: Module, part: Resource | Device | Connection | PeerDevice) -> None:
    """Something is gone."""
    if not kernel.feed.listeners:
        return
    key, _ = _describe(part)
    kernel.feed.said.pop(key, None)
    if isinstance(part, Device):
        key = key.rsplit(" ", 1)[0]
    if not isinstance(part, PeerDevice):
        kernel.feed.send("destroy", key, {})


def _describe(part: Resource | Device | Connection | PeerDevice) -> tuple[str, Fields]:
    if isinstance(part, Resource):
        return _resource_key(part), _resource_fields(part)
    if isinstance(part, Device):
        return _device_key(part), _device_fields(part)
    if isinstance(part, Connection):
        return _connection_key(part), _connection_fields(part)
    return _peer_device_key(part), _peer_device_fields(part)


def changed(resource: Resource) -> None:
    """Say what is different about a resource and its parts."""
    kernel = resource.kernel
    if not kernel.feed.listeners:
        return
    _say(kernel, _resource_key(resource), _resource_fields(resource))
    for connection in resource.connections.values():
        if connection.now != connection.old:  # it is made of nothing else
            _say(kernel, _connection_key(connection), _connection_fields(connection))
    for device in resource.devices.values():
        _say(kernel, _device_key(device), _device_fields(device))
    for connection in resource.connections.values():
        for peer in connection.peer_devices.values():
            _say(kernel, _peer_device_key(peer), _peer_device_fields(peer))


def path_changed(connection: Connection) -> None:
    """A path came up or went down."""
    kernel = connection.resource.kernel
    if kernel.feed.listeners:
        for path in connection.paths:
            kernel.feed.send("change", _path_key(connection, path), _path_fields(connection))


def path_created(connection: Connection, path: tuple[str, str], *, gone: bool = False) -> None:
    """A path was configured, or taken away."""
    kernel = connection.resource.kernel
    if kernel.feed.listeners:
        verb, fields = ("destroy", {}) if gone else ("create", {"established": "no"})
        kernel.feed.send(verb, _path_key(connection, path), fields)


def dump(resources: list[Resource]) -> list[Event]:
    """What exists: resources, connections, devices, peer devices, paths."""
    connections = [connection for resource in resources for connection in resource.connections.values()]
    parts: list[Resource | Device | Connection | PeerDevice] = [*resources, *connections]
    parts += [device for resource in resources for device in resource.devices.values()]
    parts += [peer for connection in connections for peer in connection.peer_devices.values()]
    found = [_describe(part) for part in parts]
    found += [
        (_path_key(connection, path), _path_fields(connection))
        for connection in connections
        for path in connection.paths
    ]
    return [Event("exists", key, fields) for key, fields in (*found, ("-", {}))]


def remember(kernel: Module, resources: list[Resource]) -> None:
    """Take the present state as said: a first listener has it from ``dump``."""
    kernel.feed.said = dict(_describe(part) for resource in resources for part in resource.parts())
