"""Settings come from the file, are overridden by the environment, and that by flags; and each says from where."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.config import Config, load
from quorate.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quorate.yaml"


def test_without_anything_the_defaults_stand() -> None:
    loaded = load(None, {}, {})
    assert loaded.config == Config()
    assert set(loaded.origins.values()) == {"default"}


def test_flags_win_over_environment_over_file(file: Path) -> None:
    file.write_text("version: 1\nport: 1\nlisten: 10.0.0.1\ntokenFile: /a\n")
    loaded = load(file, {"QUORATE_PORT": "2", "QUORATE_LISTEN": "10.0.0.2"}, {"port": 3, "listen": None})
    assert (loaded.config.port, loaded.config.listen, loaded.config.token_file) == (3, "10.0.0.2", "/a")
    assert loaded.origins["port"] == "flag --port"
    assert loaded.origins["listen"] == "environment variable QUORATE_LISTEN"
    assert loaded.origins["tokenFile"] == f"{file}: tokenFile"
    assert loaded.origins["logLevel"] == "default"


def test_the_environment_may_name_the_file(file: Path) -> None:
    file.write_text("version: 1\nport: 5\n")
    assert load(None, {"QUORATE_CONFIG": str(file)}, {}).config.port == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port: 1", "must say `version: 1`"),
        ("version: 2", "must say `version: 1`"),
        ("version: 1\nprot: 1", "unknown: prot; known are address, advertise, brokerClientAuthority"),
        ("version: 1\nport: many", "port: 'many' cannot be used"),
        ("version: 1\nport: 70000", "port: 70000 cannot be used"),
        ("version: 1\nlogLevel: loud", "logLevel: 'loud' cannot be used"),
        ("- a\n- b", "must hold a mapping"),
        ("{", "is not YAML"),
        ("", "must hold a mapping"),
    ],
)
def test_a_file_that_cannot_be_used_says_which_and_why(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(file, {}, {})
    assert problem in str(error.value)
    assert str(file) in str(error.value)


def test_a_file_that_is_not_there_is_an_error(file: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(file, {}, {})


@pytest.mark.parametrize(
    ("environ", "flags", "origin"),
    [
        ({"QUORATE_PORT": "x"}, {}, "environment variable QUORATE_PORT: 'x'"),
        ({}, {"port": -1}, "flag --port: -1"),
        ({"QUORATE_DATA": ""}, {}, "environment variable QUORATE_DATA: ''"),
    ],
)
def test_a_wrong_value_is_reported_with_its_place(environ: dict[str, str], flags: dict[str, int], origin: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(None, environ, flags)
    assert str(error.value).startswith(origin)
