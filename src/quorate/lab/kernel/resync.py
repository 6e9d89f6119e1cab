"""Copying what a peer lacks.

Blocks are not copied one by one in virtual time: progress is worked out when somebody looks, when something interrupts,
and when the copy is done.
"""

from __future__ import annotations

from functools import partial

from quorate.lab.kernel import twopc, uuids
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.io_errors import answers
from quorate.lab.kernel.resource import Device, PeerDevice
from quorate.lab.kernel.states import RESYNCING, TARGETS, Disk, Repl, Slip
from quorate.lab.kernel.uuids import Verdict

RATE = 40 * 1024 * 1024 // BLOCK
"""Blocks per second, as on the recorded cluster."""
BITMAP_EXCHANGE = 0.012
SETTLING = 1.5
"""How long two ends that both take themselves for the source go on doing so once there is nothing left to copy."""

_FIRST_STEP = {
    Verdict.NONE: Repl.ESTABLISHED,
    Verdict.SOURCE: Repl.WF_BITMAP_S,
    Verdict.SOURCE_ALL: Repl.WF_BITMAP_S,
    Verdict.TARGET: Repl.WF_BITMAP_T,
    Verdict.TARGET_ALL: Repl.WF_BITMAP_T,
}


_STANDING = {
    Slip.HALF_BITMAP: (Repl.ESTABLISHED, Repl.WF_BITMAP_T),
    Slip.LATCHED: (Repl.PAUSED_SYNC_S, Repl.PAUSED_SYNC_T),
    Slip.UNDRAINED: (Repl.ESTABLISHED, Repl.ESTABLISHED),
}
"""How the ends of a copy that never starts see it: who would give, and who would take."""


class Copying:
    """One resync between two replicas, from the first to the second unless both take themselves for the source."""

    __slots__ = ("first", "second", "since", "started", "total")

    def __init__(self, first: PeerDevice, second: PeerDevice, now: float, total: int) -> None:
        self.first = first
        self.second = second
        self.started = now
        self.total = total
        self.since: float | None = None
        """From when on the copy is running and not yet worked out."""

    @property
    def left(self) -> int:
        """Blocks to copy."""
        slot = self.first.slot
        return slot.bitmap.count if slot else 0


def first_step(verdict: Verdict) -> Repl:
    """The replication state in which a meeting with that verdict begins."""
    return _FIRST_STEP[verdict]


def begin(mine: PeerDevice, theirs: PeerDevice, verdict: Verdict) -> None:
    """Both ends wait for each other's bitmap; then the copy starts."""
    source, target = (theirs, mine) if verdict.takes else (mine, theirs)
    if verdict in (Verdict.SOURCE_ALL, Verdict.TARGET_ALL):
        # A replica that takes everything lacks everything toward everybody; each block it gets clears it for all.
        for peer in (source, *target.device.peer_devices):
            if peer.slot is not None and peer.slot.bitmap_index != -1:
                peer.slot.bitmap.add(0, peer.device.blocks)
    _merge(source, target)
    copying = Copying(source, target, source.device.resource.world.now, source.slot.bitmap.count if source.slot else 0)
    source.copying = target.copying = copying
    source.device.resource.world.later(BITMAP_EXCHANGE, partial(_start, copying))


def _merge(source: PeerDevice, target: PeerDevice) -> None:
    """What either side marked has to be copied."""
    if source.slot is not None and target.slot is not None:
        source.slot.bitmap.update(target.slot.bitmap)
        target.slot.bitmap = source.slot.bitmap.copy()


def begin_mutual(mine: PeerDevice, theirs: PeerDevice) -> None:
    """Both ends take themselves for the source: see `handshake`."""
    world = mine.device.resource.world
    total = mine.device.blocks
    for peer in (mine, theirs):
        if peer.now.disk is Disk.INCONSISTENT and peer.slot is not None:
            peer.slot.bitmap.add(0, total)
    mine.copying = theirs.copying = copying = Copying(mine, theirs, world.now, total)
    world.later(BITMAP_EXCHANGE, partial(_start_mutual, copying))


def _step(peer: PeerDevice, repl: Repl) -> None:
    change = Change(peer.device.resource, "start-sync", hard=True)
    peer.new.repl = repl
    change.commit()


def _start(copying: Copying) -> None:
    if copying.first.copying is not copying or copying.second.copying is not copying:
        return
    if not _goes_wrong(copying):
        _step(copying.second, Repl.SYNC_TARGET)
        _step(copying.first, Repl.SYNC_SOURCE)


def _goes_wrong(copying: Copying) -> bool:
    """Whether the copy never starts, by chance."""
    source, target = copying.first, copying.second
    resource = target.device.resource
    for slip, (giving, taking) in _STANDING.items():
        if resource.kernel.slips(slip, resource):
            source.copying = target.copying = None
            target.stands = True
            _step(target, taking)
            _step(source, giving)
            return True
    return False


def _start_mutual(copying: Copying) -> None:
    if copying.first.copying is copying is copying.second.copying:
        _step(copying.second, Repl.SYNC_SOURCE)
        _step(copying.first, Repl.SYNC_SOURCE)


def after_change(peer: PeerDevice) -> None:
    """Start, pause or give up a copy when the replication state says so."""
    copying = peer.copying
    if peer.now.repl < Repl.ESTABLISHED:
        peer.stands = False
    if copying is None or peer.old.repl is peer.now.repl:
        return
    world = peer.device.resource.world
    work_out(copying)
    if peer.now.repl <= Repl.ESTABLISHED:
        copying.first.copying = copying.second.copying = None
        copying.since = None
        world.soon(partial(_wait_no_more, copying.second.device))
        return
    states = (copying.first.now.repl, copying.second.now.repl)
    if states == (Repl.SYNC_SOURCE, Repl.SYNC_TARGET):
        copying.since = world.now
        world.later(copying.left / RATE, partial(_finish, copying, world.now))
    elif states == (Repl.SYNC_SOURCE, Repl.SYNC_SOURCE):
        world.later(SETTLING, partial(_settle_mutual, copying))
    else:
        copying.since = None


def _wait_no_more(device: Device) -> None:
    """A copy came to an end before it was whole: what waited for that (`begin_mutual`) takes from whom it met."""
    if device.resource.gone or device.now.disk is not Disk.INCONSISTENT:
        return
    if any(peer.now.repl in TARGETS for peer in device.peer_devices):
        return
    for peer in device.peer_devices:
        other = peer.peer
        if peer.now.repl is Repl.PAUSED_SYNC_S and other is not None and other.device.now.disk is Disk.UP_TO_DATE:
            peer.copying = other.copying = None
            start(peer, other, Verdict.TARGET_ALL)


def work_out(copying: Copying) -> None:
    """Copy what would have been copied by now."""
    if copying.since is None:
        return
    now = copying.first.device.resource.world.now
    budget = int((now - copying.since) * RATE)
    if budget <= 0:
        return
    copying.since = now
    _copy(copying, budget)


def _copy(copying: Copying, budget: int) -> None:
    source, target = copying.first, copying.second
    if source.slot is None or target.slot is None or source.device.backing is None or target.device.backing is None:
        return
    if not (answers(source.device) and answers(target.device)):
        return
    origin, destination = source.device.backing.device, target.device.backing.device
    for start, end in source.slot.bitmap:
        if budget <= 0:
            break
        stop = min(end, start + budget)
        destination.copy_from(origin, start, stop)
        source.slot.bitmap.remove(start, stop)
        target.slot.bitmap.remove(start, stop)
        _mark_for_others(source, target, start, stop)
        budget -= stop - start
        source.sent += (stop - start) * BLOCK
        target.received += (stop - start) * BLOCK
        target.device.written += (stop - start) * BLOCK


def _mark_for_others(source: PeerDevice, target: PeerDevice, start: int, stop: int) -> None:
    """What the target got from the source, everybody else may lack.

    All marks are set when a block comes, and cleared for those whom the source sees and who lack nothing of it toward
    the source: it tells them of each other. Without this a third that copies from the target would miss what the
    target took after the third's copy had passed it.
    """
    informed = {peer.connection.peer_id for peer in source.device.peer_devices if _lacks_nothing(peer, start, stop)}
    for peer in target.device.peer_devices:
        if peer is target or peer.slot is None or peer.slot.bitmap_index == -1:
            continue
        if peer.connection.peer_id in informed:
            peer.slot.bitmap.remove(start, stop)
            other = peer.peer
            if other is not None and other.slot is not None:
                other.slot.bitmap.remove(start, stop)
        else:
            peer.slot.bitmap.add(start, stop)


def _lacks_nothing(peer: PeerDevice, start: int, stop: int) -> bool:
    """Whether the peer is in sight and has these blocks: it is up to date, or has had them copied from here as well."""
    whole = peer.now.repl >= Repl.ESTABLISHED and peer.now.disk is Disk.UP_TO_DATE
    in_sight = whole or peer.now.repl is Repl.SYNC_SOURCE
    return in_sight and peer.slot is not None and not peer.slot.bitmap.count_within(start, stop)


def _finish(copying: Copying, since: float) -> None:
    source, target = copying.first, copying.second
    if source.copying is not copying or copying.since is None or since > copying.since:
        return
    if (source.now.repl, target.now.repl) != (Repl.SYNC_SOURCE, Repl.SYNC_TARGET):
        return
    left = copying.left
    done = int((source.device.resource.world.now - copying.since) * RATE) + 1
    if left > done:
        # Writes during the copy, or a look at it, moved the end.
        source.device.resource.world.later((left - done) / RATE, partial(_finish, copying, copying.since))
        return
    _copy(copying, left)
    complete(source, target)


def complete(source: PeerDevice, target: PeerDevice) -> None:
    """The target has what the source has: same generation, and as good.

    Not so if a primary is somewhere behind the source ("Peer was unstable during resync"): its next write will not
    reach the target, which stays Inconsistent, of its old generation, and closer to the new one.
    """
    mine, theirs = source.device.metadata, target.device.metadata
    if mine is None or theirs is None:
        return
    primaries = twopc.explore(target.device.resource).primaries()
    if twopc.far_primary(target.device.resource, primaries, twopc.directly_connected(target.device.resource)):
        _end(target, source, target.device.now.disk)
        return
    for older in (*reversed(mine.history), theirs.current_uuid):
        theirs.push_history(older)
    theirs.current_uuid = mine.current_uuid
    target.device.exposed_uuid = mine.current_uuid
    for node_id, slot in mine.peers.items():
        if node_id in (target.connection.resource.node_id, source.connection.resource.node_id):
            continue
        copied = theirs.peer(node_id)
        if copied.bitmap_index != -1 and slot.bitmap_uuid:
            copied.bitmap_uuid = slot.bitmap_uuid
            copied.bitmap.update(slot.bitmap)
    uuids.in_sync(source, target)
    _end(target, source, source.device.now.disk)
    _tell_in_sync(target)


def _end(target: PeerDevice, source: PeerDevice, disk: Disk) -> None:
    change = Change(target.device.resource, "resync-finished", hard=True)
    target.new.repl = Repl.ESTABLISHED
    target.device.new.disk = disk
    _end_others(target)
    change.commit()
    resource = source.device.resource
    if source.slot is not None and resource.kernel.slips(Slip.ONE_SIDED, resource):
        source.stands = True
        source.slot.bitmap.add(0, max(1, source.device.blocks // 8))
        return
    change = Change(resource, "resync-finished", hard=True)
    source.new.repl = Repl.ESTABLISHED
    source.new.disk = target.device.now.disk
    change.commit()


def _end_others(target: PeerDevice) -> None:
    """Within the target's change: copies from other peers of the same generation have nothing left to bring."""
    metadata = target.device.metadata
    for peer in target.device.peer_devices:
        other = peer.peer
        if peer is target or peer.now.repl not in TARGETS or other is None or other.device.metadata is None:
            continue
        if peer.stands:
            continue
        if metadata is not None and uuids.same(other.device.metadata.current_uuid, metadata.current_uuid):
            peer.new.repl = Repl.ESTABLISHED
            target.device.resource.world.soon(partial(_end_source, other))


def _end_source(peer: PeerDevice) -> None:
    if peer.now.repl in RESYNCING or peer.now.repl is Repl.WF_BITMAP_S:
        _step(peer, Repl.ESTABLISHED)


def _tell_in_sync(target: PeerDevice) -> None:
    """Everybody in sight for whom the target had fallen behind, and has caught up, drops its marks; and the other way.

    Who had it in its own generation all the time keeps them: blocks that were copied are dropped one by one, and what
    is marked besides was written meanwhile.
    """
    metadata = target.device.metadata
    for peer in target.device.peer_devices:
        other = peer.peer
        if other is None or metadata is None or other.device.metadata is None:
            continue
        if not _is_whole(other.device) or not uuids.same(other.device.metadata.current_uuid, metadata.current_uuid):
            continue
        if any(end.slot is not None and end.slot.bitmap_uuid for end in (peer, other)):
            uuids.in_sync(peer, other)
    for peer in target.device.peer_devices:
        neighbour = peer.peer
        if neighbour is None:
            continue
        for far in neighbour.device.peer_devices:
            third = far.peer
            if third is not None and third.device.metadata is not None and metadata is not None:
                _forget_marks(third, target, metadata.current_uuid)


def _is_whole(device: Device) -> bool:
    """Whether it has all of its generation: one that still copies has taken over the UUID of its first source."""
    return device.now.disk > Disk.INCONSISTENT


def _forget_marks(third: PeerDevice, target: PeerDevice, current: int) -> None:
    """A member that hears of the target only through a neighbour: same generation, nothing left to mark."""
    metadata = third.device.metadata
    if metadata is None or third.device is target.device or not uuids.same(metadata.current_uuid, current):
        return
    if not _is_whole(third.device):
        return
    slot = metadata.peers.get(target.device.resource.node_id)
    own = target.device.metadata.peers.get(third.device.resource.node_id) if target.device.metadata else None
    for marked, owner in ((slot, metadata), (own, target.device.metadata)):
        if marked is not None and owner is not None and marked.bitmap_uuid:
            owner.push_history(marked.bitmap_uuid)
            marked.bitmap_uuid = 0
            marked.bitmap.clear()


def _settle_mutual(copying: Copying) -> None:
    first, second = copying.first, copying.second
    if first.copying is not copying or first.now.repl is not Repl.SYNC_SOURCE:
        return
    uuids.in_sync(first, second)
    for peer, other in ((first, second), (second, first)):
        change = Change(peer.device.resource, "resync-finished", hard=True)
        peer.new.repl = Repl.ESTABLISHED
        peer.new.disk = other.device.now.disk
        change.commit()


def consider(device: Device) -> None:
    """The local data changed its generation while connected: compare with each connected peer, and copy."""
    for mine in device.peer_devices:
        theirs = mine.peer
        if theirs is None or mine.now.repl is not Repl.ESTABLISHED:
            continue
        first, second = device.metadata, theirs.device.metadata
        if first is None or second is None:
            continue
        verdict = uuids.compare(first, device.resource.node_id, second, theirs.device.resource.node_id)
        if verdict.copies:
            start(mine, theirs, verdict)


def start(mine: PeerDevice, theirs: PeerDevice, verdict: Verdict) -> None:
    """Begin a copy between two ends that are connected and at rest."""
    _step(theirs, first_step(verdict.mirrored))
    _step(mine, first_step(verdict))
    begin(mine, theirs, verdict)
