"""A disk whose drive is gone for good: the kernel lets go of it, before it finds out in the middle of something.

An idle replica on a drive that was pulled is UpToDate until somebody reads or writes there: it counts as a copy, and is
chosen to be copied from. Once the drive's procedure has begun, and it is away for longer than its grace, its disks are
detached, unless no peer in touch has the data: who knows what may still be read. One that is away for a moment, be it
in the middle of its procedure, comes back with all that it held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random

from quorate.agent.node import Node
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import holds_disk, is_diskful
from quorate.agent.replica.verdict import FINE, Verdict, attempt
from quorate.agent.replica.view import View
from quorate.api import names
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Presence
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.drbd import DiskState
from quorate.engine import Controller, Index, Key, Plan, Reader, Watch, no_keys

#: Logical volumes by the drives that they lie on.
ON_DRIVE = "drive"
_ON_DRIVE = Index(LVMLogicalVolume, ON_DRIVE, lambda volume: {each.drive_uuid: None for each in volume.status.devices})

_DEFAULTS = ClusterConfigSpec()


def let_go_of_lost_disk(view: View, now: datetime, settled: bool) -> Verdict:
    """Detach a disk that is not there any more, if the data is elsewhere."""
    if (
        not view.has_lost_its_drive(now)
        or not is_diskful(view.config)
        or not holds_disk(view.status)
        or not _is_elsewhere(view)
    ):
        return FINE
    return attempt(view, now, commands.DETACH, "", (commands.detach(view),))


def lost_at(reader: Reader, volume: LVMLogicalVolume | None) -> datetime | None:
    """When a drive under a logical volume counts as gone for good; None: none does, as things are."""
    drives = (reader.get(Drive, device.drive_uuid) for device in (volume.status.devices if volume is not None else ()))
    moments = (gone_at(drive, _grace(reader)) for drive in drives if drive is not None and drive.leaving)
    return min(filter(None, moments), default=None)


def gone_at(drive: Drive, grace: timedelta) -> datetime | None:
    """When a drive that is away, and whose procedure has begun, counts as gone for good; None: it does not, so far."""
    away, since = drive.status.presence is Presence.OFFLINE, drive.status.missing_since
    return since + grace if drive.leaving and away and since is not None else None


@dataclass(frozen=True, slots=True)
class LostDrive:
    """The volumes with something on a drive that is away, and when it counts as gone for good."""

    volumes: tuple[str, ...]
    at: datetime


def lost_drives(node: Node) -> Controller[LostDrive]:
    """Wakes them: a drive does not know what is on it."""

    def observe(reader: Reader, key: Key) -> LostDrive | None:
        drive = reader.get(Drive, key.name)
        at = gone_at(drive, _grace(reader)) if drive is not None else None
        if at is None:
            return None
        return LostDrive(tuple(_volumes(reader.find(LVMLogicalVolume, ON_DRIVE, key.name))), at)

    def decide(lost: LostDrive, now: datetime, _: Random) -> Plan:
        if now < lost.at:
            return Plan(requeue_after=(lost.at - now) / timedelta(seconds=1))
        return Plan(effects=tuple(partial(node.volumes.wake, Key("", volume)) for volume in lost.volumes))

    return Controller(
        name="lost-drives",
        watches=(Watch(Drive), Watch(LVMLogicalVolume, no_keys), Watch(ClusterConfig, no_keys)),
        observe=observe,
        decide=decide,
        indexes=(_ON_DRIVE,),
        workers=1,
    )


def _volumes(pieces: Iterable[LVMLogicalVolume]) -> Iterable[str]:
    return dict.fromkeys(filter(None, (piece.volume_name for piece in pieces)))


def _grace(reader: Reader) -> timedelta:
    config = reader.get(ClusterConfig, names.CLUSTER)
    periods = (config.spec if config is not None else _DEFAULTS).grace_periods
    return timedelta(seconds=periods.drive_missing.seconds)


def _is_elsewhere(view: View) -> bool:
    """Whether a peer in touch has the data."""
    links = view.status.connections if view.status is not None else ()
    return any(peer.peer_disk_state == DiskState.UP_TO_DATE for link in links for peer in link.peer_devices)
