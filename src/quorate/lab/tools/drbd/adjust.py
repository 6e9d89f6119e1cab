"""What drbdadm has to do so that the kernel is as the file says: the plan of ``up`` and ``adjust``.

A plan is command lines of drbdsetup and drbdmeta in stages. A stage is carried out whole, save that a command of the
same kind is skipped once one has failed; after a failed stage no further one is begun.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from quorate.lab.kernel import Kernel
from quorate.lab.tools.conf import options
from quorate.lab.tools.conf.configuration import Part, Peer
from quorate.lab.tools.conf.model import Settings, Volume
from quorate.lab.tools.conf.options import Option

Command = list[str]
Stage = list[Command]

#: Something of which ``drbdsetup show`` tells; its links by the peer's node id, its volumes by number.
_Shown = Mapping[str, Any]
_Peers = Mapping[int, _Shown]
_Volumes = Mapping[int, _Shown]


def plan(part: Part, kernel: Kernel, skipped: Collection[str] = ()) -> Iterator[Stage]:
    """The stages, first to last, from one reading of what the kernel has: none undoes what another found.

    Who is connected is asked when the rest is done. ``skipped``: ``--skip-disk`` leaves disks as they are,
    ``--skip-net`` links.
    """
    found = kernel.show(part.name)
    present = found[0] if found else None
    peers, volumes = _present_peers(present), _present_volumes(present)
    yield list(_resource(part, present))
    yield list(_superfluous(part, peers, volumes))
    yield list(_minors(part, volumes))
    net, disk = "--skip-net" not in skipped, "--skip-disk" not in skipped
    if net:
        yield list(_new_peers(part, peers))
        yield list(_paths(part, peers))
        yield list(_net_options(part, peers))
        yield list(_peer_devices(part, peers))
    if disk:
        yield list(_disks(part, volumes))
    if net:
        yield list(_connects(part, kernel))


def words(settings: Settings) -> list[str]:
    """Options as drbdadm passes them on."""
    return [f"--{name}={value}" for name, value in settings]


def differ(settings: Settings, present: Mapping[str, Any], known: Mapping[str, Option]) -> bool:
    """Whether any option would be another after setting these and leaving the rest at their defaults."""
    intended = dict(settings)
    return any(
        _effective(intended.get(name), known[name]) != _effective(present.get(name), known[name])
        for name in {**intended, **present}  # what neither names is at its default
        if name in known and not name.startswith("_")
    )


def _effective(value: object, option: Option) -> str:
    if value is None or value == "":
        return option.default
    if isinstance(value, bool):
        return "yes" if value else "no"
    return option.canonical(str(value))


def _present_peers(present: _Shown | None) -> dict[int, _Shown]:
    return {entry["_peer_node_id"]: entry for entry in present.get("connections", ())} if present else {}


def _present_volumes(present: _Shown | None) -> dict[int, _Shown]:
    return {volume["volume_nr"]: volume for volume in present["_this_host"]["volumes"]} if present else {}


def _resource(part: Part, present: _Shown | None) -> Iterator[Command]:
    if present is None:
        yield ["drbdsetup", "new-resource", part.name, str(part.node_id), *words(part.options)]
    elif differ(part.options, present.get("options", {}), options.RESOURCE):
        yield ["drbdsetup", "resource-options", part.name, "--set-defaults", *words(part.options)]


def _superfluous(part: Part, peers: _Peers, volumes: _Volumes) -> Iterator[Command]:
    wanted = {peer.node_id for peer in part.peers}
    for node_id in peers:
        if node_id not in wanted:
            yield ["drbdsetup", "disconnect", part.name, str(node_id), "--force"]
            yield ["drbdsetup", "del-peer", part.name, str(node_id)]
    numbers = {volume.number for volume in part.volumes}
    for number, volume in volumes.items():
        if number not in numbers:
            yield ["drbdsetup", "detach", str(volume["device_minor"])]
            yield ["drbdsetup", "del-minor", str(volume["device_minor"])]


def _minors(part: Part, present: _Volumes) -> Iterator[Command]:
    for volume in part.volumes:
        if volume.number not in present:
            client = ["--diskless"] if volume.diskless else []
            yield ["drbdsetup", "new-minor", part.name, str(volume.minor), str(volume.number), *client]


def _new_peers(part: Part, present: _Peers) -> Iterator[Command]:
    for peer in part.peers:
        if peer.node_id not in present:
            yield ["drbdsetup", "new-peer", part.name, str(peer.node_id), f"--_name={peer.name}", *words(peer.net)]


def _paths(part: Part, present: _Peers) -> Iterator[Command]:
    for peer in part.peers:
        path = present.get(peer.node_id, {}).get("path")
        wanted = {"_this_host": str(peer.local), "_remote_host": str(peer.remote)}
        if path == wanted:
            continue
        ends = [_end(wanted["_this_host"]), _end(wanted["_remote_host"])]
        if path:
            yield ["drbdsetup", "disconnect", part.name, str(peer.node_id), "--force"]
            yield ["drbdsetup", "del-path", part.name, str(peer.node_id), *map(_end, path.values())]
        yield ["drbdsetup", "new-path", part.name, str(peer.node_id), *ends]


def _end(address: str) -> str:
    return address.replace(" ", ":", 1)


def _net_options(part: Part, present: _Peers) -> Iterator[Command]:
    for peer in part.peers:
        if peer.node_id in present and differ(peer.net, present[peer.node_id].get("net", {}), options.NET):
            head = ["drbdsetup", "net-options", part.name, str(peer.node_id), "--set-defaults", f"--_name={peer.name}"]
            yield [*head, *words(peer.net)]


def _peer_devices(part: Part, present: _Peers) -> Iterator[Command]:
    for peer in part.peers:
        for volume in part.volumes:
            settings = _peer_device_settings(peer, volume)
            shown = _shown_peer_device(present.get(peer.node_id, {}), volume.number)
            if differ(settings, shown, options.PEER_DEVICE):
                where = [part.name, str(peer.node_id), str(volume.number)]
                reset = ["--set-defaults"] if shown else []
                yield ["drbdsetup", "peer-device-options", *where, *reset, *words(settings)]


def _peer_device_settings(peer: Peer, volume: Volume) -> Settings:
    """A member with a disk keeps no bitmap for one without, whatever the file says of it."""
    if volume.number in peer.diskless_volumes and not volume.diskless:
        return (*(setting for setting in peer.peer_device if setting[0] != "bitmap"), ("bitmap", "no"))
    return peer.peer_device


def _shown_peer_device(connection: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    for volume in connection.get("volumes", ()):
        if volume["volume_nr"] == number:
            found: Mapping[str, Any] = volume.get("disk", {})
            return found
    return {}


def _disks(part: Part, present: _Volumes) -> Iterator[Command]:
    for volume in part.volumes:
        shown = present.get(volume.number, {})
        attached = shown.get("backing-disk", "none") != "none"
        minor = str(volume.minor)
        settings = (*part.disk, *volume.settings)
        if volume.diskless or volume.disk is None:
            if attached:
                yield ["drbdsetup", "detach", minor, "--diskless"]
        elif not attached:
            yield ["drbdmeta", minor, "v09", volume.disk, "internal", "apply-al"]
            yield ["drbdsetup", "attach", minor, volume.disk, volume.disk, "internal", *words(settings)]
        elif differ(settings, shown.get("disk") or {}, options.DISK):
            yield ["drbdsetup", "disk-options", minor, "--set-defaults", *words(settings)]


def _connects(part: Part, kernel: Kernel) -> Iterator[Command]:
    status = kernel.status(part.name)
    states = {entry["peer-node-id"]: entry["connection-state"] for entry in status[0]["connections"]} if status else {}
    for peer in part.peers:
        if states.get(peer.node_id, "StandAlone") == "StandAlone":
            yield ["drbdsetup", "connect", part.name, str(peer.node_id)]
