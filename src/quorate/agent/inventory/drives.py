"""Drive objects as the drives are: created when first seen, kept up to date, never deleted.

| seen                               | done                                                                           |
|------------------------------------|--------------------------------------------------------------------------------|
| a drive without an object          | created, with the node's label                                                  |
| a drive whose facts differ         | spec as seen                                                                    |
| a drive                            | ONLINE, what it says of itself; a temperature alone is not worth a write        |
| an object whose drive is not there | OFFLINE, since when; what was known of it stays. The drives controller decides |
| neither for sure (``doubtful``)    | nothing: udev has not told all of the drive's identity                          |
| nothing: looks fail                | every object's SMART message says so                                            |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from quorate.agent.inventory.discovery import Discovered, doubtful
from quorate.agent.inventory.looker import Looker
from quorate.agent.inventory.smart import but_for_temperature
from quorate.api import labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveStatus, Presence, SmartReport
from quorate.api.meta import NodeName, ObjectMeta, Resource
from quorate.api.struct import replace
from quorate.engine import Controller, Create, Key, Patch, PatchStatus, Plan, Reader, Signal, Watch, Write

#: All drives of a node are looked at together, so they are one key.
DRIVES_KEY = Key("", "inventory/drives")

_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class DrivesView:
    """The node's drives: as objects, and as they were seen."""

    node: NodeName
    objects: tuple[Drive, ...]
    #: None: nobody has looked, or the last look failed.
    seen: tuple[Discovered, ...] | None
    smart: Mapping[str, SmartReport]
    #: Whether anybody has ever looked, and if not, seconds before it is tried again.
    known: bool = True
    pause: float = 0.0
    #: Why drives cannot be looked at.
    trouble: str = ""
    #: The names of drives by world-wide name, as they were seen before.
    names: Mapping[str, str] = field(default_factory=dict)


def decide(view: DrivesView, now: datetime) -> tuple[Write, ...]:
    """What is to be written. Pure."""
    if view.seen is None:
        return tuple(_complaints(view)) if view.trouble else ()
    return tuple(_writes(view, view.seen, now))


def _complaints(view: DrivesView) -> Iterator[Write]:
    """What is known of the drives stays, but for a word that it is not known any more."""
    message = f"The drives of the node cannot be looked at: {view.trouble}"[:1000]
    for drive in view.objects:
        if not drive.deleting:
            report = replace(drive.status.smart or SmartReport(), message=message)
            yield PatchStatus(drive, replace(drive, status=replace(drive.status, smart=report)))


def _writes(view: DrivesView, seen: tuple[Discovered, ...], now: datetime) -> Iterator[Write]:
    objects = {drive.name: drive for drive in view.objects}
    doubts = doubtful(seen, (drive.spec for drive in view.objects), view.names)
    for found in seen:
        drive = objects.get(found.name)
        if drive is None and found.name in doubts:
            continue
        if drive is None:
            yield Create(_new(view.node, found))
        elif not drive.deleting:
            yield Patch(drive, replace(drive, spec=found.spec))
            yield PatchStatus(drive, replace(drive, status=_present(drive.status, found, view.smart.get(found.name))))
    there = {found.name for found in seen} | set(doubts.values())
    for drive in view.objects:
        if drive.name not in there and not drive.deleting:
            yield PatchStatus(drive, replace(drive, status=_absent(drive.status, now)))


def _new(node: NodeName, found: Discovered) -> Drive:
    return Drive(metadata=ObjectMeta(name=found.name, labels={labels.NODE: node}), spec=found.spec)


def _present(status: DriveStatus, found: Discovered, report: SmartReport | None) -> DriveStatus:
    new = replace(
        status,
        presence=Presence.ONLINE,
        missing_since=None,
        smart=status.smart if report is None else report,
        led_on=found.place.light,
        foreign_data=", ".join(found.foreign)[:_LENGTH],
    )
    same = replace(new, smart=None) == replace(status, smart=None)
    return status if same and but_for_temperature(new.smart) == but_for_temperature(status.smart) else new


def _absent(status: DriveStatus, now: datetime) -> DriveStatus:
    if status.presence is Presence.OFFLINE and status.missing_since is not None:
        return status
    return replace(status, presence=Presence.OFFLINE, missing_since=now)


class Drives:
    """Observes and decides for one node."""

    def __init__(self, node: NodeName, looker: Looker, signal: Signal) -> None:
        self._node = node
        self._looker = looker
        self._signal = signal

    def controller(self) -> Controller[DrivesView]:
        """What the manager runs."""
        return Controller(
            name="inventory-drives",
            watches=(Watch(Drive, _the_key),),
            observe=self.observe,
            decide=self.decide,
            always=(DRIVES_KEY,),
            signals=(self._signal,),
            workers=1,
        )

    def observe(self, reader: Reader, _: Key) -> DrivesView:
        """Gather objects and what was seen."""
        sighting = self._looker.drives
        seen = None if sighting.error else sighting.value
        pause = 0.0 if sighting.known else self._looker.pause()
        return DrivesView(
            self._node,
            reader.list(Drive),
            seen,
            self._looker.smart,
            known=sighting.known,
            pause=pause,
            trouble=self._looker.trouble,
            names=self._looker.names,
        )

    def decide(self, view: DrivesView, now: datetime, _: Random) -> Plan:
        """Write what differs; at the very first, look."""
        writes = decide(view, now)
        if view.known or view.pause:
            return Plan(writes=writes, requeue_after=view.pause or None)
        return Plan(writes=writes, effects=(self._looker.ask_for_drives,))


def _the_key(_: Resource) -> Iterable[Key]:
    return (DRIVES_KEY,)
