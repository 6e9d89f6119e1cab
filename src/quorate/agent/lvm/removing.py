"""A logical volume goes: only ours, only when nobody else keeps its object, and never from under DRBD.

LVM itself refuses to remove a volume that is open, so a look that is a moment old does no harm.
"""

from __future__ import annotations

from datetime import datetime

from quorate.agent.lvm import commands
from quorate.agent.lvm.attempts import attempt
from quorate.agent.lvm.mapped import device_name, left_over
from quorate.agent.lvm.piece import Decision, Piece, until_groups_change, until_volumes_change
from quorate.agent.lvm.seen import SeenGroups
from quorate.api import finalizers
from quorate.api.baremetal.drive import Presence
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeStatus
from quorate.api.struct import replace

#: Seconds after which a volume that was open is looked at again.
LOOK_WHETHER_OPEN = 5.0


def removed(piece: Piece, now: datetime) -> Decision:
    """Its object is being deleted."""
    held = piece.llv.metadata.finalizers
    if finalizers.AGENT not in held:
        return Decision(piece.status)
    others = sorted(name for name in held if name != finalizers.AGENT)
    if others:
        return Decision(_terminating(piece, f"It is kept by {', '.join(others)}."))
    if piece.volumes is None:
        return Decision(piece.status, look_at_volumes=True)
    if (spare := piece.spare) is not None:
        work = piece.light(commands.discard_new(spare), group=spare.group)
        return attempt(piece, _terminating(piece, "It is being removed."), work, now, still_usable=True)
    # Without its LVMVolumeGroup nothing but the tag says where it is.
    volume = piece.volume if piece.lvg is not None else piece.volumes.owned_by(piece.llv.metadata.uid)
    if volume is None:
        return _gone(piece, now)
    if not piece.owns(volume):
        return Decision(_terminating(piece, f"{volume.path} is not ours, and stays."), release=True)
    if why := piece.unaccounted(volume):
        return Decision(_terminating(piece, why, Failure.LV_EXISTS.code))
    if piece.attached or volume.open:
        why = "DRBD has it attached" if piece.attached else "it is open"
        status = _terminating(piece, f"{volume.path} is not removed: {why}.", Failure.DEVICE_IN_USE.code)
        return until_volumes_change(piece, status, now, LOOK_WHETHER_OPEN)
    work = piece.light(commands.remove(volume), group=volume.group)
    return attempt(piece, _terminating(piece, "It is being removed."), work, now, still_usable=True)


def _gone(piece: Piece, now: datetime) -> Decision:
    """It was not seen.

    If LVM did not tell everything, that is no answer. If its whole group was not seen, it is one only when its drives
    are not there either.
    """
    if piece.volumes is not None and piece.volumes.incomplete:
        status = _terminating(piece, piece.volumes.incomplete, Failure.COMMAND_FAILED.code)
        return until_volumes_change(piece, status, now, LOOK_WHETHER_OPEN)
    if piece.lvg is None or piece.status.actual_size is None:
        return Decision(piece.status, release=True)
    if piece.groups is None:
        return Decision(piece.status, look_at_groups=True)
    there = {drive.spec.uuid for drive in piece.drives if drive.status.presence is Presence.ONLINE}
    if piece.group is None and any(device.drive_uuid in there for device in piece.status.devices):
        message = f"Volume group {piece.group_name} is not seen, although its drive is there."
        status = _terminating(piece, message, Failure.VOLUME_GROUP_NOT_FOUND.code)
        return until_groups_change(piece, status, now, LOOK_WHETHER_OPEN)
    return Decision(piece.status, release=True) if piece.group is not None else _without_group(piece, piece.groups)


def _without_group(piece: Piece, groups: SeenGroups) -> Decision:
    """It went with its drive and its group. Its device did not, and would keep the next group from being made.

    One that cannot be removed, being open, keeps nobody waiting: it is tried again when its group is to be made.
    """
    told = piece.outcomes.get(commands.MAPPED)
    going = _terminating(piece, "It is gone with its drive; its device is being removed.")
    if told is None:
        return Decision(going, piece.light(commands.list_mapped()))
    name = device_name(piece.group_name, piece.spec.actual_lv_name_on_the_node)
    left = left_over(told.output, piece.group_name, groups) if told.succeeded else ()
    if commands.UNMAP not in piece.outcomes and any(each.name == name and not each.opens for each in left):
        return Decision(going, piece.light(commands.unmap(name)))
    return Decision(piece.status, release=True)


def _terminating(piece: Piece, message: str, reason: str = "") -> LVMLogicalVolumeStatus:
    return replace(piece.status, phase=LogicalVolumePhase.TERMINATING, reason=reason, message=message)
