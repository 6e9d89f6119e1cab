"""``lsblk --json``: drives, the volumes on them, and DRBD's devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from quorate.lab.drives import Drive, Medium
from quorate.lab.kernel import metadata
from quorate.lab.lvm import LogicalVolume, ThinPool, ThinVolume, VolumeGroup
from quorate.lab.lvm.groups import mapper_path
from quorate.lab.tools.arguments import UsageError, read
from quorate.lab.tools.process import Process

_VALUES = {"-o": "columns", "--output": "columns"}
_FLAGS = {
    "-J": "json",
    "--json": "json",
    "-b": "bytes",
    "--bytes": "bytes",
    "-O": "all",
    "--output-all": "all",
    "-d": "nodeps",
    "--nodeps": "nodeps",
    "-p": "paths",
    "--paths": "paths",
    "-n": "noheadings",
    "-a": "empty",
    "--all": "empty",
    "-l": "list",
    "-T": "tree",
    "--tree": "tree",
    "--list": "list",
}
_DEFAULT = "name,maj:min,rm,size,ro,type,mountpoints"

_Row = dict[str, Any]


def lsblk(process: Process, argv: list[str]) -> int:
    """The command line."""
    try:
        arguments = read(argv[1:], values=_VALUES, flags=_FLAGS)
    except UsageError as error:
        process.err(f"lsblk: unrecognized option '{error}'\n")
        return 1
    rows = list(_rows(process))
    for path in arguments.rest:
        if not any(row["path"] == path for row in _every(rows)):
            process.err(f"lsblk: {path}: not a block device\n")
            return 32
    if arguments.rest:
        rows = [row for row in _every(rows) if row["path"] in arguments.rest]
    columns = None if arguments.has("all") else [name.lower() for name in arguments.get("columns", _DEFAULT).split(",")]
    unknown = [name for name in columns or () if rows and name not in rows[0]]
    if unknown:
        process.err(f"lsblk: unknown column: {unknown[0].upper()}\n")
        return 1
    shown = [
        _shown(row, columns, sizes_in_bytes=arguments.has("bytes"), children=not arguments.has("nodeps"))
        for row in rows
    ]
    if arguments.has("json"):
        process.out(json.dumps({"blockdevices": shown}) + "\n")
    else:
        for row in _every(shown):
            process.out(" ".join(str(value) for name, value in row.items() if name != "children") + "\n")
    return 0


def _every(rows: list[_Row]) -> Iterator[_Row]:
    for row in rows:
        yield row
        yield from _every(row.get("children", []))


def _shown(row: _Row, columns: list[str] | None, *, sizes_in_bytes: bool, children: bool) -> _Row:
    found = {name: value for name, value in row.items() if name != "children" and (columns is None or name in columns)}
    if columns is not None:
        found = {name: found[name] for name in columns}
    if "size" in found and not sizes_in_bytes:
        found["size"] = f"{found['size'] / (1 << 30):.1f}G"
    if children and row.get("children"):
        found["children"] = [
            _shown(child, columns, sizes_in_bytes=sizes_in_bytes, children=True) for child in row["children"]
        ]
    return found


def _rows(process: Process) -> Iterator[_Row]:
    used = _drbd_minors(process)
    for number, (name, drive) in enumerate(process.host.bays.items()):
        children = [*_partitions(name, drive), *_volumes(process, drive, name, used)]
        yield {**_drive_row(process, number, name, drive), **({"children": children} if children else {})}


def _drive_row(process: Process, number: int, name: str, drive: Drive) -> _Row:
    nvme = drive.medium is Medium.NVME
    labelled = process.host.lvm.member(drive) is not None
    return _row(
        name,
        "disk",
        drive.size,
        "LVM2_member" if labelled else drive.filesystem or None,
        {
            "pttype": "gpt" if drive.system or drive.partitions else None,
            "maj:min": f"{259 if nvme else 8}:{number * (1 if nvme else 16)}",
            "serial": drive.serial,
            "vendor": None if nvme else drive.vendor.ljust(8),
            "model": f"{drive.vendor} {drive.model}" if nvme else drive.model,
            "rev": None if nvme else drive.firmware,
            "rota": drive.medium is Medium.HDD,
            "tran": "nvme" if nvme else "sas",
            "wwn": drive.wwn,
            "hctl": None if nvme else f"0:0:{drive.slot or number}:0",
            "state": "live" if nvme else "offline" if drive.failing else "running",
        },
    )


def _partitions(name: str, drive: Drive) -> Iterator[_Row]:
    prefix = f"{name}p" if drive.medium is Medium.NVME else name
    filesystems = ("ext4",) if drive.system else drive.partitions
    mounted = {"mountpoint": "/", "mountpoints": ["/"]} if drive.system else {}
    for number, filesystem in enumerate(filesystems, start=1):
        size = (drive.size - (2 << 20)) // len(filesystems)
        more = {"pkname": name, "pttype": "gpt", **mounted}
        yield _row(f"{prefix}{number}", "part", size, filesystem or None, more)


def _volumes(process: Process, drive: Drive, parent: str, used: dict[int, int]) -> Iterator[_Row]:
    member = process.host.lvm.member(drive)
    group = process.host.lvm.group_of(member) if member else None
    if member is None or group is None:
        return
    for volume in group.volumes.values():
        base = volume.pool if isinstance(volume, ThinVolume) else volume
        if base is not None and any(run.ground is member.ground for run in base.runs):
            yield _volume_row(process, group, volume, parent, used)


def _volume_row(process: Process, group: VolumeGroup, volume: LogicalVolume, parent: str, used: dict[int, int]) -> _Row:
    path = mapper_path(group, volume)
    minor = used.get(id(volume.device))
    children = [] if minor is None else [_drbd_row(process, minor, path.rpartition("/")[2])]
    row = _row(
        path.rpartition("/")[2],
        "lvm",
        volume.size,
        "drbd" if not isinstance(volume, ThinPool) and metadata.find(volume.device) else None,
        {"path": path, "pkname": parent},
    )
    return {**row, **({"children": children} if children else {})}


def _drbd_minors(process: Process) -> dict[int, int]:
    """The minor of each device that DRBD has attached."""
    found: dict[int, int] = {}
    for resource in process.host.kernel.show():
        for volume in resource["_this_host"]["volumes"]:
            path = volume.get("backing-disk")
            device = process.host.block_device(path) if path else None
            if device is not None:
                found[id(device)] = volume["device_minor"]
    return found


def _drbd_row(process: Process, minor: int, parent: str) -> _Row:
    size = process.host.kernel.device_size(minor) or 0
    return _row(f"drbd{minor}", "disk", size, None, {"maj:min": f"147:{minor}", "pkname": parent})


def _row(name: str, kind: str, size: int, filesystem: str | None, more: _Row) -> _Row:
    return {
        "name": name,
        "kname": name,
        "path": f"/dev/{name}",
        "maj:min": "253:0",
        "type": kind,
        "size": size,
        "ro": False,
        "rm": False,
        "hotplug": False,
        "rota": False,
        "fstype": filesystem,
        "fsver": None,
        "label": None,
        "uuid": None,
        "partuuid": None,
        "pttype": None,
        "mountpoint": None,
        "mountpoints": [None],
        "pkname": None,
        "serial": None,
        "vendor": None,
        "model": None,
        "rev": None,
        "tran": None,
        "wwn": None,
        "hctl": None,
        "state": "running",
        "log-sec": 512,
        "phy-sec": 4096,
        "subsystems": "block",
        **more,
    }
