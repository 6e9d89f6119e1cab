"""``/var/lib/drbd/drbd-minor-N.lkbd``: how large a backing device was when DRBD last had it.

Internal metadata lies at the end of a device. When the device grew while DRBD did not look, this file is the only way
to find it again.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LastKnown:
    """What the file says."""

    size: int
    path: str


def path_of(minor: int) -> str:
    """Where a minor's file is."""
    return f"/var/lib/drbd/drbd-minor-{minor}.lkbd"


def save(files: MutableMapping[str, bytes], minor: int, size: int, path: str, device_uuid: int) -> None:
    """Write the file."""
    files[path_of(minor)] = f"{size}\t{path}\nuuid:\t{device_uuid:016X}\n".encode()


def load(files: Mapping[str, bytes], minor: int) -> LastKnown | None:
    """What the file says; None if it is not there or makes no sense."""
    words = files.get(path_of(minor), b"").decode(errors="replace").split()
    return LastKnown(int(words[0]), words[1]) if len(words) >= 2 and words[0].isdecimal() else None
