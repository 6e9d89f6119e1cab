"""Commands about the machine: uname, hostname, dmesg, modprobe, modinfo, ledctl, udevadm, reboot, poweroff, busybox."""

from __future__ import annotations

from quorate.lab.kernel.options import KNOWN_ALGORITHMS
from quorate.lab.tools.process import Process, Program, Wait

_RELEASE = "6.1.0-lab"
#: Seconds from the system call until the machine is off, as recorded.
_ENDING = 0.5


def uname(process: Process, argv: list[str]) -> int:
    """What system this is."""
    parts = {"-s": "Linux", "-n": process.host.name, "-r": _RELEASE, "-m": "x86_64"}
    if "-a" in argv:
        process.out(f"Linux {process.host.name} {_RELEASE} #1 SMP x86_64 GNU/Linux\n")
    else:
        process.out(" ".join(parts[word] for word in argv[1:] or ["-s"] if word in parts) + "\n")
    return 0


def hostname(process: Process, _argv: list[str]) -> int:
    """The node's name."""
    process.out(f"{process.host.name}\n")
    return 0


def dmesg(process: Process, _argv: list[str]) -> int:
    """The kernel log."""
    for moment, line in process.host.world.log(process.host.name):
        process.out(f"[{moment:12.6f}] {line}\n")
    return 0


def modprobe(process: Process, argv: list[str]) -> int:
    """Load a module; those the lab has are loaded."""
    there = {"drbd", "drbd_transport_tcp", "dm_thin_pool", *(f"crypto-{name}" for name in KNOWN_ALGORITHMS)}
    named = [word for word in argv[1:] if not word.startswith("-")]
    for name in named if "-a" in argv else named[:1]:
        if name not in there:
            process.err(f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{_RELEASE}\n")
            return 1
        if "-n" not in argv:
            process.host.files[f"/sys/module/{name}/initstate"] = b"live\n"
    return 0


def modinfo(process: Process, argv: list[str]) -> int:
    """About a module."""
    if "drbd" not in argv:
        process.err(f"modinfo: ERROR: Module {argv[-1]} not found.\n")
        return 1
    if "-F" in argv or any(word.startswith("--field") for word in argv):
        process.out("9.2.9\n")
    else:
        process.out(
            f"filename:       /lib/modules/{_RELEASE}/updates/drbd.ko\nversion:        9.2.9\nname:           drbd\n"
        )
    return 0


def ledctl(process: Process, argv: list[str]) -> int:
    """``ledctl locate=/dev/sdb`` and ``locate_off=/dev/sdb``."""
    for word in argv[1:]:
        pattern, equals, path = word.partition("=")
        if not equals or word.startswith("-"):
            continue
        drive = process.host.bays.by_name(path.removeprefix("/dev/"))
        if drive is None:
            process.err(f"ledctl: Could not find {path}\n")
            return 22
        if pattern not in ("locate", "locate_off", "off", "normal"):
            process.err(f"ledctl: unknown pattern {pattern}\n")
            return 22
        drive.locate_light = pattern == "locate"
    return 0


def reboot(process: Process, argv: list[str]) -> Program:
    """``reboot -f`` and ``poweroff -f``: sync, unless with -n, and then the machine ends; nothing is stopped before.

    Who starts it again is the lab's affair. Without -f an init system would be asked, which there is none of here.
    """
    host, boot = process.host, process.host.boots
    if "-f" not in argv:
        process.err(f"{argv[0]}: there is no init system here: only -f is known\n")
        return 1
    if "-n" not in argv:
        yield from host.flushed()

    def end() -> None:
        if host.powered and host.boots == boot:
            host.power_off()

    host.world.later(_ENDING, end)
    yield Wait(lambda _never: None, interruptible=False)
    return 0


def busybox(process: Process, argv: list[str]) -> Program:
    """Whatever is called by its name."""
    return (yield from process.host.program(process, argv[1:]))


def udevadm(_process: Process, _argv: list[str]) -> int:
    """Wait for devices: they are there at once."""
    return 0
