"""A replica's logical volume, from the granted space to the returned space: 000's ``rvr-volume-controller``.

| the replica                                             | its logical volume                                        |
|---------------------------------------------------------|-----------------------------------------------------------|
| Diskful, its disk chosen, the space granted             | made, with both finalizers (M33), at the size that DRBD   |
|                                                         | needs for the usable size, in whole extents               |
| the same, its disk chosen by a person                   | its disk is asked for the space first                     |
| the volume begins to grow (``status.growingTo``)        | is told the larger size                                   |
| not Diskful, and the kernel has no disk any more        | deleted                                                   |
| moved to another disk, and the kernel has that one      | the former is deleted                                     |
| being deleted, and may let go (``leaving``)             | deleted                                                   |

A deleted one is let go of when DRBD no longer holds it and no drive's procedure keeps it; its agent then removes it, or
nobody does, where the core Node is gone. Only after that the space is given back (M31). What a replica that is gone has
left is the volume's business (``quorate.volumes.volume.leftovers``).

``zeroed`` is never asked for: zeroing a whole disk takes as long as the first copy that it would save.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.api import core, finalizers, labels, names
from quorate.api.longhorn import DiskSchedule
from quorate.api.meta import Bytes, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.drbd import DiskState, ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase, LogicalVolumeType, LVMLogicalVolumeSpec, ThinSource
from quorate.api.struct import replace
from quorate.disks import entries, requests
from quorate.engine import Create, Delete, NoneLeft, Patch, ReleaseFinalizer, Write
from quorate.engine.selectors import match
from quorate.volumes.datamesh import disk_path
from quorate.volumes.replica import leaving
from quorate.volumes.replica.lv_name import name_on_the_node
from quorate.volumes.replica.owners import owner_reference, with_owner
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.sizes import size_needed
from quorate.volumes.view import ReplicaView, VolumeView, disk_of

_USABLE = (LogicalVolumePhase.CREATED, LogicalVolumePhase.RESIZING)


def writes(snapshot: Snapshot, replica: ReplicaView) -> Iterator[Write]:
    """The next steps for one replica's logical volumes and their space; each is seen before what follows from it."""
    view = snapshot.view
    intended = intended_volume(replica)
    for volume in replica.volumes:
        if volume is intended:
            yield from _kept_up(view, replica, volume)
        elif volume.deleting:
            yield from _let_go(snapshot, replica, volume)
        elif _may_be_deleted(snapshot, replica, volume):
            yield Delete(volume)
    if _is_to_have_one(replica) and replica.logical_volume is None:
        yield from _made(view, replica)
    yield from returns(view, replica)


def intended_volume(replica: ReplicaView) -> LVMLogicalVolume | None:
    """The logical volume that the replica is to have, if it is there and not on its way out."""
    volume = replica.logical_volume
    return volume if volume is not None and not volume.deleting and _is_to_have_one(replica) else None


def is_usable(volume: LVMLogicalVolume) -> bool:
    """Whether it is there, with contents that are ours to use."""
    return volume.status.phase in _USABLE and volume.status.actual_size is not None


def name_to_report(replica: ReplicaView) -> str:
    """``status.lvmLogicalVolumeName``: set once it can be used, cleared when it is gone."""
    intended = intended_volume(replica)
    if intended is not None and is_usable(intended):
        return intended.name
    known = replica.replica.status.lvm_logical_volume_name
    return known if any(volume.name == known for volume in replica.volumes) else ""


def granted(replica: ReplicaView) -> Bytes:
    """What the ledger of the chosen disk has granted."""
    ledger = ledger_of(replica)
    return requests.granted_size(ledger, entries.replica(replica.name)) if ledger is not None else Bytes(0)


def ledger_of(replica: ReplicaView) -> DiskSchedule | None:
    """The ledger of the chosen disk, as far as it knows the replica."""
    spec = replica.replica.spec
    if spec.lvm_volume_group_name is None:
        return None
    disk = names.disk(spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name or "")
    return next((ledger for ledger in replica.ledgers if ledger.spec.name == disk), None)


def returns(view: VolumeView, replica: ReplicaView) -> Iterator[Write]:
    """Space that a replica gives back at its end, on disks where nothing of it is left (M31).

    What a living replica asks for, or has left on another disk, is the volume's business (``places``).
    """
    if not leaving.is_leaving(replica.replica) or leaving.hindrance(view, replica) is not None:
        return
    there = {volume.name for volume in replica.volumes}
    for ledger in replica.ledgers:
        group, _, pool = ledger.spec.name.partition("/")
        gone = names.logical_volume(replica.name, group, pool) not in there
        if gone and replica.name in ledger.spec.replicas:
            yield requests.withdraw(ledger, entries.replica(replica.name))


def holds_no_disk(replica: ReplicaView) -> bool:
    """Whether DRBD has let go of the replica's disk: by a living agent's word, or because there is no machine."""
    if replica.node is None or replica.node.gone:
        return True
    return replica.fresh and disk_of(replica.report) in (DiskState.DISKLESS, DiskState.UNKNOWN, "")


def _is_to_have_one(replica: ReplicaView) -> bool:
    spec = replica.replica.spec
    chosen = replica.diskful and spec.node_name is not None and spec.lvm_volume_group_name is not None
    return chosen and not leaving.is_leaving(replica.replica)


def _made(view: VolumeView, replica: ReplicaView) -> Iterator[Write]:
    """A new one, once the space is granted and the replica's own finalizers are seen."""
    object_, group, size = replica.replica, replica.group, size_needed(view, replica)
    ready = set(finalizers.OF_A_NEW_REPLICA) <= set(object_.metadata.finalizers) and not object_.deleting
    if view.rv is None or view.rv.deleting or not ready or group is None or size is None:
        return
    if granted(replica) < size:
        yield from _asked(view, replica, size)
        return
    spec = object_.spec
    pool, group_name = spec.lvm_volume_group_thin_pool_name or "", group.name
    name = names.logical_volume(replica.name, group_name, pool)
    yield Create(
        LVMLogicalVolume(
            metadata=ObjectMeta(
                name=name,
                labels={
                    labels.NODE: spec.node_name or "",
                    labels.REPLICATED_VOLUME: labels.value(spec.replicated_volume_name),
                    labels.LVM_VOLUME_GROUP: labels.value(group_name),
                    labels.VOLUME_UID: view.rv.metadata.uid,
                },
                finalizers=finalizers.OF_A_NEW_LOGICAL_VOLUME,
                owner_references=(owner_reference(object_),),
            ),
            spec=LVMLogicalVolumeSpec(
                actual_lv_name_on_the_node=name_on_the_node(name, group.spec.actual_vg_name_on_the_node),
                type=LogicalVolumeType.THIN if pool else LogicalVolumeType.THICK,
                size=Quantity.of_bytes(size),
                lvm_volume_group_name=group_name,
                thin=ThinSource(pool_name=pool) if pool else None,
            ),
        )
    )


def _asked(view: VolumeView, replica: ReplicaView, size: Bytes) -> Iterator[Write]:
    """The space of a disk that a person chose, asked for: placement does that for whom it places (``places``).

    A disk that says no is let be, and asked again when it could give more (M30).
    """
    entry, ledger = entries.replica(replica.name), ledger_of(replica)
    if ledger is not None and requests.read(ledger, entry, size).state is requests.State.REJECTED:
        yield requests.withdraw(ledger, entry)
    elif (
        replica.unasked is not None
        and view.offers(replica.replica)
        and requests.refusal(replica.unasked, entry, size) is None
    ):
        yield requests.ask(replica.unasked, entry, size)


def refused(replica: ReplicaView, size: Bytes) -> str:
    """Why the disk that was chosen gives no space, as its ledger says; "" if it is not known to give none."""
    entry, ledger = entries.replica(replica.name), ledger_of(replica) or replica.unasked
    if ledger is None:
        return ""
    said = requests.read(ledger, entry, size).refusal or requests.refusal(ledger, entry, size)
    return f": {said.reason}: {said.message}" if said is not None else ""


def _kept_up(view: VolumeView, replica: ReplicaView, volume: LVMLogicalVolume) -> Iterator[Write]:
    """Its owner, and its size: larger when granted, never smaller."""
    size, spec, references = size_needed(view, replica), volume.spec, volume.metadata.owner_references
    if size is not None and int(spec.size) < size <= granted(replica):
        spec = replace(spec, size=Quantity.of_bytes(size))
    owner = owner_reference(replica.replica)
    if owner not in references:
        references = with_owner(references, owner)
    if spec is not volume.spec or references is not volume.metadata.owner_references:
        metadata = replace(volume.metadata, owner_references=references)
        yield Patch(volume, replace(volume, metadata=metadata, spec=spec))


def _may_be_deleted(snapshot: Snapshot, replica: ReplicaView, volume: LVMLogicalVolume) -> bool:
    view = snapshot.view
    if leaving.is_leaving(replica.replica):
        kept = volume.name in snapshot.kept and leaving.has_a_copy(replica) and not leaving.is_ending(view)
        return not kept and leaving.hindrance(view, replica) is None
    if replica.replica.deleting or view.rv is None or leaving.status_is_lost(view) or volume.name in snapshot.kept:
        return False
    status, member = replica.replica.status, replica.member
    if not replica.diskful:
        no_copy = member is None or member.type is not ReplicaType.DISKFUL
        return no_copy and status.actual_type is replica.type and holds_no_disk(replica)
    return _is_former(replica, volume)


def _has_disk_of(replica: ReplicaView, volume: LVMLogicalVolume) -> bool:
    actual = replica.replica.status.drbd.actual
    return actual.disk == disk_path(replica) and actual.metadata_created == volume.name


def _let_go(snapshot: Snapshot, replica: ReplicaView, volume: LVMLogicalVolume) -> Iterator[Write]:
    """One that is being deleted, by whomever: a copy that a member has is kept all the same."""
    if finalizers.CONTROLLER in volume.metadata.finalizers:
        spare = _is_former(replica, volume) or holds_no_disk(replica)
        if spare and not is_needed(snapshot.view, replica, volume):
            yield ReleaseFinalizer(volume, finalizers.CONTROLLER, after=())
    elif replica.node is None or replica.node.gone:
        yield _in_the_agents_stead(volume)


def is_needed(view: VolumeView, replica: ReplicaView, volume: LVMLogicalVolume) -> bool:
    """Whether a logical volume holds a copy that counts, whoever wants it gone."""
    if leaving.is_leaving(replica.replica):
        return leaving.hindrance(view, replica) is not None
    has_copy = replica.member is not None and replica.member.type is ReplicaType.DISKFUL
    return has_copy and not _is_former(replica, volume)


def _is_former(replica: ReplicaView, volume: LVMLogicalVolume) -> bool:
    """Whether the kernel has the disk that is chosen now, and this is another one."""
    current = replica.logical_volume
    return current is not None and volume is not current and replica.fresh and _has_disk_of(replica, current)


def _in_the_agents_stead(volume: LVMLogicalVolume) -> Write:
    """Nobody is left who could remove it: the one case in which we let go for an agent."""
    machine = NoneLeft(core.Node, fields=match({"metadata.name": volume.metadata.labels.get(labels.NODE, "")}))
    return ReleaseFinalizer(volume, finalizers.AGENT, after=(machine,))
