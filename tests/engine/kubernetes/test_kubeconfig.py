"""Kubeconfig files: what they mean, and what is said about broken ones."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.api.secret import Secret
from quorate.engine.kubernetes import Connection, load_connection
from quorate.engine.kubernetes.credentials import Identity
from quorate.engine.kubernetes.tls import ClientCertificate
from quorate.errors import ConfigError
from tests.engine.kubernetes.manual_clock import ManualClock

PEM = b"-----BEGIN CERTIFICATE-----\nnot looked at here\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\nnor this\n-----END PRIVATE KEY-----\n"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def config(cluster: Any = None, user: Any = None, context: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://api.test:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
    }


def load(directory: Path, content: Any, context: str | None = None, **environ: str) -> Connection:
    file = directory / "config"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return load_connection(environ=environ, clock=ManualClock(), kubeconfig=file, context=context)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_bytes(PEM)
    (tmp_path / "me.crt").write_bytes(PEM)
    (tmp_path / "me.key").write_bytes(KEY)
    (tmp_path / "token").write_text("from-file\n")
    return tmp_path


CERTIFIED = Identity(None, ClientCertificate(PEM, Secret(KEY.decode())))


@pytest.mark.parametrize(
    ("user", "identity"),
    [
        ({}, Identity()),
        ({"token": "abc"}, Identity(Secret("abc"))),
        ({"tokenFile": "token"}, Identity(Secret("from-file"))),
        ({"tokenFile": "token", "token": "abc"}, Identity(Secret("from-file"))),
        ({"client-certificate": "me.crt", "client-key": "me.key"}, CERTIFIED),
        ({"client-certificate-data": encoded(PEM), "client-key-data": encoded(KEY)}, CERTIFIED),
        ({"client-certificate": "me.crt", "client-key-data": encoded(KEY)}, CERTIFIED),
        (
            {"client-certificate": "missing", "client-certificate-data": encoded(PEM), "client-key": "me.key"},
            CERTIFIED,
        ),
        (
            {"token": "abc", "client-certificate": "me.crt", "client-key": "me.key"},
            Identity(Secret("abc"), CERTIFIED.certificate),
        ),
    ],
)
async def test_a_user_becomes_the_identity_that_it_describes(
    files: Path, user: dict[str, str], identity: Identity
) -> None:
    assert await load(files, config(user=user)).credentials.identity() == identity


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({}, {"server": "https://api.test:6443", "ca": None, "verify": True, "proxy": None}),
        ({"server": "https://api.test/k8s/clusters/c-1/"}, {"server": "https://api.test/k8s/clusters/c-1"}),
        ({"server": "http://127.0.0.1:8001"}, {"server": "http://127.0.0.1:8001"}),
        ({"certificate-authority": "ca.crt"}, {"ca": PEM}),
        ({"certificate-authority-data": encoded(PEM)}, {"ca": PEM}),
        ({"certificate-authority-data": encoded(PEM), "certificate-authority": "missing"}, {"ca": PEM}),
        ({"insecure-skip-tls-verify": True}, {"verify": False}),
        ({"tls-server-name": "kubernetes.default"}, {"tls_server_name": "kubernetes.default"}),
        ({"proxy-url": "http://user:pw@proxy:3128"}, {"proxy": "http://user:pw@proxy:3128"}),
        ({"something-new": {"unknown": 1}}, {"server": "https://api.test:6443"}),
    ],
)
def test_a_cluster_becomes_the_connection_that_it_describes(
    files: Path, cluster: dict[str, Any], expected: dict[str, Any]
) -> None:
    connection = load(files, config(cluster))
    assert {name: getattr(connection, name) for name in expected} == expected


def test_the_namespace_is_the_contexts_or_default(files: Path) -> None:
    assert load(files, config()).namespace == "default"
    assert load(files, config(context={"namespace": "storage"})).namespace == "storage"


def test_a_context_without_a_user_is_anonymous(files: Path) -> None:
    assert load(files, config(context={"user": ""})).server == "https://api.test:6443"


def test_the_proxy_of_the_environment_is_used_when_the_file_names_none(files: Path) -> None:
    assert load(files, config(), HTTPS_PROXY="http://proxy:3128").proxy == "http://proxy:3128"
    named = load(files, config({"proxy-url": "http://own:1"}), HTTPS_PROXY="http://proxy:3128")
    assert named.proxy == "http://own:1"


PROBLEMS: list[tuple[str, Any, list[str]]] = [
    ("no YAML", "clusters: [", ["is not YAML", "line 1"]),
    ("no mapping", "- a list", ["Expected `object`"]),
    ("wrong type", {"clusters": "none"}, ["$.clusters"]),
    ("wrong type of a secret", config(user={"token": 5}), ["$.users[0].user.token"]),
    ("no current context", {"contexts": [{"name": "a"}, {"name": "b"}]}, ["current-context", "a, b"]),
    ("unknown context", {"current-context": "gone", "contexts": [{"name": "a"}]}, ["'gone'", "defined are: a"]),
    ("unknown cluster", config(context={"cluster": "gone"}), ["context 'here'", "cluster 'gone'", "defined are: c"]),
    ("unknown user", config(context={"user": "gone"}), ["context 'here'", "user 'gone'", "defined are: u"]),
    ("no server", config({"server": ""}), ["cluster 'c'", "server"]),
    ("no URL", config({"server": "api.test:6443"}), ["server", "'api.test:6443'"]),
    ("password in URL", config({"server": "https://a:hunter2@api.test"}), ["server", "credentials"]),
    ("CA missing", config({"certificate-authority": "nope.crt"}), ["certificate-authority", "nope.crt"]),
    ("CA no base64", config({"certificate-authority-data": "!!"}), ["certificate-authority-data", "base64"]),
    (
        "CA and insecure",
        config({"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True}),
        ["insecure-skip-tls-verify"],
    ),
    ("socks", config({"proxy-url": "socks5://u:hunter2@proxy"}), ["proxy-url", "'socks5'"]),
    ("key missing", config(user={"client-certificate": "me.crt"}), ["user 'u'", "client-key is missing"]),
    ("certificate missing", config(user={"client-key": "me.key"}), ["client-certificate is missing"]),
    ("certificate unreadable", config(user={"client-certificate": "x", "client-key": "me.key"}), ["user 'u'", "x:"]),
    ("key no base64", config(user={"client-certificate": "me.crt", "client-key-data": "~"}), ["client-key-data"]),
    ("token file missing", config(user={"tokenFile": "nope"}), ["user 'u'", "nope"]),
    ("token empty", config(user={"token": ""}), ["user 'u'", "empty"]),
    ("basic", config(user={"username": "admin", "password": "hunter2"}), ["username", "use a token"]),
    ("auth provider", config(user={"auth-provider": {"name": "gcp"}}), ["auth-provider", "exec plugin"]),
    ("impersonation", config(user={"as": "somebody"}), ["as:", "not supported"]),
    (
        "named twice",
        {"current-context": "a", "users": [{"name": "u"}, {"name": "u"}]},
        ["users", "'u' is defined twice"],
    ),
    (
        "exec alpha",
        config(user={"exec": {"command": "x", "apiVersion": "v1alpha1"}}),
        ["exec.apiVersion", "'v1alpha1'"],
    ),
    (
        "exec without mode",
        config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}),
        ["exec.interactiveMode", "IfAvailable"],
    ),
    (
        "exec with a wrong mode",
        config(
            user={
                "exec": {
                    "command": "x",
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "interactiveMode": "Perhaps",
                }
            }
        ),
        ["exec.interactiveMode", "'Perhaps'"],
    ),
    (
        "exec that needs a terminal",
        config(
            user={
                "exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Always"}
            }
        ),
        ["no terminal"],
    ),
    (
        "exec and token",
        config(
            user={"token": "hunter2", "exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1beta1"}}
        ),
        ["exec cannot be combined"],
    ),
]


@pytest.mark.parametrize(("content", "said"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS])
def test_a_broken_file_is_refused_with_its_place_and_without_its_secrets(
    files: Path, content: Any, said: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(files, content)
    message = str(caught.value)
    for part in [str(files / "config"), *said]:
        assert part in message
    assert "hunter2" not in message


def test_a_file_that_is_no_yaml_is_not_quoted(files: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(files, "users: [{name: u, user: {token: hunter2")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("secret", ["the-token", KEY.decode().splitlines()[1], "proxy-password"])
def test_no_secret_shows_in_a_representation(files: Path, secret: str) -> None:
    user = {"token": "the-token", "client-certificate": "me.crt", "client-key": "me.key"}
    connection = load(files, config({"proxy-url": "http://u:proxy-password@proxy"}, user=user))
    assert secret not in repr(connection)
    assert secret not in repr(vars(connection.credentials))


class TestSeveralFiles:
    def load(self, directory: Path, *contents: Any, context: str | None = None) -> Connection:
        paths = []
        for number, content in enumerate(contents):
            file = directory / f"dir{number}" / "config"
            file.parent.mkdir()
            file.write_text(json.dumps(content))
            paths.append(str(file))
        environ = {"KUBECONFIG": ":".join([*paths, "", str(directory / "missing")])}
        return load_connection(environ=environ, clock=ManualClock(), context=context)

    async def test_the_first_definition_wins_and_the_rest_adds_up(self, tmp_path: Path) -> None:
        first = {"contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "first"}}]}
        second = config({"server": "https://second.test"}, {"token": "second"}, {"namespace": "second"})
        connection = self.load(tmp_path, first, second)
        assert connection.namespace == "first"
        assert connection.server == "https://second.test"
        assert await connection.credentials.identity() == Identity(Secret("second"))

    def test_the_first_current_context_wins(self, tmp_path: Path) -> None:
        other = config() | {"current-context": "other"}
        other["contexts"][0]["name"] = "other"
        assert "context 'other'" in self.load(tmp_path, other, config()).origin

    def test_a_path_counts_from_the_file_that_holds_it(self, tmp_path: Path) -> None:
        (tmp_path / "dir1").mkdir()
        (tmp_path / "dir1" / "ca.crt").write_bytes(PEM)
        (tmp_path / "dir1" / "config").write_text(json.dumps(config({"certificate-authority": "ca.crt"})))
        (tmp_path / "dir0").write_text("{}")
        environ = {"KUBECONFIG": f"{tmp_path / 'dir0'}:{tmp_path / 'dir1' / 'config'}"}
        assert load_connection(environ=environ, clock=ManualClock()).ca == PEM

    def test_another_context_can_be_asked_for(self, tmp_path: Path) -> None:
        content = config()
        content["contexts"].append({"name": "there", "context": {"cluster": "c", "namespace": "far"}})
        assert self.load(tmp_path, content, context="there").namespace == "far"

    def test_no_file_at_all_is_an_error_that_names_what_was_looked_for(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"missing.*no such file"):
            load_connection(environ={"KUBECONFIG": str(tmp_path / "missing")}, clock=ManualClock())
