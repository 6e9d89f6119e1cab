"""One process per file. The kernel gives the lock back when a process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from quorate.errors import StorageLocked


class FileLock:
    """An exclusive lock beside a database, which names its holder."""

    def __init__(self, database: Path) -> None:
        """Take it, or raise StorageLocked with the process that has it; OSError when there can be no lock."""
        path = database.with_name(f"{database.name}.lock")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(database)
        except BaseException:
            os.close(self._file)
            raise
        # Only for the message above: the lock holds without it, on a full disk too.
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def _take(self, database: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip()
            raise StorageLocked(
                f"{database} is open in process {holder or 'unknown'}: stop that one first, or use another directory"
            ) from None

    def release(self) -> None:
        """Let go. The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._file)
