"""An agent is known by its token, and by nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from quorate.errors import ConfigError, Unauthorized
from quorate.server.kubernetes.auth import Access
from quorate.server.kubernetes.callers import ADMIN, LOOPBACK, AgentTokens, TokenFile, agent


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


def test_a_copy_of_a_token_does_not_make_its_agent_somebody_else(tokens: AgentTokens, tmp_path: Path) -> None:
    token = tokens.token("node-1")
    for copy in ("node-1.bak", "node-1.old"):
        (tmp_path / "agents" / copy).write_text(token)
    assert AgentTokens(tmp_path / "agents").node_of(token) == "node-1"


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


def test_a_token_that_is_nobodys_opens_nothing_also_where_none_is_needed(tokens: AgentTokens) -> None:
    with pytest.raises(Unauthorized):
        Access(None, tokens.node_of).identify("/api", {"Host": "localhost", "Authorization": "Bearer x"})


def test_a_token_that_was_written_over_opens_nothing_and_the_new_one_does(tokens: AgentTokens, tmp_path: Path) -> None:
    old = tokens.token("n1")
    for number in range(20):
        assert tokens.node_of(old) == "n1"
        new = f"{number:0{len(old)}}"
        with (tmp_path / "agents" / "n1").open("r+") as file:
            file.write(new)
        assert tokens.node_of(old) is None
        assert tokens.node_of(new) == "n1"
        old = new


def test_what_is_no_token_in_the_directory_makes_nobody_an_admin(tokens: AgentTokens, tmp_path: Path) -> None:
    token = tokens.token("n1")
    (tmp_path / "agents" / "backup").mkdir()
    (tmp_path / "agents" / "empty").touch()
    (tmp_path / "agents" / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "agents" / "pipe")
    access = Access(None, tokens.node_of)
    headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {token}"}
    assert access.identify("/api", headers) == agent("n1")
    (tmp_path / "agents" / "n1").unlink()
    with pytest.raises(Unauthorized):
        access.identify("/api", headers)
    assert tokens.node_of("") is None


def test_tokens_that_are_nobodys_cost_one_look_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    tokens = AgentTokens(tmp_path / "agents", monotonic=lambda: now[0])
    token = tokens.token("n1")
    assert tokens.node_of(token) == "n1"
    looks: list[int] = []

    def read() -> dict[bytes, str]:
        looks.append(1)
        return {}

    monkeypatch.setattr(tokens, "_read", read)
    for _ in range(100):
        assert tokens.node_of("guess") is None
    assert len(looks) <= 1
    now[0] += 2
    assert tokens.node_of("guess") is None
    assert looks == [1]


def test_the_token_for_people_is_the_one_that_the_file_has_now(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("the first of two tokens".replace(" ", "-"))
    token = TokenFile(file)
    access = Access(token.read(), lambda _: None, token.now)
    first = {"Authorization": "Bearer the-first-of-two-tokens"}
    assert access.identify("/api", first) == ADMIN
    with file.open("r+") as opened:
        opened.write("THE-FIRST-OF-TWO-TOKENS")
    with pytest.raises(Unauthorized):
        access.identify("/api", first)
    assert access.identify("/api", {"Authorization": "Bearer THE-FIRST-OF-TWO-TOKENS"}) == ADMIN
    for content in ("", "short"):
        file.write_text(content)
        for given in ("", content, "THE-FIRST-OF-TWO-TOKENS"):
            with pytest.raises(Unauthorized):
                access.identify("/api", {"Authorization": f"Bearer {given}"})


def test_tokens_are_not_shown(tokens: AgentTokens) -> None:
    token = tokens.token("n1")
    assert tokens.node_of(token) == "n1"
    assert token not in repr(Access(None, tokens.node_of))


def test_a_token_that_was_replaced_or_taken_back_stays_so_after_a_power_cut(
    tokens: AgentTokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name must be on the disk before anybody is told, not only what is in the file."""
    synced: list[tuple[str, bool]] = []
    path = tmp_path / "agents" / "node-1"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.readlink(f"/proc/self/fd/{file}"), path.exists())))
    tokens.replace("node-1")
    assert synced[-1] == (str(path.parent), True)
    tokens.revoke("node-1")
    assert synced[-1] == (str(path.parent), False)
