"""What was acknowledged and is gone is noticed, whatever became of the write-ahead log; no version is given twice."""

# ruff: noqa: ASYNC240 - nobody else waits for this loop

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from quorate.engine.embedded import EmbeddedStore, Page, database, mark
from quorate.engine.embedded.mark import HighWater, Mark
from quorate.errors import Expired, StorageDamaged, StorageFailure
from tests.engine.embedded.support import WIDGET, open_store, widget

ROOT = Path(__file__).parents[3]
COUNT = 150
#: The first version that a write gets is 2.
LAST = COUNT + 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "quorate.db"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a process left that was killed after so many writes. All are in its log: too few to be moved from there."""
    path = tmp_path_factory.mktemp("killed") / "quorate.db"
    assert write_and_kill(path) == LAST
    return path


def wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def write_and_kill(path: Path, begin: int = 0, end: int = COUNT) -> int:
    """Acknowledged writes of a process that is killed after them; the last version."""
    command = [sys.executable, "-m", "tests.engine.embedded.mark_child", str(path), str(begin), str(end)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        versions = []
        for line in child.stdout:
            if line == b"done\n":
                break
            versions.append(int(line))
        child.send_signal(signal.SIGKILL)
    assert len(versions) == end - begin
    return versions[-1]


async def opened(path: Path, *, accept_loss: bool = False) -> EmbeddedStore:
    return await open_store(path, kinds=[WIDGET], accept_loss=accept_loss)


def files(path: Path) -> dict[str, bytes]:
    kept = sorted(file for file in path.parent.iterdir() if file.suffix != ".lock" and not file.name.endswith("-shm"))
    return {file.name: file.read_bytes() for file in kept}


def cut(part: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        os.truncate(wal(path), int(wal(path).stat().st_size * part))

    return damage


def overwrite(part: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(wal(path).read_bytes())
        at = int(len(data) * part)
        data[at : at + 64] = bytes(64 - len(data[at : at + 64])) + bytes(byte ^ 0xFF for byte in data[at : at + 64])
        wal(path).write_bytes(data)

    return damage


@pytest.mark.crash
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: wal(path).unlink(), id="lost"),
        *(pytest.param(cut(part), id=f"cut at {part:.0%}") for part in (0.0, 0.1, 0.35, 0.9, 0.999)),
        *(pytest.param(overwrite(part), id=f"overwritten at {part:.0%}") for part in (0.0, 0.2, 0.5, 0.95)),
    ],
)
async def test_a_damaged_write_ahead_log_is_noticed_and_left_alone(
    killed: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = shutil.copytree(killed.parent, tmp_path / "copy") / killed.name
    last = LAST
    damage(path)
    before = files(path)
    for _ in range(2):
        with pytest.raises(StorageDamaged, match=f"changes up to version {last} were acknowledged: .* missing"):
            await opened(path)
    assert {name: data for name, data in files(path).items() if data} == {n: d for n, d in before.items() if d}
    store = await opened(path, accept_loss=True)
    there = len(store.read_page(WIDGET).records)
    assert there < COUNT
    assert (await store.create_raw(WIDGET, widget("after"))).record.version > last, "no version is given twice"
    with pytest.raises(Expired):  # nobody goes on from a version that was lost
        await anext(store.subscribe(WIDGET, resource_version=last))
    await store.close()
    store = await opened(path)
    assert len(store.read_page(WIDGET).records) == there + 1
    await store.close()


@pytest.mark.crash
async def test_a_process_that_is_killed_and_a_log_that_is_whole_are_no_damage(path: Path) -> None:
    last = write_and_kill(path, 0, 20)
    assert write_and_kill(path, 20, 40) == last + 20, "nor does it cost versions"
    store = await opened(path)
    assert len(store.read_page(WIDGET).records) == 40
    await store.close()


@pytest.mark.crash
@pytest.mark.parametrize("left", ["nothing", "the log", "an empty file"])
async def test_a_database_that_is_gone_is_damage_and_not_a_new_one(path: Path, left: str) -> None:
    last = write_and_kill(path, 0, 10)
    path.unlink()
    if left != "the log":
        wal(path).unlink()
    if left == "an empty file":
        path.touch()
    what = "is empty" if left == "an empty file" else "is missing"
    with pytest.raises(StorageDamaged, match=f"{what}.*, and changes up to version {last} were acknowledged"):
        await opened(path)
    assert path.exists() is (left == "an empty file")
    store = await opened(path, accept_loss=True)
    assert (await store.create_raw(WIDGET, widget())).record.version > last
    await store.close()
    assert [record.name for record in (await reread(path)).records] == ["w"]
    if left == "the log":
        assert wal(path).with_name(f"{wal(path).name}.lost").stat().st_size > 0, "it may yet be of use to somebody"


async def reread(path: Path) -> Page:
    store = await opened(path)
    await store.close()
    return store.read_page(WIDGET)


async def test_an_older_copy_in_its_place_is_noticed(path: Path, tmp_path: Path) -> None:
    store = await opened(path)
    await store.create_raw(WIDGET, widget("a"))
    await store.close()
    copy = path.read_bytes()
    store = await opened(path)
    last = (await store.create_raw(WIDGET, widget("b"))).record.version
    await store.close()
    path.write_bytes(copy)
    with pytest.raises(
        StorageDamaged, match=f"ends at version {last - 1}.* up to version {last}.*: 1 change is missing"
    ):
        await opened(path)


@pytest.mark.parametrize("how", ["lost", "empty", "garbage", "a digit changed"])
async def test_without_its_mark_nobody_knows_whether_all_is_there(path: Path, how: str) -> None:
    store = await opened(path)
    last = (await store.create_raw(WIDGET, widget("a"))).record.version
    await store.close()
    place = Mark(path).path
    if how == "lost":
        place.unlink()
    elif how == "a digit changed":
        place.write_bytes(place.read_bytes().replace(f"acknowledged {last}".encode(), b"acknowledged 1"))
    else:
        place.write_bytes(b"" if how == "empty" else b"\xff" * 1024)
    with pytest.raises(StorageDamaged, match=r"its mark .* (is missing|cannot be read).*nobody knows"):
        await opened(path)
    store = await opened(path, accept_loss=True)
    assert (await store.create_raw(WIDGET, widget("b"))).record.version > last + 10**9
    await store.close()
    assert len((await reread(path)).records) == 2


async def test_a_database_of_before_there_were_marks_gets_one(path: Path) -> None:
    store = await opened(path)
    await store.create_raw(WIDGET, widget("a"))
    await store.close()
    Mark(path).path.unlink()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM meta WHERE key = 'marked'")
    connection.close()
    store = await opened(path)
    last = (await store.create_raw(WIDGET, widget("b"))).record.version
    await store.close()
    found = Mark(path).read()
    assert found is not None
    assert (found.acknowledged, found.closed) == (last, True)


@pytest.mark.parametrize("at", ["create", "begin"])
async def test_a_database_of_before_there_were_marks_may_be_interrupted_while_it_gets_one(
    path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    store = await opened(path)
    await store.create_raw(WIDGET, widget("a"))
    await store.close()
    Mark(path).path.unlink()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM meta WHERE key = 'marked'")
    connection.close()

    def interrupt(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Mark, at, interrupt)
    with pytest.raises(StorageFailure):
        await opened(path)
    monkeypatch.undo()
    assert [record.name for record in (await reread(path)).records] == ["a"]


@pytest.mark.crash
async def test_after_the_machine_went_down_versions_go_on_above_all_that_may_have_been_handed_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = write_and_kill(path, 0, 10)
    before = Mark(path).read()
    assert before is not None
    assert before.reserved > last
    monkeypatch.setattr(mark, "_boot", lambda: "another")
    store = await opened(path)
    assert len(store.read_page(WIDGET).records) == 10
    assert (await store.create_raw(WIDGET, widget())).record.version == before.reserved + 1
    with pytest.raises(Expired):
        await anext(store.subscribe(WIDGET, resource_version=last))
    await store.close()
    assert len((await reread(path)).records) == 11


async def test_versions_are_reserved_before_they_are_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark, "_BLOCK", 3)
    store = await opened(path)
    for number in range(20):
        version = (await store.create_raw(WIDGET, widget(f"w{number}"))).record.version
        found = Mark(path).read()
        assert isinstance(found, HighWater)
        assert found.acknowledged == version
        assert found.reserved >= version
    await store.close()


async def test_a_mark_that_cannot_be_written_is_told_of_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(path)

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pwrite", refuse)
    await store.create_raw(WIDGET, widget())
    assert any("cannot be written: Input/output error" in problem for problem in store.problems())
    monkeypatch.undo()
    await store.create_raw(WIDGET, widget("x"))
    assert store.problems() == ()
    await store.close()


async def test_commits_wait_for_the_disk(path: Path) -> None:
    store = await opened(path)
    writer = store._database._writer
    assert writer is not None
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.close()


async def test_a_mark_that_does_not_reach_the_disk_is_told_of_until_it_does(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(path)

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    store._database.sync_mark()
    store._database.acknowledge(1)
    assert any("cannot be written: Input/output error" in problem for problem in store.problems())
    monkeypatch.undo()
    store._database.sync_mark()
    assert store.problems() == ()
    await store.close()


async def test_an_empty_database_without_a_mark_begins_above_all_that_may_have_been_handed_out(path: Path) -> None:
    path.touch()
    with pytest.raises(StorageDamaged, match="is empty"):
        await opened(path)
    store = await opened(path, accept_loss=True)
    version = (await store.create_raw(WIDGET, widget())).record.version
    assert version > mark.UNKNOWN
    await store.close()
    assert [record.version for record in (await reread(path)).records] == [version]


async def test_what_was_lost_before_is_kept_when_something_is_lost_again(path: Path) -> None:
    for time in ("first", "second", "third"):
        store = await opened(path)
        await store.create_raw(WIDGET, widget())
        await store.close()
        path.unlink()
        wal(path).write_text(time)
        store = await opened(path, accept_loss=True)
        await store.close()
    kept = sorted(file.read_text() for file in path.parent.glob("*-wal.lost*"))
    assert kept == ["first", "second", "third"]


async def test_going_on_without_what_is_missing_is_told_and_so_is_that_nothing_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Mock()
    monkeypatch.setattr(database, "_log", log)
    store = await opened(path)
    last = (await store.create_raw(WIDGET, widget())).record.version
    await store.close()
    path.unlink()
    log.warning.assert_not_called()
    await (await opened(path, accept_loss=True)).close()
    (call,) = log.warning.call_args_list
    assert "goes on without them" in call.args[0]
    assert f"is missing, and changes up to version {last} were acknowledged" in call.kwargs["why"]
    await (await opened(path, accept_loss=True)).close()
    _, call = log.warning.call_args_list
    assert "nothing is missing" in call.args[0]
