"""What a committed change sets in motion: metadata, peers to be told, requests that go on, connections to clean up."""

from __future__ import annotations

from functools import cache, partial

from quorate.lab.kernel import connecting, events, io_engine, links, resync, telling, twopc
from quorate.lab.kernel.metadata import Flag, PeerFlag
from quorate.lab.kernel.races import Race
from quorate.lab.kernel.resource import Connection, Device, Resource
from quorate.lab.kernel.sanitize import data_accessible
from quorate.lab.kernel.states import Conn, Disk, Repl, Role


def committed(resource: Resource, tag: str) -> None:
    """Everything that follows from the difference between ``old`` and ``now``."""
    _log(resource, tag)
    for device in resource.devices.values():
        _remember(device)
        _note_generation(device)
    events.changed(resource)
    for connection in resource.connections.values():
        connecting.after_change(connection)
        for peer in connection.peer_devices.values():
            resync.after_change(peer)
    _update_members(resource)
    world = resource.world
    world.soon(partial(telling.tell_peers, resource))
    # Requests go on when everybody whom this concerns has heard of it.
    world.soon(partial(world.soon, partial(io_engine.pump, resource)))
    links.retry_stuck(resource)


def _log(resource: Resource, tag: str) -> None:
    log = resource.kernel.log
    for device in resource.devices.values():
        where = f"drbd {resource.name}/{device.volume} drbd{device.minor}"
        if device.tie_broken and device.old.quorum:
            log(f"{where}: Would lose quorum, but using tiebreaker logic to keep")
        if device.old.quorum != device.now.quorum:
            if device.now.quorum:
                log(f"drbd {resource.name}: susp-io( quorum -> no ) [{tag}]")
            else:
                log(f"drbd {resource.name}: susp-io( no -> quorum ) [{tag}]")
            words = {True: "yes", False: "no"}
            log(f"{where}: quorum( {words[device.old.quorum]} -> {words[device.now.quorum]} ) [{tag}]")
        if Disk.OUTDATED in (device.old.disk, device.now.disk) and device.old.disk is not device.now.disk:
            log(f"{where}: disk( {device.old.disk} -> {device.now.disk} ) [{tag}]")


def _remember(device: Device) -> None:
    """Keep in the metadata what must survive a crash."""
    metadata = device.metadata
    if metadata is None or device.now.disk <= Disk.ATTACHING:
        return
    resource, disk = device.resource, device.now.disk
    detaching, primary = disk is Disk.DETACHING, resource.now.role is Role.PRIMARY
    metadata.flags = _flags(
        metadata.flags,
        disk,
        others_go_on=detaching and _others_go_on(device),
        crashed_primary=device.crashed_primary or (primary and not detaching),
        primary_in_sight=primary or any(c.now.peer_role is Role.PRIMARY for c in resource.connections.values()),
        quorum=device.now.quorum,
    )
    metadata.members = set(resource.members)
    for peer in device.peer_devices:
        slot = peer.slot
        assert slot is not None
        slot.flags = _peer_flags(
            slot.flags,
            peer.now.disk,
            connected=peer.now.repl > Repl.OFF,
            has_bitmap=slot.bitmap_index != -1,
            wants_bitmap=peer.wants_bitmap,
        )


# Flags are slow to combine, and there are few combinations.


@cache
def _flags(
    before: Flag, disk: Disk, *, others_go_on: bool, crashed_primary: bool, primary_in_sight: bool, quorum: bool
) -> Flag:
    flags = before & ~(Flag.AL_CLEAN | Flag.CRASHED_PRIMARY | Flag.PRIMARY_IND | Flag.HAVE_QUORUM)
    if disk >= Disk.INCONSISTENT:
        flags &= ~(Flag.CONSISTENT | Flag.WAS_UP_TO_DATE)
        flags |= Flag.CONSISTENT if disk > Disk.INCONSISTENT else Flag(0)
        flags |= Flag.WAS_UP_TO_DATE if disk > Disk.OUTDATED else Flag(0)
    elif others_go_on:  # a disk that has failed cannot be told
        flags &= ~Flag.WAS_UP_TO_DATE
    if crashed_primary:
        flags |= Flag.CRASHED_PRIMARY
    if primary_in_sight:
        flags |= Flag.PRIMARY_IND
    if quorum:
        flags |= Flag.HAVE_QUORUM
    return flags


@cache
def _peer_flags(before: PeerFlag, disk: Disk, *, connected: bool, has_bitmap: bool, wants_bitmap: bool) -> PeerFlag:
    flags = before & ~(PeerFlag.CONNECTED | PeerFlag.OUTDATED)
    if connected:
        flags |= PeerFlag.CONNECTED
    if Disk.INCONSISTENT <= disk <= Disk.OUTDATED:
        flags |= PeerFlag.OUTDATED
    if has_bitmap and disk >= Disk.INCONSISTENT and disk is not Disk.UNKNOWN:
        flags |= PeerFlag.DEVICE_SEEN
    if disk is Disk.DISKLESS and not wants_bitmap:
        flags &= ~PeerFlag.DEVICE_SEEN
    return flags


def _others_go_on(device: Device) -> bool:
    """Whether a primary was in sight, and up-to-date data: a disk that is let go of now will miss writes."""
    resource = device.resource
    primary = resource.old.role is Role.PRIMARY or any(
        c.old.peer_role is Role.PRIMARY for c in resource.connections.values()
    )
    data = device.old.disk is Disk.UP_TO_DATE or any(p.old.disk is Disk.UP_TO_DATE for p in device.peer_devices)
    return primary and data


def _note_generation(device: Device) -> None:
    """Decide whether the next write starts a new data generation, because somebody will not have it."""
    resource, old, now = device.resource, device.old, device.now
    if now.disk is Disk.UP_TO_DATE and any(p.now.disk is Disk.UP_TO_DATE for p in device.peer_devices):
        device.crashed_primary = False
    if device.restore_quorum and (device.counted_quorate or now.disk < Disk.UP_TO_DATE):
        device.restore_quorum = False
    if resource.now.role is not Role.PRIMARY:
        device.new_uuid_due = device.asking = device.generation_spent = False
        return
    # One that is in sight and outdated is about to be copied to, and has what it misses marked.
    lost_peer_data = any(
        p.old.disk >= Disk.INCONSISTENT
        and p.old.disk is not Disk.UNKNOWN
        and (p.now.disk < Disk.INCONSISTENT or p.now.disk is Disk.UNKNOWN or p.now.repl is Repl.OFF)
        for p in device.peer_devices
    )
    lost_own_data = old.disk >= Disk.INCONSISTENT > now.disk
    promoted = resource.old.role is not Role.PRIMARY
    if promoted or ((lost_peer_data or lost_own_data) and data_accessible(device, new=False)):
        device.new_uuid_due = True
        device.generation_spent = False
    if device.asking and not now.quorum and device.metadata is not None:
        # The write had taken up the order for a new generation before the peers were asked. Without quorum none is
        # made, and nobody gives the order again: the write waits, and goes out in the old generation.
        device.new_uuid_due = device.asking = False
        device.generation_spent = True
    _hold(device)


def _hold(device: Device) -> None:
    """Quorate again: the new generation takes its time, if that race is to be lost."""
    world = device.resource.world
    if device.old.quorum or not device.now.quorum or not device.new_uuid_due or not device.waiting:
        return
    if world.loses(Race.LATE_GENERATION):
        device.held_since, device.held_until = world.now, world.now + world.jitter(0.2, 1.2)
        world.at(device.held_until, partial(io_engine.pump, device.resource))


def _update_members(resource: Resource) -> None:
    """Who is with us: a new connection adds its peer; losing one without a word calls for a new count."""
    for connection in resource.connections.values():
        if connection.old.conn < Conn.CONNECTED <= connection.now.conn:
            resource.members.add(connection.peer_id)
        if _lost_without_a_word(connection) and connection.peer_id in resource.members:
            twopc.call_for_count(resource)


def _lost_without_a_word(connection: Connection) -> bool:
    lost = connection.old.conn is Conn.CONNECTED and connection.now.conn < Conn.CONNECTED
    return lost and connection.now.conn is not Conn.TEAR_DOWN and not connection.graceful
