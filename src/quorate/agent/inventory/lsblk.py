"""Reads ``lsblk --json --bytes``: a tree of block devices, drives at its roots.

Older versions write numbers and booleans as text, and know one mount point per device; newer ones know several.
What cannot be read is an UnreadableListing, never another error.

Columns are named one by one: ``--output-all`` would also ask every mounted file system how full it is, and a dead
server's never answers. Asked for a column that it does not know, lsblk tells nothing at all but which one; so it is
asked again without that one (``unknown_column``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from quorate.errors import QuorateError

#: All that is read. Not every version has PATH (2.33), PTTYPE (2.30) and MOUNTPOINTS (2.37).
COLUMNS: Final = (
    *("NAME", "PATH", "TYPE", "SIZE", "ROTA", "TRAN", "VENDOR", "MODEL", "SERIAL", "WWN", "REV"),
    *("FSTYPE", "PTTYPE", "MOUNTPOINT", "MOUNTPOINTS"),
)
_UNKNOWN_COLUMN: Final = re.compile(r"unknown column: ([A-Z]+)")

#: Deeper than any real stack of partition, RAID, encryption, LVM and DRBD.
_DEPTH: Final = 32
#: More than any node has side by side; reading so many takes a tenth of a second.
_MOST: Final = 16384


class UnreadableListing(QuorateError):
    """A listing that is not what lsblk writes."""


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One block device, and what is made of it."""

    name: str
    path: str
    type: str = ""
    size: int = 0
    rotational: bool = False
    transport: str = ""
    vendor: str = ""
    model: str = ""
    serial: str = ""
    wwn: str = ""
    revision: str = ""
    #: A file system, or another signature such as LVM2_member.
    signature: str = ""
    partition_table: str = ""
    mount_points: tuple[str, ...] = ()
    children: tuple[BlockDevice, ...] = ()

    def tree(self) -> Iterator[BlockDevice]:
        """It and everything on it."""
        yield self
        for child in self.children:
            yield from child.tree()


class _Listing(msgspec.Struct):
    blockdevices: list[dict[str, Any]]


_DECODER = msgspec.json.Decoder(_Listing)


def lsblk(columns: Iterable[str]) -> tuple[str, ...]:
    """The command."""
    return ("lsblk", "--json", "--bytes", "--output", ",".join(columns))


def unknown_column(output: str) -> str | None:
    """The column that this version does not know, as it says."""
    found = _UNKNOWN_COLUMN.search(output)
    return found[1] if found is not None and found[1] in COLUMNS else None


def read_block_devices(text: str) -> tuple[BlockDevice, ...]:
    """The roots of the tree, as listed."""
    try:
        listing = _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise UnreadableListing(f"not a listing of lsblk: {error}; it begins with {text[:80]!r}") from None
    if len(listing.blockdevices) > _MOST:
        raise UnreadableListing(f"lsblk lists {len(listing.blockdevices)} devices: no node has more than {_MOST}")
    return tuple(_device(row, _DEPTH) for row in listing.blockdevices)


def _device(row: dict[str, Any], depth: int) -> BlockDevice:
    if depth == 0:
        raise UnreadableListing(f"devices are stacked more than {_DEPTH} deep")
    name = _text(row, "name")
    return BlockDevice(
        name=name,
        path=_path(row, name),
        type=_text(row, "type"),
        size=_number(row, "size"),
        rotational=_text(row, "rota") in ("1", "True"),
        transport=_text(row, "tran"),
        vendor=_text(row, "vendor"),
        model=_text(row, "model"),
        serial=_text(row, "serial"),
        wwn=_text(row, "wwn"),
        revision=_text(row, "rev"),
        signature=_text(row, "fstype"),
        partition_table=_text(row, "pttype"),
        mount_points=_mount_points(row),
        children=tuple(_device(child, depth - 1) for child in _rows(row, "children")),
    )


def _path(row: dict[str, Any], name: str) -> str:
    """It will stand on command lines."""
    path = _text(row, "path") or f"/dev/{name}"
    if not path.startswith("/dev/") or ".." in path.split("/") or not path.isprintable():
        raise UnreadableListing(f"the path of {name[:80]!r} is {path[:80]!r}: expected a device")
    return path


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise UnreadableListing(f"{name} is {str(value)[:80]!r}: expected text or a number")
    return str(value).strip()


def _number(row: dict[str, Any], name: str) -> int:
    text = _text(row, name)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise UnreadableListing(f"{name} is {text[:80]!r}: expected a number of bytes")
    return int(text)


def _rows(row: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = row.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _MOST or not all(isinstance(item, dict) for item in value):
        raise UnreadableListing(f"{name} of {_text(row, 'name')!r} is no list of devices")
    return value


def _mount_points(row: dict[str, Any]) -> tuple[str, ...]:
    several = row.get("mountpoints")
    points = [*(several if isinstance(several, list) else [several]), row.get("mountpoint")]
    if unreadable := [point for point in points if not isinstance(point, str | None)]:
        # Passed over, it could make the drive that the node runs from look like any other.
        raise UnreadableListing(
            f"a mount point of {_text(row, 'name')!r} is {str(unreadable[0])[:80]!r}: expected text"
        )
    return tuple(dict.fromkeys(point for point in points if point))
