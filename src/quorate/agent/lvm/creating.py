"""A logical volume comes to be: made with the tag ``quorate.new``, emptied or filled, and only then ours to use.

| seen                                            | done                                                          |
|-------------------------------------------------|---------------------------------------------------------------|
| nothing, and it never was Created               | ``lvcreate`` with the tag, contents prepared, tag taken away  |
| nothing, but it was Created once                | Failed: an empty volume must never take the place of data     |
| one with the tag, made for this object          | killed on the way: its contents are prepared from the start   |
| one with the tag, made for another object       | nobody's: it was never finished. Removed, then made anew      |

Contents. A thick volume has both ends wiped; it is zeroed whole when ``spec.zeroed`` asks for it. A thin one reads as
zero wherever nothing was written. A source is copied in and read back. The tag ``quorate.zero`` goes in the same
command that takes ``quorate.new`` away, so that no moment lies between the two.
"""

from __future__ import annotations

from datetime import datetime

from quorate.agent.lvm import commands
from quorate.agent.lvm.attempts import attempt
from quorate.agent.lvm.filling import Filled, filled, whole
from quorate.agent.lvm.piece import Decision, Piece, failed, until_groups_change, zeroing
from quorate.agent.lvm.seen import NEW, ZERO, SeenVolume, checksum_tag, owner_tag, volume_tag
from quorate.agent.steps import Run, Step
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.struct import replace

#: Seconds after which space, a group or a pool that was not there is looked for again.
LOOK_FOR_SPACE = 30.0
#: Seconds after which a source that was not what it should be is copied once more.
LOOK_AT_SOURCE = 300.0


def not_there(piece: Piece, now: datetime) -> Decision:
    """Nothing of that name is on the node."""
    if piece.groups is None or _failed_since_the_look(piece):
        return Decision(piece.status, look_at_groups=True)
    group, spec = piece.group, piece.spec
    if group is None:
        return _refused(piece, now, Failure.VOLUME_GROUP_NOT_FOUND.code, _no_group(piece))
    if piece.was_created:
        message = (
            f"The logical volume {piece.group_name}/{spec.actual_lv_name_on_the_node} was here and is gone. It is not"
            " made again: an empty one must not take the place of data."
        )
        return _refused(piece, now, Failure.LV_MISSING.code, message)
    size = rounded_up(int(spec.size), group.extent_size)
    if piece.pool_name and piece.pool is None:
        message = f"Volume group {group.name} has no thin pool {piece.pool_name}."
        return _refused(piece, now, Failure.THIN_POOL_NOT_FOUND.code, message)
    if not piece.pool_name and size > group.free:
        if not piece.free_current:
            return Decision(piece.status, look_at_groups=True)
        return _refused(piece, now, Failure.NO_SPACE.code, no_space(group.name, size, group.free))
    made = SeenVolume(
        group.name, spec.actual_lv_name_on_the_node, size=size, tags=frozenset(_tags(piece)), pool=piece.pool_name
    )
    steps: tuple[Step, ...] = (_create(piece, made),)
    if not _is_heavy(piece):
        steps += _prepared(piece, made)
    return attempt(piece, _pending(piece, "It is being made."), piece.light(*steps), now)


def _failed_since_the_look(piece: Piece) -> bool:
    """Whether LVM refused to make it: perhaps because the group is not what it was seen to be."""
    last = piece.outcomes.get(commands.CREATE)
    return last is not None and not last.succeeded and piece.groups_at < last.at


def unfinished(piece: Piece, volume: SeenVolume, now: datetime) -> Decision:
    """It has the tag: whatever is on it is worth nothing yet."""
    if owner_tag(piece.llv.metadata.uid) not in volume.tags:
        work = piece.light(commands.discard_new(volume))
        return attempt(piece, _pending(piece, "One that was never finished is removed first."), work, now)
    if not _is_heavy(piece):
        work = piece.light(*_prepared(piece, volume))
        return attempt(piece, _pending(piece, "It is being prepared."), work, now)
    if piece.spec.zeroed and not volume.pool and not is_zeroed(piece, volume):
        work = piece.heavy(*commands.zero_whole(volume, about=whole(volume)))
        return attempt(piece, _pending(piece, "It is being zeroed."), work, now)
    if piece.spec.source is None:
        work = piece.light(_finished(piece, volume, ""))
        return attempt(piece, _pending(piece, "It is being prepared."), work, now)
    return _fill(piece, volume, now)


def _fill(piece: Piece, volume: SeenVolume, now: datetime) -> Decision:
    source = piece.source
    assert source is not None
    found = filled(piece, volume)
    if isinstance(found, Filled):
        work = piece.light(_finished(piece, volume, found.checksum))
        return attempt(piece, _pending(piece, "It is being prepared."), work, now)
    wiped = volume.pool or piece.spec.zeroed
    sides = () if wiped else commands.wipe_ends(volume.path, volume.size)
    status = _pending(piece, f"It is being filled from {source}.")
    work = piece.heavy(*sides, *commands.fill(volume, source, about=whole(volume)))
    if not found:
        return attempt(piece, status, work, now)
    # What was read back is not what it should be. That is said, and tried again some time later.
    said = failed(status, Failure.CHECKSUM_MISMATCH.code, found)
    pause = LOOK_AT_SOURCE - (now - piece.outcomes[commands.COMPARE].at).total_seconds()
    return Decision(said, retry_after=pause) if pause > 0 else Decision(said, work)


def _create(piece: Piece, made: SeenVolume) -> Run:
    tags = sorted(made.tags)
    if made.pool:
        return commands.create_thin(made.group, made.pool, made.name, made.size, tags)
    return commands.create_thick(made.group, made.name, made.size, tags)


def _tags(piece: Piece) -> tuple[str, ...]:
    part_of = (volume_tag(name),) if (name := piece.llv.volume_name) else ()
    return NEW, owner_tag(piece.llv.metadata.uid), *piece.made_for, *part_of


def _is_heavy(piece: Piece) -> bool:
    return piece.spec.source is not None or (piece.spec.zeroed and not piece.pool_name)


def _prepared(piece: Piece, volume: SeenVolume) -> tuple[Step, ...]:
    sides = () if volume.pool else commands.wipe_ends(volume.path, volume.size)
    return (*sides, _finished(piece, volume, ""))


def _finished(piece: Piece, volume: SeenVolume, checksum: str) -> Run:
    known_zero = zeroing(piece) if volume.pool else piece.spec.zeroed
    added = (*((ZERO,) if known_zero else ()), *((checksum_tag(checksum),) if checksum else ()))
    return commands.retag(volume.group, volume.name, add=added, remove=(NEW,))


def is_zeroed(piece: Piece, volume: SeenVolume) -> bool:
    """Whether this very volume was zeroed, by this process. Another does it again: nothing on the disk tells."""
    zeroed = piece.outcomes.get(commands.ZERO_WHOLE)
    return zeroed is not None and zeroed.succeeded and zeroed.about == whole(volume)


def _pending(piece: Piece, message: str) -> LVMLogicalVolumeStatus:
    return replace(piece.status, phase=LogicalVolumePhase.PENDING, reason="", message=message)


def _refused(piece: Piece, now: datetime, reason: str, message: str) -> Decision:
    return until_groups_change(piece, failed(piece.status, reason, message), now, LOOK_FOR_SPACE)


def _no_group(piece: Piece) -> str:
    twice = piece.groups is not None and len(piece.groups.named(piece.group_name)) > 1
    if twice:
        return f"The node has two volume groups named {piece.group_name}: LVM cannot tell them apart. Rename one."
    return f"The node has no volume group {piece.group_name}."


def no_space(group: str, needed: int, free: int) -> str:
    """Why there is no room."""
    return f"Volume group {group} has {free} bytes free; needed are {needed}."


def rounded_up(size: int, extent: int) -> int:
    """To whole extents, as LVM does it."""
    return -(-size // extent) * extent if extent else size
