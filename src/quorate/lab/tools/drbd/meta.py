"""``drbdmeta MINOR v09 DEVICE internal COMMAND``."""

from __future__ import annotations

from quorate.lab.drives import hash_of
from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel import metadata as kernel_metadata
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.metadata import Metadata
from quorate.lab.tools.drbd import dump, last_known
from quorate.lab.tools.process import Process

_FAILED, _CANNOT_OPEN, _USAGE = 1, 20, 20
#: How much of a device's start drbdmeta looks at to see whether somebody's data is there.
_LOOKED_AT = 68 << 10
_FIVE_DIGITS = 10_000
_CONFIRMED = "*** confirmation forced via --force option ***\n"


def drbdmeta(process: Process, argv: list[str]) -> int:
    """The command line."""
    forced = any(word in ("--force", "-f") for word in argv[1:])
    words = [word for word in argv[1:] if word == "-" or not word.startswith("-")]
    if len(words) < 5 or words[1] != "v09" or words[3] not in ("internal", "flex-internal"):
        process.err("drbdmeta: expected MINOR v09 DEVICE internal COMMAND\n")
        return _USAGE
    # "-" stands for no minor: then no last known size is looked at.
    if words[0] != "-" and not words[0].isdecimal():
        process.err(f"Cannot determine minor device number of drbd device '{words[0]}'\n")
        return _USAGE
    minor = -1 if words[0] == "-" else int(words[0])
    path, command, rest = words[2], words[4], words[5:]
    device = process.host.block_device(path)
    if device is None:
        process.err(f"open({path}) failed: No such file or directory\n")
        return _CANNOT_OPEN
    if device.failed:
        process.err(f"read({path}) failed: Input/output error\n")
        return _CANNOT_OPEN
    tool = _Drbdmeta(process, minor, path, device, forced)
    match command:
        case "create-md":
            return tool.create(int(rest[0]) if rest else 1)
        case "dump-md":
            return tool.dump(argv)
        case "apply-al":
            return tool.apply_activity_log()
        case "check-resize":
            return tool.check_resize()
        case "wipe-md":
            return tool.wipe()
    process.err(f"drbdmeta: unknown command '{command}'\n")
    return _USAGE


class _Drbdmeta:
    def __init__(self, process: Process, minor: int, path: str, device: BlockDevice, forced: bool) -> None:
        self._process = process
        self._minor = minor
        self._path = path
        self._device = device
        self._forced = forced

    def create(self, max_peers: int) -> int:
        if self._in_use():
            return _CANNOT_OPEN
        if not self._confirmed():
            self._process.out("Operation canceled.\n")
            return _FAILED
        made = kernel_metadata.create(self._device, max_peers, _device_uuid(self._process, self._path))
        self._process.out(
            "initializing activity log\n"
            f"initializing bitmap ({dump.bitmap_bytes(made) >> 10} KB) to all zero\n"
            "Writing meta data...\nNew drbd meta data block successfully created.\n"
        )
        return 0

    def _confirmed(self) -> bool:
        """Ask before anything is overwritten, as the real one does; only --force answers."""
        if (found := kernel_metadata.find(self._device)) is not None:
            self._process.out(
                "You want me to create a v09 style flexible-size internal meta data block.\n"
                "There appears to be a v09 flexible-size internal meta data block\n"
                f"already in place on {self._path} at byte offset {dump.offsets(found)[0]}\n\n"
                "Do you really want to overwrite the existing meta-data?\n"
            )
        elif any(tag is not None for _, _, tag in self._device.contents.runs(0, _LOOKED_AT // BLOCK)):
            fresh = Metadata(max_peers=7, device_size=self._device.size)
            superblock, log, bitmap = dump.offsets(fresh)
            self._process.out(
                f"md_offset {superblock}\nal_offset {log}\nbm_offset {bitmap}\n\nFound some data\n\n"
                " ==> This might destroy existing data! <==\n\nDo you want to proceed?\n"
            )
        else:
            return True
        if self._forced:
            self._process.out(_CONFIRMED)
        return self._forced

    def dump(self, argv: list[str]) -> int:
        found = self._find()
        if found is None:
            return self._none()
        if not found.clean:
            self._process.err('Found meta data is "unclean", please apply-al first\n')
            if not self._forced:
                return _FAILED
        command = " ".join(["drbdmeta", *(["--force"] if self._forced else []), *_without_force(argv[1:])])
        host = self._process.host
        self._process.out(dump.text(found, host=host.name, now=host.wall_clock(), command=command))
        return 0

    def apply_activity_log(self) -> int:
        if self._in_use():
            return _CANNOT_OPEN
        found = self._find()
        if found is None:
            return self._none()
        if found.device_size != self._device.size:
            self._move(found.device_size)
        if not found.has_log:
            self._process.err("No usable activity log found. Do you need to create-md?\n")
            if found.is_without_log:
                return _FAILED
            self._process.err("Error ignored, no need to apply the AL\n")
        if not found.clean and (marked := kernel_metadata.apply_activity_log(found)) is not None:
            self._process.err(f"Marked additional {_short(marked)} as out-of-sync based on AL.\n")
        return 0

    def check_resize(self) -> int:
        found = self._find()
        if found is None:
            self._process.err("no suitable meta data found :(\n")
            return _FAILED
        if found.device_size != self._device.size:
            if self._in_use():
                return _CANNOT_OPEN
            self._move(found.device_size)
        last_known.save(self._process.host.files, self._minor, self._device.size, self._path, found.device_uuid)
        return 0

    def wipe(self) -> int:
        if self._in_use():
            return _CANNOT_OPEN
        if not kernel_metadata.wipe(self._device):
            self._process.out("There appears to be no drbd meta data to wipe out?\n")
            return 0
        self._process.out("Wiping meta data...\nDRBD meta data block successfully wiped out.\n")
        return 0

    def _find(self) -> Metadata | None:
        """At the end of the device, or at the end it had when DRBD last had it."""
        found = kernel_metadata.find(self._device)
        if found is None:
            known = last_known.load(self._process.host.files, self._minor)
            if known is not None and known.path == self._path:
                found = kernel_metadata.find_at(self._device, known.size)
        return found

    def _move(self, from_size: int) -> None:
        kernel_metadata.move(self._device, from_size)
        self._process.out(
            "Moving the internal meta data to its proper location\nInternal drbd meta data successfully moved.\n"
        )

    def _none(self) -> int:
        self._process.err("No valid meta data found\n")
        return _FAILED

    def _in_use(self) -> bool:
        if self._device.holder is None:
            return False
        self._process.err(f"Device '{self._minor}' is configured!\n")
        return True


def _short(size: int) -> str:
    """A size in at most four digits, each step to a larger unit rounded by its highest bit that is lost."""
    amount, units = size >> 10, iter("KMGTPE")
    unit = next(units)
    while amount >= _FIVE_DIGITS:
        amount, unit = (amount >> 10) + (amount >> 9 & 1), next(units)
    return f"{amount} {unit}B"


def _without_force(words: list[str]) -> list[str]:
    return [word for word in words if word not in ("--force", "-f")]


def _device_uuid(process: Process, path: str) -> int:
    """A device's own number: another for every creation, the same in every run."""
    return hash_of(f"{process.host.name}/{path}/{process.pid}/{process.host.world.now}") << 8 | 1
