"""The command lines of LVM and what goes with it, as steps.

Nothing is ever forced on LVM here: it refuses by itself what would hurt (a device with a signature, a volume that is
open), and its refusal is reported. ``--yes`` only where there is nobody to answer and nothing to lose. The one command
that is forced is the replica's: a disk is cut back to where DRBD's metadata were found.

A command that changes LVM is given ten minutes of silence: killed between suspending a device and resuming it, it would
leave everybody who uses that device hanging.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from quorate.agent.lvm.filtering import lvm, lvm_without_discards
from quorate.agent.lvm.seen import NEW, SeenVolume
from quorate.agent.machine import FileBeneath
from quorate.agent.steps import LVM, Run, lvm_of
from quorate.api.meta import Bytes
from quorate.drbd.metadata import BLOCK, log_blocks

# Purposes: the outcome of the last command of each is remembered.
CREATE: Final = "create"
WIPE: Final = "wipe"
ZERO_WHOLE: Final = "zero"
FILL: Final = "fill"
CHECKSUM: Final = "checksum"
COMPARE: Final = "compare"
TAG: Final = "tag"
EXTEND: Final = "extend"
TAKE_LOG: Final = "take-log"
ACTIVATE: Final = "activate"
REMOVE: Final = "remove"
GROUP: Final = "group"
POOL: Final = "pool"
MAPPED: Final = "mapped"
UNMAP: Final = "unmap"
IDENTIFY: Final = "identify"
SIGNATURES: Final = "signatures"
LIGHT: Final = "light"

#: What blkid knows of, and DRBD's metadata, is recognised within so many bytes of either end of a device: DRBD's
#: superblock is in the last 4 KiB, ZFS' labels and the backup of a partition table in the last 512.
WIPED_AT_EACH_END: Final = 1024 * 1024
#: blkdiscard reports each second that it comes on, if it works in steps.
ZERO_STEP: Final = 128 * 1024 * 1024
LARGEST_BLOCK: Final = 4 * 1024 * 1024
#: … and may take so long for one, on a drive that is slow or busy.
ZERO_SILENCE: Final = 120.0
#: Changing LVM waits for whoever else does, and for drives.
CHANGING_SILENCE: Final = 600.0
#: Reading gigabytes is silent work: sha512sum and cmp say nothing before the end.
READING_SILENCE: Final = 3600.0

_EVERYTHING: Final = (LVM,)


def create_thick(group: str, name: str, size: int, tags: Iterable[str]) -> Run:
    """A volume with all its space. LVM rounds the size up to extents; wiping is ours."""
    what = ("--name", name, "--size", f"{size}b", group)
    command = ("lvcreate", "--yes", "--wipesignatures", "n", *_added(tags), *what)
    return _change(CREATE, str(size), (lvm_of(f"{group}/{name}"),), *command)


def create_thin(group: str, pool: str, name: str, size: int, tags: Iterable[str]) -> Run:
    """A volume that takes its space from a pool as it is written."""
    where = ("--type", "thin", "--thinpool", pool)
    what = ("--name", name, "--virtualsize", f"{size}b", group)
    command = ("lvcreate", "--yes", "--wipesignatures", "n", *_added(tags), *where, *what)
    return _change(CREATE, str(size), (lvm_of(f"{group}/{name}"), lvm_of(f"{group}/{pool}")), *command)


def retag(group: str, name: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Run:
    """Change tags, all at once."""
    tags = (*(word for tag in remove for word in ("--deltag", tag)), *_added(add))
    return _change(TAG, " ".join(tags), (lvm_of(f"{group}/{name}"),), "lvchange", *tags, f"{group}/{name}")


def activate(volume: SeenVolume) -> Run:
    """Give it its device."""
    return _change(ACTIVATE, "", _with_pool(volume), "lvchange", "--activate", "y", volume.place)


def extend(volume: SeenVolume, size: int, extents: Iterable[str] = ()) -> Run:
    """Make it larger, all or nothing; of these extents, if any are named, and no others."""
    command = ("lvextend", "--size", f"{size}b", volume.place, *extents)
    return _change(EXTEND, str(size), _with_pool(volume), *command)


def copy_log(source: str, source_size: int, destination: str, size: int) -> Run:
    """Copy the activity log at the end of a device to the same place before the end of another, or of what is new.

    Whatever comes of it, what follows is done: whether there is a log is looked at when DRBD has grown.
    """
    (first, count), (place, _) = log_blocks(Bytes(source_size)), log_blocks(Bytes(size))
    where = (f"if={source}", f"of={destination}", f"bs={BLOCK}", f"skip={first}", f"seek={place}", f"count={count}")
    how = ("iflag=direct", "oflag=direct", "conv=notrunc,nocreat,fsync", "status=none")
    return Run(("dd", *where, *how), TAKE_LOG, str(size), accept=tuple(range(256)))


def remove(volume: SeenVolume) -> Run:
    """Remove it. LVM refuses while it is open."""
    return _change(REMOVE, volume.uuid, _with_pool(volume), "lvremove", "--yes", volume.place)


def remove_very(volume: SeenVolume) -> Run:
    """Remove the very one that was seen, and none that was made under its name since: then nothing is done."""
    assert volume.uuid, f"{volume.path} has no UUID"
    chosen = ("--select", f"lv_uuid={volume.uuid}", volume.group)
    return _change(REMOVE, volume.uuid, _with_pool(volume), "lvremove", "--yes", *chosen)


def discard_new(volume: SeenVolume) -> Run:
    """Remove one that was never finished, by whoever began it, and leave on its extents what is there."""
    assert NEW in volume.tags, f"{volume.path} is not new"
    command = lvm_without_discards("lvremove", "--yes", volume.place)
    return replace(remove(volume), argv=command)


def wipe_ends(path: str, size: int) -> tuple[Run, ...]:
    """Take away every sign of what was there before, on a volume of this size."""
    if size <= 2 * WIPED_AT_EACH_END:
        return (zeros(path, 0, size, WIPE),)
    return (
        zeros(path, 0, WIPED_AT_EACH_END, WIPE),
        zeros(path, size - WIPED_AT_EACH_END, WIPED_AT_EACH_END, WIPE),
    )


def zero_whole(volume: SeenVolume, *, about: str) -> tuple[Run, ...]:
    """Zero a volume that nobody holds, by the device's own command where it has one. It reports each second.

    Zeros in a drive's memory go with the power: what is said of them afterwards must not outlive them. And it takes
    hours: whoever goes on from there looks first where the volume is now.
    """
    command = ("blkdiscard", "--zeroout", "--verbose", "--step", str(ZERO_STEP), volume.path)
    flush = ("sync", volume.path)
    changes = _with_pool(volume)
    return tuple(Run(argv, ZERO_WHOLE, about, silence=ZERO_SILENCE, changes=changes) for argv in (command, flush))


def fill(volume: SeenVolume, source: FileBeneath, *, about: str) -> tuple[Run, ...]:
    """Copy a file, take its checksum, and read back what was copied.

    No command is told the file's name: each gets it opened, as what it was found to be. In this order a file that
    changes meanwhile is noticed. ``cmp`` ends with 1 also when the file is a true beginning
    of the volume, and says so: the decision reads it.
    """
    copy = ("dd", f"of={volume.path}", "bs=4M", "oflag=direct", "conv=fsync,nocreat", "status=progress")
    return (
        Run(copy, FILL, about=about, changes=_with_pool(volume), stdin=source),
        Run(("sha512sum", "-"), CHECKSUM, about=about, silence=READING_SILENCE, stdin=source),
        Run(("cmp", "-", volume.path), COMPARE, about=about, silence=READING_SILENCE, accept=(0, 1), stdin=source),
    )


def create_group(group: str, devices: Iterable[str]) -> Run:
    """A new group; LVM makes the devices its own, and refuses one with a signature on it."""
    paths = tuple(devices)
    return _change(GROUP, " ".join(paths), _EVERYTHING, "vgcreate", group, *paths)


def extend_group(group: str, devices: Iterable[str]) -> Run:
    """More devices for a group."""
    paths = tuple(devices)
    return _change(GROUP, " ".join(paths), _EVERYTHING, "vgextend", group, *paths)


def create_pool(group: str, name: str, size: str) -> Run:
    """A thin pool that zeroes new blocks. A size in percent is of the group."""
    amount = ("--extents", f"{size}VG") if size.endswith("%") else ("--size", f"{size}b")
    command = ("lvcreate", "--yes", "--type", "thin-pool", "--zero", "y", *amount, "--name", name, group)
    return _change(f"{POOL} {name}", size, _EVERYTHING, *command)


def remove_pool(group: str, name: str) -> Run:
    """Remove a thin pool; the caller has seen that nothing is in it."""
    return _change(POOL, name, _EVERYTHING, "lvremove", "--yes", f"{group}/{name}")


def remove_group(group: str) -> Run:
    """Dissolve a group that is empty; LVM refuses any other."""
    return _change(GROUP, group, _EVERYTHING, "vgremove", group)


def reduce_group(group: str, device: str) -> Run:
    """Take an empty device out of a group; LVM refuses any other."""
    return _change(GROUP, f"{group} {device}", _EVERYTHING, "vgreduce", group, device)


def remove_label(device: str) -> Run:
    """Make a device that is in no group LVM's no more; LVM refuses any other."""
    return _change(GROUP, device, _EVERYTHING, "pvremove", device)


def list_mapped() -> Run:
    """What device mapper has: name, UUID, and how many have it open (``mapped`` reads it)."""
    columns = ("--columns", "--noheadings", "--separator", "/", "-o", "name,uuid,open")
    return Run(("dmsetup", "info", *columns), MAPPED)


def unmap(device: str) -> Run:
    """Remove a device of a volume that LVM has not got any more; device mapper refuses one that is open."""
    return Run(("dmsetup", "remove", "--retry", device), UNMAP, device, changes=_EVERYTHING)


def identify(device: str) -> Run:
    """Ask a device who it is, and what is on it. Names change with a boot, and what follows cannot be taken back."""
    columns = ("--json", "--output", "NAME,PATH,TYPE,VENDOR,MODEL,SERIAL,WWN,FSTYPE")
    return Run(("lsblk", *columns, device), IDENTIFY, about=device)


def wipe_signatures(device: str) -> Run:
    """Take every signature off a drive; refused while anything of it is in use."""
    return Run(("wipefs", "--all", device), SIGNATURES, device, silence=CHANGING_SILENCE, changes=_EVERYTHING)


def locate(device: str, *, on: bool) -> Run:
    """Switch the light at a drive's slot."""
    return Run(("ledctl", f"{'locate' if on else 'locate_off'}={device}"), LIGHT, about=f"{device} {on}")


def zeros(path: str, offset: int, length: int, purpose: str, *, about: str = "") -> Run:
    """Overwrite a part of a device; the caller knows that nothing uses it."""
    # The largest block that both numbers are whole multiples of.
    block = min(LARGEST_BLOCK, (offset | length) & -(offset | length))
    where = (f"bs={block}", f"seek={offset // block}", f"count={length // block}")
    how = ("oflag=direct", "conv=notrunc,nocreat,fsync", "status=progress")
    return Run(("dd", "if=/dev/zero", f"of={path}", *where, *how), purpose, about=about)


def _change(purpose: str, about: str, changes: tuple[str, ...], program: str, *arguments: str) -> Run:
    """A command that changes LVM."""
    return Run(lvm(program, *arguments), purpose, about, silence=CHANGING_SILENCE, changes=changes)


def _with_pool(volume: SeenVolume) -> tuple[str, ...]:
    """A volume and the thin pool that it has its space from: how much of that is used, whether it is active."""
    names = (volume.name, volume.pool) if volume.pool else (volume.name,)
    return tuple(lvm_of(f"{volume.group}/{name}") for name in names)


def _added(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for tag in tags for word in ("--addtag", tag))
