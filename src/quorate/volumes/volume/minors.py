"""Device minors: the lowest that is free, unique among all volumes (``rv-status-config-device-minor-controller``, M5).

One key and one worker give them out, from a cache that has its own writes, so no two volumes can get one. If two have
one all the same (somebody wrote it, or a backup was restored), the younger volume loses it, unless it has been formed:
then its device is in use under that name, and a person must decide: an event on it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final

from quorate.api.meta import Resource
from quorate.api.storage import ReplicatedVolume
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, PlanEvent, Reader, Watch

THE_MINORS: Final = Key("", "device-minors")
#: DRBD's largest minor.
LARGEST: Final = 1_048_575
#: So many are given in one pass: a plan is not to grow with the cluster.
AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class Minors:
    """Every volume, by name."""

    volumes: tuple[ReplicatedVolume, ...]


def observe(reader: Reader, _: Key) -> Minors:
    """All of them: uniqueness is a matter of all."""
    return Minors(reader.list(ReplicatedVolume))


def decide(minors: Minors, _: datetime, __: Random) -> Plan:
    """A number for everybody who has none, or has one that an elder has."""
    holders: dict[int, ReplicatedVolume] = {}
    lacking: list[ReplicatedVolume] = []
    for volume in minors.volumes:
        minor = volume.status.drbd.config.device_minor
        if minor is None:
            lacking.append(volume)
        elif minor in holders:
            elder, younger = sorted((holders[minor], volume), key=_age)
            holders[minor] = elder
            lacking.append(younger)
        else:
            holders[minor] = volume
    events = tuple(
        _taken(volume, holders[minor])
        for volume in lacking
        if _is_formed(volume) and not volume.deleting and (minor := _minor(volume)) is not None
    )[:AT_ONCE]
    lacking = [volume for volume in lacking if not volume.deleting and not _is_formed(volume)]
    if not lacking:
        return Plan(events=events) if events else NOTHING
    lacking.sort(key=_age)
    free = (minor for minor in range(LARGEST + 1) if minor not in holders)
    # The pass that sees these goes on with the rest.
    writes = tuple(_write(volume, minor) for volume, minor in zip(lacking[:AT_ONCE], free, strict=False))
    return Plan(writes=writes, events=events)


def _taken(volume: ReplicatedVolume, holder: ReplicatedVolume) -> PlanEvent:
    words = (
        f"device minor {_minor(volume)} is volume {holder.name}'s as well, and both have been formed:"
        " no node can have a replica of both; one of them has to be restored from a copy, or deleted"
    )
    return PlanEvent(volume, "DeviceMinorTaken", words, warning=True)


def _age(volume: ReplicatedVolume) -> tuple[bool, str, str]:
    """Formed ones first: a device that may be in use keeps its name. Then the older."""
    return not _is_formed(volume), str(volume.metadata.creation_timestamp or ""), volume.name


def _is_formed(volume: ReplicatedVolume) -> bool:
    """Whether its members have been told of one another: its device may exist."""
    return bool(volume.status.datamesh.members)


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
    watches=(Watch(ReplicatedVolume, _all, when=_matters),),
    observe=observe,
    decide=decide,
    workers=1,
)
