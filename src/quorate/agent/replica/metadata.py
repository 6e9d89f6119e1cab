"""DRBD's metadata on the replica's disk: made once, and never again.

    field, tag neither         the disk is new: create-md, then the tag on the disk
    tag, not the field         then the field (actual.metadataCreated)
    both                       the disk may be attached

The field and the tag protect the data from one another's loss: with either of them set nothing is ever made. If
metadata are not found then (``up`` says so), they may be where the disk ended before it grew: see ``former_end``.
"""

from __future__ import annotations

from datetime import datetime

from quorate.agent.lvm.seen import METADATA_TAG, NEW, SeenVolume
from quorate.agent.replica import commands
from quorate.agent.replica.former_end import on_disk, recover
from quorate.agent.replica.kernel import holds_disk, is_diskful
from quorate.agent.replica.looking import look_at_volumes
from quorate.agent.replica.verdict import Verdict, attempt, cleared, own_error
from quorate.agent.replica.view import View
from quorate.agent.steps import RemoveFile
from quorate.api.storage.llv import LogicalVolumePhase


def prepare_metadata(view: View, now: datetime, settled: bool) -> Verdict:
    """What must be so before a disk is attached."""
    if not is_diskful(view.config) or is_attached(view):
        return cleared("last_metadata_error")
    if not settled:
        return Verdict(unsettled=True)
    if not view.volumes_current:
        return look_at_volumes(view, now)
    owner, volume = view.replica.status.lvm_logical_volume_name, view.volume
    if not owner:
        return Verdict(unsettled=True)
    if volume is None:
        error = own_error("NoLogicalVolume", f"{view.config.disk} is not there")
        # One that was there is gone with its drive. A member that is up without it still hears of the others (adjust).
        lost = view.status is not None and view.actual.metadata_created == owner
        return Verdict(errors={"last_metadata_error": error}, unsettled=not lost)
    recorded, tagged = view.actual.metadata_created == owner, METADATA_TAG in volume.tags
    if not recorded and not tagged:
        return _create(view, now, volume)
    if not recorded:
        # Of this disk nothing has been seen UpToDate yet, whatever the replica had before.
        record = {"metadata_created": owner, "initial_sync_completed": False, "backing_size": None}
        return Verdict(actual=record, stop=True, unsettled=True)
    if not tagged:
        step = commands.tag(volume, owner)
        return attempt(view, now, commands.METADATA, f"tag {owner}", (step,))
    return recover(view, now, volume)


def _create(view: View, now: datetime, volume: SeenVolume) -> Verdict:
    found = view.logical_volume
    if found is None or found.status.phase is not LogicalVolumePhase.CREATED or NEW in volume.tags:
        return Verdict(unsettled=True)  # not ours to write on yet
    about = f"create {found.name}"
    # Minors are used again: what is known of the disk that the last one had must not be taken for this one's.
    stale = (RemoveFile(view.last_known_file, commands.METADATA, about),) if view.last_known_file else ()
    steps = (*stale, commands.create_metadata(view, about), commands.tag(volume, about))
    return on_disk(attempt(view, now, commands.METADATA, about, steps))


def is_attached(view: View) -> bool:
    """Whether the kernel has this disk; one that it had before the replica moved to another does not count."""
    return holds_disk(view.status) and view.actual.disk in ("", view.config.disk)
