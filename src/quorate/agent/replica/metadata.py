"""DRBD's metadata on the replica's disk: made once, and never again.

    field, tag neither         the disk is new: create-md, then the tag on the disk
    tag, not the field         then the field (actual.metadataCreated)
    both                       the disk may be attached

The field and the tag protect the data from one another's loss: with either of them set nothing is ever made. If
metadata are not found then (``up`` says so), they may still be where the disk ended before it grew. ``up`` itself finds
them there while ``/var/lib/drbd`` is kept (grow_power_loss_state_kept). If not, the disk is cut back to the size that
was written ahead in ``actual.backingSize``, provided that ``dump-md`` finds none at its end and that DRBD has never
used more than that. Otherwise the disk stays as it is and a person decides (grow_power_loss).
"""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime

from quorate.agent.lvm.seen import NEW
from quorate.agent.memory import LogicalVolumeSeen, Outcome
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import device, has_disk, is_diskful
from quorate.agent.replica.looking import look_at_volumes
from quorate.agent.replica.verdict import FINE, Verdict, attempt, failed, own_error
from quorate.agent.replica.view import View
from quorate.api.meta import Bytes
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.drbd.metadata import MetadataState, metadata_state, usable_size
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

METADATA_MISSING = "MetadataMissing"


def prepare_metadata(view: View, now: datetime, settled: bool) -> Verdict:
    """What must be so before a disk is attached."""
    if not is_diskful(view.config) or is_attached(view):
        return Verdict(errors={"last_metadata_error": None})
    if not settled:
        return Verdict(unsettled=True)
    if not view.volumes_current:
        return look_at_volumes(view, now)
    owner, volume = view.replica.status.lvm_logical_volume_name, view.volume
    if not owner:
        return Verdict(unsettled=True)
    if volume is None:
        error = own_error("NoLogicalVolume", f"{view.config.disk} is not there")
        return Verdict(errors={"last_metadata_error": error}, unsettled=True)
    if may_be_overwritten(view):
        return Verdict(unsettled=True)
    recorded, tagged = view.actual.metadata_created == owner, commands.METADATA_TAG in volume.tags
    if not recorded and not tagged:
        return _create(view, now, volume)
    if not recorded:
        # Of this disk nothing has been seen UpToDate yet, whatever the replica had before.
        record = {"metadata_created": owner, "initial_sync_completed": False, "backing_size": None}
        return Verdict(actual=record, stop=True, unsettled=True)
    if not tagged:
        step = commands.tag(view, _name(volume), owner)
        return attempt(view, now, commands.METADATA, f"tag {owner}", (step,))
    return _recover(view, now, volume)


def _create(view: View, now: datetime, volume: LogicalVolumeSeen) -> Verdict:
    found = view.logical_volume
    if found is None or found.status.phase is not LogicalVolumePhase.CREATED or NEW in volume.tags:
        return Verdict(unsettled=True)  # not ours to write on yet
    about = f"create {found.name}"
    steps = (commands.create_metadata(view, about), commands.tag(view, _name(volume), about))
    return on_disk(attempt(view, now, commands.METADATA, about, steps))


def _recover(view: View, now: datetime, volume: LogicalVolumeSeen) -> Verdict:
    """Metadata were made. If the last attempt to attach did not find them, look where they may be."""
    last = failed(view, commands.ADJUST)
    if last is None or not _says_missing(last) or not last.about.endswith(_size_mark(volume)):
        return FINE
    missing = own_error(
        METADATA_MISSING,
        f"{view.config.disk} has no DRBD metadata although they were made. Nothing was changed on it. "
        "If it grew before a power loss, they are at the end of its former size; a person must decide.",
        last.command,
    )
    former = view.actual.backing_size
    if former is None or int(former) >= volume.size or _used_more_than(view, int(former)):
        return Verdict(errors={"last_metadata_error": missing})
    probe = view.outcomes.get(commands.PROBE)
    about = f"missing {volume.size}"
    if probe is None or probe.about != about or probe.at < last.at:
        return Verdict(steps=(commands.probe(view, about),), unsettled=True, errors={"last_metadata_error": missing})
    if probe.exit_code is None or metadata_state(probe.exit_code, probe.output) is not MetadataState.NONE:
        return Verdict(errors={"last_metadata_error": missing})
    # Attached again in the same piece of work: nobody may grow the disk in between.
    size = int(former)
    attach = commands.adjust if view.status is not None else commands.up_and_adjust
    steps = (commands.shrink(_name(volume), size, about), *attach(view, f"shrunk to {size}"))
    return on_disk(attempt(view, now, commands.SHRINK, about, steps))


def may_be_overwritten(view: View) -> bool:
    """Whether LVM's part is zeroing what the disk has grown by: attached now, metadata would be moved there."""
    found, volume = view.logical_volume, view.volume
    if found is None or volume is None or found.status.phase is not LogicalVolumePhase.RESIZING:
        return False
    known = found.status.actual_size
    return known is None or volume.size > int(known)


def is_attached(view: View) -> bool:
    """Whether the kernel has this disk; one that it had before the replica moved to another does not count."""
    return has_disk(view.status) and view.actual.disk in ("", view.config.disk)


def _says_missing(last: Outcome) -> bool:
    return last.exit_code is not None and understand(last.exit_code, last.output).outcome is Meaning.METADATA_MISSING


def _used_more_than(view: View, former: int) -> bool:
    """Whether DRBD was last reported larger than it could be on the former size: then data is beyond it."""
    shown, size = device(view.replica.status.drbd.status), view.replica.status.size
    largest = max(shown.size * 1024 if shown is not None else 0, int(size) if size is not None else 0)
    return largest > usable_size(Bytes(former), view.max_peers)


def on_disk(verdict: Verdict) -> Verdict:
    """The same, with the disk for itself."""
    return changed(verdict, disk=True)


def size_mark(view: View) -> str:
    """What an attempt to attach is about, beside the file: a disk of another size is worth another try."""
    return _size_mark(view.volume) if view.volume is not None and is_diskful(view.config) else ""


def _size_mark(volume: LogicalVolumeSeen) -> str:
    return f"@{volume.size}"


def _name(volume: LogicalVolumeSeen) -> str:
    return f"{volume.group}/{volume.name}"
