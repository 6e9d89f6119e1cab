"""A journal survives what kills the command, and is nobody else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quorate.cli.maintenance.journal import Header, Journal, Line
from quorate.errors import ConfigError

HEADER = Header(run="r1", user="alice", hosts=("h1", "h2"), command="restart {host}")


def test_what_was_added_is_there_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal.begin(path, HEADER)
    journal.add(Line(event="began", host="h1", at=1, permission="alice-p-1"))
    journal.add(Line(event="succeeded", host="h1", at=2))
    again = Journal.resume(path)
    assert again.header == HEADER
    assert again.finished("h1")
    assert not again.finished("h2")
    journal.close()
    again.close()


def test_two_processes_do_not_go_on_with_one_run(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal.begin(path, HEADER)
    other = f"from quorate.cli.maintenance.journal import Journal, Path; Journal.resume(Path({str(path)!r}))"
    ended = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
    assert "goes on in another process" in ended.stderr
    journal.close()
    ended = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_line_that_was_cut_off_is_as_if_it_had_not_been_written(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal.begin(path, HEADER)
    journal.add(Line(event="began", host="h1", at=1))
    journal.close()
    path.write_bytes(path.read_bytes() + b'{"event":"succee')
    again = Journal.resume(path)
    assert again.last["h1"].event == "began"
    again.add(Line(event="succeeded", host="h1", at=2))
    again.close()
    last = Journal.resume(path)
    assert last.finished("h1")
    last.close()


def test_an_old_journal_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal.begin(path, HEADER).close()
    with pytest.raises(ConfigError, match=f"go on with it by --resume {path}"):
        Journal.begin(path, HEADER)


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"run":"r"}\n', b'{"event":"began","host":"h","at":1}\n'])
def test_another_file_is_no_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is not the journal of a rolling restart"):
        Journal.resume(path)


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/j cannot be read: No such file"):
        Journal.resume(tmp_path / "nowhere" / "j")
    with pytest.raises(ConfigError, match=r"nowhere/j cannot be written: No such file"):
        Journal.begin(tmp_path / "nowhere" / "j", HEADER)
