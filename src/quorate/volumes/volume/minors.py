"""Device minors: the lowest that is free, unique among all volumes (``rv-status-config-device-minor-controller``, M5).

One key and one worker give them out, from a cache that has its own writes, so no two volumes can get one. If two have
one all the same (somebody wrote it, or a backup was restored), the younger volume loses it, unless it has been formed:
then its device is in use under that name, and a person must decide: an event on it says so.

A volume that has lost its status has not lost its device: its replicas still say under which number it is. It keeps
that one, and nobody else gets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from quorate.api.meta import Resource
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, PlanEvent, Reader, Watch, no_keys
from quorate.volumes.observe import REPLICAS_INDEX, REPLICAS_OF

THE_MINORS: Final = Key("", "device-minors")
#: DRBD's largest minor.
LARGEST: Final = 1_048_575
#: So many are given in one pass: a plan is not to grow with the cluster.
AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class Minors:
    """Every volume, by name."""

    volumes: tuple[ReplicatedVolume, ...]
    #: By the name of a volume that has none: the number under which its replicas have their devices.
    in_use: Mapping[str, int] = field(default_factory=dict)

    def of(self, volume: ReplicatedVolume) -> int | None:
        """The number that a volume has, or had before it lost its status."""
        minor = volume.status.drbd.config.device_minor
        return minor if minor is not None else self.in_use.get(volume.name)

    def has_device(self, volume: ReplicatedVolume) -> bool:
        """Whether its members have been told of one another: its device may exist."""
        return bool(volume.status.datamesh.members) or volume.name in self.in_use

    def age(self, volume: ReplicatedVolume) -> tuple[bool, str, str]:
        """Formed ones first: a device that may be in use keeps its name. Then the older."""
        return not self.has_device(volume), str(volume.metadata.creation_timestamp or ""), volume.name


def observe(reader: Reader, _: Key) -> Minors:
    """All of them: uniqueness is a matter of all."""
    volumes = reader.list(ReplicatedVolume)
    in_use = {
        volume.name: minor
        for volume in volumes
        if volume.status.drbd.config.device_minor is None
        for replica in reader.find(ReplicatedVolumeReplica, REPLICAS_OF, volume.name)
        if (minor := replica.status.drbd.config.device_minor) is not None
    }
    return Minors(volumes, in_use)


def decide(minors: Minors, _: datetime, __: Random) -> Plan:
    """A number for everybody who has none, or has one that an elder has."""
    holders: dict[int, ReplicatedVolume] = {}
    lacking: list[ReplicatedVolume] = []
    for volume in minors.volumes:
        minor = minors.of(volume)
        if minor is None:
            lacking.append(volume)
        elif minor in holders:
            elder, younger = sorted((holders[minor], volume), key=minors.age)
            holders[minor] = elder
            lacking.append(younger)
        else:
            holders[minor] = volume
    events = tuple(
        _taken(volume, holders[minor], minor)
        for volume in lacking
        if minors.has_device(volume) and not volume.deleting and (minor := minors.of(volume)) is not None
    )[:AT_ONCE]
    lacking = [volume for volume in lacking if not volume.deleting and not minors.has_device(volume)]
    lacking.sort(key=minors.age)
    free = (minor for minor in range(LARGEST + 1) if minor not in holders)
    given = [(volume, minor) for minor, volume in holders.items() if volume.name in minors.in_use]
    given += zip(lacking[:AT_ONCE], free, strict=False)
    # The pass that sees these goes on with the rest.
    writes = tuple(_write(volume, minor) for volume, minor in given[:AT_ONCE])
    return Plan(writes=writes, events=events) if writes or events else NOTHING


def _taken(volume: ReplicatedVolume, holder: ReplicatedVolume, minor: int) -> PlanEvent:
    words = (
        f"device minor {minor} is volume {holder.name}'s as well, and both have been formed:"
        " no node can have a replica of both; one of them has to be restored from a copy, or deleted"
    )
    return PlanEvent(volume, "DeviceMinorTaken", words, warning=True)


def _minor(volume: ReplicatedVolume) -> int | None:
    return volume.status.drbd.config.device_minor


def _write(volume: ReplicatedVolume, minor: int) -> PatchStatus:
    drbd = volume.status.drbd
    drbd = replace(drbd, config=replace(drbd.config, device_minor=minor))
    # With the resourceVersion: a volume that was formed meanwhile must not lose its number.
    return PatchStatus(volume, replace(volume, status=replace(volume.status, drbd=drbd)), if_unchanged=True)


def _all(_: Resource) -> Iterable[Key]:
    return (THE_MINORS,)


def _matters(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> bool:
    """A volume comes, or its number changes. One that goes only frees a number."""
    return after is not None and (before is None or _minor(before) != _minor(after))


MINORS = Controller(
    name="device-minor",
    watches=(Watch(ReplicatedVolume, _all, when=_matters), Watch(ReplicatedVolumeReplica, no_keys)),
    observe=observe,
    decide=decide,
    indexes=(REPLICAS_INDEX,),
    workers=1,
)
