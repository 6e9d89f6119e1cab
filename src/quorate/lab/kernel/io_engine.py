"""Serving requests: locally, through peers, or not yet."""

from __future__ import annotations

from functools import partial

from quorate.lab.kernel import links, uuids
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.io import Io, IoState
from quorate.lab.kernel.io_errors import answers
from quorate.lab.kernel.metadata import ACTIVITY_LOG_EXTENT
from quorate.lab.kernel.resource import Device, PeerDevice, Resource
from quorate.lab.kernel.sanitize import data_accessible
from quorate.lab.kernel.states import RESYNCING, Conn, Disk, Repl, Role


def submit(device: Device, io: Io) -> None:
    """Take a request; it may be over at once."""
    device.waiting.append(io)
    pump(device.resource)


def pump(resource: Resource) -> None:
    """Go on with requests that wait, if they may."""
    if resource.gone:
        return
    for device in resource.devices.values():
        while device.waiting and _serve(device, device.waiting[0]):
            pass


def _serve(device: Device, io: Io) -> bool:
    """Bring the first request to its end; False if it has to wait."""
    state = device.resource.now
    if state.fail_io or state.role is not Role.PRIMARY:
        return _settle(device, io, IoState.FAILED)
    if state.suspended:
        return False
    if not data_accessible(device, new=False):
        return _settle(device, io, IoState.FAILED)
    if not device.now.quorum and device.resource.options["on-no-quorum"] == "io-error":
        return _settle(device, io, IoState.FAILED)
    if not io.write:
        return _read(device, io)
    silent = [peer for peer in _receivers(device) if not links.alive(peer.connection)]
    for peer in silent:
        links.hasten_loss(peer.connection)
    if silent:
        return False
    return _settle(device, io, IoState.DONE if _write(device, io) else IoState.FAILED)


def _settle(device: Device, io: Io, state: IoState) -> bool:
    device.waiting.remove(io)
    io.settle(state)
    return True


def _receivers(device: Device) -> list[PeerDevice]:
    """Peers that get every write."""
    return [
        peer
        for peer in device.peer_devices
        if peer.connection.now.conn is Conn.CONNECTED
        and peer.now.repl >= Repl.ESTABLISHED
        and peer.now.disk >= Disk.INCONSISTENT
    ]


def _read(device: Device, io: Io) -> bool:
    if device.now.disk is Disk.UP_TO_DATE and device.backing is not None and answers(device):
        io.result = device.backing.device.read(io.offset)
        device.read += BLOCK
        return _settle(device, io, IoState.DONE)
    for peer in device.peer_devices:
        if peer.now.disk is not Disk.UP_TO_DATE or not peer.connection.options.yes("allow-remote-read"):
            continue
        other = peer.peer
        if not links.alive(peer.connection) or other is None or other.device.backing is None:
            links.hasten_loss(peer.connection)
            return False
        if not answers(other.device):
            continue
        io.result = other.device.backing.device.read(io.offset)
        return _settle(device, io, IoState.DONE)
    return False


def _write(device: Device, io: Io) -> bool:
    """Write to every replica that can be reached; whether any has it now."""
    if device.new_uuid_due:
        uuids.begin_generation(device)
    receivers = _receivers(device)
    replicas = [device] if device.backing is not None and device.now.disk >= Disk.INCONSISTENT else []
    for peer in receivers:
        other = peer.peer
        peer.sent += io.length
        if other is not None:
            other.received += io.length
            replicas.append(other.device)
    working = [replica for replica in replicas if answers(replica)]
    have_it = {replica.resource.node_id for replica in working}
    for replica in working:
        _store(replica, io, have_it)
    if 0 < len(working) < len(replicas):
        # A disk that has failed lacks this write already: it falls behind, once everybody has heard that it is gone.
        device.resource.world.later(0.0, partial(_leave_behind, device))
    for peer in receivers:
        other = peer.peer
        if peer.now.repl in RESYNCING and other is not None and other.device in working:
            for end in (peer, other):
                if end.slot is not None:
                    end.slot.bitmap.remove(io.offset // BLOCK, -(-(io.offset + io.length) // BLOCK))
    return bool(working)


def _leave_behind(device: Device) -> None:
    if not device.resource.gone and device.resource.now.role is Role.PRIMARY:
        uuids.begin_generation(device)


def _store(replica: Device, io: Io, have_it: set[int]) -> None:
    backing = replica.backing
    if backing is None:
        return
    backing.device.write(io.offset, io.length, io.tag)
    replica.written += io.length
    start, end = io.offset // BLOCK, -(-(io.offset + io.length) // BLOCK)
    extent = ACTIVITY_LOG_EXTENT // BLOCK
    backing.metadata.activity_log.add(start // extent * extent, -(-end // extent) * extent)
    backing.metadata.unassigned.add(start, end)
    for node_id, slot in backing.metadata.peers.items():
        if slot.bitmap_index != -1 and node_id not in have_it:
            slot.bitmap.add(start, end)
