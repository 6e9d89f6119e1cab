"""What the disks controller says of an LVMVolumeGroup itself: whose it is, whether it can be used, and may go.

People create groups and do not know the label by which agents find theirs, so it is set here. What is on the node is
reported by its agent, in status; the condition is composed here, because only we know when the agent has gone silent.

A group is held from the first look on: without its object nobody would know what is in it, and the drive under it would
count as empty. It is let go when

| nothing is left of            | because                                                                             |
|-------------------------------|-------------------------------------------------------------------------------------|
| LVMLogicalVolumes in it       | they stand for replicas and copies of images                                        |
| entries in its disks' ledgers | whoever has the space makes a logical volume of it; the ledgers give nothing more   |
| logical volumes of ours       | by its agent's last word; unless the node is gone (no Node object, no agent heard), |
| without an object             | and with it whoever could remove them. Not somebody else's: they are told of at     |
|                               | their drive then                                                                    |
| drives that are being removed | their agent takes apart only what it knows for ours; unless the node is gone        |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quorate.api import conditions, finalizers, labels, names
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.conditions import Verdict
from quorate.api.conditions.disks import Schedulable
from quorate.api.conditions.lvm import Ready, Removable
from quorate.api.longhorn import DiskSchedule, Node
from quorate.api.longhorn.disk_schedule import EntryState
from quorate.api.longhorn.node import MAX_ORPHANS
from quorate.api.meta import NodeName
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.lvg import LVMVolumeGroup, VolumeGroupPhase
from quorate.api.struct import replace
from quorate.disks.entries import Sort, all_answers, all_requests
from quorate.disks.images.copies import IMAGE_LABEL
from quorate.disks.space import disks_of
from quorate.engine import AddFinalizer, Index, NoneLeft, Patch, PatchStatus, PlanEvent, Reader, ReleaseFinalizer, Write
from quorate.engine.selectors import match

PIECES_IN: Final = "logical volumes in a group"
PIECES_INDEX: Final = Index(LVMLogicalVolume, PIECES_IN, lambda piece: (piece.spec.lvm_volume_group_name,))

_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a group that is being deleted."""

    pieces: tuple[LVMLogicalVolume, ...] = ()
    #: Of its disks, where they are.
    ledgers: tuple[DiskSchedule, ...] = ()
    #: Under it.
    drives: tuple[Drive, ...] = ()
    #: Logical volumes in it that no object stands for, and that are not ours, for sure.
    foreign: frozenset[str] = frozenset()


def contents(reader: Reader, group: LVMVolumeGroup, agent: str) -> Contents:
    """Gather it. ``agent``: who holds the node's Lease."""
    found = (reader.get(DiskSchedule, names.disk_schedule(space.uuid), names.NAMESPACE) for space in disks_of(group))
    # A disk that was carried to another node took its ledger along.
    here = (NodeName(group.spec.local.node_name), group.name)
    ledgers = (each for each in found if each is not None and (each.spec.node_id, _group_of(each)) == here)
    under = (reader.get(Drive, device.drive_uuid) for device in group.status.devices if device.drive_uuid)
    drives = tuple(drive for drive in under if drive is not None)
    pieces = reader.find(LVMLogicalVolume, PIECES_IN, group.name)
    inventory = reader.get(Node, group.spec.local.node_name, names.NAMESPACE)
    return Contents(pieces, tuple(ledgers), drives, _foreign(group, inventory, agent))


def _foreign(group: LVMVolumeGroup, inventory: Node | None, agent: str) -> frozenset[str]:
    """What is in it and neither an object's nor an orphan: of ours would be one, if its agent has looked everywhere."""
    if inventory is None or not agent or inventory.status.orphans_reported_by != agent:
        return frozenset()
    orphans = inventory.status.orphans
    if len(orphans) >= MAX_ORPHANS:
        return frozenset()  # Not all are listed.
    return frozenset(group.status.unmanaged_volumes).difference(orphan.name for orphan in orphans)


def look_after(group: LVMVolumeGroup, agent_is_fresh: bool, now: datetime) -> tuple[Write, ...]:
    """Label and finalizer, where they are missing: before anything is told of it. Then the condition."""
    if is_new(group):
        return (AddFinalizer(group, finalizers.CONTROLLER, labels=_missing_label(group)),)
    return _labelled(group), _judged(group, [readiness(group, agent_is_fresh)], now)


def is_new(group: LVMVolumeGroup) -> bool:
    """Whether it is not held yet, and may be."""
    return not group.deleting and finalizers.CONTROLLER not in group.metadata.finalizers


def let_go(
    group: LVMVolumeGroup, found: Contents, *, node_is_known: bool, agent_is_fresh: bool, now: datetime
) -> tuple[Write, ...]:
    """The next step for a group that is being deleted: why it stays, or that it goes."""
    verdict = removability(group, found, node_is_known=node_is_known)
    if verdict.reason == Removable.EMPTY.code:
        left = NoneLeft(LVMLogicalVolume, labels=match({labels.LVM_VOLUME_GROUP: labels.value(group.name)}))
        return (ReleaseFinalizer(group, finalizers.CONTROLLER, after=(left,)),)
    return (_judged(group, [readiness(group, agent_is_fresh), verdict], now),)


def events(group: LVMVolumeGroup, found: Contents, *, node_is_known: bool) -> Iterator[PlanEvent]:
    """That it waits, once."""
    verdict = removability(group, found, node_is_known=node_is_known)
    known = conditions.find(group.status.conditions, Removable)
    if verdict.reason == Removable.NOT_EMPTY.code and (known is None or known.reason != verdict.reason):
        yield PlanEvent(group, "DeletionWaits", verdict.message, warning=True)


def removability(group: LVMVolumeGroup, found: Contents, *, node_is_known: bool) -> Verdict:
    """Whether the object may go."""
    held = list(dict.fromkeys(_held_by(group, found, node_is_known)))
    if held:
        message = f"{group.name} holds {', '.join(held)}. It stays until these have left."
        return Removable.NOT_EMPTY(message if len(message) <= _LENGTH else f"{message[:_LENGTH]}…")
    if any(not _is_closed(ledger) for ledger in found.ledgers):
        return Removable.CLOSING()
    # By the group's object its agent knows the group for ours, when it takes the device apart.
    leaving = [drive for drive in found.drives if drive.leaving and drive.phase is not OperationalStatus.REMOVED]
    if leaving and node_is_known:
        named = ", ".join(f"{drive.spec.serial_number} ({drive.phase})" for drive in leaving)
        return Removable.DRIVE_LEAVES(f"Nothing is in {group.name}. It goes when drive {named} has been removed.")
    return Removable.EMPTY()


def readiness(group: LVMVolumeGroup, agent_is_fresh: bool) -> Verdict:
    """Whether the group and its pools can be used."""
    status = group.status
    if not agent_is_fresh:
        return Ready.AGENT_NOT_READY()
    if status.phase is VolumeGroupPhase.READY:
        return Ready.READY()
    if not status.vg_uuid:
        return Ready.VOLUME_GROUP_NOT_FOUND(status.message)
    if any(not pool.ready for pool in status.thin_pools):
        return Ready.THIN_POOL_NOT_READY(status.message)
    return Ready.VOLUME_GROUP_INCOMPLETE(status.message)


def _held_by(group: LVMVolumeGroup, found: Contents, node_is_known: bool) -> Iterator[str]:
    """By the names that people gave."""
    for piece in found.pieces:
        image = piece.metadata.labels.get(IMAGE_LABEL)
        if image:
            yield f"a copy of image {image}"
        elif piece.volume_name:
            yield f"replica {names.owner_of_logical_volume(piece.name)} of volume {piece.volume_name}"
        else:
            yield f"LVMLogicalVolume {piece.name}"
    for ledger in found.ledgers:
        refused = {entry for entry, answer in all_answers(ledger) if _is_refused(answer.state, answer.scheduled_size)}
        asked = (entry for entry, _ in (*all_requests(ledger), *all_answers(ledger)))
        for entry in dict.fromkeys(asked):
            if entry not in refused and not _has_piece(found.pieces, entry.name):
                what = "replica" if entry.sort is Sort.REPLICA else "image"
                yield f"space of {what} {entry.name} (DiskSchedule {ledger.name})"
    if node_is_known:
        left = (place for place in group.status.unmanaged_volumes if place not in found.foreign)
        yield from (f"logical volume {place}, which no object stands for" for place in left)


def _has_piece(pieces: Iterable[LVMLogicalVolume], owner: str) -> bool:
    return any(
        owner in (names.owner_of_logical_volume(piece.name), piece.metadata.labels.get(IMAGE_LABEL)) for piece in pieces
    )


def _is_refused(state: EntryState, size: int) -> bool:
    return state is EntryState.REJECTED and not size


def _is_closed(ledger: DiskSchedule) -> bool:
    """Whether it has seen that its group is being deleted: whatever is asked from here on is refused."""
    found = conditions.find(ledger.status.conditions, Schedulable)
    seen = ledger.status.observed_generation == ledger.metadata.generation
    return seen and found is not None and found.reason in (Schedulable.DELETING.code, Schedulable.DISK_NOT_FOUND.code)


def _group_of(ledger: DiskSchedule) -> str:
    return ledger.spec.name.partition("/")[0]


def _missing_label(group: LVMVolumeGroup) -> dict[str, str]:
    return {} if labels.NODE in group.metadata.labels else {labels.NODE: group.spec.local.node_name}


def _labelled(group: LVMVolumeGroup) -> Patch:
    metadata = group.metadata
    marked = {**metadata.labels, **_missing_label(group)}
    return Patch(group, replace(group, metadata=replace(metadata, labels=marked)))


def _judged(group: LVMVolumeGroup, verdicts: list[Verdict], now: datetime) -> PatchStatus:
    merged = conditions.merge(group.status.conditions, verdicts, now=now, generation=group.metadata.generation)
    return PatchStatus(group, replace(group, status=replace(group.status, conditions=merged)))
