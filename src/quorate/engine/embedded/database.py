"""The file: one append-only log in SQLite, whose fold is the state.

    log(version, kind, namespace, name, type, at, crc, raw)

Every change is one row, and its bytes are written once. A row is erased when it has been replaced and the history
no longer reaches back to it; ``floor`` in the table ``meta`` is how far it does. A table of current objects beside
the log, which one would expect, makes a write four times as dear (measured: 8,700 against 31,000 writes a second
with 64 writers) and saves nothing, because all current objects are in memory anyway.

Durability: WAL with synchronous=FULL, so a commit is on the disk before anybody hears of it, and a process killed
at any instant loses nothing it has acknowledged. Rows carry a checksum, and a mark outside of the file says how far it
must reach (``mark``). A file that does not check out is left exactly as it is: everything is read through a connection
that cannot write before one that can is opened.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from quorate.engine.durable import sync_directory
from quorate.engine.embedded.lock import FileLock
from quorate.engine.embedded.mark import UNKNOWN, HighWater, Mark, UnreadableMark
from quorate.engine.logs import get_logger
from quorate.errors import StorageDamaged, StorageFailure, StorageFull

_log = get_logger(__name__)

#: Tells our files from other SQLite files: "Qrtm" in the header.
APPLICATION_ID = 0x5172746D
FORMAT = 1

#: Rows of 3 KB fill such a page well, and a checkpoint moves fewer of them.
_PAGE = 16384
#: How much is committed before it is moved from the write-ahead log into the database. Small enough that the move,
#: which the next commit has to wait for, takes 2-5 ms; SQLite's own measure (1000 pages) made it 12-19 ms.
_CHECKPOINT = 2 * 1024 * 1024
#: What a commit counts there beside its rows. It adds two pages to the log, but those of small commits are mostly the
#: same two, which are moved once: to count them whole would make every fiftieth small commit wait for the disk twice.
#: The log grows to 16 MB at most.
_COMMIT = 4096
#: The most rows in one commit, because every number of rows is a prepared statement of its own.
MAX_BATCH = 256

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE log (
    version INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    type TEXT NOT NULL, at REAL NOT NULL, crc INTEGER NOT NULL, raw BLOB NOT NULL
);
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) WITHOUT ROWID;
"""


_GO_ON = (
    "Restore it from a copy, with the files beside it; or start with --accept-loss to go on without what is missing"
)

#: What :meth:`Database.erase` inserts into: an INSERT that erases, in one statement like :meth:`Database.append`.
_ERASING = """
CREATE TEMP VIEW erased AS SELECT 0 AS versions, 0 AS floor;
CREATE TEMP TRIGGER erasing INSTEAD OF INSERT ON erased BEGIN
    INSERT OR REPLACE INTO meta VALUES ('floor', NEW.floor);
    DELETE FROM log WHERE version IN (SELECT value FROM json_each(NEW.versions));
END;
"""


class Row(NamedTuple):
    """One change, as the log has it. The bytes of a deletion are empty: it shows what it replaced."""

    version: int
    kind: str
    namespace: str
    name: str
    type: str
    at: float
    crc: int
    raw: bytes

    @classmethod
    def make(cls, version: int, kind: str, namespace: str, name: str, event: str, at: float, raw: bytes) -> Row:
        """A row with its checksum."""
        crc = _checksum(version, kind, namespace, name, event, raw)
        return cls(version, kind, namespace, name, event, at, crc, raw)

    @property
    def intact(self) -> bool:
        """Whether the checksum holds."""
        try:
            return self.crc == _checksum(self.version, self.kind, self.namespace, self.name, self.type, self.raw)
        except TypeError:
            # SQLite lets any type into any column.
            return False


def _checksum(version: int, kind: str, namespace: str, name: str, event: str, raw: bytes) -> int:
    return zlib.crc32(raw, zlib.crc32(f"{version} {kind} {namespace} {name} {event}".encode()))


class Database:
    """An open file, or one in memory that goes with the process. One thread at a time writes."""

    def __init__(self, path: Path | None, *, accept_loss: bool = False) -> None:
        """Open to read, and create if there is none; raises StorageLocked, StorageDamaged or StorageFailure.

        ``accept_loss`` goes on without what the mark says was acknowledged, and is not there.
        """
        self.name = "the database in memory" if path is None else str(path)
        self._path = path
        self._accept_loss = accept_loss
        #: What was found missing, and accepted.
        self._lost = ""
        #: Whether nobody knows which versions were handed out: neither the database nor its mark is there.
        self._unknown = False
        self._mark: Mark | None = None
        self._unmoved = 0
        self._appended = 0
        self._writer: sqlite3.Connection | None = None
        self._lock: FileLock | None = None
        if path is None:
            self._reader = self._writer = _connect(":memory:")
            self._writer.executescript(_SCHEMA)
            self._writer.executescript(_ERASING)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path)
            try:
                self._reader = self._open_reader(path)
            except BaseException:
                self._lock.release()
                raise
        except (OSError, ValueError, sqlite3.Error) as error:
            raise self._failure(error, "opened") from error

    def _open_reader(self, path: Path) -> sqlite3.Connection:
        self._mark = Mark(path)
        self._check_presence(path)
        if not path.exists():
            _create(path, self._mark)
        reader = _connect(_uri(path, "ro"))
        try:
            self._inspect(reader)
        except BaseException:
            reader.close()
            raise
        return reader

    def _check_presence(self, path: Path) -> None:
        """Raise when there was a database, and is none any more; or put away what is left of it."""
        empty = path.is_file() and path.stat().st_size == 0
        if path.exists() and not empty:
            return
        what = "is empty: not one byte of it is left" if empty else "is missing"
        promised = self._promised()
        if promised is None and not empty:
            return
        if not self._accept_loss:
            raise StorageDamaged(
                f"{self.name} {what}{_promise(promised)}. {_GO_ON}"
                + ("" if promised else ", or remove it to begin anew")
            )
        self._unknown = promised is None
        self._go_on_without(f"it {what}{_promise(promised)}")
        for leftover in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if leftover.exists():
                leftover.replace(_free_name(leftover))

    def _promised(self) -> HighWater | UnreadableMark | None:
        """What the mark says; None when there is none, or nothing was promised yet."""
        assert self._mark is not None
        try:
            found = self._mark.read()
        except UnreadableMark as error:
            return error
        return found if found is not None and found.reserved else None

    def resume(self, version: int, *, marked: bool) -> int:
        """The version to go on from, of a database that was read up to ``version``.

        Raises StorageDamaged when that is less than was acknowledged. ``marked``: it had a mark before.
        """
        if self._mark is None:
            return version
        going_on = self._resumed(version, self._mark, marked=marked)
        if self._accept_loss and not self._lost:
            _log.warning("nothing is missing in the database: take --accept-loss away", database=self.name)
        return going_on

    def _resumed(self, version: int, mark: Mark, *, marked: bool) -> int:
        if self._unknown:
            return version + UNKNOWN
        promised = self._promised()
        if isinstance(promised, HighWater):
            if version < promised.acknowledged:
                missing = promised.acknowledged - version
                self._lose(
                    f"it ends at version {version}, and changes up to version {promised.acknowledged} were"
                    f" acknowledged: {missing} change{'s are' if missing > 1 else ' is'} missing. Its write-ahead log"
                    f" {self.name}-wal was lost, cut or overwritten, or an older copy was put in its place"
                )
                return promised.reserved
            # Without an orderly end the last acknowledgements may be missing in the mark as well: no version twice.
            return version if promised.exact else max(version, promised.reserved)
        if promised is None and (not marked or mark.path.exists()):
            return version
        how = f"cannot be read ({promised})" if promised is not None else "is missing"
        self._lose(f"its mark {mark.path} {how}, so nobody knows whether all that was acknowledged is there")
        return version + UNKNOWN

    def _lose(self, what: str) -> None:
        if not self._accept_loss:
            raise StorageDamaged(f"{self.name} is damaged: {what}. It was left as it is. {_GO_ON}")
        self._go_on_without(what)

    def _go_on_without(self, what: str) -> None:
        if not self._lost:
            _log.warning(
                "acknowledged changes are missing, and --accept-loss goes on without them: take it away now",
                database=self.name,
                why=what,
            )
        self._lost = what

    def _inspect(self, reader: sqlite3.Connection) -> None:
        (application,) = reader.execute("PRAGMA application_id").fetchone()
        (version,) = reader.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise StorageFailure(f"{self.name} is an SQLite database, but not one of Quorate's; it was left as it is")
        if version > FORMAT:
            raise StorageFailure(
                f"{self.name} was written by a newer Quorate (format {version}, this one reads up to {FORMAT}):"
                " use that one, or another directory"
            )
        (verdict,) = reader.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self.damage(verdict)

    def rows(self) -> Iterator[Row]:
        """The whole log, oldest first, every row checked."""
        try:
            for row in map(Row._make, self._reader.execute("SELECT * FROM log ORDER BY version")):
                yield self._checked(row)
        except sqlite3.Error as error:
            raise self._failure(error, "read") from error

    def raw(self, version: int) -> bytes | None:
        """The bytes of one version, checked; None when they were erased."""
        try:
            found = self._reader.execute("SELECT * FROM log WHERE version = ?", (version,)).fetchone()
        except sqlite3.Error as error:
            raise self._failure(error, "read") from error
        return None if found is None else self._checked(Row._make(found)).raw

    def _checked(self, row: Row) -> Row:
        if not row.intact:
            raise self.damage(f"version {row.version} ({row.kind} {row.namespace}/{row.name}) is not as written")
        return row

    def notes(self) -> dict[str, str]:
        """What is noted about the file beside its rows."""
        try:
            return dict(self._reader.execute("SELECT key, value FROM meta"))
        except sqlite3.Error as error:
            raise self._failure(error, "read") from error

    def start_writing(self, version: int = 0, floor: int | None = None) -> None:
        """To be called when everything was read and is good: it is at this version, and begins after this floor."""
        if self._path is None or self._mark is None:
            return
        try:
            self._writer = _connect(_uri(self._path, "rw"))
            self._writer.execute("PRAGMA synchronous = FULL")
            self._writer.execute("PRAGMA wal_autocheckpoint = 0")
            # Some builds overwrite what is erased with zeros, which writes all of it once more.
            self._writer.execute("PRAGMA secure_delete = OFF")
            self._writer.executescript(_ERASING)
            notes = self.notes()
            if notes.get("marked") is None:
                # First the mark: a database that says it had one, and has none, has lost it.
                if not self._mark.path.exists():
                    self._mark.create()
                # In the database file itself, where the loss of the write-ahead log does not reach it.
                self.note({"marked": "1"})
                self.checkpoint("TRUNCATE")
            if floor is not None and notes.get("floor") != str(floor):
                self.note({"floor": str(floor)})
            self._mark.begin(version)
        except (OSError, sqlite3.Error) as error:
            raise self._failure(error, "opened to be written") from error

    def append(self, rows: Sequence[Row]) -> None:
        """Commit these rows, all or none.

        One statement outside a transaction is a transaction of its own. Every statement costs the thread a fight
        for the interpreter lock, which a busy event loop gives up only every 5 ms: one is the right number.
        """
        assert self._writer is not None
        if self._mark is not None:
            try:
                self._mark.reserve(rows[-1].version)
            except OSError as error:
                raise self._failure(error, "written") from error
        values = ",".join(["(?,?,?,?,?,?,?,?)"] * len(rows))
        try:
            self._writer.execute(
                f"INSERT INTO log VALUES {values}",  # noqa: S608 - made of question marks only
                [value for row in rows for value in row],
            )
        except sqlite3.Error as error:
            raise self._failure(error, "written") from error
        self._appended = rows[-1].version
        self._unmoved += sum([len(row.raw) for row in rows]) + _COMMIT

    def acknowledge(self, version: int) -> None:
        """Note that versions up to this one are about to be told to somebody."""
        if self._mark is not None:
            self._mark.acknowledge(version)

    @property
    def unsynced(self) -> bool:
        """Whether the note of something that was committed is not on the disk yet."""
        return self._mark is not None and self._mark.synced < self._appended

    def sync_mark(self) -> None:
        """Bring it there."""
        if self._mark is not None:
            self._mark.sync()

    @property
    def problem(self) -> str:
        """What is wrong with the mark; empty while nothing is."""
        return self._mark.problem if self._mark is not None else ""

    @property
    def untidy(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self._unmoved >= _CHECKPOINT

    def checkpoint(self, mode: str) -> None:
        """Move what was committed from the write-ahead log into the database.

        What cannot be moved (a full disk) stays where it is, as safe, until the next time.
        """
        assert self._writer is not None
        self._unmoved = 0
        with suppress(sqlite3.Error):
            self._writer.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()

    def erase(self, versions: Sequence[int], floor: int) -> None:
        """Forget rows that nobody can ask for: the history begins after ``floor``."""
        assert self._writer is not None
        try:
            chosen = msgspec.json.encode(versions).decode()
            self._writer.execute("INSERT INTO erased VALUES (?,?)", (chosen, str(floor)))
        except sqlite3.Error as error:
            raise self._failure(error, "written") from error

    def note(self, notes: Mapping[str, str]) -> None:
        """Note something about the file beside its rows."""
        with self._transaction() as writer:
            _note(writer, notes)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._writer is not None
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failure(error, "written") from error

    def close(self) -> None:
        """Let go of the file."""
        try:
            # The last connection to close takes the write-ahead log with it, if it may write.
            self._reader.close()
            if self._writer is not None and self._path is not None:
                self.checkpoint("TRUNCATE")
                self._writer.close()
        finally:
            if self._mark is not None and self._path is not None:
                wal = self._path.with_name(f"{self._path.name}-wal")
                self._mark.close(orderly=not wal.exists())
            if self._lock is not None:
                self._lock.release()

    def damage(self, what: str) -> StorageDamaged:
        """The error for a file that is not as it was written."""
        return StorageDamaged(f"{self.name} is damaged: {what}; it was left as it is. Restore it from a copy")

    def _failure(self, error: Exception, what: str) -> StorageFailure:
        # Absent when the error came from the system or from Python's own layer.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT):
            return StorageFull(
                f"{self.name} could not be {what}: no space left on the disk;"
                " what was acknowledged is safe, and writing goes on when there is space"
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return self.damage(str(error))
        return StorageFailure(f"{self.name} could not be {what}: {error}")


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=MAX_BATCH + 16
    )


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def _note(writer: sqlite3.Connection, notes: Mapping[str, str]) -> None:
    writer.executemany("INSERT OR REPLACE INTO meta VALUES (?,?)", notes.items())


def _promise(promised: HighWater | UnreadableMark | None) -> str:
    if isinstance(promised, HighWater):
        return f", and changes up to version {promised.acknowledged} were acknowledged"
    return "" if promised is None else f", and its mark cannot be read ({promised})"


def _free_name(path: Path) -> Path:
    """For what is left of a file that was lost; what was left of it another time stays."""
    lost = path.with_name(f"{path.name}.lost")
    number = 1
    while lost.exists():
        number += 1
        lost = path.with_name(f"{path.name}.lost.{number}")
    return lost


def _create(path: Path, mark: Mark) -> None:
    """A new file appears complete or not at all: it is made under another name."""
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists():
        raise StorageFailure(
            f"{path} is missing, but its write-ahead log {wal} is there, and would be replayed into a new one:"
            " restore the database beside it, or move it away to begin anew"
        )
    draft = path.with_name(f"{path.name}.new")
    for leftover in (draft, draft.with_name(f"{draft.name}-wal"), draft.with_name(f"{draft.name}-shm")):
        leftover.unlink(missing_ok=True)
    connection = _connect(_uri(draft, "rwc"))
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SCHEMA)
        _note(connection, {"marked": "1"})
    finally:
        connection.close()
    if not mark.path.exists():
        mark.create()
    os.replace(draft, path)
    sync_directory(path.parent)
