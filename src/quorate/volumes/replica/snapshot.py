"""What the reconciler of replicas looks at: the volume's picture, and which disks a drive's procedure keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from quorate.api import names
from quorate.api.baremetal import Volume
from quorate.api.storage import LVMLogicalVolume
from quorate.engine import Key, Reader
from quorate.volumes import places
from quorate.volumes.observe import observe as observe_volume
from quorate.volumes.view import VolumeView

#: Length of what a replica's and its disk's name add to a volume's.
_SUFFIXES: Final = len("-0") + len("-01234567")


@dataclass(frozen=True)
class Snapshot:
    """One volume's replicas."""

    view: VolumeView
    #: Logical volumes that a drive's procedure keeps: nothing is destroyed before a person says ``ready``.
    kept: frozenset[str] = frozenset()

    @cached_property
    def places(self) -> places.Places:
        """What placement says of the replicas that have no place yet."""
        return places.find_places(self.view)


def observe(reader: Reader, key: Key) -> Snapshot | None:
    """Gather it; None when there is no replica."""
    view = observe_volume(reader, key.name)
    if view is None or not view.replicas:
        return None
    return Snapshot(view, frozenset(piece.name for piece in view.pieces if _is_kept(reader, piece)))


def of_kept(volume: Volume) -> Iterable[Key]:
    """The volume whose logical volume a drive's procedure speaks of; they have the same name."""
    return (Key("", volume.name[:-_SUFFIXES]),)


def _is_kept(reader: Reader, piece: LVMLogicalVolume) -> bool:
    """Whether a drive on its way out still has it. Once a person says ``ready``, the drive's procedure deletes it."""
    volume = reader.get(Volume, piece.name, names.NAMESPACE)
    return volume is not None and not volume.deleting and not piece.deleting
