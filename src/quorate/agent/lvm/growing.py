"""A logical volume grows: its old size is written ahead, the new extents are zeroed, and only then is it reported.

DRBD keeps its metadata at the end of the device. After a power loss a device that grew has none at its end, and only
the old size tells where it is (recording grow_power_loss): so ``rvr.status.drbd.actual.backingSize`` comes first.
``phase: Resizing`` is written ahead too. As long as it stands, the extents beyond ``actualSize`` may be overwritten
with zeros at any time, and nobody may attach the volume anew: that would move metadata there.

| seen size                           | phase    | done                                                        |
|-------------------------------------|----------|-------------------------------------------------------------|
| as reported, enough                 | any      | Created                                                     |
| as reported, too little             | Created  | no room: NoSpace; else old size and Resizing written ahead  |
| as reported, too little             | Resizing | ``lvextend``                                                |
| more than reported                  | Resizing | new extents zeroed, then reported                           |
| more than reported                  | Created  | somebody else's doing: reported, and not known to be zero   |
| less than reported                  | any      | shrunk back to find lost metadata: reported as it is        |
"""

from __future__ import annotations

from datetime import datetime

from quorate.agent.lvm import commands
from quorate.agent.lvm.attempts import attempt
from quorate.agent.lvm.creating import LOOK_FOR_SPACE, no_space, rounded_up
from quorate.agent.lvm.failures import wait_before_retry
from quorate.agent.lvm.piece import Decision, Piece, Work, reported, until_groups_change
from quorate.agent.lvm.seen import ZERO, SeenVolume
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure
from quorate.api.meta import Bytes
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.struct import replace
from quorate.drbd.metadata import usable_size


def kept(piece: Piece, volume: SeenVolume, now: datetime) -> Decision:
    """It is ours and was made: report it, and make it as large as it should be."""
    status = reported(piece, volume)
    known = piece.status.actual_size
    if known is None or volume.size < int(known):
        return Decision(status)
    if volume.size > int(known):
        if piece.status.phase is LogicalVolumePhase.RESIZING:
            return _grown(piece, volume, int(known), now)
        if ZERO in volume.tags and not volume.pool:
            untrue = commands.retag(volume.group, volume.name, remove=(ZERO,))
            return attempt(piece, piece.status, Work(piece.light_work, (untrue,)), now, still_usable=True)
        return Decision(replace(status, grown_zero=bool(volume.pool) and status.grown_zero))
    if volume.size >= int(piece.spec.size):
        return Decision(status)
    return _too_small(piece, volume, status, now)


def _too_small(piece: Piece, volume: SeenVolume, status: LVMLogicalVolumeStatus, now: datetime) -> Decision:
    if piece.groups is None:
        return Decision(piece.status, look_at_groups=True)
    group = piece.group
    if group is None:
        message = f"The node has no volume group {piece.group_name}, or two of that name."
        return _waiting(piece, now, status, Failure.VOLUME_GROUP_NOT_FOUND.code, message)
    size = rounded_up(int(piece.spec.size), group.extent_size)
    if not volume.pool and size - volume.size > group.free:
        return _waiting(piece, now, status, Failure.NO_SPACE.code, no_space(group.name, size - volume.size, group.free))
    step = commands.extend(volume, size)
    work = Work(piece.light_work, (step,))
    if wait_before_retry(piece.outcomes.get(step.purpose), now, step.about) > 0:
        return attempt(piece, status, work, now, still_usable=True)
    if _waits_for_drbd(piece, volume):
        message = "It grows once the replica has taken note that the last growth is in use."
        return Decision(replace(status, message=message), retry_after=LOOK_FOR_SPACE)
    ahead = _to_be_written_ahead(piece, volume)
    if ahead is not None or piece.status.phase is not LogicalVolumePhase.RESIZING:
        growing = f"It grows from {volume.size} to {size} bytes."
        status = replace(piece.status, phase=LogicalVolumePhase.RESIZING, reason="", message=growing)
        return Decision(status, backing_size_ahead=ahead)
    return Decision(piece.status, work)


def _to_be_written_ahead(piece: Piece, volume: SeenVolume) -> int | None:
    """The old size, if DRBD's metadata is on the volume and it is not written yet.

    A smaller size that is written stays: DRBD has not used the last growth, its metadata is still at the end of that.
    """
    actual = None if piece.replica is None else piece.replica.status.drbd.actual
    if actual is None or actual.metadata_created != piece.llv.name:
        return None
    return volume.size if actual.backing_size is None or int(actual.backing_size) > volume.size else None


def _waits_for_drbd(piece: Piece, volume: SeenVolume) -> bool:
    """Whether a smaller size is written although DRBD uses more already. The replica's part clears it in a moment."""
    former = None if piece.replica is None else piece.replica.status.drbd.actual.backing_size
    if former is None or int(former) >= volume.size or piece.device_size is None:
        return False
    return piece.device_size > usable_size(Bytes(int(former)), piece.max_peers)


def _grown(piece: Piece, volume: SeenVolume, old_size: int, now: datetime) -> Decision:
    """It has its new extents. Those of a thin pool need nothing: what is not written reads as zero."""
    purpose, about = piece.heavy_purpose(commands.ZERO_WHOLE), f"{volume.uuid} {old_size} to {volume.size}"
    zeroed = piece.outcomes.get(purpose)
    if volume.pool or (zeroed is not None and zeroed.succeeded and zeroed.about == about):
        return Decision(reported(piece, volume))
    step = commands.zero_range(volume, old_size, volume.size, purpose=purpose, about=about)
    status = replace(piece.status, reason="", message=f"The new extents, up to {volume.size} bytes, are being zeroed.")
    return attempt(piece, status, Work(piece.heavy_work, (step,)), now, still_usable=True)


def _waiting(piece: Piece, now: datetime, status: LVMLogicalVolumeStatus, reason: str, message: str) -> Decision:
    return until_groups_change(piece, replace(status, reason=reason, message=message), now, LOOK_FOR_SPACE)
