"""``quorate lab recordings DIR``."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from quorate.cli.main import quorate

DATA = Path(__file__).parent / "data"


def run(*words: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(quorate, ["lab", "recordings", *words])
    return result.exit_code, result.output.splitlines()


def test_every_recording_has_a_line_and_the_last_line_counts_them() -> None:
    exit_code, lines = run(str(DATA))
    names = sorted(path.stem for path in DATA.glob("*.json"))
    assert [line.split("  ")[0] for line in lines[:-1]] == names
    assert lines[-1] == f"{len(names)} of {len(names)} recordings match"
    assert exit_code == 0


def test_a_recording_that_does_not_match_is_told_and_ends_with_one(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{}")
    exit_code, lines = run(str(tmp_path), "-v")
    assert exit_code == 1
    assert lines[0] == "odd  0/1"
    assert "not a recording" in lines[1]
    assert lines[-1] == "0 of 1 recordings match"


def test_a_directory_without_recordings_does_not_pass_for_one_that_matches(tmp_path: Path) -> None:
    assert run(str(tmp_path)) == (1, ["0 of 0 recordings match"])
