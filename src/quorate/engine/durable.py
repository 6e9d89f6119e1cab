"""Bringing bytes and names to the disk: what a file that must survive the machine is written with."""

from __future__ import annotations

import os
from pathlib import Path


def write_all(file: int, data: bytes) -> None:
    """Write every byte, however many calls that takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def sync_directory(path: Path) -> None:
    """Bring the names in a directory to the disk."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
