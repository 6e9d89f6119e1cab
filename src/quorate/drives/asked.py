"""What people, the broker and its monitor say of a drive, by annotations. Unknown words say nothing but are told of."""

from __future__ import annotations

from quorate.api import annotation_keys, core
from quorate.api.annotation_keys import DRIVE_HEALTH, DRIVE_REPLACEMENT, Replacement
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveHealth
from quorate.api.maintenance.action import Marker
from quorate.api.meta import Resource


def replacement(drive: Drive) -> Replacement | None:
    """What a person says about the replacement, in either spelling, ours first."""
    said = _said(drive, DRIVE_REPLACEMENT).lower()
    return Replacement(said) if said in tuple(Replacement) else None


def health(drive: Drive) -> DriveHealth | None:
    """The health that a person sets, in upper or lower case."""
    said = _said(drive, DRIVE_HEALTH).upper()
    return DriveHealth(said) if said in tuple(DriveHealth) else None


def marker(obj: Drive | core.Node) -> Marker | None:
    """The broker's marker on a drive, or on all drives of a node."""
    return _marker(obj, annotation_keys.MARKER)


def monitor(drive: Drive) -> Marker | None:
    """What the broker's disk monitor thinks."""
    return _marker(drive, annotation_keys.MONITOR)


def misunderstood(drive: Drive) -> str:
    """Words that mean nothing to us, for people; empty: there are none."""
    wrong = []
    for keys, allowed, found in (
        (DRIVE_REPLACEMENT, Replacement, replacement(drive)),
        (DRIVE_HEALTH, DriveHealth, health(drive)),
    ):
        said = _said(drive, keys)
        if said and found is None:
            wrong.append(f"annotation {keys[0]} is {said!r}: allowed are {', '.join(allowed)}")
    return "; ".join(wrong)


def _said(drive: Drive, keys: tuple[str, ...]) -> str:
    found = drive.metadata.annotations
    return next((found[key].strip() for key in keys if key in found), "")


def _marker(obj: Resource, key: str) -> Marker | None:
    said = obj.metadata.annotations.get(key, "")
    return Marker(said) if said in tuple(Marker) else None
