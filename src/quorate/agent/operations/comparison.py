"""Verify: this copy is compared with every other, one peer after the other, and what differs is copied to it.

``verify`` only marks what differs. ``invalidate-remote --reset-bitmap=no`` makes the peer fetch just that: it is
Inconsistent meanwhile, which is why only one peer at a time is treated so, with all others at rest. If that is not
enough, it fetches everything; and what was copied is compared again. Nothing is copied from here while another member
is Primary: what is written there while this one copies would be missing afterwards (``facts/drbd9-races``, G). Breaking
the link and making it anew would not do: members of one generation meet without copying anything, and forget the marks.

A comparison that loses its link on the way ends without a word. So whatever was compared before a link was lost counts
for nothing (``Case.losses``), and is compared again; so does an agent that was restarted. Comparing twice does no harm.

A peer that has lost its disk is left out: it has nothing to compare. That it is compared when it has one again is the
controller's affair, which has written that down before.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from quorate.agent.memory import Outcome
from quorate.agent.operations.case import (
    PURPOSE,
    Case,
    Ruling,
    device_of,
    diskful,
    failed,
    failed_command,
    pending,
    running,
    succeeded,
    waiting,
)
from quorate.agent.replica.kernel import all_established, anyone_primary, disk_state, is_primary
from quorate.agent.steps import Run, kernel_of
from quorate.api.storage.drbd import DiskState, DrbdStatus, Peer, ReplicationState

SECTOR: Final = 512
_COMPARING: Final = (ReplicationState.VERIFY_SOURCE, ReplicationState.VERIFY_TARGET)


def begin(case: Case, now: datetime) -> Ruling:
    """Whether it may run."""
    if obstacle := _obstacle(case):
        return pending(case, f"waiting: {obstacle}")
    return running(case, now)


def go_on(case: Case, now: datetime) -> Ruling:
    """The next peer, and the next thing to be done to it."""
    if case.status is None or disk_state(case.status) != DiskState.UP_TO_DATE:
        return waiting(case, "waiting: the own disk is not UpToDate")
    copied, skipped = 0, 0
    for peer in diskful(case.config):
        if _has_no_disk(case.status, peer):
            skipped += 1
            continue
        ruling = _with_peer(case, case.status, peer, now)
        if ruling is not None:
            return ruling
        copied += _outcome(case, _copying(peer)) is not None
    told = f"{copied} of {len(diskful(case.config)) - skipped} copies differed and were made equal"
    return succeeded(case, now, f"{told}; {skipped} without a disk" if skipped else told)


def _has_no_disk(status: DrbdStatus, peer: Peer) -> bool:
    """Whether there is nothing to be compared. The controller lets nobody begin who would have to wait for it."""
    theirs = device_of(status, peer)
    return theirs is not None and theirs.peer_disk_state in (DiskState.DISKLESS, DiskState.FAILED)


def _with_peer(case: Case, status: DrbdStatus, peer: Peer, now: datetime) -> Ruling | None:
    """What is to be done about one peer; None: it has the same bytes."""
    compared, copied = _outcome(case, _comparing(peer)), _outcome(case, _copying(peer))
    whole = _outcome(case, _copying_everything(peer))
    again = _outcome(case, _comparing_again(peer, everything=whole is not None))
    for last in (compared, copied, whole, again):
        if last is not None and not last.succeeded:
            return failed_command(case, now, last)
    theirs = device_of(status, peer)
    if theirs is None:
        return waiting(case, f"waiting for the link to {peer.name}")
    if compared is not None and theirs.replication_state in _COMPARING:
        return waiting(case, f"comparing with {peer.name}")
    if not all_established(case.config, status) or theirs.peer_disk_state != DiskState.UP_TO_DATE:
        return waiting(case, f"waiting until {peer.name} is in sync and all links are at rest")
    if compared is None:
        return Ruling(case.operation.status, steps=(compare(case, peer),))
    if not theirs.out_of_sync:
        if copied is None or again is not None:
            return None
        purpose = _comparing_again(peer, everything=whole is not None)
        return Ruling(case.operation.status, steps=(replace(compare(case, peer), purpose=purpose),))
    if not is_primary(status) and anyone_primary(status):
        # Somebody has begun to use another copy since: it is that one that has to be compared with, and copied from.
        return failed(case, now, f"{peer.name} differs, and is not copied to from here: the volume is in use elsewhere")
    if copied is None:
        return Ruling(case.operation.status, steps=(copy(case, peer),))
    if whole is None and case.operation.spec.range is None:
        return Ruling(case.operation.status, steps=(copy_everything(case, peer),))
    return failed(case, now, f"{theirs.out_of_sync} KiB of {peer.name} still differ after they were copied")


def compare(case: Case, peer: Peer) -> Run:
    """Mark what differs."""
    part = case.operation.spec.range
    limits = () if part is None else (f"--start={part.start // SECTOR}s", f"--stop={part.end // SECTOR}s")
    argv = ("drbdsetup", "verify", case.resource, str(peer.node_id), "0", *limits)
    return Run(argv, _comparing(peer), _about(case), changes=(kernel_of(case.resource),))


def copy(case: Case, peer: Peer) -> Run:
    """Have the peer fetch what is marked."""
    argv = ("drbdsetup", "invalidate-remote", case.resource, str(peer.node_id), "0", "--reset-bitmap=no")
    return Run(argv, _copying(peer), _about(case), changes=(kernel_of(case.resource),))


def copy_everything(case: Case, peer: Peer) -> Run:
    """Have the peer fetch all there is: what is marked was not enough."""
    argv = ("drbdsetup", "invalidate-remote", case.resource, str(peer.node_id), "0")
    return Run(argv, _copying_everything(peer), _about(case), changes=(kernel_of(case.resource),))


def _obstacle(case: Case) -> str:
    if case.status is None:
        return "the resource is not up"
    if disk_state(case.status) != DiskState.UP_TO_DATE:
        return f"the own disk is {disk_state(case.status)}, not {DiskState.UP_TO_DATE.value}"
    if not all_established(case.config, case.status):
        return "not every link is up and at rest"
    return ""


def _outcome(case: Case, purpose: str) -> Outcome | None:
    last = case.outcomes.get(purpose)
    return last if last is not None and last.about == _about(case) else None


def _about(case: Case) -> str:
    return f"{case.about} {case.losses}"


def _comparing(peer: Peer) -> str:
    return f"{PURPOSE} compare {peer.node_id}"


def _comparing_again(peer: Peer, *, everything: bool) -> str:
    """After what differed, or everything, was copied."""
    return f"{PURPOSE} compare after {'everything' if everything else 'copying'} {peer.node_id}"


def _copying_everything(peer: Peer) -> str:
    return f"{PURPOSE} copy everything {peer.node_id}"


def _copying(peer: Peer) -> str:
    return f"{PURPOSE} copy {peer.node_id}"
