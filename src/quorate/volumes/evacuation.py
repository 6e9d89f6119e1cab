"""Evacuation: replicas whose drive is on its way out. Asked for, and ended, by objects of the drive's procedure.

The csi-baremetal Volume of a logical volume has its name. Its annotations say what is to become of the replica on it:

| annotation                      | means here                                                                      |
|---------------------------------|---------------------------------------------------------------------------------|
| ``release: processing``         | a replacement is made, and placed; the old one goes when it is not needed       |
| ``move-to: <replica>``          | … and that one may be copied to: so many at once as the cluster allows          |
| ``process: pause``              | no further step; what is being copied is copied                                 |
| ``process: stop``               | as if nothing had been asked: a replacement that is not needed goes             |
| ``process:`` anything else      | as ``pause``: who does not understand does nothing                              |
| ``health``, unless ``bad``      | politely: no step while the volume is not whole                                 |
| ``copy-lost: true``             | the drive gives nothing any more, and there is no other place: the replica goes |
|                                 | before there is a replacement                                                   |

While the Volume is there, the logical volume stays, and with it the replica's object, deleting and down: nothing is
destroyed before a person says so (``quorate.volumes.replica``). Deleting the Volume does not say so: only the drive's
procedure does, by ``given-up: true``, once a person is ready and the broker permits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.api import annotation_keys, names
from quorate.api.annotation_keys import Process, Release
from quorate.api.baremetal import Volume
from quorate.api.baremetal.drive import DriveHealth
from quorate.api.scalars import ReplicaName
from quorate.engine import Key, Reader

if TYPE_CHECKING:
    from quorate.api.storage import LVMLogicalVolume


@dataclass(frozen=True, slots=True)
class Evacuation:
    """A replica is to leave its disk."""

    #: Only while the volume is whole.
    polite: bool = False
    #: No further step.
    paused: bool = False
    #: The replica that may be copied to; None: it is not its turn yet.
    to: ReplicaName | None = None
    #: There is nothing on the disk that could be copied or missed.
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Procedures:
    """What drives' procedures say of one volume's logical volumes, by name."""

    #: To be left.
    evacuations: Mapping[str, Evacuation]
    #: To be kept whatever becomes of their replicas.
    kept: frozenset[str] = frozenset()


NONE: Final = Procedures({})


def observe(reader: Reader, pieces: tuple[LVMLogicalVolume, ...]) -> Procedures:
    """Look it up for each."""
    asked: dict[str, Evacuation] = {}
    kept: set[str] = set()
    for piece in pieces:
        volume = reader.get(Volume, piece.name, names.NAMESPACE)
        if volume is None:
            continue
        if (evacuation := read(volume)) is not None:
            asked[piece.name] = evacuation
        if not (volume.given_up or piece.deleting):
            kept.add(piece.name)
    return Procedures(asked, frozenset(kept)) if asked or kept else NONE


def read(volume: Volume | None) -> Evacuation | None:
    """What a Volume asks for; None: nothing."""
    if volume is None:
        return None
    said = volume.metadata.annotations
    process = process_of(volume)
    begun = said.get(annotation_keys.RELEASE) in (Release.PROCESSING, Release.COMPLETED)
    if not begun or process is Process.STOP:
        return None
    to = said.get(annotation_keys.MOVE_TO)
    return Evacuation(
        polite=is_polite(volume),
        paused=process is not Process.START,
        to=ReplicaName(to) if to else None,
        lost=is_lost(volume),
    )


def process_of(volume: Volume) -> Process | None:
    """What is to be done, in upper or lower case; None: it says something that means nothing."""
    said = volume.metadata.annotations.get(annotation_keys.RELEASE_PROCESS, Process.START).strip().lower()
    return Process(said) if said in tuple(Process) else None


def is_polite(volume: Volume) -> bool:
    """Whether each step waits until the volume is whole: unless the drive is known to be bad."""
    return volume.metadata.annotations.get(annotation_keys.VOLUME_HEALTH) != DriveHealth.BAD.lower()


def is_lost(volume: Volume) -> bool:
    """Whether its Volume says that there is nothing on the disk that could be copied or missed."""
    return volume.metadata.annotations.get(annotation_keys.COPY_LOST) == "true"


def of_volume(volume: Volume) -> tuple[Key, ...]:
    """The replicated volume whose logical volume a drive's procedure speaks of; they have the same name."""
    return (Key("", names.owner_of_logical_volume(volume.name).rpartition("-")[0]),)
