"""One machine under qemu: power, drives, the port for commands, and QMP."""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metal.errors import Failed
from metal.qemu.hub import Hub, mac_of
from metal.qemu.image import System

_LINE = 1 << 24
_CPU = {"kvm": "host,arch-capabilities=off", "tcg": "max"}
#: Nothing runs on without us, however we end.
END_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
#: What machines say while they run, each into a file of its own, which a power loss leaves whole.
STREAMS = ("events", "agent", "commands")


@dataclass
class Heard:
    """A command inside a machine, and what it has said so far."""

    ended: asyncio.Future[int]
    said: list[str] = field(default_factory=list)
    listener: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """A drive: its serial number, its file, and whether it is NVMe."""

    serial: str
    file: Path
    nvme: bool


class Vm:
    """A machine. Its drives and root keep what is written while it is off."""

    def __init__(self, name: str, number: int, directory: Path, system: System, hub: Hub, *, memory: int) -> None:
        self.name = name
        self.number = number
        self.directory = directory
        self.disks: dict[str, Disk] = {}
        self.boots = 0
        self._system = system
        self._hub = hub
        self._memory = memory
        self._process: asyncio.subprocess.Process | None = None
        self._monitor: Monitor | None = None
        self._door: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._next = 0
        self._heard: dict[int, Heard] = {}
        self._plugged = 0
        directory.mkdir(parents=True)

    @property
    def powered(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def add_disk(self, serial: str, size: int, *, nvme: bool) -> None:
        """A drive for the next boot; what is there already is kept."""
        file = self.directory / f"{serial}.img"
        if not file.exists():
            with file.open("wb") as made:
                made.truncate(size)
        self.disks[serial] = Disk(serial, file, nvme)

    # --- power ---

    async def power_on(self, patience: float) -> None:
        """Boot, until the machine answers. Raises Failed."""
        self.boots += 1
        overlay = self.directory / "root.qcow2"
        if not overlay.exists():
            await _tool(
                "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(self._system.root), str(overlay)
            )
        for name in ("door", "qmp", "nic"):
            self._socket(name).unlink(missing_ok=True)
        arguments = self._arguments(overlay)
        (self.directory / "qemu.txt").write_text(" ".join(arguments) + "\n")
        with (self.directory / "qemu.log").open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *END_WITH_US,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(patience):
                self._monitor = await Monitor.open(await self._connected("qmp"))
                self._door = await self._connected("door")
                hello = Heard(asyncio.get_running_loop().create_future())
                self._heard = {0: hello}
                self._reading = asyncio.create_task(self._listen(self._door[0]))
                await hello.ended
        except TimeoutError:
            await self.power_off()
            raise Failed(
                f"{self.name} did not boot within {patience:.0f} s: see {self.directory}/console.log"
            ) from None

    async def power_off(self) -> None:
        """All at once, as when the cable is pulled. What the machine had written is kept."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await self._hang_up()

    async def until_ended(self, seconds: float) -> bool:
        """Whether the machine ends by itself, as after ``poweroff`` or ``reboot``."""
        assert self._process is not None
        try:
            await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return False
        self._process = None
        await self._hang_up()
        return True

    async def _hang_up(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
        if self._door is not None:
            self._door[1].close()
            self._door = None
        if self._monitor is not None:
            await self._monitor.close()
            self._monitor = None
        for heard in self._heard.values():
            if not heard.ended.done():
                heard.ended.set_result(137)
        self._heard.clear()

    # --- commands ---

    def start(self, text: str, listener: Callable[[str], None] | None = None) -> tuple[int, Heard]:
        """Begin a shell command; its number, and what is heard of it."""
        return self._send({"run": text}, listener)

    def kill(self, number: int) -> None:
        """End a command. One that hangs in the kernel goes on hanging."""
        if self._door is not None:
            self._door[1].write((json.dumps({"id": number, "kill": True}) + "\n").encode())

    async def write_file(self, path: str, data: bytes) -> None:
        """Put a file there, flushed."""
        _, heard = self._send({"file": path, "data": base64.b64encode(data).decode()}, None)
        if await asyncio.wait_for(heard.ended, 60):
            raise Failed(f"{self.name}: {path} cannot be written: {''.join(heard.said)}")

    def _send(self, message: dict[str, Any], listener: Callable[[str], None] | None) -> tuple[int, Heard]:
        if self._door is None:
            raise Failed(f"{self.name} has no power")
        self._next += 1
        heard = Heard(asyncio.get_running_loop().create_future(), listener=listener)
        self._heard[self._next] = heard
        self._door[1].write((json.dumps({"id": self._next, **message}) + "\n").encode())
        return self._next, heard

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            heard = self._heard.get(message["id"])
            if heard is None:
                continue
            if "out" in message:
                heard.said.append(message["out"])
                if heard.listener is not None:
                    heard.listener(message["out"])
            if "exit" in message:
                self._heard.pop(message["id"], None)
                if not heard.ended.done():
                    heard.ended.set_result(message["exit"])

    # --- drives and cards ---

    async def pull(self, serial: str) -> None:
        """Take a drive out, under way or not."""
        assert self._monitor is not None
        await self._monitor.unplug(f"dev-{self._id(serial)}")
        await self._monitor.ask("blockdev-del", {"node-name": f"raw-{self._id(serial)}"})
        del self.disks[serial]

    async def plug(self, serial: str, size: int, *, nvme: bool) -> None:
        """Put a drive in: a new one, or one that was there."""
        assert self._monitor is not None
        self.add_disk(serial, size, nvme=nvme)
        disk = self.disks[serial]
        name = self._id(serial)
        await self._monitor.ask("blockdev-add", _blockdev(name, disk))
        await self._monitor.ask("device_add", _device(name, disk))

    async def link(self, card: str, *, up: bool) -> None:
        """Plug or unplug a network cable: ``api`` or ``wire``."""
        assert self._monitor is not None
        await self._monitor.ask("set_link", {"name": card, "up": up})

    def _id(self, serial: str) -> str:
        return serial.lower()

    # --- how it is started ---

    def _socket(self, name: str) -> Path:
        return self._hub.theirs(self.number) if name == "nic" else self._hub.ours(self.number).with_suffix(f".{name}")

    def _arguments(self, overlay: Path) -> list[str]:
        kvm = accelerator(self._system) == "kvm"
        append = (
            f"root=/dev/vda rw console=ttyS0 loglevel=7 printk.time=1 systemd.hostname={self.name} net.ifnames=0"
            " panic=-1 systemd.show_status=no fsck.mode=skip mitigations=off"
        )
        arguments = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
        arguments += ["-machine", f"pc,accel={'kvm' if kvm else 'tcg'}", "-cpu", _CPU["kvm" if kvm else "tcg"]]
        arguments += ["-m", str(self._memory), "-smp", "1"]
        arguments += ["-kernel", str(self._system.kernel), "-initrd", str(self._system.initrd), "-append", append]
        arguments += ["-chardev", f"file,id=console,path={self.directory / 'console.log'},append=on"]
        arguments += ["-serial", "chardev:console"]
        arguments += ["-qmp", f"unix:{self._socket('qmp')},server=on,wait=off"]
        arguments += ["-device", "virtio-rng-pci"]
        arguments += ["-drive", f"if=none,id=root,file={overlay},format=qcow2", "-device", "virtio-blk-pci,drive=root"]
        arguments += ["-virtfs", f"local,path={self._system.shared},mount_tag=quorate,security_model=none,readonly=on"]
        arguments += ["-netdev", "user,id=api,ipv6=off"]
        arguments += ["-device", f"virtio-net-pci,netdev=api,id=api-card,mac=52:54:00:4e:00:{self.number:02x}"]
        here, hub = self._hub.theirs(self.number), self._hub.ours(self.number)
        wire = f"local.type=unix,local.path={here},remote.type=unix,remote.path={hub}"
        arguments += ["-netdev", f"dgram,id=wire,{wire}"]
        arguments += ["-device", f"virtio-net-pci,netdev=wire,id=wire-card,mac={mac_of(self.number)}"]
        arguments += ["-device", "virtio-serial-pci"]
        arguments += ["-chardev", f"socket,id=door,path={self._socket('door')},server=on,wait=off"]
        arguments += ["-device", "virtserialport,chardev=door,name=metal.door"]
        for stream in STREAMS:
            path = self.directory / f"{stream}.log"
            arguments += ["-chardev", f"file,id={stream},path={path},append=on"]
            arguments += ["-device", f"virtserialport,chardev={stream},name=metal.{stream}"]
        arguments += ["-device", "virtio-scsi-pci,id=scsi"]
        for disk in self.disks.values():
            name = self._id(disk.serial)
            arguments += ["-blockdev", json.dumps(_blockdev(name, disk))]
            arguments += ["-device", json.dumps(_device(name, disk))]
        return arguments

    async def _connected(self, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while True:
            if not self.powered:
                raise Failed(f"qemu of {self.name} ended: see {self.directory / 'qemu.log'}")
            with suppress(OSError):
                return await asyncio.open_unix_connection(str(self._socket(name)), limit=_LINE)
            await asyncio.sleep(0.05)


def _blockdev(name: str, disk: Disk) -> dict[str, Any]:
    file = {"driver": "file", "filename": str(disk.file), "discard": "unmap"}
    return {"driver": "raw", "node-name": f"raw-{name}", "file": file, "discard": "unmap", "detect-zeroes": "off"}


def _device(name: str, disk: Disk) -> dict[str, Any]:
    known = {"id": f"dev-{name}", "drive": f"raw-{name}", "serial": disk.serial}
    if disk.nvme:
        return {"driver": "nvme", **known}
    return {"driver": "scsi-hd", "bus": "scsi.0", "vendor": "QUORATE", "product": "METAL", **known}


class Monitor:
    """QMP: one command at a time, and the events between."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._unplugged: dict[str, asyncio.Event] = {}
        self._task = asyncio.create_task(self._listen())

    @classmethod
    async def open(cls, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> Monitor:
        await streams[0].readline()
        monitor = cls(*streams)
        await monitor.ask("qmp_capabilities")
        return monitor

    async def ask(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        """Have something done. Raises Failed."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._writer.write((json.dumps(request) + "\n").encode())
        answer = await asyncio.wait_for(self._answers.get(), 60)
        if "error" in answer:
            raise Failed(f"QMP {command} {arguments}: {answer['error'].get('desc')}")
        return answer["return"]

    async def unplug(self, device: str) -> None:
        """Take a device out, until the machine has let it go."""
        gone = self._unplugged.setdefault(device, asyncio.Event())
        await self.ask("device_del", {"id": device})
        await asyncio.wait_for(gone.wait(), 60)
        del self._unplugged[device]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._writer.close()

    async def _listen(self) -> None:
        while line := await self._reader.readline():
            message = json.loads(line)
            if message.get("event") == "DEVICE_DELETED":
                self._unplugged.setdefault(message["data"].get("device", ""), asyncio.Event()).set()
            elif "return" in message or "error" in message:
                self._answers.put_nowait(message)


@functools.cache
def accelerator(system: System) -> str:
    """``kvm`` where it really works, else ``tcg``: some hosts have the device and a guest never gets anywhere."""
    given = os.environ.get("QUORATE_METAL_ACCEL", "")
    if given in ("kvm", "tcg"):
        return given
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with tempfile.TemporaryDirectory() as place:
        console = Path(place) / "console"
        argv = [
            "qemu-system-x86_64",
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            "-accel",
            "kvm",
        ]
        argv += ["-cpu", _CPU["kvm"], "-m", "256", "-kernel", str(system.kernel), "-append", "console=ttyS0 panic=-1"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run([*argv, "-serial", f"file:{console}"], capture_output=True, timeout=6, check=False)
        return "kvm" if console.exists() and console.stat().st_size else "tcg"


async def _tool(*argv: str) -> None:
    process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    if process.returncode:
        raise Failed(f"{' '.join(argv)}: {said.decode(errors='replace')}")
