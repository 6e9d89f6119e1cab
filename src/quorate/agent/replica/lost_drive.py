"""A disk whose drive is gone for good: the kernel lets go of it, before it finds out in the middle of something.

An idle replica on a drive that was pulled is UpToDate until somebody reads or writes there: it counts as a copy, and is
chosen to be copied from. Once the drive's procedure has begun (the drive is away for longer than its grace), its disks
are detached, unless no peer in touch has the data: who knows what may still be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random

from quorate.agent.node import Node
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import has_disk, is_diskful
from quorate.agent.replica.verdict import FINE, Verdict, attempt
from quorate.agent.replica.view import View
from quorate.api import labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus, Presence
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.drbd import DiskState
from quorate.engine import Controller, Index, Key, Plan, Reader, Watch, no_keys

#: Logical volumes by the drives that they lie on.
ON_DRIVE = "drive"
_ON_DRIVE = Index(LVMLogicalVolume, ON_DRIVE, lambda volume: {each.drive_uuid: None for each in volume.status.devices})


def let_go_of_lost_disk(view: View, now: datetime, settled: bool) -> Verdict:
    """Detach a disk that is not there any more, if the data is elsewhere."""
    if not view.drive_lost or not is_diskful(view.config) or not has_disk(view.status) or not _is_elsewhere(view):
        return FINE
    return attempt(view, now, commands.DETACH, "", (commands.detach(view),))


def is_lost(reader: Reader, volume: LVMLogicalVolume | None) -> bool:
    """Whether a drive under a logical volume is gone, and its procedure has begun."""
    drives = (reader.get(Drive, device.drive_uuid) for device in (volume.status.devices if volume is not None else ()))
    return any(drive is not None and _is_gone(drive) for drive in drives)


@dataclass(frozen=True, slots=True)
class LostDrive:
    """The volumes with something on a drive that is gone."""

    volumes: tuple[str, ...]


def lost_drives(node: Node) -> Controller[LostDrive]:
    """Wakes them: a drive does not know what is on it."""

    def observe(reader: Reader, key: Key) -> LostDrive | None:
        drive = reader.get(Drive, key.name)
        if drive is None or not _is_gone(drive):
            return None
        pieces = reader.find(LVMLogicalVolume, ON_DRIVE, drive.name)
        return LostDrive(tuple(_volumes(pieces)))

    def decide(lost: LostDrive, _: datetime, __: Random) -> Plan:
        return Plan(effects=tuple(partial(node.volumes.wake, Key("", volume)) for volume in lost.volumes))

    return Controller(
        name="lost-drives",
        watches=(Watch(Drive), Watch(LVMLogicalVolume, no_keys)),
        observe=observe,
        decide=decide,
        indexes=(_ON_DRIVE,),
        workers=1,
    )


def _volumes(pieces: Iterable[LVMLogicalVolume]) -> Iterable[str]:
    return dict.fromkeys(filter(None, (piece.metadata.labels.get(labels.REPLICATED_VOLUME) for piece in pieces)))


def _is_gone(drive: Drive) -> bool:
    begun = drive.status.operational_status not in (None, OperationalStatus.OPERATIVE)
    return begun and drive.status.presence is Presence.OFFLINE


def _is_elsewhere(view: View) -> bool:
    """Whether a peer in touch has the data."""
    links = view.status.connections if view.status is not None else ()
    return any(peer.peer_disk_state == DiskState.UP_TO_DATE for link in links for peer in link.peer_devices)
