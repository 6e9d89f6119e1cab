"""Whose an entry is, and what is really on the disk for it: read from the caches, by name."""

from __future__ import annotations

from datetime import datetime

from quorate.api import names
from quorate.api.longhorn import BackingImage, DiskSchedule
from quorate.api.meta import Resource
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMLogicalVolume, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.disks.entries import Entry, Sort
from quorate.disks.images.copies import logical_volume_name
from quorate.engine import Reader


def owner_of(reader: Reader, entry: Entry) -> Resource | None:
    """The replica or the image; for a replica that is not there (yet, or any more) the volume that still lists it."""
    if entry.sort is Sort.IMAGE:
        return reader.get(BackingImage, entry.name, names.NAMESPACE)
    return reader.get(ReplicatedVolumeReplica, entry.name) or _volume_that_lists(reader, entry.name)


def owner_created(reader: Reader, entry: Entry) -> datetime | None:
    """How old an entry's claim is; None if nobody is seen whose it is."""
    owner = owner_of(reader, entry)
    return None if owner is None else owner.metadata.creation_timestamp


def size_in_use(reader: Reader, schedule: DiskSchedule, entry: Entry) -> int:
    """The size of the logical volume that an entry has on a disk; 0 if it has none."""
    group, _, pool = schedule.spec.name.partition("/")
    if entry.sort is Sort.IMAGE:
        name = logical_volume_name(entry.name, group, pool)
    else:
        name = names.logical_volume(entry.name, group, pool)
    volume = reader.get(LVMLogicalVolume, name)
    if volume is None:
        return 0
    actual = volume.status.actual_size
    return max(int(volume.spec.size), 0 if actual is None else int(actual))


def lists(volume: ReplicatedVolume, name: str) -> bool:
    """Whether a volume still speaks of a replica of this name."""
    status = volume.status
    return (
        any(member.name == name for member in status.datamesh.members)
        or any(transition.replica_name == name for transition in status.datamesh_transitions)
        or any(pending.name == name for pending in status.datamesh_pending_replica_transitions)
    )


def _volume_that_lists(reader: Reader, name: str) -> ReplicatedVolume | None:
    try:
        volume = reader.get(ReplicatedVolume, names.volume_of_replica(ReplicaName(name)))
    except ValueError:
        return None  # Not a replica's name: no volume can list it.
    return volume if volume is not None and lists(volume, name) else None
