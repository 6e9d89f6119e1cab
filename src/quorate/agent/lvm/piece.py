"""What a decision about one logical volume looks at, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from quorate.agent.lvm.drives import drive_behind, remembered, still_listed
from quorate.agent.lvm.seen import (
    METADATA_TAG,
    NEW,
    ZERO,
    SeenGroup,
    SeenGroups,
    SeenVolume,
    SeenVolumes,
    is_owner_tag,
    made_for_tag,
    owner_tag,
)
from quorate.agent.machine import FileBeneath
from quorate.agent.memory import Outcome
from quorate.agent.node import volume_work
from quorate.agent.settings import IMAGE_DIRECTORY
from quorate.agent.steps import Step
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import DrbdSettings
from quorate.api.conditions.lvm import LogicalVolumeFailure
from quorate.api.quantity import Quantity
from quorate.api.reserved import why_no_logical_volume
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.llv import LogicalVolumePhase, LVMLogicalVolumeSpec, LVMLogicalVolumeStatus, UsedDevice
from quorate.api.struct import replace

NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Piece:
    """One LVMLogicalVolume and everything that matters for it."""

    llv: LVMLogicalVolume
    lvg: LVMVolumeGroup | None
    #: The replica that it is for; an image's copy has none.
    replica: ReplicatedVolumeReplica | None = None
    #: Whether the kernel last showed the replica's disk as attached, and whether that still holds.
    attached: bool = False
    kernel_current: bool = False
    #: What DRBD makes usable of it, in bytes; None: it is not up.
    device_size: int | None = None
    #: Whether every link of the replica is up, and nothing is being synchronised.
    at_rest: bool = False
    max_peers: int = DrbdSettings().max_peers
    drives: tuple[Drive, ...] = ()
    image_directory: str = IMAGE_DIRECTORY
    #: None: nobody has looked, or what was seen of this volume, or of which groups there are, holds no more.
    volumes: SeenVolumes | None = None
    groups: SeenGroups | None = None
    #: Whether also what was seen of the free space of its group holds. LVM itself refuses what does not fit.
    free_current: bool = True
    #: When those looks were.
    volumes_at: datetime = NEVER
    groups_at: datetime = NEVER
    #: Seconds before either may be looked at again: above zero after looks that failed, and why they did.
    pauses: tuple[float, float] = (0.0, 0.0)
    troubles: tuple[str, str] = ("", "")
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
    def unusable_name(self) -> str:
        """Why LVM must not be given its name, or its pool's; "" if it may, as it was when it made the volume."""
        if self.lvg is None or self.was_created:
            return ""
        given = filter(None, (self.spec.actual_lv_name_on_the_node, self.pool_name))
        return next(filter(None, (why_no_logical_volume(name, self.group_name) for name in given)), "")

    @property
    def source(self) -> FileBeneath | None:
        """The file that it is to be filled from; None also where that would not be one of the node's images."""
        if self.spec.source is None:
            return None
        path = self.spec.source.path.removeprefix(f"{self.image_directory}/")
        if any(part in ("", ".", "..") for part in path.split("/")):
            return None
        return FileBeneath(self.image_directory, path)

    @property
    def group(self) -> SeenGroup | None:
        """The volume group, as far as it was seen."""
        return None if self.groups is None else self.groups.get(self.group_name)

    @property
    def volume(self) -> SeenVolume | None:
        """The volume, as far as it was seen."""
        if self.volumes is None:
            return None
        return self.volumes.get(f"{self.group_name}/{self.spec.actual_lv_name_on_the_node}")

    @property
    def pool(self) -> SeenVolume | None:
        """The thin pool, as far as it was seen."""
        if self.volumes is None or not self.pool_name:
            return None
        found = self.volumes.get(f"{self.group_name}/{self.pool_name}")
        return found if found is not None and found.is_pool else None

    @property
    def spare(self) -> SeenVolume | None:
        """Extents that are being zeroed for this volume to grow by."""
        return None if self.volumes is None else self.volumes.spare_of(self.llv.metadata.uid)

    @property
    def was_created(self) -> bool:
        """Whether it was ever reported as Created. Such a volume may hold data."""
        return self.status.actual_size is not None

    @property
    def made_for(self) -> tuple[str, ...]:
        """What is written on a volume so that it is known again when its object was lost and its replica makes another.

        A name is not enough: the drive of a replica that left may return when another one has its number.
        """
        return tuple(made_for_tag(owner.uid) for owner in self.llv.metadata.owner_references)

    def owns(self, volume: SeenVolume) -> bool:
        """Whether this volume was made for this object, or one before it: its tags say so, or our own report does."""
        if owner_tag(self.llv.metadata.uid) in volume.tags or not volume.tags.isdisjoint(self.made_for):
            return True
        return self.was_created and not any(is_owner_tag(tag) for tag in volume.tags)

    def unaccounted(self, volume: SeenVolume) -> str:
        """Why nobody may throw this volume away, although the API thinks that nothing is on it yet; "" if it does not.

        Metadata are made for members only. If they are there and the replica never was one, the API has forgotten: its
        store was restored from a copy of the time when the volume was being formed.
        """
        if METADATA_TAG not in volume.tags or self.replica is None or self.replica.status.drbd.config.datamesh_revision:
            return ""
        return (
            f"{volume.path} has DRBD's metadata, although {self.replica.name} was never a member, as the API has it. It"
            " may hold data that was forgotten, and is not removed. A person must decide; if it may go, take the tag"
            f" {METADATA_TAG} away."
        )

    def light(self, *steps: Step, group: str = "") -> Work:
        """What is quickly done to this volume; nothing else is done to its group meanwhile."""
        return Work(volume_work(self.llv.name), steps, beside=(group_work(group or self.group_name),))

    def heavy(self, *steps: Step) -> Work:
        """What moves gigabytes."""
        return Work(heavy_work(self.llv.name), steps, heavy=True)


def group_work(group: str) -> str:
    """The name under which a volume group is changed, by one command at a time.

    LVM itself has a lock per group. But who waits for it takes one of the few slots that a node has for commands; and
    between giving extents back and taking them again nobody else of us may come.
    """
    return f"lvm-group/{group}"


def heavy_work(llv: str) -> str:
    """The name under which gigabytes are moved for one volume."""
    return f"lvm-heavy/{llv}"


@dataclass(frozen=True, slots=True)
class Work:
    """Steps to be carried out under a name, with other names held beside it."""

    name: str
    steps: tuple[Step, ...]
    beside: tuple[str, ...] = ()
    #: It takes hours: see ``heavy``.
    heavy: bool = False


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
    unaccounted = piece.unaccounted(volume)
    trouble = volume.trouble and f"Of {volume.group}/{volume.name}: {volume.trouble}."
    return LVMLogicalVolumeStatus(
        phase=LogicalVolumePhase.CREATED,
        reason=LogicalVolumeFailure.LV_EXISTS.code if unaccounted else "",
        message=unaccounted or trouble,
        actual_size=Quantity.of_bytes(volume.size),
        known_zero=ZERO in volume.tags and NEW not in volume.tags and (not volume.pool or zeroing(piece)),
        grown_zero=zeroing(piece) if volume.pool else piece.status.grown_zero or _is_fresh(piece, volume),
        checksum=volume.checksum,
        devices=_devices(piece, volume),
    )


def _is_fresh(piece: Piece, volume: SeenVolume) -> bool:
    """Whether it was just made. Of one that DRBD had before, nobody knows who made it grow."""
    return not piece.was_created and METADATA_TAG not in volume.tags


def zeroing(piece: Piece) -> bool:
    """Whether the thin pool zeroes new blocks."""
    return piece.pool is not None and piece.pool.zeroing


def _devices(piece: Piece, volume: SeenVolume) -> tuple[UsedDevice, ...]:
    paths = piece.volumes.devices_of(volume) if piece.volumes is not None else ()
    found = tuple(UsedDevice(path=path, drive_uuid=drive_behind(path, piece.drives)) for path in paths)
    found = remembered(found, piece.status.devices, piece.drives)
    if not volume.trouble:
        return found
    # A device that is gone is in no report any more. What lay on it is then what people most want to know.
    return still_listed(found, piece.status.devices)


def until_volumes_change(piece: Piece, status: LVMLogicalVolumeStatus, now: datetime, age: float) -> Decision:
    """Report, and wait for something to change on the node: look at the volumes again once the last look is so old."""
    due, again = _due(piece.volumes_at, now, age)
    return Decision(status, look_at_volumes=due, retry_after=again)


def until_groups_change(piece: Piece, status: LVMLogicalVolumeStatus, now: datetime, age: float) -> Decision:
    """The same with groups."""
    due, again = _due(piece.groups_at, now, age)
    return Decision(status, look_at_groups=due, retry_after=again)


def _due(looked: datetime, now: datetime, age: float) -> tuple[bool, float]:
    """Whether a look is that old, and in how many seconds to come back."""
    left = age - (now - looked).total_seconds()
    return (True, age) if left <= 0 else (False, max(left, 0.1))


def failed(status: LVMLogicalVolumeStatus, reason: str, message: str) -> LVMLogicalVolumeStatus:
    """The status of what cannot be used; what is known of it otherwise stays."""
    return replace(status, phase=LogicalVolumePhase.FAILED, reason=reason, message=message)
