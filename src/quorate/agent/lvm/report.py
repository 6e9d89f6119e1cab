"""Reads what ``lvs``, ``vgs`` and ``pvs`` say with ``--reportformat json``.

LVM writes every value as text, newer versions some as numbers; a value that is not known is empty. Rows are per
segment or per device, so one volume may have several. What cannot be read is an UnreadableReport, never another error.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from quorate.agent.lvm.filtering import lvm
from quorate.agent.lvm.seen import SeenDevice, SeenGroup, SeenVolume
from quorate.errors import QuorateError

_COMMON: Final = ("--reportformat", "json", "--units", "b", "--nosuffix")
_VOLUME_FIELDS: Final = "vg_name,lv_name,lv_uuid,lv_size,lv_attr,lv_tags,pool_lv,data_percent,devices,seg_pe_ranges"
_GROUP_FIELDS: Final = "vg_name,vg_uuid,vg_size,vg_free,vg_extent_size,vg_missing_pv_count"
_DEVICE_FIELDS: Final = "pv_name,vg_name,vg_uuid,pv_size,pv_missing"

#: Hidden volumes too (``-a``): a thin pool's devices are those of its hidden data volume.
LVS: Final = lvm("lvs", "-a", *_COMMON, "-o", _VOLUME_FIELDS)
VGS: Final = lvm("vgs", *_COMMON, "-o", _GROUP_FIELDS)
PVS: Final = lvm("pvs", *_COMMON, "-o", _DEVICE_FIELDS)

_LVM_NAME: Final = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]*\Z")
_DEVICE: Final = re.compile(r"/dev/[^\s/][^\s]*\Z|\[?unknown")

Row = dict[str, Any]


class UnreadableReport(QuorateError):
    """A report that is not what LVM writes."""


class _Report(msgspec.Struct):
    report: list[dict[str, list[msgspec.Raw]]]


_DECODER = msgspec.json.Decoder(_Report)
_ROW_DECODER = msgspec.json.Decoder(Row)


class VolumesReader:
    """Reads what ``LVS`` printed, time and again: a row that says what it said is not read again."""

    def __init__(self) -> None:
        #: What the rows of the last report said.
        self._known: dict[bytes, SeenVolume] = {}

    def read(self, text: str) -> tuple[SeenVolume, ...]:
        """One entry per volume, its segments put together."""
        rows: dict[bytes, SeenVolume] = {}
        found: dict[tuple[str, str, str], SeenVolume] = {}
        for raw in _raw_rows(text, "lv"):
            row = bytes(raw)
            volume = rows[row] = self._known.get(row) or _volume(_row(raw))
            key = (volume.group, volume.name, volume.uuid)
            before = found.get(key)
            found[key] = volume if before is None else before.with_segment(volume)
        self._known = rows
        return tuple(found.values())


def _volume(row: Row) -> SeenVolume:
    return SeenVolume(
        group=_name(row, "vg_name"),
        name=_name(row, "lv_name"),
        uuid=_text(row, "lv_uuid"),
        size=_size(row, "lv_size"),
        attributes=_text(row, "lv_attr"),
        tags=frozenset(_list(row, "lv_tags")),
        pool=_text(row, "pool_lv").strip("[]"),
        used_percent=_percent(row, "data_percent"),
        # Each is ``/dev/sdb(0)``, or ``pool_tdata(0)`` for a part that is itself a volume.
        parts=tuple(part.rpartition("(")[0].strip("[]") for part in _list(row, "devices")),
        extents=tuple(_text(row, "seg_pe_ranges").split()),
    )


def read_groups(text: str) -> tuple[SeenGroup, ...]:
    """What ``VGS`` printed."""
    return tuple(
        SeenGroup(
            name=_name(row, "vg_name"),
            uuid=_text(row, "vg_uuid"),
            size=_size(row, "vg_size"),
            free=_size(row, "vg_free"),
            extent_size=_size(row, "vg_extent_size"),
            missing=_size(row, "vg_missing_pv_count"),
        )
        for row in _rows(text, "vg")
    )


def read_devices(text: str) -> tuple[SeenDevice, ...]:
    """What ``PVS`` printed. A device that is not there is called ``[unknown]``, several of them alike."""
    return tuple(
        SeenDevice(
            path=_path(row, "pv_name"),
            group=_text(row, "vg_name"),
            group_uuid=_text(row, "vg_uuid"),
            size=_size(row, "pv_size"),
            missing=bool(_text(row, "pv_missing")),
        )
        for row in _rows(text, "pv")
    )


def _rows(text: str, section: str) -> list[Row]:
    return [_row(raw) for raw in _raw_rows(text, section)]


def _raw_rows(text: str, section: str) -> list[msgspec.Raw]:
    try:
        report = _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise UnreadableReport(f"not a report of LVM: {error}; it begins with {text[:80]!r}") from None
    return [row for part in report.report for row in part.get(section, ())]


def _row(raw: msgspec.Raw) -> Row:
    try:
        return _ROW_DECODER.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableReport(f"not a row of LVM: {error}; it begins with {bytes(raw)[:80]!r}") from None


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise UnreadableReport(f"{name} is {str(value)[:80]!r}: expected text or a number")
    return str(value).strip()


def _name(row: Row, field: str) -> str:
    """A name as LVM has them; it will stand on command lines. The brackets of a hidden volume are decoration."""
    name = _text(row, field).strip("[]")
    if not _LVM_NAME.match(name):
        raise UnreadableReport(f"{field} is {name[:80]!r}: LVM has no such names")
    return name


def _path(row: Row, field: str) -> str:
    """A device that is there, or ``[unknown]``."""
    path = _text(row, field)
    if not _DEVICE.match(path) or ".." in path.split("/"):
        raise UnreadableReport(f"{field} is {path[:80]!r}: expected a device")
    return path


def _list(row: Row, name: str) -> list[str]:
    """Several values are joined by commas; json_std has a list of them."""
    value = row.get(name)
    if isinstance(value, list):
        return [str(item) for item in value]
    return [item for item in _text(row, name).split(",") if item]


def _size(row: Row, name: str) -> int:
    text = _text(row, name).removesuffix("B")
    if not text:
        return 0
    # LVM never writes more than 20 digits; int() would refuse thousands of them with an error of its own.
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise UnreadableReport(f"{name} is {text[:80]!r}: expected a number of bytes")
    return int(text)


def _percent(row: Row, name: str) -> int | None:
    text = _text(row, name)
    if not text:
        return None
    whole, _, _ = text.partition(".")
    # -1 stands for unknown.
    return min(int(whole), 100) if whole.isascii() and whole.isdigit() and len(whole) <= 3 else None
