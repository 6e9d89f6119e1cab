"""csi-baremetal Volumes: one for everything that lies on a drive on its way out, and none for anything else.

| a logical volume's group                     | its Volume                                                            |
|----------------------------------------------|-----------------------------------------------------------------------|
| has a drive on its way out                   | made, ``process: start``; the worst of the drives' health is kept     |
| … and a drive may now be emptied for good    | ``given-up``, deleted: what is not needed is destroyed from here on   |
| … and the person takes that word back        | ``given-up`` no more: what has not begun to go stays                  |
| has only drives in service                   | ``process: stop``, deleted, let go                                    |
| the logical volume is gone                   | deleted, let go                                                       |

A Volume that somebody deletes stays, deleting, until its drive has let go of the data: of foreign data that is how its
owner says that it may go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from quorate.api import annotation_keys, finalizers, labels, names
from quorate.api.annotation_keys import Process
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import DriveHealth
from quorate.api.baremetal.volume import LocationType, VolumeSpec
from quorate.api.meta import Bytes, NodeName, ObjectMeta, OwnerReference
from quorate.api.storage import LVMLogicalVolume
from quorate.api.struct import replace
from quorate.disks.images.copies import IMAGE_LABEL
from quorate.drives.view import Group, NodeView, Owner, Piece
from quorate.engine import AddFinalizer, Create, Delete, Patch, ReleaseFinalizer, Write

_WORST_FIRST: Final = (DriveHealth.BAD, DriveHealth.SUSPECT, DriveHealth.UNKNOWN, DriveHealth.GOOD)
_LABELS: Final = (labels.NODE, labels.REPLICATED_VOLUME, IMAGE_LABEL)


def writes(view: NodeView, given_up: Collection[str], withdrawn: Collection[str] = ()) -> Iterator[Write]:
    """The next step for every Volume of a node.

    ``given_up``: groups that nothing need stay in any more; ``withdrawn``: of which that was said, and is not any more.
    """
    for group in view.groups:
        there = {piece.name for piece in group.pieces}
        for piece in group.pieces:
            if piece.volume is None:
                if group.leaving:
                    yield Create(_new(piece.llv, group))
            elif not group.leaving:
                yield from _ended(piece.volume)
            elif group.name in given_up:
                yield from _given_up(piece, piece.volume)
            elif group.name in withdrawn and piece.volume.given_up and not piece.llv.deleting:
                yield _kept_after_all(piece.volume)
            elif piece.owner is not Owner.IMAGE:
                yield _kept_up(piece.volume, group)
        for volume in group.volumes:
            if volume.name not in there:
                yield from _gone(volume)
    for volume in view.lost_volumes:
        yield from _gone(volume)


def worst(drives: Collection[Drive]) -> DriveHealth:
    """How the worst of some drives is."""
    found = [drive.status.health or DriveHealth.UNKNOWN for drive in drives]
    return min(found, key=_WORST_FIRST.index, default=DriveHealth.UNKNOWN)


def _new(piece: LVMLogicalVolume, group: Group) -> Volume:
    said = {
        annotation_keys.VOLUME_HEALTH: worst(group.drives).lower(),
        annotation_keys.RELEASE_PROCESS: Process.START,
    }
    return Volume(
        metadata=ObjectMeta(
            name=piece.name,
            namespace=names.NAMESPACE,
            labels={key: piece.metadata.labels[key] for key in _LABELS if key in piece.metadata.labels},
            annotations=said,
            finalizers=(finalizers.VOLUME_CLEANUP,),
            owner_references=(
                OwnerReference(
                    api_version=piece.KIND.api_version, kind=piece.KIND.name, name=piece.name, uid=piece.metadata.uid
                ),
            ),
        ),
        spec=VolumeSpec(
            id=piece.name,
            location=group.name,
            location_type=LocationType.LVM,
            node_id=NodeName(group.lvg.spec.local.node_name),
            size=Bytes(int(piece.spec.size)),
            owners=tuple(filter(None, (piece.metadata.labels.get(key) for key in _LABELS[1:]))),
        ),
    )


def _kept_up(volume: Volume, group: Group) -> Patch:
    said = {**volume.metadata.annotations, annotation_keys.VOLUME_HEALTH: worst(group.drives).lower()}
    return Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))


def _kept_after_all(volume: Volume) -> Patch:
    said = {key: value for key, value in volume.metadata.annotations.items() if key != annotation_keys.GIVEN_UP}
    return Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))


def _given_up(piece: Piece, volume: Volume) -> Iterator[Write]:
    """With its Volume given up, whoever owns a logical volume deletes it; of foreign data that is us."""
    said = {**volume.metadata.annotations, annotation_keys.GIVEN_UP: "true"}
    yield Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))
    if not volume.deleting:
        yield Delete(volume)
    elif piece.owner is Owner.FOREIGN and not piece.llv.deleting and not _is_claimed(piece.llv):
        # Without its agent's finalizer the object would go, and the bytes would stay.
        held = finalizers.AGENT in piece.llv.metadata.finalizers
        yield Delete(piece.llv) if held else AddFinalizer(piece.llv, finalizers.AGENT)


def _is_claimed(piece: LVMLogicalVolume) -> bool:
    """Whether it says of itself that it is a replica's: one without its replica is for the volume's reconciler."""
    return labels.REPLICATED_VOLUME in piece.metadata.labels


def _ended(volume: Volume) -> Iterator[Write]:
    """The procedure is over: an outside operator is told to stop, and what was kept is let go."""
    if not volume.deleting:
        said = {**volume.metadata.annotations, annotation_keys.RELEASE_PROCESS: Process.STOP}
        yield Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))
    yield from _gone(volume)


def _gone(volume: Volume) -> Iterator[Write]:
    if not volume.deleting:
        yield Delete(volume)
    elif finalizers.VOLUME_CLEANUP in volume.metadata.finalizers:
        yield ReleaseFinalizer(volume, finalizers.VOLUME_CLEANUP, after=())
