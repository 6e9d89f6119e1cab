"""The small commands: what they print, and that they are quick to answer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from quorate import __version__, errors
from quorate.api.crd import all_definitions
from quorate.cli.failures import EPILOG, exit_code, reported
from quorate.cli.main import quorate


def run(*arguments: str, **environment: str) -> str:
    result = CliRunner().invoke(quorate, arguments, env=environment, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_version_in_every_form() -> None:
    assert run("version").startswith(f"quorate {__version__} (Python ")
    assert json.loads(run("version", "-o", "json"))["quorate"] == __version__
    assert yaml.safe_load(run("version", "-o", "yaml"))["quorate"] == __version__


def test_crds_are_printed_as_they_are_generated() -> None:
    assert list(yaml.safe_load_all(run("crds"))) == list(all_definitions())
    assert json.loads(run("crds", "-o", "json")) == list(all_definitions())


def test_config_show_says_where_a_value_came_from() -> None:
    shown = run("config", "show", QUORATE_PORT="1234")
    assert any(
        line.split() == ["port", "1234", "environment", "variable", "QUORATE_PORT"] for line in shown.splitlines()
    )
    values = yaml.safe_load(run("config", "show", "-o", "yaml", QUORATE_PORT="1234"))
    assert values["port"] == {"value": 1234, "from": "environment variable QUORATE_PORT"}
    assert values["listen"] == {"value": "127.0.0.1", "from": "default"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str) -> None:
    assert "_QUORATE_COMPLETE" in run("completion", shell)


def test_every_command_explains_itself() -> None:
    for command in ("up", "agent", "crds", "config", "version", "completion"):
        assert command in run("--help")
        assert "Usage:" in run(command, "--help")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, quorate.cli\n"
        "print(sorted({'aiohttp', 'msgspec', 'rich', 'yaml', 'cryptography'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 3),
        (errors.StorageLocked("x"), 4),
        (errors.StorageDamaged("x"), 5),
        (errors.StorageFull("x"), 6),
        (errors.CannotListen("x"), 7),
        (errors.StoreUnreachable("x"), 8),
        (errors.AnotherAgent("x"), 9),
        (errors.NotFound("x"), 1),
        (errors.ForeignDefinition("x"), 1),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: errors.QuorateError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(error) == code
    assert f"  {code}  " in EPILOG
    with pytest.raises(SystemExit) as exited, reported():
        raise error
    assert exited.value.code == code
    assert capsys.readouterr().err == "quorate: x\n"


def test_errors_of_several_tasks_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    several = ExceptionGroup("tasks", [errors.StorageFull("full"), ExceptionGroup("more", [errors.NotFound("gone")])])
    with pytest.raises(SystemExit) as exited, reported():
        raise several
    assert exited.value.code == 6
    assert capsys.readouterr().err == "quorate: full\nquorate: gone\n"


def test_a_bug_keeps_its_traceback() -> None:
    bug = ExceptionGroup("tasks", [errors.NotFound("gone"), ZeroDivisionError()])
    with pytest.raises(ExceptionGroup), reported():
        raise bug


def test_a_mistake_in_the_command_line_is_exit_code_two() -> None:
    assert CliRunner().invoke(quorate, ["up", "--port", "many"]).exit_code == 2
