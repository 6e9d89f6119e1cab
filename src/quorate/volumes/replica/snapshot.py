"""What a pass over replicas looks at: the volume's picture, and what placement says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from quorate.volumes import places
from quorate.volumes.view import VolumeView


@dataclass(frozen=True)
class Snapshot:
    """One volume's replicas."""

    view: VolumeView

    @property
    def kept(self) -> frozenset[str]:
        """Logical volumes that a drive's procedure keeps: nothing is destroyed before a person says ``ready``."""
        return self.view.kept

    @cached_property
    def places(self) -> places.Places:
        """What placement says of the replicas that have no place yet."""
        return places.find_places(self.view)
