"""The memory of a rolling restart: a line of JSON for each thing that happened, written before it is relied on.

Whatever kills the command, the journal and the broker together tell how far it came: the journal which hosts are
finished, the broker which permissions and which request are still ours.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec

from quorate.errors import ConfigError

Event = Literal["began", "succeeded", "failed"]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What was to be done: a run that is resumed does the same."""

    run: str
    user: str
    hosts: tuple[str, ...]
    command: str
    services: tuple[str, ...] = ()
    mode: str = "max"
    tenant_policy: str = "DEFAULT"
    duration: int | None = None

    @property
    def reason(self) -> str:
        """For those who ask why."""
        return f"rolling restart {self.run}"


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened to a host."""

    event: Event
    host: str
    at: int
    permission: str = ""
    exit_code: int | None = None


class Journal:
    """A header and lines, in a file that is only added to."""

    def __init__(self, path: Path, header: Header, lines: Sequence[Line], file: IO[bytes]) -> None:
        self.path = path
        self.header = header
        self.last: dict[str, Line] = {line.host: line for line in lines}
        self._file = file

    @classmethod
    def begin(cls, path: Path, header: Header) -> Journal:
        """A new one; an old one of that name is not touched."""
        try:
            file = path.open("xb")
        except FileExistsError:
            raise ConfigError(f"{path} is there already: go on with it by --resume {path}, or name another") from None
        except OSError as error:
            raise ConfigError(f"the journal {path} cannot be written: {error.strerror}") from None
        _lock(file, path)
        journal = cls(path, header, (), file)
        journal._append(header)
        return journal

    @classmethod
    def resume(cls, path: Path) -> Journal:
        """One that was begun earlier. A last line that was cut off is as if it had not been written."""
        try:
            whole, _, cut_off = path.read_bytes().rpartition(b"\n")
            first, *rest = whole.split(b"\n")
            header = msgspec.json.decode(first, type=Header)
            lines = [msgspec.json.decode(line, type=Line) for line in rest]
            file = path.open("r+b")
        except OSError as error:
            raise ConfigError(f"the journal {path} cannot be read: {error.strerror}") from None
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path} is not the journal of a rolling restart: {error}") from None
        _lock(file, path)
        file.seek(-len(cut_off), os.SEEK_END)
        file.truncate()
        return cls(path, header, lines, file)

    def add(self, line: Line) -> None:
        """It happened. On return it is on the disk."""
        self._append(line)
        self.last[line.host] = line

    def finished(self, host: str) -> bool:
        """Nothing is left to do."""
        last = self.last.get(host)
        return last is not None and last.event == "succeeded"

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    def _append(self, line: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _lock(file: IO[bytes], path: Path) -> None:
    """One process at a time goes on with a run; the lock ends with the process."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ConfigError(f"the run of {path} goes on in another process: wait for its end, or stop it first") from None
