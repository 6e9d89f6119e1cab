"""vgs, lvs, pvs: ``--reportformat json``, ``-o``, ``--units``, ``--nosuffix``, ``--noheadings``, ``--separator``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from quorate.lab.lvm import LogicalVolume, PhysicalVolume, ThinPool, ThinVolume, VolumeGroup
from quorate.lab.lvm.groups import CHUNK, mapper_path, uuid_of
from quorate.lab.lvm.mapping import volume_uuid
from quorate.lab.lvm.volume import EXTENT, Run
from quorate.lab.tools.arguments import Arguments, UsageError, read
from quorate.lab.tools.lvm import sizes
from quorate.lab.tools.process import Process

_FAILED, _USAGE = 5, 3
_VALUES = {
    "-o": "columns",
    "--options": "columns",
    "--reportformat": "format",
    "--units": "units",
    "--separator": "separator",
    "-S": "select",
    "--select": "select",
    "-O": "sort",
    "--sort": "sort",
    "--config": "config",
}
_FLAGS = {
    "--nosuffix": "nosuffix",
    "--noheadings": "noheadings",
    "-a": "all",
    "--all": "all",
    "-v": "verbose",
    "--readonly": "readonly",
    "--binary": "binary",
    "--unquoted": "unquoted",
    "--aligned": "aligned",
}

#: A field is a text, or a size in bytes.
_Field = str | int


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a report, column by column."""

    field: Callable[[str], _Field]
    #: The volume that it is about, and all that its fields are made of; empty: it is made anew each time.
    volume: LogicalVolume | None = None
    made_of: tuple[object, ...] = ()


#: How a volume was last printed, and what that was made of. A node has hundreds, and all of them are looked at often.
_PRINTED: WeakKeyDictionary[LogicalVolume, tuple[tuple[object, ...], str]] = WeakKeyDictionary()
_Columns = Mapping[str, Callable[..., _Field]]
_DEFAULTS = {
    "vg": "vg_name,pv_count,lv_count,snap_count,vg_attr,vg_size,vg_free",
    "lv": "lv_name,vg_name,lv_attr,lv_size,pool_lv,origin,data_percent,metadata_percent",
    "pv": "pv_name,vg_name,pv_fmt,pv_attr,pv_size,pv_free",
}


def vgs(process: Process, argv: list[str]) -> int:
    """Volume groups."""

    def rows(names: list[str], *, hidden: bool) -> list[_Row]:
        return [_Row(partial(_group_field, process, group)) for group in _groups(process, names)]

    return _report(process, argv, "vg", rows, _GROUP)


def lvs(process: Process, argv: list[str]) -> int:
    """Logical volumes."""

    def rows(names: list[str], *, hidden: bool) -> list[_Row]:
        chosen: list[tuple[VolumeGroup, LogicalVolume]] = []
        groups = [name for name in names if "/" not in name.removeprefix("/dev/")]
        if groups or not names:
            chosen += [(group, volume) for group in _groups(process, groups) for volume in group.volumes.values()]
        for name in names:
            if name not in groups:
                _groups(process, [name.removeprefix("/dev/").partition("/")[0]])
                found = process.host.lvm.find(name)
                if found is None:
                    raise _NotFound(f'Failed to find logical volume "{name.removeprefix("/dev/")}"')
                chosen.append(found)
        chosen.sort(key=lambda entry: (entry[0].name, entry[1].name))
        shown = [
            _Row(partial(_volume_field, process, group, volume), volume, _made_of(process, group, volume))
            for group, volume in chosen
        ]
        if hidden:
            shown += [
                _Row(partial(_pool_part_field, process, group, volume, part))
                for group, volume in chosen
                if isinstance(volume, ThinPool)
                for part in ("tdata", "tmeta")
            ]
        return shown

    return _report(process, argv, "lv", rows, _VOLUME)


def pvs(process: Process, argv: list[str]) -> int:
    """Physical volumes."""

    def rows(names: list[str], *, hidden: bool) -> list[_Row]:
        lvm = process.host.lvm
        return [
            _Row(partial(_member_field, process, member))
            for member in lvm.labelled
            if (not names or lvm.path(member) in names) and (lvm.path(member) or _is_missed(process, member))
        ]

    return _report(process, argv, "pv", rows, _MEMBER)


def _is_missed(process: Process, member: PhysicalVolume) -> bool:
    """Whether a group of which LVM sees something says that this one is of it."""
    return any(member in group.members for group in process.host.lvm.visible().values())


class _NotFound(Exception):
    """Something that was named is not there."""


def _groups(process: Process, names: list[str]) -> list[VolumeGroup]:
    groups = process.host.lvm.visible()
    for name in names:
        if name not in groups:
            raise _NotFound(f'Volume group "{name}" not found\nCannot process volume group {name}')
    return [group for name, group in sorted(groups.items()) if not names or name in names]


def _group_field(process: Process, group: VolumeGroup, column: str) -> _Field:
    return _GROUP[column](process, group)


def _missing(process: Process, group: VolumeGroup) -> int:
    return sum(process.host.lvm.path(member) is None for member in group.members)


_GROUP: _Columns = {
    "vg_name": lambda _process, group: group.name,
    "vg_uuid": lambda _process, group: group.uuid,
    "vg_fmt": lambda _process, _group: "lvm2",
    "vg_attr": lambda process, group: "wz-pn-" if _missing(process, group) else "wz--n-",
    "vg_size": lambda _process, group: group.extents * EXTENT,
    "vg_free": lambda _process, group: group.free_extents * EXTENT,
    "vg_extent_size": lambda _process, _group: EXTENT,
    "vg_extent_count": lambda _process, group: str(group.extents),
    "vg_free_count": lambda _process, group: str(group.free_extents),
    "pv_count": lambda _process, group: str(len(group.members)),
    "vg_missing_pv_count": lambda process, group: str(_missing(process, group)),
    "lv_count": lambda _process, group: str(len(group.volumes)),
    "snap_count": lambda _process, _group: "0",
    "vg_tags": lambda _process, group: ",".join(sorted(group.tags)),
}


def _volume_field(process: Process, group: VolumeGroup, volume: LogicalVolume, column: str) -> _Field:
    return _VOLUME[column](process, group, volume)


_VOLUME: _Columns = {
    "lv_name": lambda _process, _group, volume: volume.name,
    "vg_name": lambda _process, group, _volume: group.name,
    "lv_full_name": lambda _process, group, volume: f"{group.name}/{volume.name}",
    "lv_uuid": lambda _process, _group, volume: volume.uuid,
    "lv_size": lambda _process, _group, volume: volume.size,
    "lv_attr": lambda process, group, volume: _attributes(
        volume, failed=process.host.lvm.failed(volume), active=_is_active(process, group, volume)
    ),
    "lv_active": lambda process, group, volume: "active" if _is_active(process, group, volume) else "",
    "lv_device_open": lambda _process, _group, volume: "open" if volume.device.holder else "",
    "lv_path": lambda _process, group, volume: _path(group, volume),
    "lv_dm_path": lambda _process, group, volume: mapper_path(group, volume),
    "lv_tags": lambda _process, _group, volume: ",".join(sorted(volume.tags)),
    "lv_layout": lambda _process, _group, volume: {"linear": "linear", "thin": "thin,sparse"}.get(
        _segment(volume), "thin,pool"
    ),
    "lv_health_status": lambda process, _group, volume: "partial" if process.host.lvm.failed(volume) else "",
    "segtype": lambda _process, _group, volume: _segment(volume),
    "pool_lv": lambda _process, _group, volume: _pool(volume),
    "thin_count": lambda _process, group, volume: _thin_count(group, volume),
    "chunk_size": lambda _process, _group, volume: CHUNK if isinstance(volume, ThinPool) else 0,
    "lv_metadata_size": lambda _process, _group, volume: EXTENT if isinstance(volume, ThinPool) else "",
    "data_percent": lambda _process, group, volume: _used(group, volume),
    "metadata_percent": lambda _process, _group, volume: "10.00" if isinstance(volume, ThinPool) else "",
    "origin": lambda _process, _group, _volume: "",
    "devices": lambda process, group, volume: _devices(process, group, volume),
    "seg_pe_ranges": lambda process, group, volume: _ranges(process, group, volume),
}


def _made_of(process: Process, group: VolumeGroup, volume: LogicalVolume) -> tuple[object, ...]:
    """Thin ones change with whatever is written to any of their pool."""
    if isinstance(volume, ThinVolume | ThinPool):
        return ()
    places = tuple((_at(process, group, run), run.first, run.count) for run in volume.runs)
    failed, held = process.host.lvm.failed(volume), bool(volume.device.holder)
    active = _is_active(process, group, volume)
    return group.name, volume.name, volume.uuid, volume.size, frozenset(volume.tags), places, failed, held, active


def _is_active(process: Process, group: VolumeGroup, volume: LogicalVolume) -> bool:
    return volume_uuid(group, volume) not in process.host.inactive


def _segment(volume: LogicalVolume) -> str:
    return "thin-pool" if isinstance(volume, ThinPool) else "thin" if isinstance(volume, ThinVolume) else "linear"


def _path(group: VolumeGroup, volume: LogicalVolume) -> str:
    return "" if isinstance(volume, ThinPool) else f"/dev/{group.name}/{volume.name}"


def _pool(volume: LogicalVolume) -> str:
    return volume.pool.name if isinstance(volume, ThinVolume) and volume.pool else ""


def _thin_count(group: VolumeGroup, volume: LogicalVolume) -> str:
    return str(len(group.thin_volumes(volume))) if isinstance(volume, ThinPool) else ""


def _used(group: VolumeGroup, volume: LogicalVolume) -> str:
    if isinstance(volume, ThinPool):
        return f"{100 * group.pool_allocated(volume) / volume.size:.2f}"
    return f"{100 * volume.allocated() / volume.size:.2f}" if isinstance(volume, ThinVolume) else ""


def _attributes(volume: LogicalVolume, *, failed: bool, active: bool) -> str:
    kind = {"thin-pool": "t", "thin": "V"}.get(_segment(volume), "-")
    opened = "o" if volume.device.holder else "-"
    thin = "tz" if kind != "-" else "--"
    return f"{kind}wi-{'a' if active else '-'}{opened}{thin}{'p' if failed else '-'}-"


def _pool_part_field(process: Process, group: VolumeGroup, pool: ThinPool, part: str, column: str) -> _Field:
    """One of the two hidden volumes that a thin pool is made of; ``-a`` shows them in brackets."""
    data = part == "tdata"
    fields: dict[str, Callable[[], _Field]] = {
        "lv_name": lambda: f"[{pool.name}_{part}]",
        "lv_size": lambda: pool.size if data else EXTENT,
        "lv_attr": lambda: "Twi-ao----" if data else "ewi-ao----",
        "lv_uuid": lambda: uuid_of(f"{pool.uuid}/{part}"),
        "vg_name": lambda: group.name,
        "devices": lambda: _places(process, group, pool) if data else "",
        "segtype": lambda: "linear",
    }
    return fields.get(column, lambda: "")()


def _devices(process: Process, group: VolumeGroup, volume: LogicalVolume) -> str:
    if isinstance(volume, ThinVolume | ThinPool):
        return f"{volume.name}_tdata(0)" if isinstance(volume, ThinPool) else ""
    return _places(process, group, volume)


def _places(process: Process, group: VolumeGroup, volume: LogicalVolume) -> str:
    return ",".join(f"{_at(process, group, run)}({run.first})" for run in volume.runs)


def _ranges(process: Process, group: VolumeGroup, volume: LogicalVolume) -> str:
    """As the command line of lvextend takes them."""
    if isinstance(volume, ThinVolume | ThinPool):
        last = volume.size // EXTENT - 1
        return f"{volume.name}_tdata:0-{last}" if isinstance(volume, ThinPool) else ""
    return " ".join(f"{_at(process, group, run)}:{run.first}-{run.first + run.count - 1}" for run in volume.runs)


def _at(process: Process, group: VolumeGroup, run: Run) -> str:
    """Where a physical volume is."""
    member = next(member for member in group.members if member.ground is run.ground)
    return process.host.lvm.path(member) or "[unknown]"


def _member_field(process: Process, member: PhysicalVolume, column: str) -> _Field:
    return _MEMBER[column](process, member)


def _free(process: Process, member: PhysicalVolume) -> int:
    group = process.host.lvm.group_of(member)
    return group.free_on(member) if group else member.extents


def _member_attributes(process: Process, member: PhysicalVolume) -> str:
    if process.host.lvm.group_of(member) is None:
        return "---"
    return "a--" if process.host.lvm.path(member) else "a-m"


def _group_of(process: Process, member: PhysicalVolume, field: str) -> str:
    group = process.host.lvm.group_of(member)
    return str(getattr(group, field)) if group else ""


_MEMBER: _Columns = {
    "pv_name": lambda process, member: process.host.lvm.path(member) or "[unknown]",
    "pv_uuid": lambda _process, member: member.uuid,
    "pv_fmt": lambda _process, _member: "lvm2",
    "pv_attr": _member_attributes,
    "pv_size": lambda _process, member: member.extents * EXTENT,
    "pv_free": lambda process, member: _free(process, member) * EXTENT,
    "pv_used": lambda process, member: (member.extents - _free(process, member)) * EXTENT,
    "pv_missing": lambda process, member: "" if process.host.lvm.path(member) else "missing",
    "dev_size": lambda _process, member: member.drive.size,
    "vg_name": lambda process, member: _group_of(process, member, "name"),
    "vg_uuid": lambda process, member: _group_of(process, member, "uuid"),
}


def _report(process: Process, argv: list[str], kind: str, rows: Callable[..., list[_Row]], known: _Columns) -> int:
    try:
        arguments = read(argv[1:], values=_VALUES, flags=_FLAGS)
        columns = _columns(arguments, kind)
        unknown = [column for column in columns if column not in known]
        if unknown:
            raise UsageError(unknown[0])
        found = rows(arguments.rest, hidden=arguments.has("all"))
    except UsageError as error:
        process.err(f"  Unrecognised field or option: {error}\n")
        return _USAGE
    except _NotFound as error:
        process.err("".join(f"  {line}\n" for line in str(error).splitlines()))
        return _FAILED
    if arguments.get("format").startswith("json"):
        asked = (arguments.get("columns"), arguments.get("units"), arguments.has("nosuffix"))
        lines = ",\n".join(f"                  {_json(row, columns, arguments, asked)}" for row in found)
        process.out(
            '  {\n      "report": [\n          {\n'
            f'              "{kind}": [\n{lines}\n              ]\n          }}\n      ]\n  }}\n'
        )
    else:
        _plain(process, arguments, columns, [_cells(row, columns, arguments) for row in found])
    return 0


def _columns(arguments: Arguments, kind: str) -> list[str]:
    text = arguments.get("columns")
    if not text:
        text = _DEFAULTS[kind]
    elif text.startswith("+"):
        text = f"{_DEFAULTS[kind]},{text[1:]}"
    return text.split(",")


def _json(row: _Row, columns: Sequence[str], arguments: Arguments, asked: tuple[object, ...]) -> str:
    """A line, as it was printed if it is made of the same."""
    if row.volume is None or not row.made_of:
        return json.dumps(dict(_cells(row, columns, arguments)))
    made_of = (asked, row.made_of)
    known = _PRINTED.get(row.volume)
    if known is None or known[0] != made_of:
        known = _PRINTED[row.volume] = (made_of, json.dumps(dict(_cells(row, columns, arguments))))
    return known[1]


def _cells(row: _Row, columns: Sequence[str], arguments: Arguments) -> list[tuple[str, str]]:
    return [(column, _cell(row.field(column), arguments)) for column in columns]


def _cell(value: _Field, arguments: Arguments) -> str:
    if isinstance(value, str):
        return value
    return sizes.reported(value, arguments.get("units", "h"), suffix=not arguments.has("nosuffix"))


def _plain(
    process: Process, arguments: Arguments, columns: Sequence[str], table: Sequence[Sequence[tuple[str, str]]]
) -> None:
    separator = arguments.get("separator", " ")
    if not arguments.has("noheadings"):
        process.out(f"  {separator.join(columns)}\n")
    for row in table:
        process.out(f"  {separator.join(value for _, value in row)}\n")
