"""The state of a node's resources, as ``drbdsetup status --json`` gives it."""

from __future__ import annotations

from typing import Any

from quorate.lab.kernel import resync
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.resource import Connection, Device, PeerDevice, Resource
from quorate.lab.kernel.states import RESYNCING, VERIFYING, Disk, Repl

_KIB = 1024
_SECTOR = 512


def is_client(peer: PeerDevice) -> bool:
    """Whether a peer is meant to have no disk."""
    return not peer.wants_bitmap


def resync_suspended(peer: PeerDevice) -> str:
    """Why a resync with the peer would not run."""
    now = peer.now
    own_data_missing = now.repl in (Repl.SYNC_SOURCE, Repl.PAUSED_SYNC_S) and peer.device.now.disk <= Disk.INCONSISTENT
    reasons = [
        word
        for word, holds in (
            ("user", now.paused_by_user),
            ("peer", now.paused_by_peer),
            ("dependency", now.paused_by_other or own_data_missing),
        )
        if holds
    ]
    return ",".join(reasons) or "no"


def write_ordering(resource: Resource) -> str:
    """How writes are kept in order; shown once a disk was attached and data flowed."""
    attached = any(device.backing is not None for device in resource.devices.values())
    return "flush" if attached else "none"


class Look:
    """A resource's status as somebody saw it, and as it was printed. Nobody alters it: it is shown again while true."""

    __slots__ = ("_of", "fields", "printed")

    def __init__(self, of: tuple[object, ...], fields: dict[str, Any]) -> None:
        self._of = of
        self.fields = fields
        self.printed = ""

    def still_true(self, of: tuple[object, ...]) -> bool:
        """Whether nothing that is shown has changed."""
        return self._of == of


def look(resource: Resource) -> Look:
    """One resource: anew if something changed since the last look, for a node has hundreds and they are often idle."""
    connections = resource.connections.values()
    peers = [peer for connection in connections for peer in connection.peer_devices.values()]
    if any(peer.copying is not None for peer in peers):
        return Look((), resource_status(resource))  # its numbers move with time
    of = _shown(resource, peers)
    found = resource.last_look
    if found is None or not found.still_true(of):
        found = resource.last_look = Look(of, resource_status(resource))
    return found


def _shown(resource: Resource, peers: list[PeerDevice]) -> tuple[object, ...]:
    """What a status is made of."""
    found: list[object] = [resource.now]
    for device in resource.devices.values():
        found += (device.now, device.backing is None, device.intended_diskless, device.minor)
        found += (device.size, device.read, device.written, len(device.waiting))
    for connection in resource.connections.values():
        found += (connection.now, connection.peer_id, connection.options)
    for peer in peers:
        found += (peer.now, peer.options, peer.received, peer.sent, peer.out_of_sync)
    return tuple(found)


def resource_status(resource: Resource) -> dict[str, Any]:
    """One resource."""
    now = resource.now
    return {
        "name": resource.name,
        "node-id": resource.node_id,
        "role": str(now.role),
        "suspended": now.suspended,
        "suspended-user": now.suspended_user,
        "suspended-no-data": now.suspended_no_data,
        "suspended-fencing": False,
        "suspended-quorum": now.suspended_quorum,
        "force-io-failures": now.fail_io,
        "write-ordering": write_ordering(resource),
        "devices": [_device_status(device) for _, device in sorted(resource.devices.items())],
        "connections": [_connection_status(c) for _, c in sorted(resource.connections.items())],
    }


def _device_status(device: Device) -> dict[str, Any]:
    return {
        "volume": device.volume,
        "minor": device.minor,
        "disk-state": str(device.now.disk),
        "client": device.intended_diskless,
        "quorum": device.now.quorum,
        "size": device.size // _KIB,
        "read": device.read // _KIB,
        "written": device.written // _KIB,
        "al-writes": 0,
        "bm-writes": 0,
        "upper-pending": len(device.waiting),
        "lower-pending": 0,
    }


def _connection_status(connection: Connection) -> dict[str, Any]:
    return {
        "peer-node-id": connection.peer_id,
        "name": connection.name,
        "connection-state": str(connection.now.conn),
        "congested": False,
        "peer-role": str(connection.now.peer_role),
        # A counter that is lowered once too often, seen with 9.2.9 beside a copy that stands still (F5).
        "ap-in-flight": 2**64 - 8 if any(peer.is_left_out for peer in connection.peer_devices.values()) else 0,
        "rs-in-flight": 0,
        "peer_devices": [_peer_device_status(peer) for _, peer in sorted(connection.peer_devices.items())],
    }


def percent_in_sync(peer: PeerDevice) -> float:
    """How much of the volume the peer has, in hundredths of a percent."""
    total = peer.device.size
    return round(100 * (total - peer.out_of_sync) / total, 2) if total else 0.0


def _peer_device_status(peer: PeerDevice) -> dict[str, Any]:
    if peer.copying is not None:
        resync.work_out(peer.copying)
    status: dict[str, Any] = {
        "volume": peer.device.volume,
        "replication-state": str(peer.now.repl),
        "peer-disk-state": str(peer.now.disk),
        "peer-client": is_client(peer),
        "resync-suspended": resync_suspended(peer),
        "received": peer.received // _KIB,
        "sent": peer.sent // _KIB,
        "out-of-sync": peer.out_of_sync // _KIB,
        "pending": 0,
        "unacked": 0,
        "has-sync-details": peer.now.repl in RESYNCING and peer.out_of_sync > 0,
        "has-online-verify-details": peer.now.repl in VERIFYING,
        "percent-in-sync": percent_in_sync(peer),
    }
    if status["has-sync-details"] and peer.copying is not None:
        status |= _progress(peer, peer.copying)
    return status


def _progress(peer: PeerDevice, copying: resync.Copying) -> dict[str, Any]:
    elapsed = peer.device.resource.world.now - copying.started
    done = max(0, copying.total * BLOCK - peer.out_of_sync)
    speed = done / elapsed / (1 << 20) if elapsed else 0.0
    percent = round(100 * done / (copying.total * BLOCK), 2) if copying.total else 100.0
    milliseconds, sectors = int(elapsed * 1000), done // _SECTOR
    return {
        "rs-total": copying.total * BLOCK // _SECTOR,
        "rs-dt-start-ms": milliseconds,
        "rs-paused-ms": 0,
        "rs-dt0-ms": milliseconds,
        "rs-db0-sectors": sectors,
        "rs-dt1-ms": milliseconds,
        "rs-db1-sectors": sectors,
        "rs-failed": 0,
        "rs-same-csum": 0,
        "want": 0.0,
        "db0/dt0 [MiB/s]": round(speed, 2),
        "db1/dt1 [MiB/s]": round(speed, 2),
        "estimated-seconds-to-finish": int(peer.out_of_sync / (resync.RATE * BLOCK)),
        "db/dt [MiB/s]": round(speed, 2),
        "percent-resync-done": percent,
    }
