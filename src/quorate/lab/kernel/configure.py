"""Making, altering and removing resources, minors and peers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorate.lab.kernel import connecting, events, metadata, resync
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.handshake import known_algorithm
from quorate.lab.kernel.options import (
    DISK_DEFAULTS,
    NET_DEFAULTS,
    PEER_DEVICE_DEFAULTS,
    RESOURCE_DEFAULTS,
    Options,
)
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Connection, Device, PeerDevice, Resource
from quorate.lab.kernel.states import Conn, Role

if TYPE_CHECKING:
    from quorate.lab.kernel.module import Module

_MAX_NODE_ID = 31


def new_resource(kernel: Module, name: str, node_id: int, options: Mapping[str, str]) -> Resource:
    """A resource without anything in it."""
    return Resource(kernel, name, node_id, Options(RESOURCE_DEFAULTS, options))


def resource_options(resource: Resource, options: Mapping[str, str], *, set_defaults: bool) -> Reply:
    """Set options; a change of ``quorum`` is counted at once, one of the minimum redundancy with the next change."""
    before = resource.options
    resource.options = before.changed(options, set_defaults=set_defaults)
    if before["quorum"] != resource.options["quorum"] or before["on-no-quorum"] != resource.options["on-no-quorum"]:
        Change(resource, "resource-options", hard=True, recalculate=True).commit()
    return DONE


def new_minor(resource: Resource, minor: int, volume: int, *, diskless: bool) -> Device:
    """A device, and its half of every connection."""
    device = resource.devices[volume] = Device(resource, minor, volume, diskless=diskless)
    events.created(resource.kernel, device)
    for connection in resource.connections.values():
        _add_peer_device(connection, device)
    return device


def _add_peer_device(connection: Connection, device: Device) -> None:
    peer = connection.peer_devices[device.volume] = PeerDevice(connection, device, Options(PEER_DEVICE_DEFAULTS))
    events.created(connection.resource.kernel, peer)


def _check_algorithms(options: Options) -> Reply:
    algorithm = options["cram-hmac-alg"]
    if not known_algorithm(algorithm):
        return Reply(Code.UNKNOWN_AUTH_ALGORITHM, f"failed to allocate hmac({algorithm}) for hmac\n")
    algorithm = options["verify-alg"]
    if not known_algorithm(algorithm):
        return Reply(Code.UNKNOWN_VERIFY_ALGORITHM, f"failed to allocate {algorithm} for verify\n")
    return DONE


def new_peer(resource: Resource, peer_id: int, values: Mapping[str, str]) -> Reply:
    """A connection, not yet in use."""
    if peer_id == resource.node_id or not 0 <= peer_id <= _MAX_NODE_ID:
        return Reply(Code.INVALID_PEER_NODE_ID)
    if peer_id in resource.connections:
        return Reply(Code.ALREADY_EXISTS)
    options = Options(NET_DEFAULTS, values)
    reply = _check_algorithms(options)
    if not reply.ok:
        return reply
    connection = resource.connections[peer_id] = Connection(resource, peer_id, options)
    events.created(resource.kernel, connection)
    for device in resource.devices.values():
        _add_peer_device(connection, device)
    return DONE


def net_options(connection: Connection, values: Mapping[str, str], *, set_defaults: bool) -> Reply:
    """Set net options of a connection, in use or not. Hiding or showing a peer counts with the next change of state."""
    options = connection.options.changed(values, set_defaults=set_defaults)
    reply = _check_algorithms(options)
    if not reply.ok:
        return reply
    both_primary = connection.resource.now.role is Role.PRIMARY is connection.now.peer_role
    if both_primary and connection.options.yes("allow-two-primaries") and not options.yes("allow-two-primaries"):
        return Reply(Code.TWO_PRIMARIES_IN_USE)
    connection.options = options
    return DONE


def disk_options(values: Mapping[str, str]) -> Options:
    """The options of a disk."""
    return Options(DISK_DEFAULTS, values)


def del_peer(connection: Connection) -> Reply:
    """Disconnect and forget a connection; the metadata still knows the peer."""
    resource = connection.resource
    reply = connecting.disconnect(connection, force=False)
    if not reply.ok:
        return reply
    resource.world.settle()
    if connection.now.conn is not Conn.STANDALONE:
        return Reply(Code.NET_CONFIGURED)
    for path in list(connection.paths):
        connection.paths.remove(path)
        events.path_created(connection, path, gone=True)
    for peer in connection.peer_devices.values():
        if peer.copying is not None:
            resync.work_out(peer.copying)
        events.destroyed(resource.kernel, peer)
    del resource.connections[connection.peer_id]
    events.destroyed(resource.kernel, connection)
    return DONE


def forget_peer(resource: Resource, peer_id: int) -> Reply:
    """Drop a peer's slot. Not while it is configured; the count is made anew with the next change."""
    if peer_id in resource.connections:
        return Reply(Code.NET_CONFIGURED)
    found = [device.metadata for device in resource.devices.values() if device.metadata is not None]
    if not any(peer_id in known.peers for known in found):
        return Reply(Code.INVALID_PEER_NODE_ID)
    for known in found:
        metadata.forget_peer(known, peer_id)
    resource.members.discard(peer_id)
    return DONE


def del_minor(device: Device) -> Reply:
    """Remove a device that has no disk and no user."""
    if device.backing is not None or device.openers or device.resource.now.role is Role.PRIMARY:
        return Reply(Code.MINOR_CONFIGURED)
    resource = device.resource
    for connection in resource.connections.values():
        peer = connection.peer_devices.pop(device.volume, None)
        if peer is not None:
            events.destroyed(resource.kernel, peer)
    del resource.devices[device.volume]
    events.destroyed(resource.kernel, device)
    return DONE
