"""Online verify: reading both replicas and marking what differs."""

from __future__ import annotations

from functools import partial

from quorate.lab.kernel import twopc
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import PeerDevice
from quorate.lab.kernel.states import Conn, Disk, Repl

RATE = 20 * 1024 * 1024 // BLOCK
"""Blocks per second, as on the recorded cluster."""


def verify(peer: PeerDevice, start: int | None, stop: int | None) -> Reply:
    """Compare with one peer, from and to an offset in bytes."""
    twopc.explore_now(peer.device.resource)
    other = peer.peer
    if peer.connection.now.conn is not Conn.CONNECTED or other is None:
        return Reply(Code.NEED_CONNECTION)
    if peer.device.now.disk < Disk.INCONSISTENT:
        return Reply(Code.NO_LOCAL_DISK)
    if peer.now.disk < Disk.INCONSISTENT:
        return Reply(Code.NO_REMOTE_DISK)
    if not peer.connection.options["verify-alg"]:
        return Reply(Code.NO_VERIFY_ALGORITHM)
    if peer.now.repl is not Repl.ESTABLISHED:
        return Reply(Code.RESYNC_RUNNING)
    first = (start or 0) // BLOCK
    last = min(peer.device.blocks, peer.device.blocks if stop is None else -(-stop // BLOCK))
    _step(other, Repl.VERIFY_T)
    _step(peer, Repl.VERIFY_S)
    world = peer.device.resource.world
    world.later(max(0, last - first) / RATE, partial(_finish, peer, other, first, last))
    return DONE


def _step(peer: PeerDevice, repl: Repl) -> None:
    change = Change(peer.device.resource, "verify", hard=True)
    peer.new.repl = repl
    change.commit()


def _finish(peer: PeerDevice, other: PeerDevice, first: int, last: int) -> None:
    if peer.now.repl is not Repl.VERIFY_S or other.now.repl is not Repl.VERIFY_T or peer.peer is not other:
        return
    mine, theirs = peer.device.backing, other.device.backing
    if mine is not None and theirs is not None:
        differing = mine.device.contents.differing(theirs.device.contents, first, last)
        for end in (peer, other):
            if end.slot is not None:
                end.slot.bitmap.update(differing)
    _step(other, Repl.ESTABLISHED)
    _step(peer, Repl.ESTABLISHED)
