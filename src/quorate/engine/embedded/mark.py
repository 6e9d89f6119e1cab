"""The high-water mark: a small file beside the database that says how far it must reach.

SQLite takes a write-ahead log that was cut, overwritten or lost for a shorter one, without a word: acknowledged changes
are gone, and their versions are given to others. So what was promised is kept outside of it (``quorate.db.mark``):

- ``acknowledged``: the last version that somebody was told of. Written before they are told, into the page cache: a
  process that is killed loses nothing of it. It reaches the disk within :data:`LAG` seconds, because an fsync of its
  own for every commit would make all of them twice as slow.
- ``reserved``: no version above it was ever handed out. On the disk before the first version that it covers is used, so
  versions are reserved many at a time.

At a start a database below ``acknowledged`` is damaged. After the machine itself went down the last second of
``acknowledged`` may be missing, which nobody can notice then; but versions go on above ``reserved``, so none is handed
out twice.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.engine.durable import sync_directory, write_all

#: The most seconds for which an acknowledgement is in the page cache alone.
LAG: Final = 1.0
#: Versions that are reserved at a time: one fsync for so many.
_BLOCK: Final = 65536
#: How far versions go on above what is there when nobody knows what was handed out: years of writing.
UNKNOWN: Final = 2**32

#: Each of the two lines has a sector of its own: they are written by different threads, and a sector is written whole.
_SECTOR: Final = 512
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class UnreadableMark(ValueError):
    """A mark that is there and cannot be trusted."""


@dataclass(frozen=True, slots=True)
class HighWater:
    """What a mark says."""

    acknowledged: int
    reserved: int
    #: Whether the database was closed in order, or else since when the machine runs that had it open.
    closed: bool
    boot: str

    @property
    def exact(self) -> bool:
        """Whether ``acknowledged`` is the last word: nothing of it can have been lost with the page cache."""
        return self.closed or (self.boot != "" and self.boot == _boot())


class Mark:
    """The mark of one database. ``acknowledge`` is for the event loop, the rest for whoever writes the database."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}.mark")
        #: Why it could not be written the last time, or brought to the disk; empty when it could.
        self._unwritten = ""
        self._unsynced = ""
        self._file = -1
        self._reserved = 0
        self._acknowledged = 0
        #: How much of that is on the disk.
        self.synced = 0

    @property
    def problem(self) -> str:
        """Why it is not up to date; empty while it is."""
        return self._unwritten or self._unsynced

    def read(self) -> HighWater | None:
        """What it says; None when there is none. Raises UnreadableMark, or OSError."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            (acknowledged,) = _fields(data[:_SECTOR], "acknowledged")
            reserved, state, boot = _fields(data[_SECTOR : 2 * _SECTOR], "reserved")
            return HighWater(int(acknowledged), int(reserved), state == "closed", boot.removeprefix("boot="))
        except ValueError as error:
            raise UnreadableMark(str(error)) from None

    def create(self) -> None:
        """Nothing was handed out yet. There before the database is, so that a database without one has lost it."""
        draft = self.path.with_name(f"{self.path.name}.new")
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(file, _line("acknowledged", 0) + _line("reserved", 0, "closed", "boot="))
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(draft, self.path)
        sync_directory(self.path.parent)

    def begin(self, version: int) -> None:
        """The database is open to be written, and is at this version."""
        if not self.path.exists():
            self.create()
        self._file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        self.acknowledge(version)
        self._reserve(version + _BLOCK)
        self.synced = version

    def acknowledge(self, version: int) -> None:
        """To be called before anybody is told of a version."""
        if self._file < 0:
            return
        try:
            os.pwrite(self._file, _line("acknowledged", version), 0)
            self._unwritten = ""
        except OSError as error:
            # What is acknowledged is in the database all the same; only a later loss of it could go unnoticed.
            self._unwritten = f"{self.path} cannot be written: {error.strerror or error}"
        self._acknowledged = version

    def reserve(self, version: int) -> None:
        """To be called before this version is used; OSError when that could not be noted."""
        if version > self._reserved and self._file >= 0:
            self._reserve(version + _BLOCK)

    def _reserve(self, version: int) -> None:
        os.pwrite(self._file, _line("reserved", version, "open", f"boot={_boot()}"), _SECTOR)
        os.fsync(self._file)
        self._reserved = version

    def sync(self) -> None:
        """Bring what was acknowledged to the disk."""
        acknowledged = self._acknowledged
        if self._file >= 0:
            try:
                os.fdatasync(self._file)
                self._unsynced = ""
            except OSError as error:
                self._unsynced = f"{self.path} cannot be written: {error.strerror or error}"
        self.synced = acknowledged

    def close(self, *, orderly: bool) -> None:
        """``orderly``: everything is in the database file itself."""
        if self._file < 0:
            return
        file, self._file = self._file, -1
        try:
            if orderly and not self.problem:
                os.pwrite(file, _line("reserved", self._reserved, "closed", "boot="), _SECTOR)
            os.fsync(file)
        except OSError as error:
            self._unsynced = f"{self.path} cannot be written: {error.strerror or error}"
        finally:
            os.close(file)


def _line(*words: object) -> bytes:
    """Words for people, and a checksum, in the room of one sector."""
    text = "quorate " + " ".join(map(str, words))
    return f"{text} crc={zlib.crc32(text.encode()):08x}".ljust(_SECTOR - 1).encode() + b"\n"


def _fields(sector: bytes, name: str) -> list[str]:
    try:
        text, _, crc = sector.decode("ascii").strip().rpartition(" crc=")
    except UnicodeDecodeError:
        raise ValueError(f"its line {name!r} is not text") from None
    if crc != f"{zlib.crc32(text.encode()):08x}" or not text.startswith(f"quorate {name} "):
        raise ValueError(f"its line {name!r} is not as it was written")
    return text.split(" ")[2:]


def _boot() -> str:
    """Which start of the machine this is; empty where nobody says."""
    try:
        return _BOOT.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
