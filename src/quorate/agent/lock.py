"""One agent per machine: a lock in its state directory, which the kernel gives back however a process ends.

The lock is what makes a crash harmless to wait for: whoever holds it knows that no other agent of this place runs, and
may take the Lease that its predecessor left behind without waiting for it to run out (``lease``). A place is more than
a machine: two agents with two state directories lock two files, so each file has an id of its own, made once.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from random import Random

from quorate.errors import AnotherAgent, ConfigError

FILE = "agent.lock"


class AgentLock:
    """Held from when it is made until :meth:`release`."""

    def __init__(self, directory: Path, *, random: Random) -> None:
        """Take it. AnotherAgent names the process that has it; ConfigError says why there can be no lock."""
        path = directory / FILE
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"the agent's state directory {directory} cannot be used: {error.strerror}") from None
        try:
            self._lock(path)
            #: The same for whoever holds this lock, and for nobody else.
            self.id = self._sign(random)
        except BaseException:
            os.close(self._file)
            raise

    def release(self) -> None:
        """Let go. The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._file)

    def _lock(self, path: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _, process = _read(self._file)
            raise AnotherAgent(
                f"process {process or 'unknown'} is an agent on this machine and holds {path}: stop that one first"
            ) from None

    def _sign(self, random: Random) -> str:
        id_ = _read(self._file)[0] or f"{random.getrandbits(64):016x}"
        # On a full disk the lock holds all the same. The id is then new each time, and a Lease must run out.
        with suppress(OSError):
            os.pwrite(self._file, f"{id_}\n{os.getpid()}\n".ljust(64).encode(), 0)
            os.fsync(self._file)
        return id_


def look(directory: Path) -> tuple[str, str]:
    """The id of a place and the process that has its lock, each "" if there is none. Takes nothing away."""
    try:
        file = os.open(directory / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "", ""
    try:
        id_, process = _read(file)
        try:
            # For an instant an agent that starts would be refused, and started again by its supervisor.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return id_, process or "unknown"
        return id_, ""
    finally:
        os.close(file)


def _read(file: int) -> tuple[str, str]:
    """The id and the last holder, as far as they are there."""
    id_, process, *_ = [*os.pread(file, 64, 0).decode(errors="replace").split(), "", ""]
    return id_, process
