"""File operations as they are, blocking. Only regular files are opened: opening a DRBD device would hold it."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

#: Bytes; nothing that an agent reads is near it.
_LARGEST = 16 * 1024 * 1024


def read(path: str) -> bytes:
    """The contents; files of /proc and /sys are regular too, and say nothing of their size beforehand."""
    _refuse_devices(path)
    with open(path, "rb", buffering=0) as file:
        content = bytearray()
        while chunk := file.read(1024 * 1024):
            content += chunk
            if len(content) > _LARGEST:
                raise OSError(errno.EFBIG, f"is larger than the {_LARGEST} bytes that are read", path)
    return bytes(content)


def open_beneath(directory: str, path: str) -> int:
    """A descriptor of a regular file beneath a directory. Every part of the way is opened from the one before.

    So nothing can be put in the way between the look and the use. A device is not even opened: that could hold it.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise OSError(errno.EINVAL, "does not stay in its directory", path)
    here = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for at, part in enumerate(parts):
            last = at == len(parts) - 1
            there = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = there
            wanted = stat.S_ISREG if last else stat.S_ISDIR
            if not wanted(os.fstat(here).st_mode):
                what = "a regular file" if last else "a directory"
                raise OSError(
                    errno.EINVAL, f"is not {what}: no links and no devices are read", "/".join(parts[: at + 1])
                )
        # Our own name for what was looked at: it is opened as itself, not by its name.
        return os.open(f"/proc/self/fd/{here}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(here)


def write(path: str, content: bytes) -> None:
    """Readable only by its owner, from the first byte on, and on the disk when this returns."""
    with suppress(FileNotFoundError):
        _refuse_devices(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    _sync_directory(path)


def move(source: str, destination: str) -> None:
    """Put a file in another's place."""
    os.replace(source, destination)
    _sync_directory(destination)
    if os.path.dirname(source) != os.path.dirname(destination):
        _sync_directory(source)


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(path)
        _sync_directory(path)


def names_in(directory: str) -> tuple[str, ...]:
    """The names in a directory, sorted; empty when there is none."""
    try:
        return tuple(sorted(os.listdir(directory)))
    except FileNotFoundError:
        return ()


def _refuse_devices(path: str) -> None:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)


def _sync_directory(path: str) -> None:
    """A name is on the disk only when its directory is."""
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
