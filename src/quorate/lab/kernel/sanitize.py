"""What follows from a wanted state: the part of a change that nobody asked for."""

from __future__ import annotations

from quorate.lab.kernel.metadata import Flag, Metadata
from quorate.lab.kernel.options import OFF, votes
from quorate.lab.kernel.quorum import count
from quorate.lab.kernel.resource import Device, PeerDevice, Resource
from quorate.lab.kernel.states import Conn, Disk, Repl, Role

_LIMITS: dict[Repl, tuple[Disk, Disk, Disk, Disk]] = {
    Repl.OFF: (Disk.DISKLESS, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.UNKNOWN),
    Repl.ESTABLISHED: (Disk.DISKLESS, Disk.UP_TO_DATE, Disk.DISKLESS, Disk.UP_TO_DATE),
    Repl.VERIFY_S: (Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.UP_TO_DATE),
    Repl.VERIFY_T: (Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.UP_TO_DATE),
    Repl.WF_BITMAP_T: (Disk.INCONSISTENT, Disk.OUTDATED, Disk.INCONSISTENT, Disk.UP_TO_DATE),
    Repl.STARTING_SYNC_T: (Disk.INCONSISTENT, Disk.OUTDATED, Disk.INCONSISTENT, Disk.UP_TO_DATE),
    Repl.WF_BITMAP_S: (Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.CONSISTENT),
    Repl.STARTING_SYNC_S: (Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.CONSISTENT),
    Repl.PAUSED_SYNC_S: (Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.CONSISTENT),
    Repl.PAUSED_SYNC_T: (Disk.INCONSISTENT, Disk.INCONSISTENT, Disk.INCONSISTENT, Disk.UP_TO_DATE),
    Repl.SYNC_TARGET: (Disk.INCONSISTENT, Disk.INCONSISTENT, Disk.INCONSISTENT, Disk.UP_TO_DATE),
    Repl.SYNC_SOURCE: (Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.INCONSISTENT),
}
"""For each replication state: lowest and highest disk state that goes with it, here and at the peer."""


def paused(peer: PeerDevice) -> bool:
    """Whether something keeps a resync with the peer from running, in the state being prepared."""
    new = peer.new
    waits_for_own_data = (
        new.repl in (Repl.SYNC_SOURCE, Repl.PAUSED_SYNC_S) and peer.device.new.disk <= Disk.INCONSISTENT
    )
    return new.paused_by_user or new.paused_by_peer or new.paused_by_other or waits_for_own_data


def data_accessible(device: Device, *, new: bool) -> bool:
    """Whether reads and writes can be served: locally or through a peer that may be read from."""
    if (device.new if new else device.now).disk is Disk.UP_TO_DATE:
        return True
    return any(
        (peer.new if new else peer.now).disk is Disk.UP_TO_DATE and peer.connection.options.yes("allow-remote-read")
        for peer in device.peer_devices
    )


def _choose_sync_source(device: Device) -> None:
    """Of several peers to catch up from, one at a time; the present one stays unless another is much closer."""
    candidates = [
        peer
        for peer in device.peer_devices
        if peer.new.repl in (Repl.SYNC_TARGET, Repl.PAUSED_SYNC_T)
        and not (peer.new.paused_by_user or peer.new.paused_by_peer)
        and peer.new.disk >= Disk.OUTDATED
        and not peer.stands
    ]
    chosen = min(candidates, key=lambda peer: peer.out_of_sync, default=None)
    current = next((peer for peer in candidates if peer.now.repl is Repl.SYNC_TARGET), None)
    if current is not None and chosen is not None and current.out_of_sync < chosen.out_of_sync + (1 << 20):
        chosen = current
    for peer in device.peer_devices:
        latched = peer.stands and peer.new.repl is Repl.PAUSED_SYNC_T
        peer.new.paused_by_other = latched or (chosen is not None and peer is not chosen)
        if peer.new.repl in (Repl.SYNC_TARGET, Repl.PAUSED_SYNC_T):
            peer.new.repl = Repl.SYNC_TARGET if peer is chosen else Repl.PAUSED_SYNC_T


def _is_target_elsewhere(peer: PeerDevice) -> bool:
    return any(
        other is not peer and other.new.repl in (Repl.SYNC_TARGET, Repl.PAUSED_SYNC_T)
        for other in peer.device.peer_devices
    )


def _limit(peer: PeerDevice) -> None:
    """Clamp disk states to what the replication state allows."""
    lowest, highest, lowest_peer, highest_peer = _LIMITS[peer.new.repl]
    device = peer.device
    device.new.disk = max(min(device.new.disk, highest), lowest)
    peer.new.disk = max(min(peer.new.disk, highest_peer), lowest_peer)


def state_from(metadata: Metadata) -> Disk:
    """How good a disk is by its own word."""
    if not metadata.flags & Flag.CONSISTENT:
        return Disk.INCONSISTENT
    return Disk.UP_TO_DATE if metadata.flags & Flag.WAS_UP_TO_DATE else Disk.OUTDATED


def _end_negotiation(device: Device) -> None:
    """A disk that waits for the word of its peers goes by its own when there is none left to wait for."""
    alone = not any(peer.new.repl >= Repl.ESTABLISHED and peer.new.disk > Disk.DISKLESS for peer in device.peer_devices)
    if device.new.disk is Disk.NEGOTIATING and device.now.disk is Disk.NEGOTIATING and alone:
        assert device.backing is not None
        device.new.disk = state_from(device.backing.metadata)


def _sanitize_peer(peer: PeerDevice) -> None:
    device, new, old = peer.device, peer.new, peer.now
    if new.repl is Repl.SYNC_SOURCE and old.repl is not Repl.SYNC_SOURCE and _is_target_elsewhere(peer):
        new.paused_by_other = True
    if new.repl in (Repl.SYNC_SOURCE, Repl.PAUSED_SYNC_S):
        new.repl = Repl.PAUSED_SYNC_S if paused(peer) else Repl.SYNC_SOURCE
    _limit(peer)

    if (
        new.repl is Repl.ESTABLISHED
        and device.new.disk is Disk.OUTDATED
        and not device.resource.weak
        and new.disk >= Disk.CONSISTENT
        and (old.repl < Repl.ESTABLISHED or old.disk is Disk.OUTDATED)
    ):
        # Met a peer with the same data that is good, or that just turned good.
        device.new.disk = new.disk
    if (
        device.new.disk is Disk.CONSISTENT
        and device.backing is not None
        and ((old.repl < Repl.ESTABLISHED <= new.repl) or (old.disk is Disk.CONSISTENT and new.disk is Disk.UP_TO_DATE))
    ):
        device.new.disk = Disk.UP_TO_DATE

    same_data = device.backing is not None and peer.peer_uuid & ~1 == device.backing.metadata.current_uuid & ~1
    connection = peer.connection
    if (
        connection.now.peer_role is Role.UNKNOWN
        and connection.new.peer_role is Role.PRIMARY
        and new.disk is Disk.DISKLESS
        and device.new.disk >= Disk.NEGOTIATING
    ):
        # A diskless primary: its generation is the truth.
        if same_data and not _is_target_elsewhere(peer):
            device.new.disk = Disk.UP_TO_DATE
        elif device.new.disk is Disk.UP_TO_DATE:
            device.new.disk = Disk.CONSISTENT
    if (
        device.new.disk is Disk.DISKLESS
        and new.disk is Disk.UP_TO_DATE
        and old.disk is not Disk.UP_TO_DATE
        and device.exposed_uuid
        and device.resource.new.role is Role.PRIMARY
        and device.exposed_uuid & ~1 != peer.peer_uuid & ~1
    ):
        # We exposed other data than this peer has; what it offers is not what our users have seen.
        new.disk = Disk.CONSISTENT


def _sanitize_device(device: Device, *, primary_lost: bool, sees_primary: bool) -> None:
    resource = device.resource
    for peer in device.peer_devices:
        new = peer.new
        if new.repl < Repl.ESTABLISHED:
            new.paused_by_peer = False
            if new.disk > Disk.UNKNOWN or new.disk < Disk.INCONSISTENT:
                new.disk = Disk.UNKNOWN
        if new.repl > Repl.ESTABLISHED and min(device.new.disk, new.disk) <= Disk.FAILED:
            new.repl = Repl.ESTABLISHED
    _end_negotiation(device)
    _choose_sync_source(device)
    for peer in device.peer_devices:
        _sanitize_peer(peer)

    verdict = count(device)
    enforced = votes(resource.options["quorum"]) != OFF
    device.new.quorum = device.counted_quorate = verdict.quorate or not enforced
    device.tie_broken = verdict.by_tie_breaker and enforced
    if not device.new.quorum and device.restore_quorum and device.new.disk is Disk.UP_TO_DATE:
        device.new.quorum = True
    if primary_lost and not sees_primary and device.new.disk is Disk.UP_TO_DATE and resource.now.role is Role.SECONDARY:
        # The primary may have crashed in the middle of a write: ask around before trusting this copy.
        device.new.disk = Disk.CONSISTENT


def sanitize(resource: Resource, *, hard: bool) -> None:
    """Derive from the wanted state all that follows from it, quorum and suspension among it."""
    primary_lost = sees_primary = False
    for connection in resource.connections.values():
        old, new = connection.now, connection.new
        if new.conn < Conn.CONNECTED:
            new.peer_role = Role.UNKNOWN
            for peer in connection.peer_devices.values():
                peer.new.repl = Repl.OFF
        broke = Conn.TIMEOUT <= new.conn <= Conn.PROTOCOL_ERROR or (new.conn is Conn.DISCONNECTING and hard)
        primary_lost |= old.peer_role is Role.PRIMARY and old.conn is Conn.CONNECTED and broke
        sees_primary |= new.peer_role is Role.PRIMARY

    has_access, lost_access, has_quorum = True, False, True
    for device in resource.devices.values():
        _sanitize_device(device, primary_lost=primary_lost, sees_primary=sees_primary)
        has_quorum &= device.new.quorum
        if resource.new.role is Role.PRIMARY and not data_accessible(device, new=True):
            has_access = False
            lost_access |= resource.now.role is not Role.PRIMARY or data_accessible(device, new=False)
    if has_access:
        resource.new.suspended_no_data = False
    elif lost_access and resource.options["on-no-data-accessible"] == "suspend-io":
        resource.new.suspended_no_data = True
    resource.new.suspended_quorum = resource.options["on-no-quorum"] == "suspend-io" and not has_quorum
