"""The part of /sys that says where drives sit, and that switches their locate lights: made from the bays themselves."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.lab.drives import Drive
from quorate.lab.host import Host

_ROOT = "/sys/block/"
_ENCLOSURE = "0x50000000000000e0"


def covers(path: str) -> bool:
    """Whether a path is of this part."""
    return path.startswith(_ROOT)


def files(host: Host) -> dict[str, bytes]:
    """Every file, as it is now."""
    found = {}
    for component, drive in _components(host):
        found[f"{component}/slot"] = f"{drive.slot}\n".encode()
        found[f"{component}/locate"] = b"1\n" if drive.locate_light else b"0\n"
        # The component is a symbolic link to a directory of its enclosure's.
        found[f"{component}/../id"] = f"{_ENCLOSURE}\n".encode()
    return found


def write(host: Host, path: str, content: bytes) -> None:
    """Write to a file: only the locate lights can be."""
    for component, drive in _components(host):
        if path == f"{component}/locate":
            drive.locate_light = content.strip() != b"0"
            return
    raise PermissionError(13, "Permission denied", path)


def _components(host: Host) -> Iterator[tuple[str, Drive]]:
    for name, drive in host.bays.items():
        yield f"{_ROOT}{name}/device/enclosure_device:Slot {drive.slot:0>2}", drive
