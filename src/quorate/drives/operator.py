"""Quorate as the operator of its own volumes: says on each Volume how far its release is, as the seed has it.

A pass is about one ReplicatedVolume and all Volumes that stand for its replicas. Where the volume's claim says that an
outside operator releases it, that one's words are read instead, and none of ours are written.

| annotation | written                                                                                        |
|------------|------------------------------------------------------------------------------------------------|
| release    | ``completed`` and ``failed`` here; ``processing`` when its turn has come (``turns``)           |
| recovery   | percent of the data that is elsewhere                                                          |
| status     | what it waits for, or why it failed                                                            |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final

from quorate.api import annotation_keys, conditions, labels, names
from quorate.api.annotation_keys import Release
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import DriveHealth, Presence
from quorate.api.baremetal.volume import VolumeStatus, VolumeUsage
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Released
from quorate.api.core import Lease, PersistentVolumeClaim
from quorate.api.meta import VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMVolumeGroup
from quorate.api.struct import replace
from quorate.drives import progress
from quorate.drives.progress import Progress
from quorate.drives.view import CLAIM_INDEX, CLAIM_OF, is_released_outside, support_of
from quorate.engine import Controller, Index, Key, Patch, PatchStatus, Plan, PlanEvent, Reader, Watch, Write, no_keys
from quorate.volumes import observe as volumes
from quorate.volumes.view import VolumeView
from quorate.volumes.watches import WATCHES

VOLUMES_OF: Final = "csi volumes of a replicated volume"
_LENGTH: Final = 1000
#: While a release is under way it is looked at so often, in seconds: an agent's silence wakes nobody.
_LOOK: Final = 20.0

INDEXES: Final[tuple[Index[Any], ...]] = (
    Index(Volume, VOLUMES_OF, lambda volume: filter(None, (volume.metadata.labels.get(labels.REPLICATED_VOLUME),))),
    CLAIM_INDEX,
)
_EVENTS: Final = {
    DriveHealth.BAD: "VolumeBadHealth",
    DriveHealth.SUSPECT: "VolumeSuspectHealth",
    DriveHealth.GOOD: "VolumeGoodHealth",
    DriveHealth.UNKNOWN: "VolumeUnknownHealth",
}


@dataclass(frozen=True)
class Snapshot:
    """A volume some of whose replicas are on drives that leave."""

    view: VolumeView
    volumes: tuple[Volume, ...]
    #: An outside operator releases it.
    outside: bool
    #: Volume groups of which a drive is not there.
    missing: frozenset[str] = frozenset()
    #: Claims of which nobody knows whether they promise an outside operator.
    unclear: tuple[PersistentVolumeClaim, ...] = ()


def observe(reader: Reader, key: Key) -> Snapshot | None:
    """Gather it; None for the many volumes that no drive's procedure speaks of."""
    found = reader.find(Volume, VOLUMES_OF, key.name)
    view = volumes.observe(reader, VolumeName(key.name)) if found else None
    if view is None:
        return None
    missing = frozenset(each.spec.location for each in found if _lacks_a_drive(reader, each.spec.location))
    claims = reader.find(PersistentVolumeClaim, CLAIM_OF, key.name)
    unclear = tuple(claim for claim in claims if support_of(claim) not in ("", "yes", "no"))
    return Snapshot(view, found, is_released_outside(reader, key.name), missing, unclear)


def _lacks_a_drive(reader: Reader, group: str) -> bool:
    lvg = reader.get(LVMVolumeGroup, group)
    drives = (reader.get(Drive, device.drive_uuid) for device in (lvg.status.devices if lvg is not None else ()))
    return any(drive is not None and drive.status.presence is Presence.OFFLINE for drive in drives)


def decide(snapshot: Snapshot, now: datetime, _: Random) -> Plan:
    """Say of each how far it is."""
    writes: list[Write] = []
    events: list[PlanEvent] = []
    for volume in snapshot.volumes:
        replica = snapshot.view.replica(ReplicaName(names.owner_of_logical_volume(volume.name)))
        if replica is None or not any(piece.name == volume.name for piece in replica.volumes):
            continue  # Of a replica that is gone: its node's pass decides.
        if snapshot.outside:
            found = progress.outside(volume)
        else:
            missing = volume.spec.location in snapshot.missing
            found = progress.of_replica(snapshot.view, replica, volume, missing=missing)
            if not volume.deleting:
                writes.append(_told(volume, found))
        if volume.status.usage is None:
            events += (_unclear(claim) for claim in snapshot.unclear)
        status = _status(volume, found, now)
        writes.append(PatchStatus(volume, replace(volume, status=status)))
        events += _events(volume, status.health)
        events += _misunderstood(volume, found.verdict)
    return Plan(writes=tuple(writes), events=tuple(events), requeue_after=_LOOK if snapshot.volumes else None)


def _told(volume: Volume, found: Progress) -> Patch:
    said = dict(volume.metadata.annotations)
    words = found.verdict.message[:_LENGTH]
    said[annotation_keys.RELEASE_RECOVERY] = str(found.percent)
    match found.usage:
        case VolumeUsage.RELEASED:
            said[annotation_keys.RELEASE] = Release.COMPLETED
            words = ""
        case VolumeUsage.FAILED:
            said[annotation_keys.RELEASE] = Release.FAILED
        case _ if said.get(annotation_keys.RELEASE) != Release.PROCESSING:
            said.pop(annotation_keys.RELEASE, None)
            said.pop(annotation_keys.RELEASE_RECOVERY, None)
    if words:
        said[annotation_keys.RELEASE_STATUS] = words
    else:
        said.pop(annotation_keys.RELEASE_STATUS, None)
    if found.lost:
        said[annotation_keys.COPY_LOST] = "true"
    else:
        said.pop(annotation_keys.COPY_LOST, None)
    return Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))


def _status(volume: Volume, found: Progress, now: datetime) -> VolumeStatus:
    verdict = found.verdict
    meaning = Released.RELEASED.meaning
    words = "" if found.usage is VolumeUsage.RELEASED and verdict.message == meaning else verdict.message
    return replace(
        volume.status,
        observed_generation=volume.metadata.generation,
        health=_health(volume),
        usage=found.usage,
        message=words[:_LENGTH],
        conditions=conditions.merge(volume.status.conditions, [verdict], now=now),
    )


def _health(volume: Volume) -> DriveHealth:
    said = volume.metadata.annotations.get(annotation_keys.VOLUME_HEALTH, "").upper()
    return DriveHealth(said) if said in tuple(DriveHealth) else DriveHealth.UNKNOWN


def _events(volume: Volume, health: DriveHealth | None) -> Iterable[PlanEvent]:
    if health is not None and volume.status.health is not health:
        warning = health is not DriveHealth.GOOD
        yield PlanEvent(volume, _EVENTS[health], f"The drive under it is {health}.", warning=warning)


def _misunderstood(volume: Volume, verdict: Verdict) -> Iterable[PlanEvent]:
    """That a word of somebody's means nothing to us, once for each."""
    known = conditions.find(volume.status.conditions, Released)
    if verdict.reason == Released.MISUNDERSTOOD.code and (known is None or known.message != verdict.message):
        yield PlanEvent(volume, "VolumeAnnotationMisunderstood", verdict.message, warning=True)


def _unclear(claim: PersistentVolumeClaim) -> PlanEvent:
    said = claim.metadata.annotations.get(annotation_keys.RELEASE_SUPPORT, "")
    words = f"Annotation {annotation_keys.RELEASE_SUPPORT} is {said!r}: allowed are yes, no. Quorate moves the volume."
    return PlanEvent(claim, "VolumeAnnotationMisunderstood", words, warning=True)


def _of_claim(claim: PersistentVolumeClaim) -> Iterable[Key]:
    return (Key("", claim.spec.volume_name),) if claim.spec.volume_name else ()


OPERATOR_CONTROLLER: Final[Controller[Any]] = Controller(
    name="drive-releases",
    watches=(*WATCHES, Watch(PersistentVolumeClaim, _of_claim), Watch(Drive, no_keys)),
    observe=observe,
    decide=decide,
    indexes=(*volumes.INDEXES, *INDEXES),
    freshness=(Lease,),
)
