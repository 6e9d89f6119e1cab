"""What the reconciler of replicas looks at: the volume's picture, and what placement says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from quorate.engine import Key, Reader
from quorate.volumes import places
from quorate.volumes.observe import observe as observe_volume
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


def observe(reader: Reader, key: Key) -> Snapshot | None:
    """Gather it; None when there is no replica."""
    view = observe_volume(reader, key.name)
    if view is None or not view.replicas:
        return None
    return Snapshot(view)
