"""vgs, lvs, pvs: ``--reportformat json``, ``-o``, ``--units``, ``--nosuffix``, ``--noheadings``, ``--separator``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from quorate.lab.lvm import LogicalVolume, PhysicalVolume, ThinPool, ThinVolume, VolumeGroup
from quorate.lab.lvm.groups import CHUNK, mapper_path
from quorate.lab.lvm.volume import EXTENT
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
_Row = Mapping[str, _Field]
_DEFAULTS = {
    "vg": "vg_name,pv_count,lv_count,snap_count,vg_attr,vg_size,vg_free",
    "lv": "lv_name,vg_name,lv_attr,lv_size,pool_lv,origin,data_percent,metadata_percent",
    "pv": "pv_name,vg_name,pv_fmt,pv_attr,pv_size,pv_free",
}


def vgs(process: Process, argv: list[str]) -> int:
    """Volume groups."""

    def rows(names: list[str]) -> list[_Row]:
        return [_group_row(process, group) for group in _groups(process, names)]

    return _report(process, argv, "vg", rows)


def lvs(process: Process, argv: list[str]) -> int:
    """Logical volumes."""

    def rows(names: list[str]) -> list[_Row]:
        wanted = []
        for group in _groups(process, [name.removeprefix("/dev/").partition("/")[0] for name in names]):
            wanted += [(group, volume) for volume in group.volumes.values()]
        single = {name for name in names if "/" in name.removeprefix("/dev/")}
        if single:
            found = {id(entry[1]) for name in single if (entry := process.host.lvm.find(name))}
            if len(found) < len(single):
                missing = next(name for name in sorted(single) if not process.host.lvm.find(name))
                raise _NotFound(f'Failed to find logical volume "{missing.removeprefix("/dev/")}"')
            wanted = [entry for entry in wanted if id(entry[1]) in found]
        return [
            _volume_row(process, group, volume) for group, volume in sorted(wanted, key=lambda entry: entry[1].name)
        ]

    return _report(process, argv, "lv", rows)


def pvs(process: Process, argv: list[str]) -> int:
    """Physical volumes."""

    def rows(names: list[str]) -> list[_Row]:
        members = process.host.lvm.labelled
        return [
            _member_row(process, member)
            for member in members
            if (not names or process.host.lvm.path(member) in names)
            and (process.host.lvm.path(member) or process.host.lvm.group_of(member))
        ]

    return _report(process, argv, "pv", rows)


class _NotFound(Exception):
    """Something that was named is not there."""


def _groups(process: Process, names: list[str]) -> list[VolumeGroup]:
    groups = process.host.lvm.groups
    for name in names:
        if name not in groups:
            raise _NotFound(f'Volume group "{name}" not found\nCannot process volume group {name}')
    return [group for name, group in sorted(groups.items()) if not names or name in names]


def _group_row(process: Process, group: VolumeGroup) -> _Row:
    missing = sum(process.host.lvm.path(member) is None for member in group.members)
    return {
        "vg_name": group.name,
        "vg_uuid": group.uuid,
        "vg_fmt": "lvm2",
        "vg_attr": "wz-pn-" if missing else "wz--n-",
        "vg_size": group.extents * EXTENT,
        "vg_free": group.free_extents * EXTENT,
        "vg_extent_size": EXTENT,
        "vg_extent_count": str(group.extents),
        "vg_free_count": str(group.free_extents),
        "pv_count": str(len(group.members)),
        "vg_missing_pv_count": str(missing),
        "lv_count": str(len(group.volumes)),
        "snap_count": "0",
        "vg_tags": ",".join(sorted(group.tags)),
    }


def _volume_row(process: Process, group: VolumeGroup, volume: LogicalVolume) -> _Row:
    thin = volume if isinstance(volume, ThinVolume) else None
    pool = volume if isinstance(volume, ThinPool) else None
    used = group.pool_allocated(pool) if pool else thin.allocated() if thin else 0
    percent = f"{100 * used / volume.size:.2f}" if (pool or thin) and volume.size else ""
    return {
        "lv_name": volume.name,
        "vg_name": group.name,
        "lv_full_name": f"{group.name}/{volume.name}",
        "lv_uuid": volume.uuid,
        "lv_size": volume.size,
        "lv_attr": _attributes(volume, failed=process.host.lvm.failed(volume)),
        "lv_active": "active",
        "lv_device_open": "open" if volume.device.holder else "",
        "lv_path": "" if pool else f"/dev/{group.name}/{volume.name}",
        "lv_dm_path": mapper_path(group, volume),
        "lv_tags": ",".join(sorted(volume.tags)),
        "lv_layout": "thin,pool" if pool else "thin,sparse" if thin else "linear",
        "lv_health_status": "partial" if process.host.lvm.failed(volume) else "",
        "segtype": "thin-pool" if pool else "thin" if thin else "linear",
        "pool_lv": thin.pool.name if thin and thin.pool else "",
        "thin_count": str(len(group.thin_volumes(pool))) if pool else "",
        "chunk_size": CHUNK if pool else 0,
        "lv_metadata_size": EXTENT if pool else "",
        "data_percent": percent,
        "metadata_percent": "10.00" if pool else "",
        "origin": "",
        "devices": _devices(process, group, volume),
    }


def _attributes(volume: LogicalVolume, *, failed: bool) -> str:
    kind = "t" if isinstance(volume, ThinPool) else "V" if isinstance(volume, ThinVolume) else "-"
    opened = "o" if volume.device.holder else "-"
    thin = "tz" if kind != "-" else "--"
    return f"{kind}wi-a{opened}{thin}{'p' if failed else '-'}-"


def _devices(process: Process, group: VolumeGroup, volume: LogicalVolume) -> str:
    if isinstance(volume, ThinVolume | ThinPool):
        return f"{volume.name}_tdata(0)" if isinstance(volume, ThinPool) else ""
    paths = {id(member.ground): process.host.lvm.path(member) or "[unknown]" for member in group.members}
    return ",".join(f"{paths[id(run.ground)]}({run.first})" for run in volume.runs)


def _member_row(process: Process, member: PhysicalVolume) -> _Row:
    group = process.host.lvm.group_of(member)
    path = process.host.lvm.path(member)
    free = group.free_on(member) if group else member.extents
    return {
        "pv_name": path or "[unknown]",
        "pv_uuid": member.uuid,
        "pv_fmt": "lvm2",
        "pv_attr": "a--" if path and group else "a-m" if group else "---",
        "pv_size": member.extents * EXTENT,
        "pv_free": free * EXTENT,
        "pv_used": (member.extents - free) * EXTENT,
        "pv_missing": "" if path else "missing",
        "dev_size": member.drive.size,
        "vg_name": group.name if group else "",
        "vg_uuid": group.uuid if group else "",
    }


def _report(process: Process, argv: list[str], kind: str, rows: Callable[[list[str]], list[_Row]]) -> int:
    try:
        arguments = read(argv[1:], values=_VALUES, flags=_FLAGS)
        found = rows(arguments.rest)
        columns = _columns(arguments, kind)
        table = [[(column, _cell(row, column, arguments)) for column in columns] for row in found]
    except UsageError as error:
        process.err(f"  Unrecognised field or option: {error}\n")
        return _USAGE
    except _NotFound as error:
        process.err("".join(f"  {line}\n" for line in str(error).splitlines()))
        return _FAILED
    if arguments.get("format").startswith("json"):
        report: dict[str, object] = {"report": [{kind: [dict(row) for row in table]}]}
        process.out(json.dumps(report, indent=4) + "\n")
    else:
        _plain(process, arguments, columns, table)
    return 0


def _columns(arguments: Arguments, kind: str) -> list[str]:
    text = arguments.get("columns")
    if not text:
        text = _DEFAULTS[kind]
    elif text.startswith("+"):
        text = f"{_DEFAULTS[kind]},{text[1:]}"
    return text.split(",")


def _cell(row: _Row, column: str, arguments: Arguments) -> str:
    if column in ("lv_all", "vg_all", "pv_all"):
        raise UsageError(column)
    value = row.get(column)
    if value is None:
        raise UsageError(column)
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
