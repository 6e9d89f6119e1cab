"""Attaching and detaching the backing device, and what is done to a replica as a whole."""

from __future__ import annotations

from quorate.lab.kernel import links, resize, resync, twopc, uuids
from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.io_errors import go_diskless
from quorate.lab.kernel.metadata import JUST_CREATED, Flag, Metadata, PeerFlag, find, usable
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Backing, Device, PeerDevice
from quorate.lab.kernel.sanitize import state_from
from quorate.lab.kernel.states import Conn, Disk, Repl, Role, Slip
from quorate.lab.kernel.telling import exchange
from quorate.lab.kernel.uuids import Verdict


def attach(device: Device, backing: BlockDevice, path: str) -> Reply:
    """Take a backing device into use, as good as its metadata says."""
    if device.backing is not None:
        return Reply(Code.DISK_CONFIGURED)
    if backing.failed or backing.holder is not None:
        return Reply(Code.CANNOT_OPEN_DISK)
    metadata = find(backing)
    if metadata is None:
        return Reply(Code.METADATA_INVALID)
    if not metadata.clean:
        return Reply(Code.METADATA_UNCLEAN)
    resource = device.resource
    if metadata.node_id not in (-1, resource.node_id):
        return Reply(
            Code.INVALID_REQUEST, f"ambiguous node id: meta-data: {metadata.node_id}, config: {resource.node_id}"
        )
    room = usable(backing.size, metadata.max_peers)
    if room < max(metadata.effective_size, device.size if resource.connected() else 0) or room == 0:
        return Reply(Code.DISK_TOO_SMALL)
    if _would_go_back_in_time(device, metadata):
        return Reply(Code.DATA_NOT_CURRENT)
    if _is_declined(device):
        return Reply(Code.REFUSED_BY_PEER, "Probably this node is marked as intentional diskless on a peer")
    metadata.node_id = resource.node_id
    metadata.has_log = True
    backing.holder = f"drbd{device.minor}"
    device.backing = Backing(backing, path, metadata)
    for peer in device.peer_devices:
        if peer.wants_bitmap:
            metadata.give_bitmap(peer.connection.peer_id)
    change = Change(resource, "attach", hard=True)
    device.new.disk = Disk.ATTACHING
    change.commit()
    _settle_size(device, metadata, room)
    _become_attached(device, metadata)
    return DONE


def _is_declined(device: Device) -> bool:
    """Whether a member in touch cannot take it that this one attaches: it asks all that can be reached.

    A primary refuses what costs it its quorum, and one without a disk may live on a quorum that it would not get any
    more (``quorum.count``): whatever makes it count again does.
    """
    for mine in device.peer_devices:
        theirs = mine.peer
        if mine.connection.now.conn is not Conn.CONNECTED or theirs is None or not links.alive(mine.connection):
            continue
        change = Change(theirs.device.resource, "remote")
        theirs.new.disk = Disk.NEGOTIATING
        declined = not change.prepare().ok
        change.drop()
        if declined:
            return True
    return False


def _would_go_back_in_time(device: Device, metadata: Metadata) -> bool:
    """Whether a primary would find other data than it last saw, and has nobody to bring the disk up to date."""
    seen = device.exposed_uuid
    if device.resource.now.role is not Role.PRIMARY or not seen or uuids.same(seen, metadata.current_uuid):
        return False
    return not any(peer.now.disk is Disk.UP_TO_DATE for peer in device.peer_devices)


def _settle_size(device: Device, metadata: Metadata, room: int) -> None:
    size = device.size if device.resource.connected() and device.size else metadata.effective_size
    alone = not any(slot.flags & PeerFlag.DEVICE_SEEN for slot in metadata.peers.values())
    resize.set_size(device, room if size == 0 or alone else size)


def _become_attached(device: Device, metadata: Metadata) -> None:
    resource = device.resource
    device.crashed_primary = bool(metadata.flags & Flag.CRASHED_PRIMARY)
    # Quorate and alone before: nobody else can have become quorate since.
    device.restore_quorum = bool(metadata.flags & Flag.HAVE_QUORUM) and metadata.members == {resource.node_id}
    device.exposed_uuid = device.exposed_uuid or metadata.current_uuid
    verdicts = _compare_with_peers(device, metadata)  # which may end a connection: before our own change begins
    if verdicts and _stays_negotiating(device, metadata, verdicts):
        change = Change(resource, "attach", hard=True)
        device.new.disk = Disk.NEGOTIATING
        change.commit()
        return
    change = Change(resource, "attached", hard=True)
    device.new.disk = state_from(metadata)
    for peer in device.peer_devices:
        if peer.slot is not None and peer.slot.flags & PeerFlag.OUTDATED and peer.now.disk is Disk.UNKNOWN:
            peer.new.disk = Disk.OUTDATED
    if any(verdict.takes for _, _, verdict in verdicts):
        device.new.disk = min(device.new.disk, Disk.OUTDATED)
    elif device.new.disk is Disk.OUTDATED and any(_is_good(theirs) for _, theirs, _ in verdicts):
        device.new.disk = Disk.UP_TO_DATE  # let go of while others went on, but nothing was written since
    change.commit()
    for mine, theirs, verdict in verdicts:
        exchange(mine, theirs)
        if verdict is not Verdict.NONE:
            resync.start(mine, theirs, verdict)


def _stays_negotiating(
    device: Device, metadata: Metadata, verdicts: list[tuple[PeerDevice, PeerDevice, Verdict]]
) -> bool:
    """Whether the peers' answer that would end the negotiation never comes.

    They answer with their change of state. Where all were just created they have none to make
    (``up-5s-timeout-negotiating.txt``, "no-sync by rule=just-created-both"); at other times it is chance.
    """
    fresh = metadata.current_uuid == JUST_CREATED and all(verdict is Verdict.NONE for _, _, verdict in verdicts)
    return fresh or device.resource.kernel.slips(Slip.NEGOTIATING, device.resource)


def _is_good(peer: PeerDevice) -> bool:
    return peer.device.now.disk is Disk.UP_TO_DATE


def _compare_with_peers(device: Device, metadata: Metadata) -> list[tuple[PeerDevice, PeerDevice, Verdict]]:
    found: list[tuple[PeerDevice, PeerDevice, Verdict]] = []
    for mine in device.peer_devices:
        theirs = mine.peer
        if mine.connection.now.conn is not Conn.CONNECTED or theirs is None or theirs.device.metadata is None:
            continue
        verdict = uuids.compare(
            metadata, device.resource.node_id, theirs.device.metadata, theirs.device.resource.node_id
        )
        if verdict is Verdict.NONE and state_from(metadata) is Disk.INCONSISTENT < theirs.device.now.disk:
            verdict = Verdict.TARGET
        if not (verdict is Verdict.NONE or verdict.copies):
            links.lose(mine.connection, Conn.PROTOCOL_ERROR)
            continue
        found.append((mine, theirs, verdict))
    return found


def detach(device: Device, *, force: bool, diskless: bool) -> Reply:
    """Let the backing device go."""
    if device.backing is not None:
        twopc.explore_now(device.resource)
        change = Change(device.resource, "detach", hard=force)
        device.new.disk = Disk.DETACHING
        reply = change.commit()
        if not reply.ok:
            return reply
        if device.resource.world.is_news_faster(device.resource):
            device.resource.world.settle()
        go_diskless(device, "go-diskless")
    if diskless:
        device.intended_diskless = True
    return DONE


def outdate(device: Device) -> Reply:
    """``outdate``."""
    if device.backing is None:
        return Reply(Code.IS_DISKLESS)
    change = Change(device.resource, "outdate")
    device.new.disk = Disk.OUTDATED
    return change.commit()


def invalidate(device: Device, sync_from: int | None) -> Reply:
    """Fetch everything again, from a given peer or the first that has it."""
    if device.backing is None:
        return Reply(Code.NO_DISK)
    for mine in device.peer_devices:
        theirs = mine.peer
        chosen = sync_from is None or mine.connection.peer_id == sync_from
        if chosen and theirs is not None and mine.now.disk is Disk.UP_TO_DATE and mine.now.repl is Repl.ESTABLISHED:
            resync.start(mine, theirs, Verdict.TARGET_ALL)
            return DONE
    if any(mine.now.repl > Repl.ESTABLISHED for mine in device.peer_devices):
        return Reply(Code.RESYNC_RUNNING)
    if device.resource.connected() or sync_from is not None:
        return Reply(Code.NEED_CONNECTION)
    change = Change(device.resource, "invalidate")
    device.new.disk = Disk.INCONSISTENT
    reply = change.commit()
    if reply.ok:
        for mine in device.peer_devices:
            if mine.slot is not None and mine.slot.bitmap_index != -1:
                mine.slot.bitmap.add(0, device.blocks)
    return reply


def invalidate_remote(mine: PeerDevice, *, reset_bitmap: bool) -> Reply:
    """Have a peer fetch everything again from here; or only what is marked, such as a verify's findings."""
    theirs = mine.peer
    if mine.connection.now.conn is not Conn.CONNECTED or theirs is None:
        return Reply(Code.NEED_CONNECTION)
    if mine.now.repl is not Repl.ESTABLISHED:
        return Reply(Code.RESYNC_RUNNING)
    if mine.device.now.disk is not Disk.UP_TO_DATE:
        return Reply(Code.NO_UP_TO_DATE_DATA)
    if mine.now.disk < Disk.INCONSISTENT:
        return Reply(Code.NO_REMOTE_DISK)
    resync.start(mine, theirs, Verdict.SOURCE_ALL if reset_bitmap else Verdict.SOURCE)
    return DONE


def new_current_uuid(device: Device, *, clear_bitmap: bool, force_resync: bool) -> Reply:
    """Start a new generation by hand: how a fresh volume gets its first data, by decree or by copying this replica."""
    metadata = device.metadata
    if metadata is None:
        return Reply(Code.NO_DISK)
    twopc.explore_now(device.resource)
    fresh = metadata.current_uuid == JUST_CREATED
    if not fresh and not force_resync and device.resource.connected():
        return Reply(Code.CONNECTED)
    uuid = uuids.fresh(device.resource, primary=False)
    if force_resync:
        uuids.adopt(device, uuid, away=set())
        change = Change(device.resource, "new-c-uuid", hard=True)
        device.new.disk = Disk.UP_TO_DATE
        change.commit()
        resync.consider(device)
    elif fresh and clear_bitmap:
        _declare_equal(device, uuid)
    else:
        uuids.adopt(device, uuid, away=set())
        if clear_bitmap:
            for slot in metadata.peers.values():
                slot.bitmap.clear()
                slot.bitmap_uuid = 0
    return DONE


def _declare_equal(device: Device, uuid: int) -> None:
    """All fresh replicas in direct sight are up to date from now on, whatever they hold."""
    equal = [device]
    for mine in device.peer_devices:
        theirs = mine.peer
        known = theirs.device.metadata if theirs is not None else None
        if theirs is not None and known is not None and known.current_uuid == JUST_CREATED:
            equal.append(theirs.device)
    ids = {member.resource.node_id for member in equal}
    for member in equal:
        assert member.metadata is not None
        member.metadata.current_uuid = member.exposed_uuid = uuid
        for slot in member.metadata.peers.values():
            slot.bitmap.clear()
            slot.bitmap_uuid = 0
    for member in equal:
        change = Change(member.resource, "new-c-uuid", hard=True)
        member.new.disk = Disk.UP_TO_DATE
        for peer in member.peer_devices:
            if peer.connection.peer_id in ids and peer.connection.now.conn is Conn.CONNECTED:
                peer.new.disk = Disk.UP_TO_DATE
                peer.peer_uuid = uuid
        change.commit()
