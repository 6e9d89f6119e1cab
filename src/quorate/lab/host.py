"""One simulated node: its kernel, files, drives and volumes, and the programs that run on it.

``execute`` is for commands that end at once, which is most of them. ``start`` is for all: what it returns says when the
command has ended, and the world's passing time carries it there, so a replay can advance the world by itself and an
async wrapper can wait for ``on_exit``.

A host whose root is volatile boots from an image each time, as the recorded machines did: a power loss leaves only what
is on the drives. Otherwise only ``/tmp``, ``/run``, ``/proc`` and ``/sys`` are new after a boot.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING

from quorate.errors import QuorateError
from quorate.lab.drives import Bays, Drive
from quorate.lab.kernel import BlockDevice, Io
from quorate.lab.kernel.options import KNOWN_ALGORITHMS
from quorate.lab.lvm import VolumeManager
from quorate.lab.lvm.mapping import Mapping, VolumeDevice, volume_devices, volume_uuid
from quorate.lab.tools import registry
from quorate.lab.tools.process import Data, Descriptor, Nothing, Process, Program, Result, Resume, Transcript, Wait

if TYPE_CHECKING:
    from quorate.lab.kernel import Kernel, World

_COMMAND_NOT_FOUND = 127
_POWER_LOST = 137
_VOLATILE = ("/tmp/", "/run/", "/proc/", "/sys/")  # noqa: S108 - paths of a simulated node


class HostDown(QuorateError):
    """A command was given to a node that has no power."""


class Running:
    """A command that was started."""

    def __init__(self, process: Process, transcript: Transcript) -> None:
        self._process = process
        self._transcript = transcript

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.exit_code is not None

    @property
    def result(self) -> Result | None:
        """What came of it; None while it runs."""
        code = self._process.exit_code
        return None if code is None else self._transcript.result(code)

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Call back when it has ended; at once if it has."""
        self._process.on_exit(callback)

    def kill(self) -> None:
        """Terminate it. One that hangs in the kernel goes on hanging."""
        self._process.kill()


def _in_time(argv: Sequence[str]) -> float:
    """By name: hosts are pickled, by who leads one state on in many ways."""
    return 0.0


class Host:
    """A node of the lab, from its drives up."""

    def __init__(self, world: World, name: str, addresses: Iterable[str], *, volatile_root: bool = False) -> None:
        self.world = world
        self.name = name
        self.addresses = tuple(addresses)
        self.volatile_root = volatile_root
        self.powered = True
        self.boots = 0
        self.bays = Bays()
        self.lvm = VolumeManager(name, self._name_of)
        self.files: dict[str, bytes] = {}
        #: What ``dmsetup`` has made, by name: views of other devices, gone with the power.
        self.mappings: dict[str, Mapping] = {}
        #: The seconds by which a command that another program runs is late.
        self.lateness: Callable[[Sequence[str]], float] = _in_time
        #: Writes of DRBD devices that went through the page cache and are on no disk yet, and who waits for them.
        self._dirty: dict[Io, list[Resume]] = {}
        #: Devices of logical volumes that device mapper does not have, by UUID: removed, or not there at boot.
        self.inactive: set[str] = set()
        self._next_pid = 400
        self._processes: dict[int, Process] = {}
        world.add_node(name, self.addresses)
        self._boot()

    @property
    def kernel(self) -> Kernel:
        """The DRBD module; a new one after every boot."""
        return self.world.node(self.name)

    # --- commands ---

    def execute(self, argv: Iterable[str], stdin: bytes = b"") -> Result:
        """Run a command that ends at once. Raises RuntimeError if it does not: use ``start`` for what may wait."""
        words = list(argv)
        result = self.start(words, stdin).result
        if result is None:
            raise RuntimeError(f"{words} did not end at once on {self.name}")
        return result

    def start(
        self, argv: Iterable[str], stdin: bytes = b"", *, listener: Callable[[str], None] | None = None
    ) -> Running:
        """Start a command. A listener is told what it says on standard output, while it runs."""
        if not self.powered:
            raise HostDown(f"node {self.name} has no power")
        words = list(argv)
        transcript = Transcript()
        if listener is not None:
            transcript.listen(listener)
        process = self.fork(
            words[0].rpartition("/")[2], {0: Data(stdin), 1: transcript.channel(1), 2: transcript.channel(2)}
        )
        process.start(self.program(process, words))
        return Running(process, transcript)

    def fork(self, name: str, descriptors: dict[int, Descriptor]) -> Process:
        """A process that has not started yet."""
        self._next_pid += 1
        process = Process(self, name, self._next_pid, descriptors)
        self._processes[process.pid] = process
        return process

    def program(self, process: Process, argv: list[str]) -> Program:
        """The program behind a command line."""
        tool = registry.TOOLS.get(argv[0].rpartition("/")[2])
        if tool is None:
            process.err(f"sh: {argv[0]}: not found\n")
            return _COMMAND_NOT_FOUND
        outcome = tool(process, argv)
        return outcome if isinstance(outcome, int) else (yield from outcome)

    def has_program(self, name: str) -> bool:
        return name.rpartition("/")[2] in registry.TOOLS

    def find_process(self, pid: int) -> Process | None:
        """A process that runs."""
        return self._processes.get(pid)

    def forget_process(self, process: Process) -> None:
        self._processes.pop(process.pid, None)

    def after(self, seconds: float) -> Wait:
        """A pause in virtual time."""
        return Wait(lambda resume: self.world.later(seconds, resume))

    def wall_clock(self) -> float:
        return self.world.epoch.timestamp() + self.world.now

    # --- the page cache ---

    def soil(self, request: Io) -> None:
        """A write waits in the page cache; :meth:`clean` when it is over."""
        self._dirty[request] = []

    def clean(self, request: Io) -> None:
        """It is over: whoever synced goes on."""
        for resume in self._dirty.pop(request, ()):
            resume()

    def flushed(self, minor: int | None = None) -> Generator[Wait, None, None]:
        """Wait, in the kernel, until all that is dirty now, of a device or of all, is written or has failed."""
        for request in [one for one in self._dirty if minor in (None, one.minor)]:
            waiting = self._dirty.get(request)
            if waiting is not None:
                yield Wait(waiting.append, interruptible=False)

    # --- power ---

    def kill_processes(self) -> None:
        """End what runs, as an init system does before it ends the machine; what hangs in the kernel stays."""
        for process in list(self._processes.values()):
            process.kill()

    def power_off(self) -> None:
        """Everything stops at once."""
        self.world.power_off(self.name)
        self.powered = False
        self._dirty.clear()
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.vanish(_POWER_LOST)

    def power_on(self) -> None:
        self.world.power_on(self.name)
        self.powered = True
        self._boot()

    def _boot(self) -> None:
        self.boots += 1
        self.bays.reboot()
        self.mappings.clear()
        self._activate(anew=True)
        for device in self._backing_devices():
            device.holder = None
        kept = {} if self.volatile_root else self.files
        boot = uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}/{self.boots}")
        self.files = {
            "/etc/drbd.conf": b'include "drbd.d/*.res";\n',
            "/etc/hostname": f"{self.name}\n".encode(),
            "/etc/machine-id": f"{uuid.uuid5(uuid.NAMESPACE_DNS, self.name).hex}\n".encode(),
            "/etc/os-release": b'PRETTY_NAME="Quorate lab"\nID=lab\n',
            **{path: data for path, data in kept.items() if not path.startswith(_VOLATILE)},
            "/proc/sys/kernel/random/boot_id": f"{boot}\n".encode(),
            "/proc/sys/kernel/osrelease": b"6.1.0-lab\n",
            "/proc/drbd": b"version: 9.2.9 (api:2/proto:86-122)\n",
            "/proc/crypto": "".join(f"name         : {name}\n\n" for name in sorted(KNOWN_ALGORITHMS)).encode(),
            "/sys/module/drbd/version": b"9.2.9\n",
        }

    # --- files ---

    def read(self, path: str) -> bytes:
        """A file's contents. Raises FileNotFoundError."""
        if path == "/dev/null":
            return b""
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    def paths(self) -> Iterable[str]:
        return self.files.keys()

    def list_directory(self, path: str) -> tuple[str, ...] | None:
        """The names in a directory, sorted; None when nothing is there."""
        prefix = path.rstrip("/") + "/"
        names = {name[len(prefix) :].partition("/")[0] for name in self.files if name.startswith(prefix)}
        return tuple(sorted(names)) if names else None

    def open(self, process: Process, path: str, operator: str) -> Descriptor:
        """Open a file or device for a redirection. Raises OSError."""
        if path == "/dev/null":
            return Nothing()
        if (minor := self.minor(path)) is not None:
            return self._open_drbd(process, minor, path, writable=operator != "<")
        if self.block_device(path) is not None:
            return Nothing()
        if operator == "<":
            return Data(self.read(path))
        if operator == ">" or path not in self.files:
            self.files[path] = b""
        return _FileEnd(self, path)

    def _open_drbd(self, process: Process, minor: int, path: str, *, writable: bool) -> Descriptor:
        if not self.kernel.open(minor, process.name, process.pid, writable=writable):
            raise OSError(errno.EMEDIUMTYPE, os.strerror(errno.EMEDIUMTYPE), path)
        return _OpenDevice(self, minor, process.pid)

    # --- devices ---

    def minor(self, path: str) -> int | None:
        """The minor of an existing DRBD device."""
        number = path.removeprefix("/dev/drbd")
        if number == path or not number.isdecimal() or self.kernel.device_size(int(number)) is None:
            return None
        return int(number)

    def block_device(self, path: str) -> BlockDevice | None:
        """The device behind a path: a drive or a logical volume, not DRBD's."""
        if (drive := self.bays.by_name(path.removeprefix("/dev/"))) is not None:
            drive.device.failed = drive.failing
            return drive.device
        if (mapping := self.mappings.get(path.removeprefix("/dev/mapper/"))) is not None:
            return mapping.device
        found = self.lvm.find(path) if path.startswith("/dev/") else None
        return found[1].device if found and volume_uuid(*found) not in self.inactive else None

    def _backing_devices(self) -> list[BlockDevice]:
        return [volume.device for group in self.lvm.groups.values() for volume in group.volumes.values()]

    def _name_of(self, drive: Drive) -> str | None:
        return self.bays.name(drive)

    # --- what happens to drives ---

    def insert_drive(self, drive: Drive) -> str:
        name = self.bays.insert(drive)
        self._activate()
        self.mark_failures()
        return name

    def volume_devices(self) -> list[VolumeDevice]:
        """What device mapper has of logical volumes, also of those whose drive is gone."""
        return list(volume_devices(self.lvm, self.inactive))

    def _activate(self, *, anew: bool = False) -> None:
        """As udev does when drives are found: volumes of groups that LVM sees get their devices. ``anew``: a boot."""
        seen = {id(group) for group in self.lvm.visible().values()}
        everything = tuple(volume_devices(self.lvm, ()))
        if anew:
            self.inactive = {device.uuid for device in everything if id(device.group) not in seen}
        self.inactive -= {device.uuid for device in everything if id(device.group) in seen}

    def pull_drive(self, serial: str) -> Drive:
        drive = self.bays.pull(serial)
        self.mark_failures()
        return drive

    def swap_drive(self, serial: str, replacement: Drive) -> str:
        name = self.bays.swap(serial, replacement)
        self.mark_failures()
        return name

    def fail_drive(self, serial: str, failing: bool = True) -> None:
        self.bays.by_serial(serial).failing = failing
        self.mark_failures()

    def mark_failures(self) -> None:
        """Let volumes on drives that fail or are gone fail."""
        for group in self.lvm.groups.values():
            for volume in group.volumes.values():
                volume.device.failed = self.lvm.failed(volume)


class _FileEnd(Nothing):
    """A file that is written to at its end."""

    def __init__(self, host: Host, path: str) -> None:
        self._host = host
        self._path = path

    def write(self, data: bytes) -> None:
        self._host.files[self._path] = self._host.files.get(self._path, b"") + data


class _OpenDevice(Nothing):
    def __init__(self, host: Host, minor: int, pid: int) -> None:
        self._host = host
        self._minor = minor
        self._pid = pid

    def close(self) -> None:
        if self._host.powered:
            self._host.kernel.close(self._minor, self._pid)
