"""An agent is known by its token, and by nothing else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from quorate.errors import ConfigError, Unauthorized
from quorate.server.kubernetes.auth import Access
from quorate.server.kubernetes.callers import ADMIN, LOOPBACK, AgentTokens, agent


@pytest.fixture
def tokens(tmp_path: Path) -> AgentTokens:
    return AgentTokens(tmp_path / "agents")


def test_a_token_is_made_once_and_only_its_owner_may_read_it(tokens: AgentTokens, tmp_path: Path) -> None:
    token = tokens.token("n1")
    assert len(token) > 40
    assert tokens.token("n1") == token
    assert tokens.token("n2") != token
    assert stat.S_IMODE((tmp_path / "agents" / "n1").stat().st_mode) == 0o600


def test_a_token_names_its_node_also_to_a_process_that_did_not_make_it(tokens: AgentTokens, tmp_path: Path) -> None:
    other = AgentTokens(tmp_path / "agents")
    assert other.node_of("anything") is None
    assert other.node_of(tokens.token("n1")) == "n1"
    assert other.node_of(tokens.token("rack-2.n2")) == "rack-2.n2"
    assert other.node_of(tokens.token("n1")[:-1]) is None


def test_a_token_that_was_removed_or_replaced_opens_nothing(tokens: AgentTokens, tmp_path: Path) -> None:
    old = tokens.token("n1")
    assert tokens.node_of(old) == "n1"
    (tmp_path / "agents" / "n1").unlink()
    assert tokens.node_of(old) is None
    assert tokens.node_of(tokens.token("n1")) == "n1"
    assert tokens.node_of(old) is None


@pytest.mark.parametrize("name", ["", "../token", "a/b", ".hidden", "N1", "a b", "n1\n", "x" * 254])
def test_what_is_no_nodes_name_gets_no_token(tokens: AgentTokens, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a node"):
        tokens.token(name)
    assert not list(tmp_path.rglob("*"))


def test_an_agent_is_known_on_a_guarded_server_and_on_an_open_one(tokens: AgentTokens) -> None:
    for access in (Access(None, tokens.node_of), Access("the administrator's", tokens.node_of)):
        headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {tokens.token('n1')}"}
        assert access.identify("/api", headers) == agent("n1")


def test_who_shows_no_agents_token_is_who_he_was_before(tokens: AgentTokens) -> None:
    guarded = Access("the administrator's", tokens.node_of)
    assert guarded.identify("/api", {"Authorization": "Bearer the administrator's"}) == ADMIN
    with pytest.raises(Unauthorized):
        guarded.identify("/api", {"Authorization": "Bearer n1"})
    assert Access(None, tokens.node_of).identify("/api", {"Host": "localhost"}) == LOOPBACK
    assert Access(None, tokens.node_of).identify("/api", {"Host": "localhost", "Authorization": "Bearer x"}) == LOOPBACK


def test_tokens_are_not_shown(tokens: AgentTokens) -> None:
    token = tokens.token("n1")
    assert tokens.node_of(token) == "n1"
    assert token not in repr(Access(None, tokens.node_of))
