"""Markers on Nodes, Drives and replicas: what the ledger says of them, as annotations for others to read.

``maintenance.quorate.io/marker`` is what a person said, on any of the three; ``maintenance.quorate.io/monitor``, on a
Drive, is what the disk monitor thinks. Whoever changes either by hand sees it put right: a marker is set through the
broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final

from quorate.api import core
from quorate.api.annotation_keys import MARKER, MONITOR
from quorate.api.baremetal import Drive
from quorate.api.meta import NodeName, Resource
from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, Patch, Plan, Reader, Signal, Watch
from quorate.maintenance.broker.book import MONITOR as THE_MONITOR
from quorate.maintenance.entries import Ledger, MarkerEntry
from quorate.maintenance.live.numbers import Names
from quorate.maintenance.nouns import DriveId, VDiskId, parse_device

_NODE, _DRIVE, _REPLICA = "node", "drive", "replica"
_NODE_ITEM: Final = "node-"
_KINDS: Final[Mapping[str, type[Resource]]] = {_NODE: core.Node, _DRIVE: Drive, _REPLICA: ReplicatedVolumeReplica}


def key_of_item(names: Names, item: str) -> Key | None:
    """The object that a marker's item stands for; None: there is none (any more)."""
    device = parse_device(item)
    if isinstance(device, DriveId):
        topic, name = _DRIVE, names.object_of(device)
    elif isinstance(device, VDiskId):
        topic, name = _REPLICA, names.object_of(device)
    else:
        number = item.removeprefix(_NODE_ITEM)
        topic, name = _NODE, names.object_of(int(number)) if number.isdecimal() else None
    return Key(topic, name) if name is not None else None


@dataclass(frozen=True, slots=True)
class Marked:
    """An object, and what its annotations should say."""

    obj: Resource
    intended: Mapping[str, str]


class MarkerProjection:
    """The controller. Its keys are a sort of thing and a name."""

    def __init__(self, ledger: Callable[[], Ledger], names: Names) -> None:
        self._ledger = ledger
        self._names = names
        self.signal = Signal()

    def controller(self) -> Controller[Any]:
        """Woken by the objects, where their markers change, and by the ledger's."""
        return Controller(
            name="marker-projection",
            watches=(
                Watch(core.Node, _topic(_NODE), when=_markers_changed),
                Watch(Drive, _topic(_DRIVE), when=_markers_changed),
                Watch(ReplicatedVolumeReplica, _topic(_REPLICA), when=_markers_changed),
            ),
            observe=self._observe,
            decide=decide,
            signals=(self.signal,),
        )

    def wake(self, item: str) -> None:
        """A marker has changed."""
        if (key := key_of_item(self._names, item)) is not None:
            self.signal.wake(key)

    def wake_all(self) -> None:
        """The ledger was read anew."""
        for marker in self._ledger().markers:
            self.wake(marker.item)

    def _observe(self, reader: Reader, key: Key) -> Marked | None:
        obj = reader.get(_KINDS[key.namespace], key.name)
        if obj is None:
            return None
        items = self._items_of(key)
        found = [marker for marker in self._ledger().markers if marker.item in items] if items else []
        return Marked(obj, _intended(found, drive=key.namespace == _DRIVE))

    def _items_of(self, key: Key) -> frozenset[str]:
        """What an object is called in the ledger."""
        match key.namespace:
            case "node":
                return frozenset({f"{_NODE_ITEM}{self._names.nodes.of(NodeName(key.name))}"})
            case "drive":
                number = self._names.drives.of(key.name)
                return frozenset(marker.item for marker in self._ledger().markers if _is_drive(marker.item, number))
            case _:
                number = self._names.replicas.of(ReplicaName(key.name))
                return frozenset(marker.item for marker in self._ledger().markers if _is_vdisk(marker.item, number))


def decide(marked: Marked, _: datetime, __: Random) -> Plan:
    """Put the annotations right."""
    metadata = marked.obj.metadata
    kept = {key: value for key, value in metadata.annotations.items() if key not in (MARKER, MONITOR)}
    annotations = {**kept, **marked.intended}
    if annotations == metadata.annotations:
        return NOTHING
    return Plan(writes=(Patch(marked.obj, replace(marked.obj, metadata=replace(metadata, annotations=annotations))),))


def _intended(markers: Iterable[MarkerEntry], *, drive: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for marker in markers:
        if marker.by != THE_MONITOR:
            found[MARKER] = marker.marker
        elif drive:
            found[MONITOR] = marker.marker
    return found


def _is_drive(item: str, number: int) -> bool:
    device = parse_device(item)
    return isinstance(device, DriveId) and device.drive == number


def _is_vdisk(item: str, number: int) -> bool:
    device = parse_device(item)
    return isinstance(device, VDiskId) and device.vdisk == number


def _topic(topic: str) -> Callable[[Resource], Iterable[Key]]:
    return lambda obj: (Key(topic, obj.name),)


def _markers_changed(before: Resource | None, after: Resource | None) -> bool:
    """Resync looks at everything once; otherwise only objects whose annotations say something else than before."""
    return _said(before) != _said(after)


def _said(obj: Resource | None) -> tuple[str | None, str | None]:
    found = obj.metadata.annotations if obj is not None else {}
    return found.get(MARKER), found.get(MONITOR)
