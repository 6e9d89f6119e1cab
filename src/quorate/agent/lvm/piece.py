"""What a decision about one logical volume looks at, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zlib import crc32

from quorate.agent.lvm import commands
from quorate.agent.lvm.drives import drive_behind
from quorate.agent.lvm.seen import NEW, ZERO, SeenGroup, SeenGroups, SeenVolume, SeenVolumes, is_owner_tag, owner_tag
from quorate.agent.memory import Outcome
from quorate.agent.steps import Step
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import DrbdSettings
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeSpec, LVMLogicalVolumeStatus, UsedDevice
from quorate.api.struct import replace

#: How many commands that move gigabytes run at once on a node.
HEAVY_AT_ONCE = 4
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Piece:
    """One LVMLogicalVolume and everything that matters for it."""

    llv: LVMLogicalVolume
    lvg: LVMVolumeGroup | None
    #: The replica that it is for; an image's copy has none.
    replica: ReplicatedVolumeReplica | None = None
    #: Whether the kernel shows the replica's disk as attached.
    attached: bool = False
    #: What DRBD makes usable of it, in bytes; None: it is not up.
    device_size: int | None = None
    max_peers: int = DrbdSettings().max_peers
    drives: tuple[Drive, ...] = ()
    #: None: nobody has looked, or what was seen holds no more.
    volumes: SeenVolumes | None = None
    groups: SeenGroups | None = None
    #: When those looks were.
    volumes_at: datetime = NEVER
    groups_at: datetime = NEVER
    #: Seconds before either may be looked at again: above zero after looks that failed.
    pauses: tuple[float, float] = (0.0, 0.0)
    #: What became of the last commands, by purpose.
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def spec(self) -> LVMLogicalVolumeSpec:
        """As intended."""
        return self.llv.spec

    @property
    def status(self) -> LVMLogicalVolumeStatus:
        """As last reported."""
        return self.llv.status

    @property
    def group_name(self) -> str:
        """The volume group, as the node calls it."""
        return "" if self.lvg is None else self.lvg.spec.actual_vg_name_on_the_node

    @property
    def pool_name(self) -> str:
        """The thin pool; nothing for a thick volume."""
        return "" if self.spec.thin is None else self.spec.thin.pool_name

    @property
    def group(self) -> SeenGroup | None:
        """The volume group, as far as it was seen."""
        return None if self.groups is None else self.groups.get(self.group_name)

    @property
    def volume(self) -> SeenVolume | None:
        """The volume, as far as it was seen."""
        if self.volumes is None:
            return None
        return self.volumes.get(self.group_name, self.spec.actual_lv_name_on_the_node)

    @property
    def pool(self) -> SeenVolume | None:
        """The thin pool, as far as it was seen."""
        if self.volumes is None or not self.pool_name:
            return None
        found = self.volumes.get(self.group_name, self.pool_name)
        return found if found is not None and found.is_pool else None

    @property
    def light_work(self) -> str:
        """The name of what is quickly done to this volume."""
        return f"lvm/{self.llv.name}"

    @property
    def heavy_work(self) -> str:
        """The name of what moves gigabytes."""
        return heavy_work(self.group_name)

    @property
    def was_created(self) -> bool:
        """Whether it was ever reported as Created. Such a volume may hold data."""
        return self.status.actual_size is not None

    def owns(self, volume: SeenVolume) -> bool:
        """Whether this volume was made for this object: its tag says so, or our own report does."""
        if owner_tag(self.llv.metadata.uid) in volume.tags:
            return True
        return self.was_created and not any(is_owner_tag(tag) for tag in volume.tags)

    def heavy_purpose(self, purpose: str) -> str:
        """A purpose of heavy work, whose name many volumes share."""
        return heavy_purpose(purpose, self.llv.name)


def heavy_work(group_name: str) -> str:
    """The name of what moves gigabytes in a group.

    There are few such names, and under each goes one thing at a time: such commands run for hours, and must not take
    every slot that the node has for commands.
    """
    return f"lvm-heavy/{crc32(group_name.encode()) % HEAVY_AT_ONCE}"


def heavy_purpose(purpose: str, llv: str) -> str:
    """See ``Piece.heavy_purpose``."""
    return f"{purpose} {llv}"


#: The purposes of heavy work.
HEAVY_PURPOSES = (commands.ZERO_WHOLE, commands.WIPE, commands.FILL, commands.CHECKSUM, commands.COMPARE)


@dataclass(frozen=True, slots=True)
class Work:
    """Steps to be carried out under a name."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be reported and done."""

    status: LVMLogicalVolumeStatus
    work: Work | None = None
    #: Look at LVM first: nothing can be decided without.
    look_at_volumes: bool = False
    look_at_groups: bool = False
    #: The size to be written ahead in ``rvr.status.drbd.actual.backingSize`` before the volume grows.
    backing_size_ahead: int | None = None
    #: The agent's finalizer may go.
    release: bool = False
    #: Seconds after which to look again although nothing happens.
    retry_after: float | None = None


def reported(piece: Piece, volume: SeenVolume) -> LVMLogicalVolumeStatus:
    """The status of a volume that can be used."""
    return LVMLogicalVolumeStatus(
        phase=LogicalVolumePhase.CREATED,
        message=volume.trouble and f"Of {volume.group}/{volume.name}: {volume.trouble}.",
        actual_size=Quantity.of_bytes(volume.size),
        known_zero=ZERO in volume.tags and NEW not in volume.tags and (not volume.pool or zeroing(piece)),
        grown_zero=zeroing(piece) if volume.pool else piece.status.grown_zero or not piece.was_created,
        checksum=volume.checksum,
        devices=_devices(piece, volume),
    )


def zeroing(piece: Piece) -> bool:
    """Whether the thin pool zeroes new blocks."""
    return piece.pool is not None and piece.pool.zeroing


def _devices(piece: Piece, volume: SeenVolume) -> tuple[UsedDevice, ...]:
    paths = piece.volumes.devices_of(volume) if piece.volumes is not None else ()
    found = tuple(UsedDevice(path=path, drive_uuid=drive_behind(path, piece.drives)) for path in paths)
    if not volume.trouble:
        return found
    # A device that is gone is in no report any more. What lay on it is then what people most want to know.
    return _united(found, piece.status.devices)


def _united(found: tuple[UsedDevice, ...], known: Iterable[UsedDevice]) -> tuple[UsedDevice, ...]:
    there = {device.path for device in found} | {device.drive_uuid for device in found if device.drive_uuid}
    kept = [device for device in known if device.path not in there and device.drive_uuid not in there]
    return tuple(sorted((*found, *kept), key=lambda device: device.path))


def until_volumes_change(piece: Piece, status: LVMLogicalVolumeStatus, now: datetime, age: float) -> Decision:
    """Report, and wait for something to change on the node: look at the volumes again once the last look is so old."""
    left = age - (now - piece.volumes_at).total_seconds()
    return Decision(status, look_at_volumes=left <= 0, retry_after=max(left, age if left <= 0 else 0.1))


def until_groups_change(piece: Piece, status: LVMLogicalVolumeStatus, now: datetime, age: float) -> Decision:
    """The same with groups."""
    left = age - (now - piece.groups_at).total_seconds()
    return Decision(status, look_at_groups=left <= 0, retry_after=max(left, age if left <= 0 else 0.1))


def failed(status: LVMLogicalVolumeStatus, reason: str, message: str) -> LVMLogicalVolumeStatus:
    """The status of what cannot be used; what is known of it otherwise stays."""
    return replace(status, phase=LogicalVolumePhase.FAILED, reason=reason, message=message)
