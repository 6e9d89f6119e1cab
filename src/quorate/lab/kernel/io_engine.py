"""Serving requests: locally, through peers, or not yet.

A write is on the local disk as soon as it has begun, and over when every peer that is to have it has answered, or is
known to be gone. It is not over while the members who are left are being counted: a primary that has lost one peer asks
the others at once, and acknowledges nothing before it knows whether it may go on.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial

from quorate.lab.kernel import links, uuids
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.io import Io, IoState
from quorate.lab.kernel.io_errors import answers
from quorate.lab.kernel.metadata import ACTIVITY_LOG_EXTENT
from quorate.lab.kernel.races import Wrong
from quorate.lab.kernel.resource import Backing, Device, PeerDevice, Resource
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
        return _fail(device, io)
    if state.suspended or device.held_until > device.resource.world.now:
        return False
    if not data_accessible(device, new=False):
        return _settle(device, io, IoState.FAILED)
    if not device.now.quorum and device.resource.options["on-no-quorum"] == "io-error":
        return _settle(device, io, IoState.FAILED)
    if not io.write:
        return _read(device, io)
    if not (io.begun or _begin(device, io)):
        return False
    return _complete(device, io)


def _settle(device: Device, io: Io, state: IoState) -> bool:
    device.waiting.remove(io)
    io.settle(state)
    return True


def _fail(device: Device, io: Io) -> bool:
    """End a request of a primary that has to step down.

    A write that is on the local disk already was only waiting for its peers: nobody waits for them any more, and it is
    over, with success. Who asks for a flush after it hears the truth.
    """
    done = io.begun and device.resource.node_id in io.have_it
    if done:
        _mark_lacking(device, io)
        if not io.synchronous:
            _note(device, Wrong.ACKNOWLEDGED_BY_FAILING, io, device.resource.node_id)
    return _settle(device, io, IoState.DONE if done and not io.synchronous else IoState.FAILED)


def _note(device: Device, wrong: Wrong, io: Io, lacking: int) -> None:
    device.resource.world.note(wrong, device.resource, lacking, (_blocks(io),))


def _blocks(io: Io) -> tuple[int, int]:
    return io.offset // BLOCK, -(-(io.offset + io.length) // BLOCK)


def _receivers(device: Device) -> list[PeerDevice]:
    """Peers that get every write. One that is outdated, or whose bitmap is awaited, only has it marked."""
    return [
        peer
        for peer in device.peer_devices
        if peer.connection.now.conn is Conn.CONNECTED
        and peer.now.repl >= Repl.ESTABLISHED
        and (peer.now.disk > Disk.OUTDATED or peer.now.disk is Disk.INCONSISTENT)
        and not device.held_since < peer.connection.since <= device.held_until
        and not peer.is_left_out
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


def _all_answer(peers: list[PeerDevice]) -> bool:
    """Whether nobody is silent; who is will soon be known to be gone."""
    silent = [peer for peer in peers if not links.alive(peer.connection)]
    for peer in silent:
        links.hasten_loss(peer.connection)
    return not silent


def _begin(device: Device, io: Io) -> bool:
    """Put a write on the local disk; False if it starts a new generation, and a peer does not answer."""
    if device.new_uuid_due:
        reached = [peer for peer in device.peer_devices if peer.connection.now.conn is Conn.CONNECTED]
        device.asking = not _all_answer(reached)
        if device.asking:
            return False
        uuids.begin_generation(device)
    io.begun = True
    if _has_disk(device) and answers(device):
        _store(device, io)
    return True


def _has_disk(device: Device) -> bool:
    return device.backing is not None and device.now.disk >= Disk.INCONSISTENT


def _complete(device: Device, io: Io) -> bool:
    """Send a write to everybody who is to have it; False as long as somebody is awaited, or being counted."""
    receivers = _receivers(device)
    if not _all_answer(receivers) or device.resource.counting:
        return False
    if device.new_uuid_due:
        # Somebody was lost over it. It lacks this write, so its generation has to be an older one.
        uuids.begin_generation(device)
    replicas = [device] if _has_disk(device) else []
    for peer in receivers:
        other = peer.peer
        peer.sent += io.length
        if other is not None:
            other.received += io.length
            replicas.append(other.device)
            if other.device.resource.node_id not in io.have_it and answers(other.device):
                _store(other.device, io)
    working = [replica for replica in replicas if replica.resource.node_id in io.have_it]
    helped = _helped_by_others(device)
    for replica in working:
        _mark_lacking(replica, io, leaving_out=set() if replica is device else helped)
    for node_id in helped:
        _note(device, Wrong.NOT_SENT, io, node_id)
    if 0 < len(working) < len(replicas):
        # A disk that has failed lacks this write already: it falls behind, once everybody has heard that it is gone.
        device.resource.world.later(0.0, partial(_leave_behind, device))
    for peer in receivers:
        other = peer.peer
        if peer.now.repl in RESYNCING and other is not None and other.device in working:
            for end in (peer, other):
                if end.slot is not None:
                    end.slot.bitmap.remove(*_blocks(io))
    return _settle(device, io, IoState.DONE if working else IoState.FAILED)


def _helped_by_others(device: Device) -> set[int]:
    """Connected peers that are outdated for a moment, because another member is about to copy to them.

    This node marks what they miss. The others have not heard yet who has a write, and copy only what was marked when
    they began. (Recorded of a primary with a disk; one without cannot mark, and is given the benefit of the doubt.)
    """
    if device.metadata is None:
        return set()
    return {
        peer.connection.peer_id
        for peer in device.peer_devices
        if peer.now.repl is Repl.ESTABLISHED and peer.now.disk is Disk.OUTDATED
    }


def _leave_behind(device: Device) -> None:
    if not device.resource.gone and device.resource.now.role is Role.PRIMARY:
        uuids.begin_generation(device)


def _store(replica: Device, io: Io) -> None:
    backing = replica.backing
    if backing is None:
        return
    backing.device.write(io.offset, io.length, io.tag)
    replica.written += io.length
    start, end = _blocks(io)
    _activate(backing, start, end)
    backing.metadata.unassigned.add(start, end)
    io.have_it.add(replica.resource.node_id)


def _activate(backing: Backing, start: int, end: int) -> None:
    """An extent that was not active yet is written to the log: that, and nothing else, is what makes a log."""
    extent = ACTIVITY_LOG_EXTENT // BLOCK
    first, last = start // extent * extent, -(-end // extent) * extent
    if backing.active.count_within(first, last) < last - first:
        backing.active.add(first, last)
        backing.metadata.has_log = True
        backing.metadata.activity_log.add(first, last)


def _mark_lacking(replica: Device, io: Io, *, leaving_out: AbstractSet[int] = frozenset()) -> None:
    """Mark a write toward everybody who has not got it."""
    if replica.backing is None:
        return
    for node_id, slot in replica.backing.metadata.peers.items():
        if slot.bitmap_index != -1 and node_id not in io.have_it and node_id not in leaving_out:
            slot.bitmap.add(*_blocks(io))
