"""What lies on drives and is no replica: how far copies of images, and data of others, are from being released.

| what             | released when                                                                                 |
|------------------|-----------------------------------------------------------------------------------------------|
| copy of an image | as many good copies as there should be are elsewhere; the image's own reconciler makes them   |
| foreign data     | its Volume object is deleted: its owner says that it may go                                   |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from quorate.api import annotation_keys, conditions
from quorate.api.annotation_keys import Release
from quorate.api.baremetal import Volume
from quorate.api.baremetal.volume import VolumeUsage
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Released
from quorate.api.longhorn.backing_image import CopyState
from quorate.api.struct import replace
from quorate.drives.objects import worst
from quorate.drives.view import Group, NodeView, Owner, Piece
from quorate.engine import Patch, PatchStatus, Write


def writes(view: NodeView, given_up: Collection[str], now: datetime) -> Iterator[Write]:
    """The annotations and the status of every such Volume. ``given_up``: groups whose Volumes are being deleted."""
    for group in view.groups:
        for piece in group.pieces if group.leaving else ():
            volume = piece.volume
            if volume is None or piece.owner is Owner.REPLICA or (group.name in given_up and not volume.deleting):
                continue
            verdict = _copy(piece, group) if piece.owner is Owner.IMAGE else _foreign(volume)
            released = verdict.reason == Released.RELEASED.code
            if piece.owner is Owner.IMAGE and not volume.deleting:
                yield _told(volume, group, released)
            usage = VolumeUsage.RELEASED if released else VolumeUsage.RELEASING
            status = replace(
                volume.status,
                observed_generation=volume.metadata.generation,
                health=worst(group.drives),
                usage=usage,
                message="" if released else verdict.message,
                conditions=conditions.merge(volume.status.conditions, [verdict], now=now),
            )
            yield PatchStatus(volume, replace(volume, status=status))


def _copy(piece: Piece, group: Group) -> Verdict:
    image = piece.image
    if image is None:
        return Released.RELEASED()
    disks = {group.lvg.status.vg_uuid, *(pool.uuid for pool in group.lvg.status.thin_pools)}
    here = {uuid.lower() for uuid in disks}
    elsewhere = [
        uuid
        for uuid, copy in image.status.disk_file_status_map.items()
        if copy.state is CopyState.READY and uuid.lower() not in here
    ]
    intended = image.spec.min_number_of_copies
    # Its own reconciler leaves out copies on other disks that cannot be trusted either, as soon as it knows.
    good = min(len(elsewhere), image.status.ready_copies)
    if good >= intended:
        return Released.RELEASED()
    return Released.RELEASING(f"{good} of {intended} copies of image {image.name} are ready elsewhere")


def _foreign(volume: Volume) -> Verdict:
    return Released.RELEASED() if volume.deleting else Released.WAITING_FOR_DELETION()


def _told(volume: Volume, group: Group, released: bool) -> Patch:
    said = {
        **volume.metadata.annotations,
        annotation_keys.VOLUME_HEALTH: worst(group.drives).lower(),
        annotation_keys.RELEASE: Release.COMPLETED if released else Release.PROCESSING,
        annotation_keys.RELEASE_RECOVERY: "100" if released else "0",
    }
    return Patch(volume, replace(volume, metadata=replace(volume.metadata, annotations=said)))
