"""``dmsetup create --readonly NAME --table "0 SECTORS linear DEVICE 0"``, ``remove NAME`` and ``info -c``.

What it tells of, and removes, are its own mappings and the devices of LVM's volumes.
"""

from __future__ import annotations

from quorate.lab.lvm.mapping import Mapping
from quorate.lab.tools.arguments import Arguments, UsageError, read
from quorate.lab.tools.process import Process

_SECTOR = 512
_VALUES = {"--table": "table", "--separator": "separator", "-o": "options", "--options": "options"}
_FLAGS = {
    "--readonly": "readonly",
    "-r": "readonly",
    "--retry": "retry",
    "-c": "columns",
    "--columns": "columns",
    "-C": "columns",
    "--noheadings": "noheadings",
}


def dmsetup(process: Process, argv: list[str]) -> int:
    """The command line."""
    try:
        arguments = read(argv[1:], values=_VALUES, flags=_FLAGS)
        if arguments.rest == ["info"] and arguments.has("columns") and arguments.has("noheadings"):
            _info(process, arguments)
            return 0
        verb, name = arguments.rest
        why = {"create": _create, "remove": _remove}[verb](process, name, arguments)
    except (UsageError, ValueError, KeyError):
        process.err(
            "Usage: dmsetup create NAME --readonly --table TABLE | remove [--retry] NAME | info -c --noheadings -o …\n"
        )
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
    if (mapping := process.host.mappings.pop(name, None)) is not None:
        mapping.end()
        return ""
    found = next((device for device in process.host.volume_devices() if device.name == name), None)
    if found is None:
        return f"Device {name} not found"
    if found.opens:
        return f"device-mapper: remove ioctl on {name}  failed: Device or resource busy"
    process.host.inactive.add(found.uuid)
    return ""


def _info(process: Process, arguments: Arguments) -> None:
    mapped = [{"name": name, "uuid": "", "open": "0"} for name in process.host.mappings]
    volumes = [
        {"name": device.name, "uuid": device.uuid, "open": str(device.opens)}
        for device in process.host.volume_devices()
    ]
    columns = arguments.get("options", "name,uuid,open").split(",")
    for row in sorted((*mapped, *volumes), key=lambda row: row["name"]):
        process.out(arguments.get("separator", ":").join(row[column] for column in columns) + "\n")
    if not mapped and not volumes:
        process.out("No devices found\n")
