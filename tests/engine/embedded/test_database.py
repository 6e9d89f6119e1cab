"""The file: it survives, it is checked, and what is not ours or not whole is left alone."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.engine.embedded import Database, EmbeddedStore, HistoryLimits
from quorate.engine.embedded.database import FORMAT, Row
from quorate.errors import Expired, StorageDamaged, StorageFailure, StorageFull, StorageLocked
from tests.engine.embedded.support import GADGET, WIDGET, ManualClock, open_store, widget
from tests.support.kinds import Widget

PAGE = 16384


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "quorate.db"


async def filled(path: Path, count: int = 20) -> list[str]:
    """Make a file, and say what is in it."""
    store = await open_store(path)
    for number in range(count):
        await store.create_raw(WIDGET, widget(f"w{number}", {"owner": "me", "motto": "x" * 1000}))
    await store.delete(Widget, "w0")
    names = [record.name for record in store.read_page(WIDGET).records]
    await store.close()
    return names


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a database, apart from the lock and SQLite's scratch memory."""
    return {
        file.name: file.read_bytes()
        for file in sorted(path.parent.iterdir())
        if file.suffix != ".lock" and not file.name.endswith("-shm")
    }


def make_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)


def overwrite(path: Path, where: int | bytes, data: bytes) -> None:
    """Put other bytes at an offset, or over some that are there: the last ones, as others may be left from before."""
    whole = path.read_bytes()
    offset = where if isinstance(where, int) else whole.rindex(where)
    path.write_bytes(whole[:offset] + data + whole[offset + len(data) :])


def cut(path: Path, count: int) -> None:
    """Take bytes off the end."""
    os.truncate(path, path.stat().st_size - count)


def alter(path: Path, statement: str, values: tuple[object, ...] = ()) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


def put_row(path: Path, *states: bytes, notes: dict[str, str] | None = None) -> None:
    """A file with one widget and its past, as another Quorate might have left it."""
    database = Database(path)
    database.start_writing()
    for number, raw in enumerate(states):
        event = "MODIFIED" if number else "ADDED"
        database.append([Row.make(2 + number, WIDGET.qualified_resource, "", "w", event, 1.0, raw)])
    database.note(notes or {})
    database.close()


def stored_widget(spec: str) -> bytes:
    metadata = '{"name":"w","resourceVersion":"2"}'
    return f'{{"apiVersion":"test.quorate.io/v1","kind":"Widget","metadata":{metadata},"spec":{spec}}}'.encode()


def look_at(path: Path) -> tuple[list[bytes], dict[str, str]]:
    """All states in a file, oldest first, and its notes."""
    database = Database(path)
    found = [row.raw for row in database.rows()], database.notes()
    database.close()
    return found


async def refused(path: Path, error: type[StorageFailure], message: str) -> None:
    """Opening fails, says why, and changes nothing; and again."""
    before = contents(path)
    for _ in range(2):
        with pytest.raises(error, match=message) as caught:
            await open_store(path)
        assert str(path) in str(caught.value)
    after = {name: data for name, data in contents(path).items() if data or name in before}
    assert after == before


class TestRestart:
    async def test_what_was_written_is_there(self, path: Path) -> None:
        names = await filled(path)
        store = await open_store(path)
        assert [record.name for record in store.read_page(WIDGET).records] == names
        await store.close()

    async def test_versions_go_on(self, path: Path) -> None:
        await filled(path)
        store = await open_store(path)
        version = store.resource_version
        assert (await store.create_raw(WIDGET, widget("new"))).record.version == version + 1
        await store.close()

    async def test_versions_go_on_even_when_the_last_one_left_no_trace(self, path: Path) -> None:
        store = await open_store(path, kinds=[WIDGET], limits=HistoryLimits(events=0))
        await store.create_raw(WIDGET, widget())
        await store.delete(Widget, "w")
        await store.compact()
        version = store.resource_version
        await store.close()
        database = Database(path)
        assert list(database.rows()) == []
        database.close()
        store = await open_store(path, kinds=[WIDGET])
        assert store.resource_version == version
        await store.close()

    async def test_objects_of_kinds_that_are_not_served_are_kept(self, path: Path) -> None:
        names = await filled(path)
        store = await open_store(path, kinds=[GADGET], limits=HistoryLimits(events=0))
        version = store.resource_version
        await store.compact()
        await store.close()
        store = await open_store(path)
        assert store.resource_version == version
        assert [record.name for record in store.read_page(WIDGET).records] == names
        await store.close()

    async def test_a_new_default_holds_for_old_objects(self, path: Path) -> None:
        put_row(path, stored_widget('{"owner":"me"}'))
        for _ in range(2):
            store = await open_store(path, kinds=[WIDGET])
            record = store.read(WIDGET, "w")
            assert (record.tree["spec"], record.version) == ({"owner": "me", "colour": "Red"}, 2)
            await store.close()

    async def test_an_object_that_no_longer_fits_is_named(self, path: Path) -> None:
        put_row(path, stored_widget('{"owner":7}'))
        await refused(path, StorageFailure, "another version of Quorate, and widgets.test.quorate.io w in it")

    async def test_what_only_a_newer_version_knows_stays_until_the_object_is_written(self, path: Path) -> None:
        newer = stored_widget('{"owner":"me","colour":"Red","precious":1}')
        put_row(path, newer)
        for _ in range(2):
            store = await open_store(path, kinds=[WIDGET])
            assert store.read(WIDGET, "w").tree["spec"] == {"owner": "me", "colour": "Red"}
            await store.close()
            assert look_at(path)[0] == [newer]
        store = await open_store(path, kinds=[WIDGET])
        await store.patch(Widget, "w", patch={"spec": {"low": 1}})
        await store.close()
        states, _ = look_at(path)
        assert states[0] == newer
        assert b"precious" not in states[1]

    async def test_a_file_with_two_shapes_belongs_to_neither_version(self, path: Path) -> None:
        noted = f"schema {WIDGET.qualified_resource}"
        put_row(path, stored_widget('{"owner":"me","precious":1}'), notes={noted: "of the newer version"})
        await (await open_store(path, kinds=[WIDGET])).close()
        # Or the newer version would take for its own, and not complete, what this one writes now.
        assert look_at(path)[1][noted] == "mixed"
        store = await open_store(path, kinds=[WIDGET])
        await store.patch(Widget, "w", patch={"spec": {"low": 1}})
        await store.close()
        await (await open_store(path, kinds=[WIDGET])).close()
        assert len(look_at(path)[1][noted]) == 64

    async def test_a_past_that_no_longer_fits_is_forgotten(self, path: Path) -> None:
        put_row(path, stored_widget('{"owner":"me"}'), stored_widget('{"owner":7}'), stored_widget('{"owner":"me"}'))
        store = await open_store(path, kinds=[WIDGET], limits=HistoryLimits(age=float("inf")))
        for begin in (2, 3):
            subscription = store.subscribe(WIDGET, resource_version=begin)
            for _ in range(2):
                with pytest.raises(Expired):
                    await anext(subscription)
        await store.close()


class TestCompaction:
    async def test_the_log_keeps_only_what_somebody_can_ask_for(self, path: Path) -> None:
        clock = ManualClock()
        store = await open_store(path, kinds=[WIDGET], clock=clock, limits=HistoryLimits(events=5))
        for name in "abc":
            await store.create_raw(WIDGET, widget(name))
        for low in range(50):
            await store.patch(Widget, "a", patch={"spec": {"low": low}})
        await store.delete(Widget, "b")
        await store.compact()
        version = store.resource_version
        await store.close()
        database = Database(path)
        kept = [row.version for row in database.rows()]
        database.close()
        # "b" (3) because its deletion can still be replayed, "c" (4) because it is current, and the last five
        # changes with the one that the first of them replaced.
        assert kept == [3, 4, *range(version - 5, version + 1)]

    async def test_happens_by_itself(self, path: Path) -> None:
        store = await open_store(path, kinds=[WIDGET], limits=HistoryLimits(events=10))
        await store.create_raw(WIDGET, widget())
        for count in range(2000):
            await store.patch_status(Widget, "w", patch={"count": count})
        await store.close()
        database = Database(path)
        assert len(list(database.rows())) < 600
        database.close()

    async def test_leaves_the_state_alone_through_a_restart(self, path: Path) -> None:
        store = await open_store(path, kinds=[WIDGET], limits=HistoryLimits(events=3))
        for name in "abcdef":
            await store.create_raw(WIDGET, widget(name))
        for name in "abc":
            await store.delete(Widget, name)
        await store.compact()
        before = store.read_page(WIDGET)
        await store.close()
        store = await open_store(path, kinds=[WIDGET], limits=HistoryLimits(events=3))
        assert store.read_page(WIDGET) == before
        await store.close()


class TestDamage:
    async def test_a_file_that_is_no_database(self, path: Path) -> None:
        make_file(path, b"These are not the bytes that you are looking for. " * 400)
        await refused(path, StorageDamaged, "not a database")

    async def test_an_empty_file(self, path: Path) -> None:
        make_file(path, b"")
        await refused(path, StorageDamaged, "is empty: not one byte of it is left")

    async def test_somebody_elses_database(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        alter(path, "CREATE TABLE t (x)")
        await refused(path, StorageFailure, "not one of Quorate's")

    async def test_a_newer_format(self, path: Path) -> None:
        await filled(path)
        alter(path, f"PRAGMA user_version = {FORMAT + 1}")
        await refused(path, StorageFailure, f"newer Quorate .format {FORMAT + 1}, this one reads up to {FORMAT}")

    async def test_a_torn_page(self, path: Path) -> None:
        await filled(path)
        overwrite(path, 4 * PAGE, os.urandom(512))
        await refused(path, StorageDamaged, "is damaged")

    async def test_a_flipped_bit(self, path: Path) -> None:
        await filled(path)
        overwrite(path, b"xxxxx", b"X")
        await refused(path, StorageDamaged, "is not as written")

    async def test_a_truncated_file(self, path: Path) -> None:
        await filled(path)
        cut(path, PAGE)
        await refused(path, StorageDamaged, "is damaged")

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE log SET raw = replace(raw, 'xxx', 'xyx') WHERE name = 'w3'",
            "UPDATE log SET name = 'w33' WHERE name = 'w3'",
            "UPDATE log SET version = 1000 WHERE name = 'w3'",
        ],
    )
    async def test_a_row_that_is_not_as_written(self, path: Path, statement: str) -> None:
        await filled(path)
        alter(path, statement)
        await refused(path, StorageDamaged, r"version \d+ .widgets.test.quorate.io /w33?. is not as written")

    async def test_a_missing_row(self, path: Path) -> None:
        store = await open_store(path)
        await store.create_raw(WIDGET, widget())
        await store.patch(Widget, "w", patch={"spec": {"low": 1}})
        await store.close()
        alter(path, "DELETE FROM log WHERE name = 'w' AND type = 'ADDED'")
        await refused(path, StorageDamaged, "does not follow from the others")

    async def test_bytes_that_are_no_object(self, path: Path) -> None:
        await filled(path)
        store = await open_store(path)
        version = store.read(WIDGET, "w3").version
        await store.close()
        row = Row.make(version, WIDGET.qualified_resource, "", "w3", "ADDED", 1.0, b"{]")
        alter(path, "INSERT OR REPLACE INTO log VALUES (?,?,?,?,?,?,?,?)", row)
        await refused(path, StorageDamaged, "widgets.test.quorate.io w3")

    async def test_a_past_state_that_was_damaged_meanwhile(self, path: Path) -> None:
        store = await open_store(path, kinds=[WIDGET])
        version = (await store.create_raw(WIDGET, widget())).record.version
        await store.patch(Widget, "w", patch={"spec": {"low": 1}})
        alter(path, "UPDATE log SET raw = replace(raw, 'me', 'ME') WHERE version = ?", (version,))
        subscription = store.subscribe(WIDGET, resource_version=version)
        for _ in range(2):
            with pytest.raises(StorageDamaged, match=f"version {version} .* is not as written"):
                await anext(subscription)
        await store.close()

    async def test_a_floor_that_is_no_version(self, path: Path) -> None:
        await filled(path)
        alter(path, "INSERT OR REPLACE INTO meta VALUES ('floor', 'x')")
        await refused(path, StorageDamaged, "its floor is 'x'")

    async def test_a_missing_table(self, path: Path) -> None:
        await filled(path)
        alter(path, "DROP TABLE meta")
        await refused(path, StorageFailure, "could not be read: no such table")

    async def test_a_write_ahead_log_without_its_database(self, path: Path) -> None:
        make_file(path.with_name(f"{path.name}-wal"), b"the last changes of another database")
        await refused(path, StorageFailure, f"{path}-wal is there, and would be replayed into a new one")


class TestPlace:
    """Where there can be no file, that is said, and nothing is left open."""

    @pytest.mark.parametrize(
        ("place", "message"),
        [
            ("file/quorate.db", "File exists"),
            ("file/deep/quorate.db", "Not a directory"),
            ("n" * 300, "File name too long"),
            ("a\0b", "null"),
            ("directory", "disk I/O error"),
        ],
    )
    async def test_that_cannot_be(self, tmp_path: Path, place: str, message: str) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "directory").mkdir()
        before = open_files()
        with pytest.raises(StorageFailure, match=f"could not be opened: .*{message}"):
            await open_store(tmp_path / place)
        assert open_files() == before

    async def test_that_cannot_be_locked(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        before = open_files()
        monkeypatch.setattr(fcntl, "flock", refuse)
        with pytest.raises(StorageFailure, match="No locks available"):
            await open_store(path)
        assert open_files() == before

    async def test_that_is_full(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", refuse)
        with pytest.raises(StorageFull, match=f"{path} could not be opened: no space left"):
            await open_store(path)

    async def test_that_cannot_be_written(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        await filled(path)
        connect = sqlite3.connect

        def read_only(name: str, **options: Any) -> object:
            if name.endswith("mode=rw"):
                raise sqlite3.OperationalError("unable to open database file")
            return connect(name, **options)

        before = open_files()
        monkeypatch.setattr(sqlite3, "connect", read_only)
        with pytest.raises(StorageFailure, match="could not be opened to be written"):
            await open_store(path)
        assert open_files() == before


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class TestLock:
    async def test_holds_when_the_holder_cannot_be_noted(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write = os.pwrite

        def refuse(file: int, data: bytes, offset: int) -> int:
            if data == f"{os.getpid()}\n".encode():
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(file, data, offset)

        monkeypatch.setattr(os, "pwrite", refuse)
        store = await open_store(path)
        with pytest.raises(StorageLocked, match="is open in process unknown"):
            await open_store(path)
        await store.close()

    async def test_one_process_has_the_file(self, path: Path) -> None:
        store = await open_store(path)
        with pytest.raises(StorageLocked, match=f"{path} is open in process {os.getpid()}"):
            await open_store(path)
        await store.close()
        await (await open_store(path)).close()

    async def test_another_process_is_named(self, path: Path) -> None:
        with holder(path) as other:
            with pytest.raises(StorageLocked, match=f"is open in process {other.pid}:"):
                await open_store(path)
            other.kill()
        await (await open_store(path)).close()


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the file open until it is killed."""
    code = (
        "import sys, pathlib; from quorate.engine.embedded import Database;"
        f"database = Database(pathlib.Path({str(path)!r})); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        yield other


class TestFullDisk:
    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        directory = tmp_path / "disk"
        directory.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("mounting a small file system takes root")
        yield directory
        subprocess.run(["umount", str(directory)], check=True)

    async def fill(self, store: EmbeddedStore) -> int:
        """Write until there is no space; the number of writes that were acknowledged."""
        done = 0
        with pytest.raises(StorageFull, match="no space left"):
            while True:
                body = widget(f"w{done}", {"owner": "me", "motto": "x" * 20_000})
                await store.create_raw(WIDGET, body)
                done += 1
        return done

    @pytest.mark.parametrize("inline", [True, False])
    async def test_is_said_and_loses_nothing(self, small_disk: Path, inline: bool) -> None:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        store = await open_store(small_disk / "db", kinds=[WIDGET], inline=inline)
        done = await self.fill(store)
        assert done > 5
        assert len(store.read_page(WIDGET).records) == done
        ballast.unlink()
        await store.create_raw(WIDGET, widget("after"))
        await store.close()
        store = await open_store(small_disk / "db", kinds=[WIDGET])
        assert len(store.read_page(WIDGET).records) == done + 1
        await store.close()

    async def test_is_the_same_when_a_quota_stops_the_file(self, path: Path) -> None:
        store = await open_store(path, kinds=[WIDGET])
        limit = store._database._writer
        assert limit is not None
        limit.execute("PRAGMA max_page_count = 20")
        done = await self.fill(store)
        assert len(store.read_page(WIDGET).records) == done
        limit.execute("PRAGMA max_page_count = 1000")
        await store.create_raw(WIDGET, widget("after"))
        await store.close()
        store = await open_store(path, kinds=[WIDGET])
        assert len(store.read_page(WIDGET).records) == done + 1
        await store.close()
