"""Where ``quorate fault`` and ``quorate lab status`` look for the running server."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli import lab_client
from quorate.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without any setting."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("KUBECONFIG", "QUORATE_DATA", "QUORATE_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_directory_that_was_named_is_the_only_place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "other"))
    with pytest.raises(ConfigError, match="is not the data directory of a running"):
        lab_client._kubeconfigs(str(home / "data"))
    (home / "data").mkdir()
    (home / "data" / "kubeconfig").touch()
    assert lab_client._kubeconfigs(str(home / "data")) == [home / "data" / "kubeconfig"]


def test_where_nobody_named_one_kubeconfig_says_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "other"))
    assert lab_client._kubeconfigs(None) == [None]


def test_without_either_it_says_where_it_looked(home: Path) -> None:
    with pytest.raises(ConfigError, match="KUBECONFIG"):
        lab_client._kubeconfigs(None)
