"""A logical volume grows: by extents that were zeroed before they are a part of it.

Once DRBD sees a larger device it may take it into use at any moment, by itself: a link that comes back is enough
(recording resize_assume_clean). It moves its metadata to the new end, and nobody may write there any more. So the new
extents are a volume of their own first, the spare, with the tag ``quorate.new``. It is zeroed, removed, and the volume
extended by exactly its extents, in one piece of work that holds the group. Zeroed spares are remembered by this process
alone: after a crash a spare is zeroed again.

DRBD keeps its metadata at the end of the device. After a power loss a device that grew has none at its end, and only
the old size tells where it is (recording grow_power_loss). It is written ahead in two places, ``actual.backingSize`` of
the replica and a tag on the volume itself, which outlives the API's memory and keeps every such size.

| seen size               | and                                     | done                                            |
|-------------------------|-----------------------------------------|-------------------------------------------------|
| as reported, enough     |                                         | Created; a spare, and tags that have served, go |
| as reported, too little | no room                                 | NoSpace                                         |
|                         | metadata on it, and DRBD has not got it | waits                                           |
|                         | phase Created                           | old size and Resizing written ahead             |
|                         | phase Resizing, no spare                | ``lvcreate``                                    |
|                         | a spare                                 | zeroed                                          |
|                         | a spare that was zeroed                 | tags, ``lvremove``, ``lvextend``; the disk that |
|                         |                                         | grows last (``_held_back``) when all answer.    |
|                         |                                         | DRBD's log is taken along (``_log_taken``)      |
| more than reported      | the tag says so                         | reported                                        |
|                         | otherwise                               | not our doing: reported, not known to be zero   |
| less than reported      |                                         | cut back to find metadata: reported as it is    |
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.lvm import commands
from quorate.agent.lvm.attempts import attempt
from quorate.agent.lvm.creating import LOOK_FOR_SPACE, is_zeroed, no_space, rounded_up
from quorate.agent.lvm.filling import whole
from quorate.agent.lvm.piece import Decision, Piece, Work, reported, until_groups_change, until_volumes_change
from quorate.agent.lvm.seen import (
    METADATA_TAG,
    NEW,
    ZERO,
    SeenVolume,
    end_tag,
    former_ends,
    growing_tag,
    growing_tags,
    spare_name,
    spare_tag,
)
from quorate.agent.node import volume_work
from quorate.agent.replica.kernel import counted_copies, is_responsible
from quorate.agent.steps import KERNEL, Look, Run, kernel_of
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure
from quorate.api.meta import Bytes
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.struct import replace
from quorate.drbd.metadata import BLOCK, log_blocks, usable_size

#: Seconds after which a volume that must wait for DRBD is looked at again.
LOOK_AT_DRBD: Final = 5.0
#: The same, of one that waits for links.
LOOK_AT_LINKS: Final = 1.0
#: The purpose of asking every member whether it answers, and seconds for which the answer counts.
ASK_MEMBERS: Final = "ask-members"
MEMBERS_ASKED: Final = 2.0


def kept(piece: Piece, volume: SeenVolume, now: datetime) -> Decision:
    """It is ours and was made: report it, and make it as large as it should be."""
    status, known = reported(piece, volume), piece.status.actual_size
    if known is None or volume.size < int(known):
        return Decision(status)
    if volume.size > int(known):
        return _larger(piece, volume, status, now)
    if volume.size < int(piece.spec.size):
        return _too_small(piece, volume, status, now)
    return _enough(piece, volume, status, now)


def _larger(piece: Piece, volume: SeenVolume, status: LVMLogicalVolumeStatus, now: datetime) -> Decision:
    """It has grown. If not by us, nothing is known of what is on the new extents."""
    if growing_tag(volume.size) in volume.tags:
        return Decision(status)
    former = int(piece.status.actual_size or 0)
    unused = METADATA_TAG in volume.tags and not _uses_more_than(piece, former)
    added = (end_tag(former),) if unused and end_tag(former) not in volume.tags else ()
    removed = (ZERO,) if ZERO in volume.tags and not volume.pool else ()
    if added or removed:
        change = commands.retag(volume.group, volume.name, add=added, remove=removed)
        return attempt(piece, piece.status, piece.light(change), now, still_usable=True)
    ahead = _to_be_written_ahead(piece, former) if unused else None
    return Decision(replace(status, grown_zero=bool(volume.pool) and status.grown_zero), backing_size_ahead=ahead)


def _enough(piece: Piece, volume: SeenVolume, status: LVMLogicalVolumeStatus, now: datetime) -> Decision:
    """It is as large as it should be. What was needed to make it so goes."""
    spare = piece.spare
    served = (
        *growing_tags(volume.tags),
        *(end_tag(size) for size in former_ends(volume.tags) if _uses_more_than(piece, size)),
    )
    steps: tuple[Run, ...] = () if spare is None else (commands.discard_new(spare),)
    steps += (commands.retag(volume.group, volume.name, remove=served),) if served else ()
    if steps:
        return attempt(piece, status, piece.light(*steps), now, still_usable=True)
    # DRBD may just be looked at, because something was changed on it: that it has grown is seen then, and wakes nobody.
    waits = former_ends(volume.tags) and piece.attached and not piece.kernel_current
    return Decision(status, retry_after=LOOK_AT_DRBD if waits else None)


def _too_small(piece: Piece, volume: SeenVolume, status: LVMLogicalVolumeStatus, now: datetime) -> Decision:
    if piece.groups is None:
        return Decision(piece.status, look_at_groups=True)
    group = piece.group
    if group is None:
        message = f"The node has no volume group {piece.group_name}, or two of that name."
        return _waiting(piece, now, status, Failure.VOLUME_GROUP_NOT_FOUND.code, message)
    size = rounded_up(int(piece.spec.size), group.extent_size)
    if not volume.pool and piece.spare is None and size - volume.size > group.free:
        if not piece.free_current:
            return Decision(piece.status, look_at_groups=True)
        return _waiting(piece, now, status, Failure.NO_SPACE.code, no_space(group.name, size - volume.size, group.free))
    if (why := _why_not_now(piece, volume)) != "":
        status = replace(status, message=why)
        if piece.kernel_current and piece.attached and not volume.open:
            # It was attached since somebody looked at it last.
            return until_volumes_change(piece, status, now, LOOK_AT_DRBD)
        return Decision(status, retry_after=LOOK_AT_DRBD)
    step = commands.extend(volume, size)
    if wait_before_retry(piece.outcomes.get(step.purpose), now, step.about) > 0:
        return attempt(piece, status, piece.light(step), now, still_usable=True)
    ahead = _to_be_written_ahead(piece, volume.size) if METADATA_TAG in volume.tags else None
    if ahead is not None or piece.status.phase is not LogicalVolumePhase.RESIZING:
        return Decision(_resizing(piece, f"It grows from {volume.size} to {size} bytes."), backing_size_ahead=ahead)
    if volume.pool:
        if (held := _held_back(piece, now)) is not None:
            return held
        # What is not written in a thin pool reads as zero.
        log = _log_taken(piece, volume, volume.path, size)
        work = piece.light(_announced(volume, size), *_former_log_zeroed(piece, volume), step, *log)
        return attempt(piece, piece.status, work, now, still_usable=True)
    return _with_zeroed_extents(piece, volume, size, now)


def _with_zeroed_extents(piece: Piece, volume: SeenVolume, size: int, now: datetime) -> Decision:
    spare, uid, needed = piece.spare, piece.llv.metadata.uid, size - volume.size
    if spare is None:
        made = commands.create_thick(volume.group, spare_name(uid), needed, (NEW, spare_tag(uid)))
        return attempt(piece, piece.status, piece.light(made), now, still_usable=True)
    if spare.size != needed or spare.group != volume.group:
        gone = piece.light(commands.discard_new(spare), group=spare.group)
        return attempt(piece, piece.status, gone, now, still_usable=True)
    if not spare.active:
        return attempt(piece, piece.status, piece.light(commands.activate(spare)), now, still_usable=True)
    if not is_zeroed(piece, spare):
        status = _resizing(piece, f"The extents up to {size} bytes are being zeroed.")
        work = piece.heavy(*commands.zero_whole(spare, about=whole(spare)))
        return attempt(piece, status, work, now, still_usable=True)
    if not spare.extents or not all(each.startswith("/") for each in spare.extents):
        # Somebody is moving it to another drive just now.
        return Decision(_resizing(piece, f"The extents of {spare.path} are not known."), retry_after=LOOK_FOR_SPACE)
    if (held := _held_back(piece, now)) is not None:
        return held
    work = piece.light(
        _announced(volume, size),
        *_former_log_zeroed(piece, volume),
        *_log_taken(piece, volume, spare.path, spare.size),
        commands.discard_new(spare),
        commands.extend(volume, size, spare.extents),
    )
    return attempt(piece, piece.status, work, now, still_usable=True)


def _announced(volume: SeenVolume, size: int) -> Run:
    """Say on the volume itself what is about to happen to it."""
    ahead = (end_tag(volume.size),) if METADATA_TAG in volume.tags else ()
    outdated = (tag for tag in growing_tags(volume.tags) if tag != growing_tag(size))
    return commands.retag(volume.group, volume.name, add=(*ahead, growing_tag(size)), remove=outdated)


def _log_taken(piece: Piece, volume: SeenVolume, path: str, size: int) -> tuple[Run, ...]:
    """Put a copy of DRBD's activity log where it will look for one once it has grown: at the end of what is new.

    DRBD takes its superblock and bitmaps along, and no log; and without one a member that loses its power is refused
    (facts: drbd9-races, k4; (8) is this). It cannot have grown yet, so that nobody else writes there. What becomes
    active meanwhile is not in the copy: ``replica.activity_log`` has the log renewed as soon as DRBD has grown. If it
    cannot be copied the log is found missing then.
    """
    if METADATA_TAG not in volume.tags or _metadata_end(piece, volume) != volume.size:
        return ()
    return (commands.copy_log(volume.path, volume.size, path, size),)


def _former_log_zeroed(piece: Piece, volume: SeenVolume) -> tuple[Run, ...]:
    """A copy at an end that DRBD never came to: it becomes a part of the volume, and is not alike on all members."""
    if METADATA_TAG not in volume.tags or _metadata_end(piece, volume) == volume.size:
        return ()
    first, count = log_blocks(Bytes(volume.size))
    return (commands.zeros(volume.path, first * BLOCK, count * BLOCK, commands.TAKE_LOG, about=str(volume.size)),)


def _metadata_end(piece: Piece, volume: SeenVolume) -> int:
    """The size at whose end DRBD has its metadata: it has not followed all growths, if an earlier one is noted."""
    written = None if piece.replica is None else piece.replica.status.drbd.actual.backing_size
    return volume.size if written is None else min(int(written), volume.size)


def _why_not_now(piece: Piece, volume: SeenVolume) -> str:
    """A disk with DRBD's metadata grows only while DRBD has it.

    Otherwise nobody has found the metadata yet. If they cannot be found the disk stays as it is: growing it, cutting it
    back and growing it again would never end.
    """
    if METADATA_TAG not in volume.tags:
        return ""
    if not (piece.kernel_current and piece.attached and volume.open):
        return "It grows once DRBD has it attached."
    former = None if piece.replica is None else piece.replica.status.drbd.actual.backing_size
    if former is not None and int(former) < volume.size and _uses_more_than(piece, int(former)):
        return "It grows once the replica has taken note that the last growth is in use."
    return ""


def _held_back(piece: Piece, now: datetime) -> Decision | None:
    """The disk whose agent tells DRBD to grow is the last, and grows only when DRBD can be told at once; None: now.

    As long as it is small, DRBD does not grow by itself when links come back: that copies the new space, and a volume
    that needs two copies stands still meanwhile (facts: drbd9-agent, F3). A link may be dead for seconds before anybody
    notices, so DRBD is asked to grow once before: it asks every member, and grows by nothing (recordings
    ``resize_assume_clean``, ``grow_one_resize_power_loss``).
    """
    config = None if piece.replica is None else piece.replica.status.drbd.config
    if config is None or not is_responsible(config) or not counted_copies(config):
        return None
    if config.size is None or int(config.size) <= (piece.device_size or 0):
        return _last_waits(piece, "when every member has been told of the new size")
    if not (piece.kernel_current and piece.at_rest):
        return _last_waits(piece, "when every member is connected and nothing is being synchronised")
    asked = piece.outcomes.get(ASK_MEMBERS)
    if asked is not None and asked.succeeded and (now - asked.at).total_seconds() < MEMBERS_ASKED:
        return None
    assert piece.replica is not None
    resource = piece.replica.spec.replicated_volume_name
    ask = ("drbdsetup", "resize", str(config.device_minor), "--assume-clean")
    steps = (Run(ask, ASK_MEMBERS, changes=(kernel_of(resource),)), Look(KERNEL, resource))
    return attempt(piece, piece.status, Work(volume_work(piece.llv.name), steps), now, still_usable=True)


def _last_waits(piece: Piece, until: str) -> Decision:
    return Decision(_resizing(piece, f"It grows last, {until}."), retry_after=LOOK_AT_LINKS)


def _to_be_written_ahead(piece: Piece, size: int) -> int | None:
    """The size, if it is not written yet.

    A smaller one that is written stays: DRBD has not used the last growth, and its metadata may still be there.
    """
    if piece.replica is None:
        return None
    written = piece.replica.status.drbd.actual.backing_size
    return size if written is None or int(written) > size else None


def _uses_more_than(piece: Piece, size: int) -> bool:
    """Whether DRBD has it and shows more than would fit on this size: its metadata is not at that end any more."""
    if not (piece.kernel_current and piece.attached) or piece.device_size is None:
        return False
    return piece.device_size > usable_size(Bytes(size), piece.max_peers)


def _resizing(piece: Piece, message: str) -> LVMLogicalVolumeStatus:
    return replace(piece.status, phase=LogicalVolumePhase.RESIZING, reason="", message=message)


def _waiting(piece: Piece, now: datetime, status: LVMLogicalVolumeStatus, reason: str, message: str) -> Decision:
    return until_groups_change(piece, replace(status, reason=reason, message=message), now, LOOK_FOR_SPACE)
