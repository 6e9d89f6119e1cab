"""What a decision about an image looks at: every disk that has, should have, or may still have something of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quorate.api import annotation_keys, conditions, core, labels, names
from quorate.api.annotation_keys import Process
from quorate.api.baremetal import Volume
from quorate.api.conditions.disks import Schedulable
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.backing_image import CopyState
from quorate.api.longhorn.node import DiskStatus
from quorate.api.meta import Bytes, ConditionStatus
from quorate.api.storage import LVMLogicalVolume
from quorate.disks import requests
from quorate.disks.entries import Entry, image, requested
from quorate.disks.images.copies import COPY, IMAGE_LABEL, logical_volume_name, state_of
from quorate.disks.requests import Answer, State
from quorate.engine import Key, Reader

#: DiskSchedules by the images that they have entries of, and LVMLogicalVolumes by the image that they are a copy of.
BY_IMAGE: Final = "image"
#: So many copies may stand as failed; then no further disk is tried.
TRIES: Final = 3

_AWAY: Final = (Schedulable.DISK_NOT_FOUND.code, Schedulable.DISK_NOT_READY.code)
_LEAVING: Final = (Schedulable.UNHEALTHY.code, Schedulable.DELETING.code)


@dataclass(frozen=True, slots=True)
class Copy:
    """A disk, and what of the image is on it."""

    uuid: str
    entry: Entry
    #: Meant to be there.
    intended: bool
    schedule: DiskSchedule | None
    volume: LVMLogicalVolume | None
    #: The size that a copy has on this disk: in whole extents. None: not known.
    size: Bytes | None
    #: The machine that the volume is on does not exist any more.
    machine_gone: bool = False
    #: What the procedure of a drive that leaves says of the volume; None: there is none.
    procedure: Volume | None = None

    @property
    def kept(self) -> bool:
        """A drive's procedure keeps its bytes until a person says ``ready``, whoever deletes its Volume."""
        return self.procedure is not None and not self.procedure.given_up

    @property
    def may_go(self) -> bool:
        """A person has said so, and the drive is being removed. One that stays after all is told to stop first."""
        if self.procedure is None or not self.procedure.given_up:
            return False
        return self.procedure.metadata.annotations.get(annotation_keys.RELEASE_PROCESS) != Process.STOP

    @property
    def answer(self) -> Answer:
        """What the disk says to it."""
        if self.schedule is None or self.size is None:
            return requests.NOT_ASKED
        return requests.read(self.schedule, self.entry, self.size)

    @property
    def held(self) -> bool:
        """Whether a ledger has something of it."""
        return self.schedule is not None and requests.holds(self.schedule, self.entry)

    @property
    def leaving(self) -> bool:
        """On a disk that cannot be trusted, or is being taken away: another copy is made in time."""
        return self._why_closed() in _LEAVING

    def state(self) -> tuple[CopyState, str]:
        """How it is, and what there is to say."""
        away = self._why_closed()
        if self.schedule is None or away in _AWAY:
            return CopyState.UNKNOWN, "the disk is not to be seen"
        if self.volume is None or self.volume.deleting or self.answer.state is not State.GRANTED:
            return CopyState.PENDING, ""
        return state_of(self.volume)

    def _why_closed(self) -> str:
        found = None if self.schedule is None else conditions.find(self.schedule.status.conditions, Schedulable)
        return "" if found is None or found.status is ConditionStatus.TRUE else found.reason


@dataclass(frozen=True, slots=True)
class Candidate:
    """A disk that has nothing of the image."""

    uuid: str
    schedule: DiskSchedule
    size: Bytes


@dataclass(frozen=True, slots=True)
class ImageView:
    """One image, and what there is of it."""

    image: BackingImage
    copies: tuple[Copy, ...] = ()
    #: Logical volumes that belong to no copy (its disk has gone elsewhere), each with whether its machine is gone.
    strays: tuple[tuple[LVMLogicalVolume, bool], ...] = ()
    #: Disks for more copies; looked for only while there are too few.
    candidates: tuple[Candidate, ...] = ()


def observe(reader: Reader, key: Key) -> ImageView | None:
    """Gather the copies, from both maps, from the ledgers and from the logical volumes."""
    found = reader.get(BackingImage, key.name, key.namespace)
    if found is None:
        return None
    if found.namespace != names.NAMESPACE:
        return ImageView(found)
    copies = tuple(_copy(reader, found, uuid) for uuid in _disks(reader, found))
    known = {copy.volume.name for copy in copies if copy.volume is not None}
    strays = tuple(
        (volume, _machine_gone(reader, volume))
        for volume in reader.find(LVMLogicalVolume, BY_IMAGE, found.name)
        if volume.name not in known
    )
    short = not found.deleting and found.spec.size is not None and shortfall(found, copies) > 0
    return ImageView(found, copies, strays, tuple(_candidates(reader, found, copies)) if short else ())


def shortfall(found: BackingImage, copies: Iterable[Copy]) -> int:
    """How many copies are to be begun. Those on the way count; failed, unseen and leaving ones do not."""
    intended = [(copy, copy.state()[0]) for copy in copies if copy.intended]
    if sum(state is CopyState.FAILED for _, state in intended) >= TRIES:
        return 0
    counted = sum(not copy.leaving and state not in (CopyState.FAILED, CopyState.UNKNOWN) for copy, state in intended)
    return max(0, found.spec.min_number_of_copies - counted)


def _disks(reader: Reader, found: BackingImage) -> list[str]:
    """The disks' UUIDs, each once; where only the ledger knows of a copy, as the ledger is named."""
    by_ledger: dict[str, str] = {}
    for uuid in (*found.spec.disk_file_spec_map, *found.status.disk_file_status_map):
        by_ledger.setdefault(names.disk_schedule(uuid), uuid)
    for schedule in reader.find(DiskSchedule, BY_IMAGE, found.name):
        by_ledger.setdefault(schedule.name, schedule.name)
    return sorted(by_ledger.values())


def _copy(reader: Reader, found: BackingImage, uuid: str) -> Copy:
    entry = image(found.name)
    schedule = reader.get(DiskSchedule, names.disk_schedule(uuid), names.NAMESPACE)
    if schedule is None:
        return Copy(uuid, entry, uuid in found.spec.disk_file_spec_map, None, None, None)
    group, _, pool = schedule.spec.name.partition("/")
    volume = reader.get(LVMLogicalVolume, logical_volume_name(found.name, group, pool))
    return Copy(
        uuid,
        entry,
        uuid in found.spec.disk_file_spec_map,
        schedule,
        volume,
        requested(schedule, entry) or _size_on(found, _disk_of(reader, schedule)),
        machine_gone=volume is not None and _machine_gone(reader, volume),
        procedure=reader.get(Volume, volume.name, names.NAMESPACE) if volume is not None else None,
    )


def _candidates(reader: Reader, found: BackingImage, copies: tuple[Copy, ...]) -> Iterable[Candidate]:
    taken = {names.disk_schedule(copy.uuid) for copy in copies}
    for schedule in reader.list(DiskSchedule, names.NAMESPACE):
        node = reader.get(Node, schedule.spec.node_id, names.NAMESPACE)
        disk = _disk_of(reader, schedule)
        size = _size_on(found, disk)
        if schedule.name in taken or schedule.deleting or node is None or disk is None or size is None:
            continue
        said = node.spec.disks.get(schedule.spec.name)
        tags = () if said is None else said.tags
        if set(found.spec.node_selector) <= set(node.spec.tags) and set(found.spec.disk_selector) <= set(tags):
            yield Candidate(disk.disk_uuid, schedule, size)


def _machine_gone(reader: Reader, volume: LVMLogicalVolume) -> bool:
    return reader.get(core.Node, volume.metadata.labels.get(labels.NODE, "")) is None


def _disk_of(reader: Reader, schedule: DiskSchedule) -> DiskStatus | None:
    node = reader.get(Node, schedule.spec.node_id, names.NAMESPACE)
    return None if node is None else node.status.disk_status.get(schedule.spec.name)


def _size_on(found: BackingImage, disk: DiskStatus | None) -> Bytes | None:
    if found.spec.size is None or disk is None:
        return None
    return requests.rounded_up(int(found.spec.size), disk.extent_size)


def images_on(schedule: DiskSchedule) -> Iterable[str]:
    """The images that a ledger speaks of."""
    return dict.fromkeys((*schedule.spec.backing_images, *schedule.status.backing_images))


def image_in(volume: LVMLogicalVolume | Volume) -> Iterable[str]:
    """The image that a logical volume, or what stands for it, is a copy of."""
    if IMAGE_LABEL not in volume.metadata.labels:
        return ()
    return (names.owner_of_logical_volume(volume.name).removesuffix(COPY),)
