"""``quorate kubeconfig``: for a person as it is, for an agent with the agent's token."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from quorate.cli.kubeconfig import kubeconfig
from quorate.errors import ConfigError
from quorate.server.kubeconfig import kubeconfig as made
from quorate.server.kubeconfig import write_kubeconfig
from quorate.server.kubernetes import AgentTokens


def printed(*arguments: str) -> object:
    done = CliRunner().invoke(kubeconfig, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return yaml.safe_load(done.output)


def test_a_person_gets_what_the_server_wrote(tmp_path: Path) -> None:
    written = made("http://127.0.0.1:7480", token="the administrator's")
    write_kubeconfig(tmp_path / "kubeconfig", written)
    assert printed("--data", str(tmp_path)) == written


def test_an_agent_gets_its_own_token_and_not_the_administrators(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", made("http://127.0.0.1:7480", token="the administrator's"))
    token = AgentTokens(tmp_path / "agents").token("n1")
    assert printed("--data", str(tmp_path), "--agent", "n1") == made("http://127.0.0.1:7480", token=token)


def test_without_a_server_it_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Is .* the data directory of a running"):
        CliRunner().invoke(kubeconfig, ["--data", str(tmp_path)], catch_exceptions=False)
