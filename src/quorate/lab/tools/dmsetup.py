"""``dmsetup create --readonly NAME --table "0 SECTORS linear DEVICE 0"``, and ``dmsetup remove NAME``."""

from __future__ import annotations

from quorate.lab.lvm.mapping import Mapping
from quorate.lab.tools.arguments import Arguments, UsageError, read
from quorate.lab.tools.process import Process

_SECTOR = 512
_VALUES = {"--table": "table"}
_FLAGS = {"--readonly": "readonly", "-r": "readonly", "--retry": "retry"}


def dmsetup(process: Process, argv: list[str]) -> int:
    """The command line."""
    try:
        arguments = read(argv[1:], values=_VALUES, flags=_FLAGS)
        verb, name = arguments.rest
        why = {"create": _create, "remove": _remove}[verb](process, name, arguments)
    except (UsageError, ValueError, KeyError):
        process.err("Usage: dmsetup create NAME --readonly --table TABLE | remove [--retry] NAME\n")
        return 1
    if why:
        process.err(f"{why}\nCommand failed.\n")
    return 1 if why else 0


def _create(process: Process, name: str, arguments: Arguments) -> str:
    start, sectors, target, path, offset = arguments.get("table").split()
    if (start, target, offset) != ("0", "linear", "0") or not arguments.has("readonly"):
        raise UsageError(arguments.get("table"))
    if name in process.host.mappings:
        return f"device-mapper: create ioctl on {name} failed: Device or resource busy"
    under = process.host.block_device(path)
    if under is None or under.holder is not None or int(sectors) * _SECTOR > under.size:
        return f"device-mapper: reload ioctl on {name} failed: {'Invalid argument' if under else 'No such device'}"
    process.host.mappings[name] = Mapping(under, int(sectors) * _SECTOR)
    return ""


def _remove(process: Process, name: str, _: Arguments) -> str:
    mapping = process.host.mappings.pop(name, None)
    if mapping is None:
        return f"Device {name} not found"
    mapping.end()
    return ""
