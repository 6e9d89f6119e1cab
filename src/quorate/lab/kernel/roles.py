"""Becoming Primary and Secondary."""

from __future__ import annotations

from quorate.lab.kernel import recovery, resync, twopc, uuids
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Connection, Device, Resource
from quorate.lab.kernel.states import Disk, Role


def _adjacent(first: Resource, second: Resource) -> bool:
    return second.node_id in twopc.directly_connected(first)


def _check_distances(primaries: list[Resource], adjacent: set[frozenset[int]]) -> Reply:
    """Several primaries are fine if allowed and if each is connected to each; without own disks, also if not."""
    if len(primaries) <= 1:
        return DONE
    if not any(c.options.yes("allow-two-primaries") for p in primaries for c in p.connections.values()):
        return Reply(Code.TWO_PRIMARIES)
    apart = [
        (first, second)
        for index, first in enumerate(primaries)
        for second in primaries[index + 1 :]
        if not _adjacent(first, second) and frozenset((first.node_id, second.node_id)) not in adjacent
    ]
    has_disk = any(d.backing is not None for pair in apart for resource in pair for d in resource.devices.values())
    return Reply(Code.WEAKLY_CONNECTED) if has_disk else DONE


def check_primaries(reach: twopc.Reach, first: Connection, second: Connection) -> Reply:
    """Whether two ends may connect, seeing the primaries that would then be in one cluster."""
    meeting = frozenset((first.resource.node_id, second.resource.node_id))
    return _check_distances(reach.primaries(), {meeting})


def yield_if_suspended(resource: Resource, *, always_fail_io: bool) -> None:
    """``on-suspended-primary-outdated force-secondary``: a suspended primary that was overtaken steps down.

    If its own data turned out to be old, its disk is outdated with it and I/O fails until the openers have closed,
    even if there is none just now; if only another primary was met, I/O fails if somebody has the device open.
    """
    now = resource.now
    if now.role is not Role.PRIMARY or not now.overtakable or now.fail_io:
        return
    if resource.options["on-suspended-primary-outdated"] != "force-secondary":
        return
    change = Change(resource, "force-secondary", hard=True, ignore_openers=True)
    resource.new.role = Role.SECONDARY
    opened = any(opener.writable for device in resource.devices.values() for opener in device.openers)
    resource.new.fail_io = always_fail_io or opened
    if always_fail_io:
        twopc.outdate(resource)
    change.commit()


def promote(resource: Resource, *, force: bool) -> Reply:
    """Become Primary; forced, first by calling the own data good, then by calling absent peers outdated."""
    if resource.now.role is Role.PRIMARY:
        return DONE
    trust_own_data = outdate_absent = False
    while True:
        reach = twopc.explore_now(resource)
        change = Change(resource, "primary")
        forced = _prepare_promotion(resource, trust_own_data=trust_own_data, outdate_absent=outdate_absent)
        reply = change.prepare()
        if reply.code == Code.NO_UP_TO_DATE_DATA and force and not trust_own_data:
            trust_own_data = True
        elif reply.code == Code.NO_QUORUM and force and not outdate_absent:
            outdate_absent = True
        elif reply.ok:
            return _promote_with(resource, change, reach, forced)
        else:
            change.drop()
            return reply
        change.drop()


def _prepare_promotion(resource: Resource, *, trust_own_data: bool, outdate_absent: bool) -> list[Device]:
    resource.new.role = Role.PRIMARY
    forced = []
    for device in resource.devices.values():
        better = any(peer.now.disk is Disk.UP_TO_DATE for peer in device.peer_devices)
        if trust_own_data and Disk.INCONSISTENT <= device.now.disk < Disk.UP_TO_DATE and not better:
            device.new.disk = Disk.UP_TO_DATE
            forced.append(device)
        if outdate_absent:
            for peer in device.peer_devices:
                if peer.now.disk is Disk.UNKNOWN:
                    peer.new.disk = Disk.OUTDATED
    return forced


def _promote_with(resource: Resource, change: Change, reach: twopc.Reach, forced: list[Device]) -> Reply:
    reply = _check_distances([*reach.primaries(), resource], set())
    if not reply.ok:
        change.drop()
        return reply
    for device in resource.devices.values():
        for peer in device.peer_devices:
            # In nobody's direct sight but in the cluster: it will miss what is written now.
            reached = peer.connection.peer_id in reach.node_ids
            if reached and peer.new.disk is Disk.UNKNOWN and peer.wants_bitmap:
                peer.new.disk = Disk.OUTDATED
    reply = _tell_role(resource, Role.PRIMARY, change)
    if not reply.ok:
        return reply
    primaries = [*(p for p in reach.primaries() if p is not resource), resource]
    for other in reach.participants:
        if other is not resource and twopc.far_primary(other, primaries, twopc.directly_connected(other)):
            far = Change(other, "remote")
            twopc.outdate(other)
            far.commit()
    twopc.agree_on_members(reach)
    recovery.refresh(reach)
    for device in forced:
        uuids.adopt(device, uuids.fresh(resource, primary=True), away=set())
        resync.consider(device)
    return DONE


def _tell_role(resource: Resource, role: Role, change: Change) -> Reply:
    """Commit a role on this node and on all its neighbours, or on none."""
    changes = [change]
    for connection in resource.connected():
        other = connection.other
        if other is None:
            continue
        neighbour = Change(other.resource, "remote")
        other.new.peer_role = role
        for volume, mine in connection.peer_devices.items():
            if volume in other.peer_devices and mine.device.new.disk is not mine.device.now.disk:
                other.peer_devices[volume].new.disk = mine.device.new.disk
        changes.append(neighbour)
        if not neighbour.prepare().ok:
            for prepared in changes:
                prepared.drop()
            text = f"Declined by peer {connection.name} (id: {connection.peer_id}), see the kernel log there"
            return Reply(Code.REFUSED_BY_PEER, text)
    for prepared in changes:
        prepared.apply()
    return DONE


def demote(resource: Resource, *, force: bool) -> Reply:
    """Become Secondary; forced, even if the device is open, and then I/O fails until it is closed."""
    if resource.now.role is not Role.PRIMARY:
        return DONE
    reach = twopc.explore_now(resource)
    change = Change(resource, "secondary", ignore_openers=force)
    resource.new.role = Role.SECONDARY
    if force and any(opener.writable for device in resource.devices.values() for opener in device.openers):
        resource.new.fail_io = True
    reply = change.prepare()
    if not reply.ok:
        change.drop()
        return reply
    reply = _tell_role(resource, Role.SECONDARY, change)
    recovery.refresh(reach)
    return reply
