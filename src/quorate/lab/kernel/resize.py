"""How large the volume is: as large as the smallest replica, and never larger than everybody who knows it agrees to."""

from __future__ import annotations

from quorate.lab.kernel import events, resync, twopc
from quorate.lab.kernel.metadata import JUST_CREATED, Metadata, PeerFlag, carry_along, usable
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Connection, Device
from quorate.lab.kernel.states import RESYNCING, Repl, Role
from quorate.lab.kernel.uuids import Verdict


def room(device: Device) -> int:
    """What the backing device has to offer, in bytes."""
    return 0 if device.backing is None else usable(device.backing.device.size, device.backing.metadata.max_peers)


def set_size(device: Device, size: int) -> None:
    """Let users see a size; metadata goes to the end of a backing device that changed its own."""
    device.size = size
    backing = device.backing
    if backing is None:
        return
    if backing.metadata.device_size != backing.device.size:
        carry_along(backing.device, backing.metadata)
    backing.metadata.effective_size = size


def _is_fresh(metadata: Metadata | None) -> bool:
    return metadata is not None and metadata.current_uuid == JUST_CREATED


def meet(first: Connection, second: Connection) -> None:
    """Two ends agree on a size before they connect. A replica without data follows one with data."""
    for volume, mine in first.peer_devices.items():
        theirs = second.peer_devices.get(volume)
        if theirs is None:
            continue
        one, two = mine.device, theirs.device
        if one.backing is None or two.backing is None:
            size = two.size if one.backing is None else one.size
            if one.backing is None and two.backing is None:
                size = max(one.size, two.size)
        elif _is_fresh(one.metadata) and _is_fresh(two.metadata):
            size = min(one.size, two.size)
        elif _is_fresh(one.metadata) or _is_fresh(two.metadata):
            size = two.size if _is_fresh(one.metadata) else one.size
        else:
            size = max(one.size, two.size)
        for device in (one, two):
            if device.size != size and (device.backing is None or room(device) >= size):
                set_size(device, size)


def _everybody(device: Device) -> list[Device] | None:
    """All replicas in reach; None if a known one is out of reach, and the size must not grow without it."""
    reach = twopc.explore_now(device.resource)
    replicas = []
    for resource in reach.participants:
        found = resource.devices.get(device.volume)
        if found is None:
            continue
        replicas.append(found)
        if found.metadata is None:
            continue
        for node_id, slot in found.metadata.peers.items():
            known = slot.bitmap_index != -1 and slot.flags & PeerFlag.DEVICE_SEEN
            if known and node_id not in reach.node_ids:
                return None
    return replicas


def grow_if_possible(connection: Connection) -> None:
    """A connection completes the cluster and all backing devices have grown: the volume grows by itself."""
    for peer in connection.peer_devices.values():
        if peer.device.backing is not None and room(peer.device) > peer.device.size:
            _resize(peer.device, None, assume_clean=False)


def resize(device: Device, size: int | None, *, assume_clean: bool) -> Reply:
    """``resize``: it is no error if the size does not change because somebody has no room or is away."""
    if device.backing is None:
        return Reply(Code.NO_DISK)
    if any(peer.now.repl in RESYNCING for peer in device.peer_devices):
        return Reply(Code.RESIZE_DURING_RESYNC)
    if size is not None and size > room(device):
        return Reply(Code.DISK_TOO_SMALL)
    _resize(device, size, assume_clean=assume_clean)
    return DONE


def _resize(device: Device, size: int | None, *, assume_clean: bool) -> None:
    replicas = _everybody(device)
    if replicas is None:
        return
    diskful = [replica for replica in replicas if replica.backing is not None]
    largest = min(room(replica) for replica in diskful)
    new, old = (largest if size is None else min(size, largest)), device.size
    if new == old or (new < old and size is None):
        return
    for replica in replicas:
        set_size(replica, new)
        events.changed(replica.resource)
    if new > old and not assume_clean:
        _copy_new_area(device, diskful, old, new)


def _copy_new_area(device: Device, diskful: list[Device], old: int, new: int) -> None:
    """What the new area holds differs from node to node: a primary's counts, else that of whoever asked."""
    source = next((replica for replica in diskful if replica.resource.now.role is Role.PRIMARY), device)
    for mine in source.peer_devices:
        theirs = mine.peer
        if theirs is None or mine.slot is None or theirs.slot is None or mine.now.repl is not Repl.ESTABLISHED:
            continue
        for end in (mine, theirs):
            assert end.slot is not None
            end.slot.bitmap.add(old // 4096, new // 4096)
        resync.start(mine, theirs, Verdict.SOURCE)
