"""What is configured, as ``drbdsetup show --json`` gives it."""

from __future__ import annotations

from typing import Any

from quorate.lab.kernel.options import Options
from quorate.lab.kernel.resource import Connection, Device, Resource

_FLAGS = {"yes": True, "no": False}


def _shown(options: Options, *, defaults: bool) -> dict[str, Any]:
    """The options that differ from their defaults, or all; flags as booleans, all else as text."""
    usual, chosen = options.defaults, options.values
    if defaults:
        found = {name: chosen.get(name, value) for name, value in usual.items()}
    else:
        found = {name: chosen[name] for name in usual if name in chosen and chosen[name] != usual[name]}
    return {name: _FLAGS.get(value, value) for name, value in found.items()}


def show_resource(resource: Resource, *, defaults: bool) -> dict[str, Any]:
    """One resource."""
    shown: dict[str, Any] = {"resource": resource.name}
    options = _shown(resource.options, defaults=defaults)
    if options:
        shown["options"] = options
    shown["_this_host"] = {
        "node-id": resource.node_id,
        "volumes": [_show_device(device, defaults=defaults) for _, device in sorted(resource.devices.items())],
    }
    connections = [_show_connection(c, defaults=defaults) for _, c in sorted(resource.connections.items())]
    if connections:
        shown["connections"] = connections
    return shown


def _show_device(device: Device, *, defaults: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"volume_nr": device.volume, "device_minor": device.minor}
    if device.backing is None:
        if device.intended_diskless:
            shown["disk"] = "none"
        return shown
    shown |= {"backing-disk": device.backing.path, "meta-disk": "internal"}
    options = _shown(device.options, defaults=defaults) if device.options is not None else {}
    if options:
        shown["disk"] = options
    return shown


def _show_connection(connection: Connection, *, defaults: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for local, remote in connection.paths:
        shown["path"] = {
            "_this_host": local.replace(":", " ", 1),
            "_remote_host": remote.replace(":", " ", 1),
        }
    shown["net"] = _shown(connection.options, defaults=defaults)
    volumes = []
    for volume, peer in sorted(connection.peer_devices.items()):
        options = _shown(peer.options, defaults=defaults)
        if options:
            volumes.append({"volume_nr": volume, "disk": options})
    if volumes:
        shown["volumes"] = volumes
    shown["_peer_node_id"] = connection.peer_id
    return shown
