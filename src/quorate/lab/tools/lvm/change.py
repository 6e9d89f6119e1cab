"""Commands that change something: lvcreate and the other lv… ones, vg…, pv…."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from quorate.lab.kernel import metadata
from quorate.lab.lvm import LogicalVolume, NotThere, OutOfSpace, PhysicalVolume, ThinPool, ThinVolume, VolumeGroup
from quorate.lab.lvm.mapping import volume_uuid
from quorate.lab.lvm.volume import BLOCK, EXTENT, Run
from quorate.lab.tools.arguments import Arguments, UsageError, read
from quorate.lab.tools.lvm import sizes
from quorate.lab.tools.process import Process

_FAILED, _USAGE = 5, 3

_NAME = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}")
#: LVM's own parts of volumes; tried on LVM 2.03.16.
_RESERVED = re.compile(
    "_(cdata|cmeta|corig|cpool|cvol|wcorig|imeta|iorig|mimage|mlog|pmspare|rimage|rmeta|tdata|tmeta|vdata|vorigin)"
)

_VALUES = {
    "-n": "name",
    "--name": "name",
    "-L": "size",
    "--size": "size",
    "-l": "extents",
    "--extents": "extents",
    "-V": "virtual",
    "--virtualsize": "virtual",
    "-W": "wipe",
    "--wipesignatures": "wipe",
    "-Z": "zero",
    "--zero": "zero",
    "-a": "activate",
    "--activate": "activate",
    "--addtag": "addtag",
    "--deltag": "deltag",
    "--thinpool": "thinpool",
    "--type": "type",
    "-c": "chunk",
    "--chunksize": "chunk",
    "--poolmetadatasize": "poolmetadata",
    "--config": "config",
    "--devices": "devices",
    "-s": "extentsize",
    "--physicalextentsize": "extentsize",
    "-k": "skip",
    "--setactivationskip": "skip",
    "-S": "select",
    "--select": "select",
}
_FLAGS = {
    "-y": "yes",
    "--yes": "yes",
    "-f": "force",
    "--force": "force",
    "-T": "thin",
    "--thin": "thin",
    "-q": "quiet",
    "--quiet": "quiet",
    "-t": "test",
    "--test": "test",
    "-r": "resizefs",
    "--nosync": "nosync",
    "-K": "ignoreskip",
}


Command = Callable[[Process, list[str]], int]


class _Refused(Exception):
    """What could not be done, in LVM's words."""


class _NameTaken(Exception):
    """A name that LVM takes for a mistake on the command line, in its words."""


def _command(work: Callable[[Process, Arguments], None]) -> Command:
    def run(process: Process, argv: list[str]) -> int:
        try:
            work(process, read(argv[1:], values=_VALUES, flags=_FLAGS))
        except UsageError as error:
            process.err(
                f"  {argv[0]}: unrecognized option or value '{error}'\n  Error during parsing of command line.\n"
            )
            return _USAGE
        except _NameTaken as error:
            process.err("".join(f"  {line}\n" for line in str(error).splitlines()))
            return _USAGE
        except (_Refused, OutOfSpace, NotThere) as error:
            process.err("".join(f"  {line}\n" for line in str(error).splitlines()))
            return _FAILED
        return 0

    return run


# --- logical volumes ---


@_command
def lvcreate(process: Process, arguments: Arguments) -> None:
    """A thick volume, a thin pool or a thin volume."""
    pool_name = arguments.get("thinpool") or (
        arguments.rest[0] if arguments.has("thin") and arguments.rest and "/" in arguments.rest[0] else ""
    )
    group = _group(process, (arguments.rest or [pool_name])[0].removeprefix("/dev/").partition("/")[0])
    pool_name = pool_name.removeprefix("/dev/").rpartition("/")[2]
    if arguments.has("virtual"):
        volume: LogicalVolume = _create_thin(process, group, pool_name, arguments)
    elif pool_name or arguments.get("type") == "thin-pool" or arguments.has("thin"):
        name = pool_name or arguments.get("name") or "lvol1"
        _must_not_exist(group, name)
        volume = group.create_pool(name, _extents(group, arguments))
    else:
        volume = _create_thick(process, group, arguments)
    volume.tags.update(arguments.all("addtag"))
    process.host.mark_failures()
    process.out(f'  Logical volume "{volume.name}" created.\n')


def _create_thick(process: Process, group: VolumeGroup, arguments: Arguments) -> LogicalVolume:
    name = arguments.get("name") or next(f"lvol{n}" for n in range(10000) if f"lvol{n}" not in group.volumes)
    _must_not_exist(group, name)
    volume = group.create(name, _extents(group, arguments))
    if arguments.get("wipe", "y") == "y" and metadata.find(volume.device):
        if arguments.has("yes"):
            metadata.wipe(volume.device)
            process.out(f"  Wiping drbd signature on /dev/{group.name}/{name}.\n")
        else:
            process.err(
                f"WARNING: drbd signature detected on /dev/{group.name}/{name} at offset {volume.size - BLOCK}."
                " Wipe it? [y/n]: [n]\n  Aborted wiping of drbd.\n  1 existing signature left on the device.\n"
            )
    if arguments.get("zero", "y") == "y":
        volume.device.write(0, BLOCK, None)
    return volume


def _create_thin(process: Process, group: VolumeGroup, pool_name: str, arguments: Arguments) -> ThinVolume:
    pool = group.volumes.get(pool_name)
    if not isinstance(pool, ThinPool):
        raise _Refused(f"Thin pool {group.name}/{pool_name} not found.")
    name = arguments.get("name") or "lvol1"
    _must_not_exist(group, name)
    virtual = sizes.parse(arguments.get("virtual"))
    promised = virtual + sum(volume.size for volume in group.thin_volumes(pool))
    if promised > pool.size:
        process.err(
            f"  WARNING: Sum of all thin volume sizes ({sizes.shown(promised)}) exceeds the size of thin pool"
            f" {group.name}/{pool.name} ({sizes.shown(pool.size)}).\n"
        )
    return group.create_thin(name, pool, sizes.extents_of(virtual))


@_command
def lvextend(process: Process, arguments: Arguments) -> None:
    """Make a volume larger, of the extents that are named if any are."""
    group, volume = _volume(process, arguments)
    within = [run for text in arguments.rest[1:] for run in _named(process, group, text)]
    _resize(process, group, volume, _new_extents(group, volume, arguments), may=(1,), within=within)


@_command
def lvreduce(process: Process, arguments: Arguments) -> None:
    """Make a volume smaller."""
    group, volume = _volume(process, arguments)
    _resize(process, group, volume, _new_extents(group, volume, arguments), may=(-1,), sure=_sure(arguments))


@_command
def lvresize(process: Process, arguments: Arguments) -> None:
    """Make a volume larger or smaller."""
    group, volume = _volume(process, arguments)
    _resize(process, group, volume, _new_extents(group, volume, arguments), may=(1, -1), sure=_sure(arguments))


def _sure(arguments: Arguments) -> bool:
    return arguments.has("yes") or arguments.has("force")


def _resize(
    process: Process,
    group: VolumeGroup,
    volume: LogicalVolume,
    extents: int,
    *,
    may: tuple[int, ...],
    sure: bool = False,
    within: Sequence[Run] = (),
) -> None:
    before = volume.size // EXTENT
    full_name = f"{group.name}/{volume.name}"
    direction = (extents > before) - (extents < before)
    if direction == 0:
        raise _Refused(f"New size ({extents} extents) matches existing size ({before} extents).")
    if direction not in may:
        word = "larger" if direction < 0 else "less"
        raise _Refused(f"New size given ({extents} extents) not {word} than existing size ({before} extents)")
    if direction < 0:
        opened = " and open" if volume.device.holder is not None else ""
        process.err(
            f"  WARNING: Reducing active{opened} logical volume to {sizes.shown(extents * EXTENT)}.\n"
            "  THIS MAY DESTROY YOUR DATA (filesystem etc.)\n"
        )
        if not sure:
            raise _Refused(
                f"Do you really want to reduce {full_name}? [y/n]: [n]\nLogical volume {full_name} NOT reduced."
            )
    group.resize(volume, extents, within)
    process.host.mark_failures()
    process.out(
        f"  Size of logical volume {full_name} changed from {sizes.shown(before * EXTENT)} ({before} extents) to"
        f" {sizes.shown(extents * EXTENT)} ({extents} extents).\n"
        f"  Logical volume {full_name} successfully resized.\n"
    )


@_command
def lvremove(process: Process, arguments: Arguments) -> None:
    """Give extents back, with what is on them."""
    if not arguments.rest:
        raise UsageError("")
    for group, volume in _chosen(process, arguments):
        if volume.device.holder is not None:
            raise _Refused(f"Logical volume {group.name}/{volume.name} in use.")
        if isinstance(volume, ThinPool) and (dependants := group.thin_volumes(volume)):
            if not _sure(arguments):
                raise _Refused(
                    f"Removing pool {group.name}/{volume.name} will remove {len(dependants)} dependent volume(s)."
                )
            for dependant in dependants:
                if dependant.device.holder is not None:
                    raise _Refused(f"Logical volume {group.name}/{dependant.name} in use.")
            for dependant in dependants:
                group.remove(dependant)
                process.out(f'  Logical volume "{dependant.name}" successfully removed.\n')
        if not _sure(arguments):
            raise _Refused(
                f"Do you really want to remove active logical volume {group.name}/{volume.name}? [y/n]: [n]\n"
                f"Logical volume {group.name}/{volume.name} not removed."
            )
        group.remove(volume)
        process.out(f'  Logical volume "{volume.name}" successfully removed.\n')


@_command
def lvchange(process: Process, arguments: Arguments) -> None:
    """Tags and activation."""
    for text in arguments.rest:
        group, volume = _find(process, text)
        if arguments.get("activate").startswith("n") and volume.device.holder is not None:
            raise _Refused(f"Logical volume {group.name}/{volume.name} in use.")
        if arguments.get("activate").startswith("n"):
            process.host.inactive.add(volume_uuid(group, volume))
        elif arguments.has("activate"):
            process.host.inactive.discard(volume_uuid(group, volume))
        volume.tags.update(arguments.all("addtag"))
        volume.tags.difference_update(arguments.all("deltag"))
        process.out(f"  Logical volume {group.name}/{volume.name} changed.\n")


def _chosen(process: Process, arguments: Arguments) -> list[tuple[VolumeGroup, LogicalVolume]]:
    """The volumes that are named; or, of the groups that are, the one with the UUID that is selected."""
    selection = arguments.get("select")
    if not selection:
        return [_find(process, text) for text in arguments.rest]
    column, _, wanted = selection.partition("=")
    if column != "lv_uuid" or not wanted:
        raise UsageError(f"the lab selects by lv_uuid=UUID only, not by {selection}")
    groups = [_group(process, text) for text in arguments.rest]
    return [(group, volume) for group in groups for volume in tuple(group.volumes.values()) if volume.uuid == wanted]


def _find(process: Process, text: str) -> tuple[VolumeGroup, LogicalVolume]:
    found = process.host.lvm.find(text)
    if found is None or found[0].name not in process.host.lvm.visible():
        group = _group(process, text.removeprefix("/dev/").partition("/")[0])
        raise _Refused(f'Failed to find logical volume "{group.name}/{text.rpartition("/")[2]}"')
    return found


def _volume(process: Process, arguments: Arguments) -> tuple[VolumeGroup, LogicalVolume]:
    if not arguments.rest:
        raise UsageError("")
    return _find(process, arguments.rest[0])


def _named(process: Process, group: VolumeGroup, text: str) -> list[Run]:
    """``/dev/sdb:0-15:32-40``: extents of a physical volume; all of it without numbers."""
    path, *ranges = text.split(":")
    member = next((member for member in group.members if process.host.lvm.path(member) == path), None)
    if member is None:
        raise _Refused(f'Physical Volume "{path}" not found in Volume Group "{group.name}".')
    found = [Run(member.ground, 0, member.extents)] if not ranges else []
    for numbers in ranges:
        first, _, last = numbers.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise _Refused(f"Physical extent parsing error at {text}")
        found.append(Run(member.ground, int(first), int(last or first) - int(first) + 1))
    return found


def _must_not_exist(group: VolumeGroup, name: str) -> None:
    """Whether a volume may be called so, in LVM's words."""
    if name in (".", "..") or not _NAME.fullmatch(name):
        raise _Refused(f'Logical volume name "{name}" is invalid.')
    for beginning in ("snapshot", "pvmove"):
        if name.startswith(beginning):
            raise _Refused(f'Names starting "{beginning}" are reserved. Please choose a different LV name.')
    if part := _RESERVED.search(name):
        raise _Refused(f'Names including "{part[0]}" are reserved. Please choose a different LV name.')
    if name in group.volumes:
        raise _Refused(f'Logical Volume "{name}" already exists in volume group "{group.name}"')


def _group(process: Process, name: str) -> VolumeGroup:
    group = process.host.lvm.visible().get(name)
    if group is None:
        raise _Refused(f'Volume group "{name}" not found\nCannot process volume group {name}')
    return group


def _extents(group: VolumeGroup, arguments: Arguments) -> int:
    if arguments.has("size"):
        return sizes.extents_of(sizes.parse(arguments.get("size")))
    text = arguments.get("extents")
    number, percent, of = text.partition("%")
    if not number.isdecimal():
        raise UsageError(text)
    if not percent:
        return int(number)
    whole = {"FREE": group.free_extents, "VG": group.extents, "PVS": group.free_extents}.get(of.upper())
    if whole is None:
        raise UsageError(text)
    return whole * int(number) // 100


def _new_extents(group: VolumeGroup, volume: LogicalVolume, arguments: Arguments) -> int:
    before = volume.size // EXTENT
    text = arguments.get("size") or arguments.get("extents")
    sign = text[:1] if text[:1] in "+-" and text else ""
    unsigned = Arguments({name: [value[-1].lstrip("+-")] for name, value in arguments.options.items()})
    amount = _extents(group, unsigned)
    return before + amount if sign == "+" else before - amount if sign == "-" else amount


# --- groups and drives ---


@_command
def pvcreate(process: Process, arguments: Arguments) -> None:
    """Label a drive."""
    for path in arguments.rest:
        drive = process.host.bays.by_name(path.removeprefix("/dev/"))
        if drive is None:
            raise _Refused(f"No device found for {path}.")
        if drive.system or drive.partitions:
            raise _Refused(f"Cannot use {path}: device is partitioned")
        member = process.host.lvm.member(drive)
        if member is not None and process.host.lvm.group_of(member) is not None:
            raise _Refused(f'Can\'t initialize physical volume "{path}" of volume group without -ff')
        if member is None:
            process.host.lvm.label(drive)
        process.out(f'  Physical volume "{path}" successfully created.\n')


@_command
def pvremove(process: Process, arguments: Arguments) -> None:
    """Take the label off a drive."""
    for path in arguments.rest:
        drive = process.host.bays.by_name(path.removeprefix("/dev/"))
        member = process.host.lvm.member(drive) if drive else None
        if member is None:
            raise _Refused(f"No PV found on device {path}.")
        if process.host.lvm.group_of(member) is not None:
            raise _Refused(f"PV {path} is used by a volume group so please use vgreduce first.")
        process.host.lvm.labelled.remove(member)
        process.out(f'  Labels on physical volume "{path}" successfully wiped.\n')


@_command
def vgcreate(process: Process, arguments: Arguments) -> None:
    """Make a group of drives."""
    name, *paths = arguments.rest or [""]
    if not name or not paths:
        raise UsageError(name)
    if name in (".", "..") or not _NAME.fullmatch(name):
        raise _Refused(f'New volume group name "{name}" is invalid.')
    if name in process.host.lvm.visible():
        raise _Refused(f"A volume group called {name} already exists.")
    if any(device.group.name == name for device in process.host.volume_devices()):
        # Of a group that is gone: device mapper still has its volumes, and udev the directory of their links.
        raise _NameTaken(f"/dev/{name}: already exists in filesystem\nRun `vgcreate --help' for more information.")
    group = process.host.lvm.create_group(name, [_member(process, path) for path in paths])
    group.tags.update(arguments.all("addtag"))
    process.out(f'  Volume group "{name}" successfully created\n')


@_command
def vgextend(process: Process, arguments: Arguments) -> None:
    """Add drives to a group."""
    name, *paths = arguments.rest or [""]
    group = _group(process, name)
    group.members += [_member(process, path) for path in paths]
    process.out(f'  Volume group "{name}" successfully extended\n')


@_command
def vgreduce(process: Process, arguments: Arguments) -> None:
    """Take empty drives out of a group."""
    name, *paths = arguments.rest or [""]
    group = _group(process, name)
    for path in paths:
        drive = process.host.bays.by_name(path.removeprefix("/dev/"))
        member = next((member for member in group.members if member.drive is drive), None)
        if member is None:
            raise _Refused(f'Failed to find physical volume "{path}" in volume group "{name}".')
        if group.free_on(member) != member.extents:
            raise _Refused(f'Physical volume "{path}" still in use')
        if len(group.members) == 1:
            raise _Refused(f'Can\'t remove final physical volume "{path}" from volume group "{name}"')
        group.members.remove(member)
        process.out(f'  Removed "{path}" from volume group "{name}"\n')


@_command
def vgremove(process: Process, arguments: Arguments) -> None:
    """Dissolve a group."""
    for name in arguments.rest:
        group = _group(process, name)
        if group.volumes and not _sure(arguments):
            raise _Refused(f'Volume group "{name}" still contains {len(group.volumes)} logical volume(s)')
        for volume in group.volumes.values():
            if volume.device.holder is not None:
                raise _Refused(f"Logical volume {name}/{volume.name} in use.")
        for volume in list(group.volumes.values()):
            group.remove(volume)
        process.host.lvm.dissolve(group)
        process.out(f'  Volume group "{name}" successfully removed\n')


def _member(process: Process, path: str) -> PhysicalVolume:
    drive = process.host.bays.by_name(path.removeprefix("/dev/"))
    if drive is None or drive.system or drive.partitions:
        raise _Refused(f"No device found for {path}." if drive is None else f"Cannot use {path}: device is partitioned")
    member = process.host.lvm.member(drive) or process.host.lvm.label(drive)
    if process.host.lvm.group_of(member) is not None:
        raise _Refused(f"Physical volume '{path}' is already in a volume group")
    return member
